"""The calculator: exact arithmetic, percentages, units, and nothing executed."""

from __future__ import annotations

import ast
import re
from fractions import Fraction
from pathlib import Path

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
        ("-3 - -4", "1"),
        ("1,000 + 2,500.5", "3500.5"),
        ("Convert 12 from pounds to kg", "5.44310844 kg"),
        ("what percent of 60 is 45", "75 %"),
        ("-2^2", "-4"),
        ("12 times (3 plus 4)", "84"),
        ("20 °C in °F", "68 °F"),
        ("12 miles in km", "19.312128 km"),
        ("(15 % of 240) plus 5", "41"),
        ("(divide 10 by 2) * 5", "25"),
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
        ("12 miles", "is not read as one calculation"),
        ("3 kg + 2 m", "is not read as one calculation"),
        ("(3 + 4", "is not read as one calculation"),
        ("5 blorps in km", "no unit that is known"),
        ("5 US gallons in litres", "'US', 'gallons' are not part of one"),
        ("5 100 + 1", "is not read as one calculation"),
        ("12 miles in km and feet", "is not read as one calculation or conversion"),
        ("square root of 2 to the power of 10", "'the', 'power' are not part of one"),
        ("(" * 5000 + "1" + ")" * 5000, "up to 1,000 are read here"),
    ],
)
def test_refusals(task: str, said: str, run: Run) -> None:
    """What is no arithmetic, or has no value, is an error that says why, and what can be written."""
    with pytest.raises(InvalidInputError) as error:
        run(agent, task)
    assert said in str(error.value)


def test_a_percentage_is_of_something(run: Run) -> None:
    """Nothing is multiplied by 25 where it is 25 % that is meant."""
    with pytest.raises(InvalidInputError, match=r"is a percentage\. Say of what: '25 % of 80'"):
        run(agent, "multiply 80 by the result", results=[upstream("percent", "20 is what percent of 80 = 25 %")])


@pytest.mark.parametrize("task", ["2026-11-26 - 2026-11-20", "25/12/2026", "what is 2026-1-2 + 5"])
def test_a_date_is_no_calculation(task: str, run: Run) -> None:
    """Its signs part the days from the months."""
    with pytest.raises(InvalidInputError, match="is not read as one calculation"):
        run(agent, task)


def test_which_number_of_a_text_is_it(run: Run, tmp_path: Path) -> None:
    """Nobody can tell; a figure that is reported is one beside what explains it, and several are told."""
    text = tmp_path / "text.txt"
    text.write_text("12 chairs and 3 tables at 45.00 each,\nthe tables 120.00 each")
    with pytest.raises(InvalidInputError, match="The earlier result is not one exact figure alone"):
        run(agent, "double it", results=[upstream("read letter.txt", text.read_text(), text)])
    for said in ("1 2 3", "Net 100, VAT 19.00", "Order of 12 chairs and 3 tables.\nIt is 120", "rows: 40\n678.0 euros"):
        with pytest.raises(InvalidInputError, match="not one exact figure alone"):
            run(agent, "double it", results=[upstream("run it", said)])
    row = "t.csv: maximum of n: 80 (3 of 3 rows; its row: in 50, n 80)."
    assert run(agent, "double it", results=[upstream("maximum n", row)]).text == "double 80 = 160"


@pytest.mark.parametrize(
    "task",
    [
        "60 km / 2 h",
        "__import__('os').system('true')",
        "5!",
        "half of 50",
        "sum of 3, 4 and 5",
        "days from 4 March 2025",
        "sin 30",
        "1_000 + 1",
        "1j * 1j",
        "1 if 2 else 3",
        "What is 12.5% tax on 80 crowns?",
        "12 squared",
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
        ("divide the total by 12", "sales.csv, all 500 rows: sum of revenue: 893371.5.", "74447.625"),
        ("calculate 19 % of that total", "x: sum of a: 100.", "19"),
        ("15 % of that", "notes.txt: words: 400", "60"),
        ("multiply it by 2", "3 + 4 = 7", "14"),
        ("multiply it by 2", "−5", "-10"),
        ("multiply it by 2", "-5", "-10"),
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
        ("(25,225,842.20 * 39,683,866.67) / -82", "≈ -12208036079308"),
        ("sqrt(152415787532388367501905199875019052100)", "= 12345678901234567890"),
        ("sqrt(2) * sqrt(2)", "≈ 2"),
        ("2^200 / 3", "≈ 5.35646014752997e+59"),
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
