"""Public names: few, importable, and with stable parameters."""

from __future__ import annotations

import inspect

import pytest

import ioa
import ioa.adopt
import ioa.react
import ioa.testing
import ioa_testkit
from ioa_testkit import FinishedGoal, RunningSystem, ScriptedGroup, ScriptedMember, System

MODULES = (ioa, ioa.adopt, ioa.testing, ioa_testkit)
MAX_NAMES = 65


def test_public_names_are_importable_and_few() -> None:
    """An author can overlook them."""
    for module in MODULES:
        assert all(getattr(module, name) is not None for name in module.__all__)
        assert dir(module) == sorted(module.__all__)
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            _ = module.nothing
    assert len({name for module in (*MODULES, ioa.react) for name in module.__all__}) <= MAX_NAMES


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (System.run, "goal agents files brain model"),
        (System.serve, "agents brain model"),
        (System.group, "goal agent members files brain model"),
        (RunningSystem.run, "goal files"),
        (FinishedGoal.messages, "by"),
        (ScriptedGroup.messages, "by"),
        (ScriptedMember.says, "content to"),
        (ScriptedMember.assigns, "to task uses beside"),
        (ScriptedMember.asks, "to task uses"),
        (ScriptedMember.waits_for, "tasks"),
        (ScriptedMember.reports, "task content fraction"),
        (ScriptedMember.finishes, "task content failed"),
        (ScriptedMember.concludes, "content failed"),
    ],
)
def test_parameters_are_stable(function: object, parameters: str) -> None:
    """By name and order: tests of authors use them."""
    assert list(inspect.signature(function).parameters)[1:] == parameters.split()  # type: ignore[arg-type]
