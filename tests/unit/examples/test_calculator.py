"""The calculator: exact values of expressions, and nothing else."""

from __future__ import annotations

import pytest

from calculator import agent
from ioa.errors import InvalidInputError
from ioa.testing.recording_context import upstream
from tests.unit.examples.agent_run import Run


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("15 / 100 * 240", "15 / 100 * 240 = 36"),
        ("(3.5 + 4) * 2 ** 3", "(3.5 + 4) * 2 ** 3 = 60"),
        ("0.1 + 0.2", "0.1 + 0.2 = 0.3"),
        ("-2 ** 2", "-2 ** 2 = -4"),
        ("2 ** -2", "2 ** -2 = 0.25"),
        ("1 / 3", "1 / 3 ≈ 0.333333"),
        ("1 - 3 / 7", "1 - 3 / 7 ≈ 0.571429"),
        ("10 / 3", "10 / 3 ≈ 3.333333"),
        ("5 - 5", "5 - 5 = 0"),
        ("-0.000001", "-0.000001 = -0.000001"),
    ],
)
def test_expression_is_computed_exactly(run: Run, task: str, answer: str) -> None:
    """A rounded value is marked."""
    assert run(agent, task).text == answer


@pytest.mark.parametrize("task", ["1 / 0", "2 +", "(1", "1 2", "007", "2 ** 0.5", "9 ** 9 ** 9", "1 // 2", "3.", "()"])
def test_wrong_expression_is_rejected(run: Run, task: str) -> None:
    """Before it takes time or memory."""
    with pytest.raises(InvalidInputError):
        run(agent, task)


def test_results_of_earlier_items_are_used(run: Run) -> None:
    """Only if each is one exact number."""
    first, second = upstream("3 + 4", "3 + 4 = 7"), upstream("count of words in a.txt", "words in a.txt = 12")
    assert run(agent, "#1 * 2 - #2", results=[first, second]).text == "(7) * 2 - (12) = 2"
    assert run(agent, "#1 * #10", results=[first, second]).text == "(7) * (12) = 84"
    for content in ("10 / 3 ≈ 3.333333", "- East: 5\n- West: 7", "a.png: a chart"):
        with pytest.raises(InvalidInputError, match="#1 is not one exact number"):
            run(agent, "#1 + 1", results=[upstream("x", content)])
    with pytest.raises(InvalidInputError, match="names 1 results and receives 0"):
        run(agent, "#1 + 1")
