"""The calculator: exact arithmetic, percentages, units, and nothing executed."""

from __future__ import annotations

import ast
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator import agent, compute
from ioa.errors import DeclinedError, InvalidInputError
from ioa.testing.task_context import upstream
from tests.unit.examples.agent_run import Run


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ("15 % of 240", "36"),
        ("calculate (3.5 + 4) * 2^3", "60"),
        ("1,000 + 2,500.5", "3500.5"),
        ("Convert 12 from pounds to kg", "5.44310844 kg"),
        ("what percent of 60 is 45", "75 %"),
        ("12 times (3 plus 4)", "84"),
        ("20 °C in °F", "68 °F"),
        ("12 miles in km", "19.312128 km"),
        ("(15 % of 240) plus 5", "41"),
    ],
)
def test_values(task: str, value: str, run: Run) -> None:
    """Every expression has its value, shown beside it."""
    assert re.split(" [=≈] ", run(agent, task).text)[-1] == value


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("1/0", "'1/0' is not read as one calculation or conversion with a value."),
        ("2,75 + 1", "decimals have a point"),
        ("2^0.5", "powers are whole"),
        ("3 kg + 2 m", "is not read as one calculation"),
        ("(3 + 4", "is not read as one calculation"),
        ("5 blorps in km", "no unit that is known"),
        ("(" * 5000 + "1" + ")" * 5000, "up to 1,000 are read here"),
    ],
)
def test_refusals(task: str, said: str, run: Run) -> None:
    """What is no arithmetic, or has no value, is an error that says why, and what can be written."""
    with pytest.raises(InvalidInputError) as error:
        run(agent, task)
    assert said in str(error.value)


@pytest.mark.parametrize(
    "task",
    [
        "__import__('os').system('true')",
        "half of 50",
        "days from 4 March 2025",
        "sin 30",
        "What is 12.5% tax on 80 crowns?",
    ],
)
def test_what_is_no_calculation(task: str, run: Run) -> None:
    """Other words, two readings and two calculations at once are refused with what can be written."""
    with pytest.raises(DeclinedError, match=r"is no calculation that is read here.*brackets"):
        run(agent, task)


@pytest.mark.parametrize(
    ("task", "content", "value"),
    [
        ("add 19 % to it", "x.csv, all 3 rows: sum of revenue: 100.", "119"),
        ("15 % of that", "notes.txt: words: 400", "60"),
        ("multiply it by 2", "t.csv: sum of a: 8 (3 of 6 rows, in kg; left out: 1 without a ('-'), such as: 7).", "16"),
        ("convert it to g", "x=3 kg", "3000 g"),
    ],
)
def test_earlier_results(task: str, content: str, value: str, run: Run) -> None:
    """`it` stands for the figure of an earlier result."""
    assert run(agent, task, results=[upstream("earlier", content)]).text.split(" = ")[-1] == value


numbers = st.integers(0, 999).map(str)
expressions = st.recursive(
    numbers,
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda parts: f"({' '.join(parts)})"),
    max_leaves=12,
)


@given(expressions)
def test_agrees_with_python(expression: str) -> None:
    """Any sum, difference and product of whole numbers is what Python's own integers say."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.BinOp):
            left, right = value(node.left), value(node.right)
            return left + right if isinstance(node.op, ast.Add) else left - right if isinstance(node.op, ast.Sub) else left * right
        assert isinstance(node, ast.Constant) and isinstance(node.value, int)
        return node.value

    assert compute(expression) == Fraction(value(ast.parse(expression, mode="eval").body))


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("10 / 4", "= 2.5"),
        ("10 / 3", "≈ 3.33333333333333"),
        ("sqrt(152415787532388367501905199875019052100)", "= 12345678901234567890"),
        ("10^40", "= 1e+40"),
    ],
)
def test_what_is_rounded_is_said_to_be_so(task: str, said: str, run: Run) -> None:
    """It does not look exact; roots of squares are."""
    assert run(agent, task).text == f"{task} {said}"


@given(st.text(max_size=60))
def test_any_text_is_a_value_or_a_refusal(text: str) -> None:
    """No text makes the parser fail in any way but its own."""
    try:
        assert isinstance(compute(text), Fraction)
    except InvalidInputError as error:
        assert error.message
