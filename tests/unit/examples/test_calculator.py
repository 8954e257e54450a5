"""The calculator: exact arithmetic, percentages, units, and nothing executed."""

from __future__ import annotations

import ast
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import csv_analyst
import questions
from calculator import _NUMBER, agent, compute
from ioa.errors import DeclinedError, InvalidInputError
from ioa.testing.task_context import upstream
from tests.unit.examples.agent_run import Run
from tests.unit.growth.measuring import DEAR, seconds_of, times_plain


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ("15 % of 240", "36"),
        ("what is 15% of 240?", "36"),
        ("How much is 2 + 3?", "5"),
        ("calculate (3.5 + 4) * 2^3", "60"),
        ("0.1 + 0.2", "0.3"),
        ("10 / 4", "2.5"),
        ("-3 - -4", "1"),
        ("2 ** 10", "1024"),
        ("2^-2", "0.25"),
        ("1,000 + 2,500.5", "3500.5"),
        ("add 5 and 6", "11"),
        ("multiply 6 by 7", "42"),
        ("Convert 12 from pounds to kg", "5.44310844 kg"),
        ("subtract 5 % from 200", "190"),
        ("20 is what percent of 80", "25 %"),
        ("what percent of 60 is 45", "75 %"),
        ("What percentage of 60 is 45?", "75 %"),
        ("add 19 % VAT to (40 + 60)", "119"),
        ("square root of 144", "12"),
        ("-2^2", "-4"),
        ("22/7", "3.14285714285714"),
        ("100 degrees fahrenheit in celsius", "37.7777777777778 celsius"),
        ("12 times (3 plus 4)", "84"),
        ("20 minus -5", "25"),
        ("What is 9 divided by 4?", "2.25"),
        ("20 °C in °F", "68 °F"),
        ("divide -10 by (2 * 5)", "-1"),
        ("2^100", str(2**100)),
        ("12 miles in km", "19.312128 km"),
        ("60 mph in km/h", "96.56064 km/h"),
        ("sqrt(16) + 9", "13"),
        ("(15 % of 240) plus 5", "41"),
        ("15 % of (240 plus 5)", "36.75"),
        ("square root of (2^10)", "32"),
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
        ("3 +", "is not read as one calculation"),
        ("3,5 km to m", "'3,5 km to m' is not read as one calculation or conversion with a value."),
        ("2,75 + 1", "decimals have a point"),
        ("1.700,00 + 1", "decimals have a point"),
        ("3 plus 4 times 5", "is not read as one calculation"),
        ("2^0.5", "powers are whole"),
        ("convert 12", "is not read as one calculation"),
        ("12 miles", "is not read as one calculation"),
        ("12 in km", "is not read as one calculation"),
        ("subtract 20 % VAT from 120", "is not read as one calculation"),
        ("3 kg + 2 m", "is not read as one calculation"),
        ("5 feet 11 inches to cm", "is not read as one calculation or conversion"),
        ("2 KM in miles", "'KM' is no unit that is known"),
        ("(3 + 4", "is not read as one calculation"),
        ("9^9^9^9", "with a value"),
        ("5 kg in km", "cannot be converted"),
        ("5 blorps in km", "no unit that is known"),
        ("", "is not read as one calculation"),
        ("3 tons in kg", "has several sizes"),
        ("5 US gallons in litres", "'US', 'gallons' are not part of one"),
        ("how many litres are in 3 gallons?", "'how', 'many', 'are' are not part of one"),
        ("sqrt(0 - 1)", "with a value"),
        ("5 100 + 1", "is not read as one calculation"),
        ("2(3)", "is not read as one calculation"),
        ("12 miles in km and feet", "is not read as one calculation or conversion"),
        ("180 R in celsius", "'R' is no unit that is known"),
        ("100 + 5 %", "a % is of something"),
        ("square root of 2 to the power of 10", "'the', 'power' are not part of one"),
        ("square root of 16 plus 9", "is not read as one calculation"),
        ("square root of 2025 plus 3 cubed", "'cubed' is not part of one"),
        ("(" * 5000 + "1" + ")" * 5000, "up to 1,000 are read here"),
    ],
)
def test_refusals(task: str, said: str, run: Run) -> None:
    """What is no arithmetic, or has no value, is an error that says why, and what can be written."""
    with pytest.raises(InvalidInputError) as error:
        run(agent, task)
    assert said in str(error.value)


