"""The names that authors and their tests import stay, and take what they took."""

from __future__ import annotations

import inspect

import pytest

import ioa
import ioa.testing
import ioa_testkit
from ioa_testkit import FinishedGoal, RunningSystem, ScriptedGroup, ScriptedMember, System

_IOA = [
    *("Agent", "BudgetSpentError", "ChatAnswer", "ChatMessage", "Client", "DeclinedError", "GoalOrder", "GoalResult", "Heard"),
    *("InputFile", "InvalidInputError", "IoaError", "ModelAgent", "ModelError", "NotFoundError", "TaskContext", "TaskError"),
    *("Team", "Tool", "TurnView", "UnavailableError", "UpstreamResult", "ask_model", "connect", "serving"),
]
_TESTING = ["ChatModelContract", "RecordingContext", "ScriptedBrain", "ScriptedModel", "found", "input_file", "upstream", "wants"]
_TESTKIT = [
    *("Answer", "FinishedGoal", "GivenTask", "Progress", "RunningSystem"),
    *("ScriptError", "ScriptedGroup", "ScriptedMember", "System"),
]


def test_the_public_names_are_frozen() -> None:
    """Taking one away breaks somebody's agent, or tests; each is there, and no other is."""
    for module, names in ((ioa, _IOA), (ioa.testing, _TESTING), (ioa_testkit, _TESTKIT)):
        assert sorted(module.__all__) == sorted(names)
        assert all(getattr(module, name) is not None for name in module.__all__)
        assert dir(module) == sorted(module.__all__)
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            _ = module.nothing


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            System,
            {
                "run": "goal agents files brain model",
                "serve": "agents brain model",
                "group": "goal agent members files brain model",
            },
        ),
        (RunningSystem, {"run": "goal files"}),
        (FinishedGoal, {"messages": "by"}),
        (ScriptedGroup, {"messages": "by", "next_message": "", "result": ""}),
        (
            ScriptedMember,
            {
                "says": "content to",
                "assigns": "to task uses beside",
                "asks": "to task uses",
                "waits_for": "tasks",
                "reports": "task content fraction",
                "finishes": "task content failed",
                "concludes": "content failed",
            },
        ),
    ],
)
def test_calls_take_what_they_took(kind: type, expected: dict[str, str]) -> None:
    """By these names, in this order."""
    found = {name: " ".join(list(inspect.signature(getattr(kind, name)).parameters)[1:]) for name in expected}
    assert found == expected
