"""What authors of agents test with: a whole system in a test, and an agent in a group whose other members a test speaks for.

The names below are public. Each is loaded when it is first used, and not by `ioa.lazy_names`: where nobody asks for the fixture,
the pytest plugin loads nothing of `ioa`. The rest of the package is a control plane in memory, made of the real services, and
agents whose answers are known.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
