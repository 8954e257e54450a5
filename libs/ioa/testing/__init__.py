"""Doubles for tests of agents. The names below are public; the other fakes are those of this project's own tests.

Each is loaded when it is first used. `ioa_testkit` has whole systems for tests.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ioa.testing.scripted_brain import ScriptedBrain
    from ioa.testing.scripted_model import ScriptedModel
    from ioa.testing.task_context import RecordingContext, found, input_file, upstream

__all__ = ["RecordingContext", "ScriptedBrain", "ScriptedModel", "found", "input_file", "upstream"]

_HOMES = {
    "RecordingContext": "ioa.testing.task_context",
    "ScriptedBrain": "ioa.testing.scripted_brain",
    "ScriptedModel": "ioa.testing.scripted_model",
    "found": "ioa.testing.task_context",
    "input_file": "ioa.testing.task_context",
    "upstream": "ioa.testing.task_context",
}
"""Where each name is defined."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
