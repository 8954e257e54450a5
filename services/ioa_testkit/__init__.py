"""Test support for authors of agents: a whole system in a test.

The names below are public. Each is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioa.lazy_names import lazy_names

if TYPE_CHECKING:
    from ioa_testkit.finished import FinishedGoal
    from ioa_testkit.system import RunningSystem, System

__all__ = ["FinishedGoal", "RunningSystem", "System"]

_HOMES = {
    "FinishedGoal": "ioa_testkit.finished",
    "RunningSystem": "ioa_testkit.system",
    "System": "ioa_testkit.system",
}
"""Where each name is defined."""

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
