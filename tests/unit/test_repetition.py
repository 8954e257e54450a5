"""Texts with equal sketches."""

from __future__ import annotations

import pytest

from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import AsyncTaskAssignment, Pause, TaskSpec
from ioa.repetition import normalised, sketches_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Which month?", "which  MONTH"),
        ("“Draw” a chart (of sales).", "Draw a 'chart' of [sales]!"),
        ("La maňana", "la man\u030cana"),
        ("Straße: 5", "STRASSE 5"),
        ("!!!", "!!!"),
    ],
)
def test_texts_that_differ_in_case_spacing_and_punctuation_are_equal(one: str, other: str) -> None:
    """In any script that has them."""
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5", "-5"),
        ("f(x)", "f x"),
        ("a.csv", "a csv"),
        ("1.5", "15"),
        ("don't", "dont"),
        ("!!!", "???"),
        ("Summe", "sum"),
        ("+1", "1"),
    ],
)
def test_texts_that_differ_in_a_sign_are_different(one: str, other: str) -> None:
    """Also in a sign within a word."""
    assert normalised(one) != normalised(other)


def test_sketch_of_a_task_includes_the_tasks_that_it_uses() -> None:
    """In any order."""
    spec = TaskSpec(task_id=TaskId("t1-1"), assignee=AgentId("bob"), task_desc="Sum up.", uses=(TaskId("a"), TaskId("b")))
    turned, alone = spec.model_copy(update={"uses": spec.uses[::-1]}), spec.model_copy(update={"uses": ()})
    one, other, third = sketches_of(AsyncTaskAssignment(tasks=(spec, turned.model_copy(update={"task_id": "t1-2"}), alone)))
    assert one == other != third


def test_pause_has_no_sketch() -> None:
    """It may be repeated."""
    assert sketches_of(Pause(triggers=(TaskId("t1-1"),))) == ()
