"""Test support for authors of agents: a whole system in a test, and a group whose other members a test speaks for.

The names below are public. Each is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioa.lazy_names import lazy_names

if TYPE_CHECKING:
    from ioa_testkit.finished import FinishedGoal, Progress
    from ioa_testkit.script_error import ScriptError
    from ioa_testkit.scripted_group import Answer, GivenTask, ScriptedGroup, ScriptedMember
    from ioa_testkit.system import RunningSystem, System

__all__ = [
    "Answer",
    "FinishedGoal",
    "GivenTask",
    "Progress",
    "RunningSystem",
    "ScriptError",
    "ScriptedGroup",
    "ScriptedMember",
    "System",
]

_HOMES = {
    "Answer": "ioa_testkit.scripted_group",
    "FinishedGoal": "ioa_testkit.finished",
    "GivenTask": "ioa_testkit.scripted_group",
    "Progress": "ioa_testkit.finished",
    "RunningSystem": "ioa_testkit.system",
    "ScriptError": "ioa_testkit.script_error",
    "ScriptedGroup": "ioa_testkit.scripted_group",
    "ScriptedMember": "ioa_testkit.scripted_group",
    "System": "ioa_testkit.system",
}
"""Where each name is defined."""

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