@pytest.mark.parametrize("task", ["100 + 5 %", "15 % of 240 plus 5", "divide 10 by 2 * 5", "100 crowns in km", "5 kg in crowns"])
def test_arithmetic_that_is_not_understood_is_not_declined(task: str, run: Run) -> None:
    """Nobody else does it, so that its reason is the one to tell."""
    with pytest.raises(InvalidInputError) as error:
        run(agent, task)
    assert not isinstance(error.value, DeclinedError)


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
        "open('/etc/passwd').read()",
        "5!",
        "half of 50",
        "sum of 3, 4 and 5",
        "$5 + €3",
        "days from 4 March 2025",
        "sin 30",
        "0b10 + 1",
        "1_000 + 1",
        "1j * 1j",
        "1 if 2 else 3",
        "what is 2 plus 2 roughly",
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


@pytest.mark.parametrize(
    "content",
    [
        "10:30",
        "1.5.2",
        "5 million",
        "sum: 5 million",
        "at 10: 30",
        "3 : 4",
        "x <= 5",
        "total is 5",
        "The\n42",
        "total: 3 and 4",
        "1 2",
        "1e+20",
        "a: 1\nb: 2",
        "min=1 max=9",
        "a: 1, b: 2",
        "revenue: 12 (in thousands)",
        "share: 15 (%)",
        "t.csv, rank: sum of a (3 of 4 rows):\n- Oslo: 5",
        "10 / 3 ≈ 3.33333333333333",
        "5 kg in pounds ≈ 11.0231131092439 pounds",
    ],
)
def test_no_part_of_a_figure_is_taken_for_it(content: str, run: Run) -> None:
    """What is written in another way than a number alone is refused, and what is rounded (a third would not be one any more)."""
    with pytest.raises(InvalidInputError, match="not one exact figure alone"):
        run(agent, "double it", results=[upstream("earlier", content)])
    with pytest.raises(DeclinedError, match="'report' are not part of one"):  # whatever the result is
        run(agent, "write a report of it", results=[upstream("earlier", content)])
    found = "sums of 2 of 4 rows\n  1: sum: 42"
    with pytest.raises(InvalidInputError, match="not one exact figure alone"):
        run(agent, "double it", results=[upstream("find it", found)])


@pytest.mark.parametrize(
    ("task", "earlier", "said"),
    [
        ("divide the result by 6", "t.csv: sum of n where day is 2024: 176 (6 of 7 rows).", "divide 176 by 6 ≈ 29.3333333333333"),
        ("convert the result to g", "t.csv: sum of weight: 2.5 (3 of 3 rows, in kg; left out: 1 without it).", "2500 g"),
        ("double the result", "t.csv: average of quota: 52.1 (9 of 9 rows, in %).", "The earlier result is a percentage."),
        ("multiply it by 3", "t.csv: average of n where k is A: 31 / 3 ≈ 10.3333 (3 of 9 rows).", "multiply (31 / 3) by 3 = 31"),
        ("convert it to g", "t.csv: average of n: 31 / 3 ≈ 10.3333 (3 of 3 rows, in kg).", "(behind ≈ one is rounded)."),
        ("convert it from miles to km", "12 miles in km = 19.312128 km", "The earlier result is of km, not of miles."),
        ("convert it from miles to km", "t.csv: sum of way (km): 12 (3 of 3 rows).", "The earlier result is of km, not of miles."),
        ("convert it from km to m", "t.csv: sum of way (km): 12 (3 of 3 rows).", "12 km in m = 12000 m"),
        ("double it", "t.csv: median of n: ≈ 0.123457 (2 of 2 rows).", "(behind ≈ one is rounded)."),
    ],
)
def test_a_figure_of_a_table_has_the_unit_that_was_told(task: str, earlier: str, said: str, run: Run) -> None:
    """Which stands with how it was read."""
    try:
        text = run(agent, task, results=[upstream("ask", earlier)]).text
    except InvalidInputError as error:
        text = error.message
    assert text.endswith(said)


@pytest.mark.parametrize("task", ["-5 + 3\n-2 + 1", "5 + 3\r\n-2 + 1", "Calculate\n-5 * 3\n-2 * 4"])
def test_two_lines_are_no_single_calculation(task: str, run: Run) -> None:
    """Also where the second begins with a sign."""
    with pytest.raises(InvalidInputError, match="is not read as one calculation"):
        run(agent, task)


