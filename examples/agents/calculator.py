"""Compute arithmetic, percentages and conversions of units exactly, from the request or from an earlier task's result.

Python's grammar parses, fractions compute, pint knows units; nothing is executed. What may be read in two ways is refused.
"""

import ast
import math
import operator
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ioa import Agent, DeclinedError, InvalidInputError, TaskContext
from ioa.files import of_results
from request import are_not, of_length

agent = Agent(
    "calculator",
    description="A calculator: arithmetic, percentages, roots and powers, and conversion between "
    "units of length, mass, time, speed, volume and temperature.",
    skills=["arithmetic", "percentages", "unit conversion"],
    examples=[
        "what is 15 % of 240", "convert 12 miles to km", "calculate (3.5 + 4) * 2^3", "what is 3 + 4 + 5",
        "100 degrees fahrenheit in celsius", "20 is what percent of 80?", "divide the total by 12", "add 19 % VAT to it",
        "5 feet in cm", "square root of 144",
    ],
    tags=["math", "units"], declines=True, may_team_up=False,
)  # fmt: skip
_NUMBER = r"(?:(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d+)?|\.\d+)(?![\w.]*\d)"
_MAX_DIGITS, _MAX_CHARS = 400, 1_000
_LEAD = re.compile(
    r"(?i)^(?:(?:please|what(?:'s| is| are)|how much is|calculate|compute|evaluate|convert|find|the (?:result|value) of|the)\s+)+"
)
_PYTHON = (
    (r"\bto the power of\b|\^", "**"), (r"\bplus\b", "+"), (r"\bminus\b|−", "-"),
    (r"\b(?:multiplied by|times)\b|×", "*"), (r"\bdivided by\b|÷", "/"), (r"\bsquared\b", "**2"), (r"\bcubed\b", "**3"),
)  # fmt: skip
_SIGNS: dict[type, Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_OPERAND = rf"(?:-?{_NUMBER}|\([^()]+\))"
_RATE = rf"(?P<rate>{_NUMBER}) ?(?:%|per ?cent)"
_SHARE = rf"{_RATE}(?: (?:VAT|tax))?"
_NET = re.compile(r"(?i)subtract [^%]*(?:%|per ?cent) (?:VAT|tax) from ")
_FORMS: list[tuple[str, str]] = [
    (rf"{_SHARE} of (?P<a>{_OPERAND})", "({a}) * {rate} / 100"),
    (rf"(?P<a>{_OPERAND}) is (?:what|how many) (?:%|per ?cent(?:age)?) of (?P<b>{_OPERAND})", "({a}) / ({b}) * 100"),
    (rf"(?:what|how many) (?:%|per ?cent(?:age)?) of (?P<b>{_OPERAND}) is (?P<a>{_OPERAND})", "({a}) / ({b}) * 100"),
    (rf"add {_SHARE} to (?P<a>{_OPERAND})", "({a}) * (1 + {rate} / 100)"),
    (rf"subtract {_RATE} from (?P<a>{_OPERAND})", "({a}) * (1 - {rate} / 100)"),
    (rf"add (?P<b>{_OPERAND}) (?:to|and) (?P<a>{_OPERAND})", "({a}) + ({b})"),
    (rf"subtract (?P<b>{_OPERAND}) from (?P<a>{_OPERAND})", "({a}) - ({b})"),
    (rf"multiply (?P<a>{_OPERAND}) (?:by|with|and) (?P<b>{_OPERAND})", "({a}) * ({b})"),
    (rf"divide (?P<a>{_OPERAND}) by (?P<b>{_OPERAND})", "({a}) / ({b})"),
    (rf"double (?P<a>{_OPERAND})", "({a}) * 2"),
    (rf"square root of (?P<a>{_OPERAND})", "sqrt({a})"),
]
_KNOWN = {word for form, _ in _FORMS for word in re.findall("[a-z]{2,}", re.sub(r"\(\?P<\w+>", "(", form))}
_CONVERSION = re.compile(rf"(-?{_NUMBER}) ?(?:from )?([^\d\W][^\d]*?|°[CF]) (?:in|to|into) ([^\d%]+)", re.IGNORECASE)
_ASKED = re.compile(rf"how many ([^\d]+?) (?:are|is) (?:in )?(-?{_NUMBER} ?[^\d%]+)", re.IGNORECASE)
_UNITS = dict.fromkeys(
    "mm millimetre millimeter cm centimetre centimeter m metre meter km kilometre kilometer inch foot feet yard mile mg "
    "milligram g gram kg kilogram pound stone ml millilitre milliliter litre liter second minute hour day week km/h mph m/s "
    "celsius fahrenheit kelvin".split()
)
"""A unit of several sizes, such as a gallon, a ton or an ounce, is none of them."""
_HINT = (
    "Write one calculation, with brackets around what comes first: '(15 % of 240) + 5', 'sqrt(144) + 2^3' (a % is of something), "
    "or convert one amount: '12 miles in km'."
)
_RESULT = "result|output|total|sum|average|number|value|answer|amount|figure|count"
_REPORTED = re.compile(
    rf"(?:^|(?<![\d\s:]): |(?<![<>!=])= ?)([-−]?{_NUMBER})(?:e([-+]\d+))?(?: ?(%|°?[^\W\d]\S*?))?"
    r"(?: \((?:[^()]|\([^()]*\))*\))?\.?$"
)
"""A figure that a line is, or that is all behind its last colon or equals sign, but for a unit and how it was read, in brackets."""
_REFERENCE = re.compile(rf"\b(?:(?:the|this|that) (?:{_RESULT})|it|that|this)\b", re.IGNORECASE)


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Compute the expression the task holds and show it beside its value."""
    text = _LEAD.sub("", " ".join(re.sub(r"[?.= ]+$", "", of_length(_with_result(task, ctx), _MAX_CHARS)).split()))
    if match := _CONVERSION.fullmatch(asked := _ASKED.sub(r"\2 in \1", text)):
        return f"{asked} = {convert(*match.groups())}"
    several = rf"(?:{_NUMBER} ?[^\W\d]+,?(?: and)? ){{2,}}(?:in|to|into) [^\W\d]+"
    conversions = re.findall(r"\d ?[^\W\d]+(?: [^\W\d]+)? (?:in|to|into) ", text)
    if len(conversions) > 1 or re.fullmatch(several, text, re.IGNORECASE):
        raise InvalidInputError(f"{text!r} has several amounts.", hint="One amount is converted at a time: '5 feet in cm'.")
    if _NET.match(text):  # `20 % VAT` of a price that has it within are 20 of 120
        hint = "If it has, divide: '120 / 1.2'. If not, say 'subtract 20 % from 120'."
        raise InvalidInputError("Whether that amount has the tax within is not said.", hint=hint)
    if re.search(r"(?<![\d,.])[\d.]+,(?:\d{1,2}|\d{4,})(?![\d,])", text):
        raise InvalidInputError(f"{text!r} has a comma that parts no thousands.", hint="Decimals have a point: 2.75.")
    if amount := re.fullmatch(rf"(-?{_NUMBER}) (?:in|to|into) [^\W\d]+", text):
        hint = f"Say it, as in '{amount[1]} km in miles' or 'the result km in miles'."
        raise InvalidInputError(f"It is not said of which unit {amount[1]} is.", hint=hint)
    if re.match(r"(?i)(?:please )?convert\b", task):
        said = f"{text!r} is no amount of a unit and the unit that is wanted."
        raise InvalidInputError(said, hint="Say 'convert 12 miles to km'.")
    signs = _in_signs(text)
    value, source = show(compute(signs)), _source(signs)
    words = signs == text and re.search("[a-z]{4}", text) and "(" not in text
    spoken = bool(words) and len(re.findall(r"\*\*|[-+*/]", source)) > 1  # which goes first is seen then
    read = f" = {re.sub(' ?[*]{2} ?', '^', source)}" * spoken
    return f"{text}{read} = {value}{' %' * (signs != text and signs.endswith('* 100'))}"


def _in_signs(text: str) -> str:
    """A form such as `5 % of 20` in signs; what is none as it is."""
    forms = ((re.fullmatch(pattern, text, re.IGNORECASE), formula) for pattern, formula in _FORMS)
    return next((formula.format(**match.groupdict()) for match, formula in forms if match), text)


def _with_result(task: str, ctx: TaskContext) -> str:
    """Put the only figure of an earlier result in the place of `it`."""
    if not ctx.results or not _REFERENCE.search(task):
        return task
    lines = [line.rstrip() for result in ctx.results for line in result.content.splitlines()]
    is_text = of_results(ctx, (".txt",)) or any(len(line) > _MAX_CHARS for line in lines)
    figures = [] if is_text else [_reported(line) for line in lines if not line.endswith(":")]  # such a line is the head of others
    found = {*filter(None, figures)}
    if len(found) != 1 or not figures[0]:
        _decline_others(_REFERENCE.sub("2", task), ctx)
        several = f"holds several figures: {', '.join(sorted(figure for figure, _ in found)[:10])}" if len(found) > 1 else ""
        told = several or ("is a text, and no figure" if is_text else "holds no figure alone")
        raise InvalidInputError(f"The earlier result {told}.", hint="Say which number to calculate with.")
    figure, unit = found.pop()
    if re.search(rf"(?:{_REFERENCE.pattern}) (?:in|to|into) ", task, re.IGNORECASE):
        return _REFERENCE.sub(f"{figure} {unit}".strip(), task)
    return _REFERENCE.sub(f"({figure})" if figure[0] == "-" or "^" in figure else figure, task)


def _decline_others(task: str, ctx: TaskContext) -> None:
    """Decline what would be no calculation of a figure either."""
    try:
        run(task, ctx)
    except InvalidInputError as error:
        if isinstance(error, DeclinedError):
            raise


def _reported(line: str) -> tuple[str, str] | None:
    """The figure that a line reports, and its unit; none if it is said in another way, such as `5 million` or `10:30`."""
    found = _REPORTED.search(line)
    if not found or (found[3] and found[3] != "%" and not _is_known(_name_of(found[3]))):
        return None
    figure = found[1].replace("−", "-")
    return (f"{figure} * 10^{int(found[2])}" if found[2] else figure), (found[3] or "").removesuffix("%")


def _source(text: str) -> str:
    source = re.sub(r"\(([^()]*)\)", lambda group: f"({_in_signs(group[1])})", text.strip())
    for pattern, python in _PYTHON:
        source = re.sub(pattern, f" {python} " if python[0] in "+-*/" else python, source, flags=re.IGNORECASE)
    return " ".join(source.split())


def compute(text: str) -> Fraction:
    """Compute an expression of numbers and signs; declines what is none, refuses what has no value."""
    source = _source(text)
    if rest := re.sub(rf"(?i){_NUMBER}|\bsqrt\b|\bsquare root of\b|[-+*/()%]", " ", source, flags=re.ASCII).split():
        if unknown := [word for word in rest if word.lower() not in _KNOWN][:3]:
            if all(word in ("in", "to", "into") or _is_known(_name_of(word.strip("."))) for word in unknown):
                raise InvalidInputError(
                    f"{text!r} is not read as one amount of a unit, alone, and the unit that is wanted.", hint=_HINT
                )
            raise DeclinedError(f"{text!r} is no calculation that is read here: {are_not(unknown, 'part of one')}", hint=_HINT)
        raise InvalidInputError(f"Each word is known, but {text!r} is not read as one calculation.", hint=_HINT)
    source = source.replace(",", "")
    try:
        return _value(ast.parse(source, mode="eval").body, source)
    except ZeroDivisionError:
        raise InvalidInputError(f"{text[:60]} divides by zero.") from None
    except (SyntaxError, TypeError):
        said = "between two numbers stands one sign, a per cent sign stands before 'of', and no number has blanks or begins with 00"
        raise InvalidInputError(f"{text[:60]!r} is not read as one calculation: {said}.", hint=_HINT) from None
    except (ValueError, InvalidOperation):
        raise InvalidInputError(f"{text[:60]!r} has no value, such as a root of a negative number.", hint=_HINT) from None
    except (ArithmeticError, RecursionError, MemoryError):
        raise InvalidInputError(f"{text[:60]!r} is too large to be computed here.", hint=_HINT) from None


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
            return base ** int(exponent) if exponent.denominator == 1 else _root(base, exponent)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
            return _SIGNS[type(sign)](_value(left, source), _value(right, source))
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument], keywords=[]):
            return _root(_value(argument, source), Fraction(1, 2))
    raise TypeError


def _root(base: Fraction, exponent: Fraction) -> Fraction:
    """A power that is no whole one, to 35 digits: of a square it is exact."""
    with localcontext(prec=35):
        decimal, power = (Decimal(one.numerator) / Decimal(one.denominator) for one in (base, exponent))
        return Fraction(decimal.sqrt() if exponent == Fraction(1, 2) else decimal**power)


def show(number: Fraction) -> str:
    """Write a number: exactly when its decimals end within fifteen digits, else with so many digits in all, or four decimals."""
    if number.denominator == 1:
        return str(number.numerator) if abs(number) < 10**40 else f"{Decimal(number.numerator):.12e}"
    decimal = Decimal(number.numerator) / Decimal(number.denominator)
    text = f"{decimal:.15g}"
    if "e" in text or "." not in text:
        return text
    text = text.rstrip("0").rstrip(".")
    looks_whole = "." not in text and abs(number - Fraction(text)) > Fraction(1, 10**20)
    return f"{decimal:.4f}" if looks_whole else text


def convert(amount: str, unit: str, wanted: str) -> str:
    """Convert an amount of a unit to another one of the same dimension, and write it."""
    from pint import DimensionalityError

    names = [*map(_name_of, (unit, wanted))]
    known = [*map(_is_known, names)]
    if not all(known):
        refusal = InvalidInputError if any(known) else DeclinedError  # between two things of others nothing is converted here
        said = f"{(unit, wanted)[known.index(False)]!r} is no unit that is known, or has several sizes."
        raise refusal(said, hint=f"Units: {', '.join(_UNITS)}.")
    for said, name in zip((unit, wanted), names, strict=True):
        if said.lower() == name and _is_another(said):
            raise InvalidInputError(f"{said!r} is another unit than {name!r}, or may be meant for it.", hint=f"Say {name!r}.")
    try:
        value = _registry().Quantity(Fraction(amount.replace(",", "")), names[0]).to(names[1])
        if value.check("[temperature]") and value.to("kelvin").magnitude < 0:
            raise InvalidInputError(f"{amount} {unit} is below absolute zero.")
    except DimensionalityError:
        raise InvalidInputError(f"{unit} cannot be converted to {wanted}.") from None
    return f"{show(value.magnitude)} {wanted}"


def _name_of(unit: str) -> str:
    name = re.sub("^(?:degrees? |°)", "", unit.lower())
    return {"c": "celsius", "f": "fahrenheit"}.get(name, name)


def _is_known(name: str) -> bool:
    return bool({name, name.removesuffix("s"), name.removesuffix("es")} & _UNITS.keys())


def _is_another(said: str) -> bool:
    """Whether a unit as it is written, such as Mg for mg, is one of another size."""
    from pint import PintError

    try:
        return said != said.lower() and _registry().Unit(said) != _registry().Unit(said.lower())
    except (PintError, ValueError):  # it is none, as KM
        return False


@lru_cache(maxsize=1)
def _registry() -> Any:
    from pint import UnitRegistry  # here, since an agent that has nothing to do yet should not take 10 MB for it

    return UnitRegistry(non_int_type=Fraction)
