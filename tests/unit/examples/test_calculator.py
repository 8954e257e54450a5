"""The calculator: exact arithmetic, percentages, units, and nothing executed."""

from __future__ import annotations

import ast
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arithmetic import compute
from calculator import agent
from ioa.errors import InvalidInputError
from ioa.testing.task_context import upstream
from tests.unit.examples.agent_run import Run


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ("15 % of 240", "36"),
        ("what is 15% of 240?", "36"),
        ("calculate (3.5 + 4) * 2^3", "60"),
        ("0.1 + 0.2", "0.3"),
        ("10 / 4", "2.5"),
        ("-3 - -4", "1"),
        ("2 ** 10", "1024"),
        ("2^-2", "0.25"),
        ("1,000 + 2,500.5", "3500.5"),
        ("seven times 8", "56"),
        ("sum of 3, 4 and 5", "12"),
        ("the average of 10, 20 and 45", "25"),
        ("median of 9, 1, 5 and 7", "6"),
        ("product of 2, 3 and 4", "24"),
        ("difference between 12 and 20", "8"),
        ("add 5 and 6", "11"),
        ("multiply 6 by 7", "42"),
        ("subtract 5 % from 200", "190"),
        ("240 plus 15 %", "276"),
        ("100 + -5 %", "95"),
        ("3 km 5 m 2 cm in m", "3005.02 m"),
        ("100 m2 in ft2", "1076.39104167097 ft2"),
        ("increase 80 by 25%", "100"),
        ("20 is what percent of 80", "25 %"),
        ("what percent of 80 is 20?", "25 %"),
        ("20 out of 80 as a percentage", "25 %"),
        ("20 of 80 in percent", "25 %"),
        ("percentage change from 50 to 75", "50 %"),
        ("square root of 144", "12"),
        ("what is 5 factorial", "120"),
        ("5!", "120"),
        ("half of 50", "25"),
        ("smallest of 1/2 and 1/3", "0.333333333333333"),
        ("10 + half of 50", "35"),
        ("double (3 + 4)", "14"),
        ("divide -10 by (2 * 5)", "-1"),
        ("subtract 5 % of 200 from 300", "290"),
        ("3 million / 4", "750000"),
        ("2^100", str(2**100)),
        ("12 miles in km", "19.312128 km"),
        ("convert 100 °F to celsius", "37.7777777777778 celsius"),
        ("-40 C in F", "-40 F"),
        ("300 K in °C", "26.85 °C"),
        ("5 feet 10 inches in cm", "177.8 cm"),
        ("60 mph in km/h", "96.56064 km/h"),
        ("3 hours 20 minutes in seconds", "12000 seconds"),
        ("how many minutes are in a day", "1440 minutes"),
        ("how many litres are in 5 US gallons", "18.92705892 litres"),
        ("How many litres are 12 US gallons?", "45.424941408 litres"),
        ("5 imperial gallons in litres", "22.73045 litres"),
        ("3 short tons in kg", "2721.55422 kg"),
        ("3 metric tons in kg", "3000 kg"),
        ("8 US fluid ounces in ml", "236.5882365 ml"),
        ("log10(1000)", "3"),
        ("sqrt(16) + 9", "13"),
        ("2 GB in MB", "2000 MB"),
        ("100 square meters in m2", "100 m2"),
    ],
)
def test_values(task: str, value: str, run: Run) -> None:
    """Every expression has its exact value, shown beside it."""
    assert run(agent, task).text.split(" = ")[-1] == value


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("1/0", "divides by zero"),
        ("3 +", "cannot be computed"),
        ("(3 + 4", "cannot be computed"),
        ("9^9^9^9", "too large"),
        ("100000!", "too large"),
        ("5 kg in km", "cannot be converted"),
        ("convert 5 miles to km and 3 kg to pounds", "One amount is converted at a time"),
        ("3 kg + 2 m", "'kg' is not arithmetic"),
        ("60 km / 2 h", "'km' is not arithmetic"),
        ("5 feet 10 kg in cm", "kg cannot be converted"),
        ("5 blorps in km", "not a unit"),
        ("sqrt(0 - 1)", "cannot be computed"),
        ("__import__('os').system('true')", "not arithmetic"),
        ("open('/etc/passwd').read()", "not arithmetic"),
        ("", "cannot be computed"),
        ("(-3)!", "cannot be computed"),
        ("3 tons in kg", "'short ton' (US), 'long ton' (UK) or 'metric ton'"),
        ("2 cups in ml", "'US cup'"),
        ("5 gallons to litres", "'US gallon' or 'imperial gallon'"),
        ("3 gal in litres", "several sizes"),
        ("8 oz in g", "'troy ounce'"),
        ("8 fluid ounces in ml", "'US fluid ounce'"),
        ("3 months in days", "several sizes"),
        ("how many days are there between 4 March 2025 and 19 July 2025", "Dates such as 4 March 2025 are not computed"),
        ("sin 30", "'sin' is not arithmetic"),
        ("sin(30 degrees)", "'sin' is not arithmetic"),
        ("log 100", "'log' is not arithmetic"),
        ("square root of 16 plus 9", "cannot be computed"),
        ("5 % + 10 %", "sum of percentages"),
        ("$5 + €3", "two currencies"),
        ("difference between 1, 2 and 9", "two numbers"),
        ("add 5 % compounded monthly to 200", "compounded"),
        ("5 100 + 1", "cannot be computed"),
        ("half of 50 plus 10", "what belongs together in 'of 50 plus 10'"),
        ("double 3 + 4", "what belongs together"),
        ("average of 10 and 20 plus 5", "what belongs together"),
        ("20% off 50 plus 5", "what belongs together"),
        ("divide 10 by 2 * 5", "what belongs together"),
        ("12 miles 3 in km", "no amount to convert"),
        ("(2 + 3)!", "cannot be computed"),
        ("0b10 + 1", "is not arithmetic"),
        ("1_000 + 1", "is not arithmetic"),
        ("1j * 1j", "is not arithmetic"),
        ("2(3)", "cannot be computed"),
        ("1 if 2 else 3", "'if' is not arithmetic"),
        ("sum of 100,200", "several numbers, not of 1"),
        ("percentage decrease from 50 to 25", "'decrease' is not arithmetic"),
        ("2 ^ 3 million % !", "cannot be computed"),
        ("what is 2 plus 2 roughly", "roughly"),
        ("(" * 5000 + "1" + ")" * 5000, "too large"),
    ],
)
def test_refusals(task: str, said: str, run: Run) -> None:
    """What is no arithmetic, or has no value, is an error that says why."""
    with pytest.raises(InvalidInputError) as error:
        run(agent, task)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("task", "content", "value"),
    [
        ("add 19 % to it", "x.csv, all 3 rows: sum of revenue: 100.", "119"),
        ("divide the total by 12", "sales.csv, all 500 rows: sum of revenue: 893371.5.", "74447.625"),
        ("calculate 19 % of that total", "x: sum of a: 100.", "19"),
        ("15 % of that", "notes.txt: words: 400", "60"),
        ("sum of them", "x.csv: sum of revenue per region (2 of 2 rows):\n- North: 3\n- South: 4.5", "7.5"),
        ("multiply it by 2", "3 + 4 = 7", "14"),
    ],
)
def test_earlier_results(task: str, content: str, value: str, run: Run) -> None:
    """`it` stands for the figure of an earlier result, `them` for its figures."""
    assert run(agent, task, results=[upstream("earlier", content)]).text.split(" = ")[-1] == value


def test_ambiguous_reference(run: Run) -> None:
    """`it` is refused when the earlier result holds several figures."""
    with pytest.raises(InvalidInputError, match="several figures: 1, 2"):
        run(agent, "double it", results=[upstream("earlier", "a: 1\nb: 2")])


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


@given(st.text(max_size=60))
def test_any_text_is_a_value_or_a_refusal(text: str) -> None:
    """No text makes the parser fail in any way but its own."""
    try:
        assert isinstance(compute(text), Fraction)
    except InvalidInputError as error:
        assert error.message