def test_a_refusal_shows_what_was_said(run: Run) -> None:
    """Not what was put in the place of its words."""
    with pytest.raises(DeclinedError, match="'Round the result to 1 decimals' is no calculation"):
        run(agent, "Round the result to 1 decimals", results=[upstream("add", "20 + 5 = 25")])
    with pytest.raises(InvalidInputError, match="'divide 5 by 0' is not read"):
        run(agent, "divide 5 by 0")


@pytest.mark.parametrize("task", ["-300 celsius in kelvin", "-1 kelvin in celsius", "-500 degrees fahrenheit in celsius"])
def test_what_is_colder_than_anything_is_no_temperature(task: str, run: Run) -> None:
    """Nothing lies below absolute zero, which itself is converted."""
    with pytest.raises(InvalidInputError, match="below absolute zero"):
        run(agent, task)
    assert run(agent, "0 kelvin in celsius").text.endswith("= -273.15 celsius")


@pytest.mark.parametrize("asked", ["maximum n", "minimum n"])
def test_a_remark_of_a_result_is_no_figure(asked: str, run: Run, tmp_path: Path) -> None:
    """How many rows have a highest figure is not taken for it."""
    path = tmp_path / "t.csv"
    path.write_text("k,n\nA,7\nB,7\n")
    earlier = run(csv_analyst.agent, asked, [path]).text
    assert run(agent, "add 10 to the result", results=[upstream(asked, earlier)]).text.endswith(" = 17")


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
    ("task", "earlier", "said"),
    [
        ("convert the result to cm", "Convert 3 km to m = 3000 m", "3000 m in cm = 300000 cm"),
        ("What is it in C?", "-10 °C to F = 14 F", "14 F in C = -10 C"),
        ("What is it in F?", "14 F to C = -10 C", "-10 C in F = 14 F"),
        ("Convert the result from miles to km", "t.csv: sum of way: 12 (3 of 3 rows).", "12 miles in km = 19.312128 km"),
        ("12 times the result", "a: -3", "12 times (-3) = -36"),
        ("Double it", "3+4 = 7", "Double 7 = 14"),
        ("multiply the output by 2", "3 km to m = 3000 m", "multiply 3000 by 2 = 6000"),
    ],
)
def test_a_result_is_taken_with_its_unit_and_its_size(task: str, earlier: str, said: str, run: Run) -> None:
    """It is converted from the unit that it was shown in, and may be a power of ten."""
    assert run(agent, task, results=[upstream("before", earlier)]).text == said


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


@pytest.mark.parametrize("unit", ["ML", "Mg", "Mm"])
def test_a_unit_that_is_short_has_its_case(unit: str, run: Run) -> None:
    """A megalitre is a milliard millilitres."""
    with pytest.raises(InvalidInputError, match=f"'{unit}' is no unit that is known"):
        run(agent, f"5 {unit} in litres")


@given(st.text(max_size=60))
def test_any_text_is_a_value_or_a_refusal(text: str) -> None:
    """No text makes the parser fail in any way but its own."""
    try:
        assert isinstance(compute(text), Fraction)
    except InvalidInputError as error:
        assert error.message


@pytest.mark.parametrize("digits", [300, 500, 700, 998])
def test_digits_that_are_no_number_are_read_at_once(digits: int, run: Run) -> None:
    """In one call of `re`, beside which nothing else of the whole process runs."""
    text = "1" * digits + "a1" + "a" * (998 - digits)
    seconds = seconds_of(lambda _: run(agent, text), lambda _size, _salt: None, 0, 3)
    assert times_plain(seconds, len(text)) < DEAR


@pytest.mark.parametrize(
    ("pattern", "giving_back"),
    [
        (_NUMBER, r"(?:(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d+)?|\.\d+)(?![\w.]*\d)"),
        (questions._NUMBER, r"[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w,.]*\d)"),
    ],
    ids=["calculator", "questions"],
)
@given(
    text=st.text(st.sampled_from("1٣,.-−a_ "), max_size=16)
    | st.lists(st.sampled_from(["1", "111", ",111", ".", "a", " "])).map("".join)
)
def test_no_number_is_another_one_for_that(pattern: str, giving_back: str, text: str) -> None:
    """What is read is what a pattern reads that gives its digits back one by one."""
    assert [one.span() for one in re.finditer(pattern, text)] == [one.span() for one in re.finditer(giving_back, text)]
