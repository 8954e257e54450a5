"""Compute one calculation, in signs or in words (`_SAID`), or one conversion, exactly: nothing is executed."""

import ast
import math
import operator
import re
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ioa import Agent, DeclinedError, InvalidInputError, TaskContext
from ioa.files import of_results
from request import are_not, of_length

agent = Agent(
    "calculator", description="A calculator: arithmetic, percentages, roots and powers, and conversion between "
    "units of length, mass, time, speed, volume and temperature.", skills=["arithmetic", "percentages", "unit conversion"],
    examples=[
        "what is 15 % of 240", "convert 12 miles to km", "calculate (3.5 + 4) * 2^3", "what is 3 + 4 + 5", "square root of 144",
        "100 degrees fahrenheit in celsius", "20 is what percent of 80?", "divide the total by 12", "add 19 % VAT to it",
    ], tags=["math", "units"], declines=True, may_team_up=False,
)  # fmt: skip
_NUMBER = r"(?:(?:\d{1,3}+(?:,\d{3})++(?![\d,])|\d++)(?:\.\d++)?+|\.\d++)(?!(?:[^\W\d]|\.)*+\d)"
"""No digit is given back: what is less of a number has one behind it, and is none."""
_MAX_DIGITS, _MAX_CHARS = 400, 1_000
_LEAD = re.compile(r"(?i)^(?:(?:please|what(?:'s| is| are)|how much is|calculate|compute|find|the (?:result|value) of|the)\s+)+")
_SAID = {  # calculations in words, and in signs: `A` and `B` are a number or brackets, `R` is a rate
    "A plus B": "A + B", "A minus B": "A - B", "A times B": "A * B", "A divided by B": "A / B",
    "add A (?:to|and) B": "A + B", "subtract A from B": "B - A", "multiply A (?:by|and) B": "A * B", "divide A by B": "A / B",
    "R%(?: VAT| tax)? of A": "A * R / 100", "A is what % of B": "A / B * 100", "what % of B is A": "A / B * 100",
    "add R%(?: VAT| tax)? to A": "A * (1 + R / 100)", "subtract R% from A": "A * (1 - R / 100)",
    "double A": "A * 2", "square root of A": "sqrt A",
}  # fmt: skip
_OPERAND, _UNIT = rf"-?{_NUMBER}|\([^()]+\)", r"((?:degrees? |°)?[^\W\d][^\s\d%]*)"
_PLACES = {"A": f"(?P<A>{_OPERAND})", "B": f"(?P<B>{_OPERAND})", "R": f"(?P<R>{_NUMBER}) ?", "%": "(?:%|per ?cent(?:age)?)"}
_FORMS = {re.compile(re.sub(r"\b[ABR]\b|%", lambda at: _PLACES[at[0]], f"(?i:{form})")): signs for form, signs in _SAID.items()}
_SIGNS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
_IN_PYTHON = str.maketrans({"^": "**", "×": "*", "÷": "/", "−": "-", ",": ""})
_CONVERSION = re.compile(rf"(?:convert )?(-?{_NUMBER}) ?(?:from )?{_UNIT} (?:in|to|into) {_UNIT}", re.IGNORECASE)
_SHORT = "mm cm m km mg g kg ml km/h mph m/s".split()
_LONG = (
    "millimetre millimeter centimetre centimeter metre meter kilometre kilometer inch foot feet yard mile milligram gram kilogram "
    "pound stone millilitre milliliter litre liter second minute hour day week celsius fahrenheit kelvin".split()
)
"""A unit of several sizes, such as a gallon, a ton or an ounce, is none of them."""
_KNOWN = {*re.findall("[a-z]+", f"{[*_SAID]} per cent percent percentage sqrt in into from convert".lower())}
_HINT = (
    "Write one calculation, with brackets around what comes first: '(15 % of 240) + 5.5', 'sqrt(144) + 2^3' (a % is of something, "
    "decimals have a point, powers are whole), or convert one amount: '12 miles in km'."
)
_RESULT = "result|output|total|sum|average|number|value|answer|amount|figure|count"
_REPORTED = re.compile(
    rf"(?:: (?=(?:\S+ / \d+ ≈ )?\S+ \(\d+ of \d+ rows)|^|(?<![\d\s:]): |(?<![<>!=])= ?)([-−]?{_NUMBER}(?: / \d+(?= ≈ ))?)"
    rf"(?: ≈ \S+(?= \(\d+ of \d+ rows))?(?: ?(%|°?[CF]|{'|'.join(_SHORT)}|(?i:{'|'.join(_LONG)})(?:e?s)?)"
    r"| \(\d+ of \d+ rows(?:, in ([^\W\d]+|%)(?=[,;)]))?.*\))?\.?$"
)
"""A figure that a line is, or all behind its last colon or equals sign but for a unit, or for how it was read of a table."""
_DATE = re.compile(r"\b\d{4}-\d\d?-\d\d?\b|\b\d\d?/\d\d?/\d{4}\b")
_REFERENCE = re.compile(rf"\b(?:(?:the|this|that) (?:{_RESULT})|it|that|this)\b", re.IGNORECASE)


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Compute what the task holds and show it beside its value, behind `≈` if that is rounded."""
    of_length(task, _MAX_CHARS)
    asked = _plain(_REFERENCE.sub("2", task) if ctx.results else task)
    words = [word.strip(",;.?:") for word in _no_signs(asked)]
    unknown = [word for word in words if word and word.lower() not in _KNOWN and not _unit(word)][:3]
    if unknown and not _CONVERSION.fullmatch(asked):
        raise DeclinedError(f"{_plain(task)!r} is no calculation that is read here: {are_not(unknown, 'part of one')}", hint=_HINT)
    text = _plain(_with_result(task, ctx))
    if match := _CONVERSION.fullmatch(text):
        return convert(*match.groups())
    signs = _in_signs(text)
    return f"{text} {show(compute(signs, text))}{' %' * (signs != text and signs.endswith('* 100'))}"


def _plain(text: str) -> str:
    return _LEAD.sub("", " ".join(text.strip().rstrip("?.= ").replace("\n", " ; ").split()))  # two lines are two


def _no_signs(text: str) -> list[str]:
    return re.sub(rf"{_NUMBER}|km/h|m/s|[-+*/^()%×÷−]", " ", text, flags=re.ASCII).split()


def _with_result(task: str, ctx: TaskContext) -> str:
    if not ctx.results or not _REFERENCE.search(task):
        return task
    line = "\n".join(result.content for result in ctx.results).strip()
    is_of_text = "\n" in line or len(line) > _MAX_CHARS or of_results(ctx, (".txt",))
    is_converted = re.search(rf"(?:{_REFERENCE.pattern}) (?:in|to|into) ", task, re.IGNORECASE)
    told = None if is_of_text else _REPORTED.search(line)
    if told is None or (is_converted and "/" in told[1]) or re.search(r"[:=] ?[-−]?\d", line[: told.start(1)]):
        said = "The earlier result is not one exact figure alone, in one line (behind ≈ one is rounded)."
        raise InvalidInputError(said, hint="Say which number to calculate with.")
    figure, unit = told[1], told[2] or told[3] or ""
    if unit == "%":
        raise InvalidInputError("The earlier result is a percentage.", hint=f"Say of what: '{figure} % of 80'.")
    whose = _CONVERSION.fullmatch(_plain(_REFERENCE.sub(figure, task)))
    units = {*map(_unit, [unit] if _unit(unit) else re.findall(r"[^\W\d]+(?:/[hs])?", line))} - {""}
    if whose and units and _unit(whose[2]) not in units:
        said = f"The earlier result is of {', '.join(sorted(units))}, not of {whose[2]}."
        raise InvalidInputError(said, hint="Say 'convert it to …'.")
    if is_converted:
        return _REFERENCE.sub(f"{figure} {unit.strip('%')}".strip(), task)
    return _REFERENCE.sub(figure if figure[0].isdigit() and "/" not in figure else f"({figure})", task)


def _in_signs(text: str) -> str:
    for form, signs in _FORMS.items():
        if match := form.fullmatch(text):
            return re.sub("[ABR]", lambda place: f"({match[place[0]]})", signs)
    return text


def compute(text: str, said: str = "") -> Fraction:
    """Compute an expression of numbers and signs; refuses what is none, or has no value, as it was `said`."""
    signs = re.sub(r"\(([^()]*)\)", lambda group: f"({_in_signs(group[1])})", text)
    source = "" if {*_no_signs(signs)} - {"sqrt"} or _DATE.search(text) else signs.translate(_IN_PYTHON).strip()
    try:
        return _value(ast.parse(source, mode="eval").body, source)
    except (SyntaxError, TypeError, ValueError, ArithmeticError, RecursionError, MemoryError):
        unread = f"{(said or text)[:60]!r} is not read as one calculation or conversion with a value."
        raise InvalidInputError(unread, hint=_HINT) from None


def _value(node: ast.expr, source: str) -> Fraction:
    match node:
        case ast.Constant():
            return Fraction(str(ast.get_source_segment(source, node)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, source)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, exponent = _value(left, source), _value(right, source)
            if abs(exponent) * math.log10(max(abs(base.numerator), base.denominator, 2)) > _MAX_DIGITS:
                raise OverflowError
            if exponent.denominator == 1:
                return base ** int(exponent)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
            return Fraction(_SIGNS[type(sign)](_value(left, source), _value(right, source)))
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument], keywords=[]):
            square, digits = _value(argument, source), Context(prec=35)
            return Fraction(digits.sqrt(digits.divide(square.numerator, square.denominator)))
    raise TypeError


def show(number: Fraction) -> str:
    """Write a number: behind `=` if it is whole or has fifteen digits at most, else rounded to these, behind `≈`."""
    if number.denominator == 1 and abs(number) < 10**40:
        return f"= {number.numerator}"
    digits, e, power = f"{Decimal(number.numerator) / Decimal(number.denominator):.15g}".partition("e")
    text = (digits.rstrip("0").rstrip(".") if "." in digits else digits) + e + power
    return f"{'=' if Fraction(text) == number else '≈'} {text}"


def convert(amount: str, unit: str, wanted: str) -> str:
    """Convert an amount of a unit to another one of the same dimension, and show both."""
    names = [_unit(unit), _unit(wanted)]
    if not all(names):
        refusal = InvalidInputError if any(names) else DeclinedError  # between two things of others nothing is converted here
        said = f"{(wanted if names[0] else unit)!r} is no unit that is known, or has several sizes."
        raise refusal(said, hint=f"Units: {', '.join(_SHORT + _LONG)}.")
    value = _registry().Quantity(Fraction(amount.replace(",", "")), names[0])
    if not value.is_compatible_with(names[1]):
        raise InvalidInputError(f"{unit} cannot be converted to {wanted}.")
    if names[0] in _LONG[-3:] and value.to("kelvin").magnitude < 0:
        raise InvalidInputError(f"There is no temperature of {amount} {unit}: it would be below absolute zero.")
    return f"{amount} {unit} in {wanted} {show(value.to(names[1]).magnitude)} {wanted}"


def _unit(said: str) -> str:
    """The unit that is meant: one that is short is so in one case alone, since a megalitre is no millilitre."""
    name = re.sub("^(?:degrees? |°)", "", said)
    spelt = {"c": "celsius", "f": "fahrenheit"}.get(name.lower(), name.lower())
    return name if name in _SHORT else next((one for one in (spelt, spelt[:-1], spelt[:-2]) if one in _LONG), "")


@lru_cache(maxsize=1)
def _registry() -> Any:
    from pint import UnitRegistry  # here, since an agent that has nothing to do yet should not take 10 MB for it

    return UnitRegistry(non_int_type=Fraction)
