"""Exact arithmetic and conversion of units: Python's grammar parses, fractions compute, pint knows units; nothing is executed."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from threading import Lock
from typing import Any

from ioa import DeclinedError, InvalidInputError

NUMBER = r"(?:(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?|\.\d+)(?![\w.]*\d)"
_MAX_DIGITS, _MAX_CHARS = 400, 1_000
_FUNCTIONS = {"sqrt": math.sqrt, "cbrt": math.cbrt, "ln": math.log, "log10": math.log10}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "dozen": 12}
_AMBIGUOUS = {
    **{unit: f"'US {unit}' or 'imperial {unit}'" for unit in ("gallon", "quart", "pint", "gill", "fluid_ounce", "cup")},
    "ton": "'short ton' (US), 'long ton' (UK) or 'metric ton'", "hundredweight": "pounds or kg", "barrel": "litres",
    "ounce": "'avoirdupois ounce', 'troy ounce', 'US fluid ounce' or 'imperial fluid ounce'", "tablespoon": "millilitres",
    "teaspoon": "millilitres", "horsepower": "watts", "calorie": "'kcal' for food, or joules", "month": "days", "year": "days",
}  # fmt: skip
_TEMPERATURES = {"c": "degC", "°c": "degC", "celsius": "degC", "f": "degF", "°f": "degF", "fahrenheit": "degF"}
_UNIT_WORDS = (
    (r"\b(us|imperial|short|long|metric|troy|avoirdupois)\s+", r"\1_"), (r"fluid\s+", "fluid_"), (r"\bdegrees?\s+", ""),
    (r"\bsquare (\w+)", r"\1^2"), (r"\bcubic (\w+)", r"\1^3"), ("²", "^2"), ("³", "^3"), (r"\s+per\s+", "/"),
    (r"(?<=[a-z])([23])\b", r"^\1"),
)  # fmt: skip
_PYTHON: tuple[tuple[str, Any], ...] = (
    ("×", "*"), ("÷", "/"), ("−", "-"), (r"\^", "**"), (r"\bof\b", "*"),
    (rf"({NUMBER})\s*({'|'.join(_SCALES)})\b", lambda match: f"({match[1]}*{_SCALES[match[2]]})"),
    (rf"({NUMBER})\s*%", r"percent(\1)"), (r"\b(\d+)\s*!", r"factorial(\1)"),
    (rf"\b({'|'.join(_FUNCTIONS)}) ({NUMBER})$", r"\1(\2)"),
)  # fmt: skip
_REGISTRY_LOCK = Lock()


@contextmanager
def computing(text: str) -> Iterator[None]:
    """Raise what goes wrong within as a refusal of `text`."""
    what = text.strip()[:60]
    try:
        yield
    except ZeroDivisionError:
        raise InvalidInputError(f"{what} divides by zero.") from None
    except (OverflowError, RecursionError, MemoryError):
        raise InvalidInputError(f"{what} is too large to compute.") from None
    except (SyntaxError, ValueError, TypeError):
        raise InvalidInputError(f"{what!r} cannot be computed.", hint="Write it as in '(3 + 4) * 5' or '12 miles in km'.") from None


class Percent(Fraction):
    """A percentage as written: `+ 5 %` adds five percent of what stands before it."""


def plus(left: Fraction, right: Fraction, sign: int = 1) -> Fraction:
    """Add, or subtract; a percentage is one of what it is added to."""
    if isinstance(right, Percent) and isinstance(left, Percent):
        raise InvalidInputError("It can mean a sum of percentages, or one percentage of the other.", hint="Leave the % signs out.")
    return left + sign * (left * Fraction(right) if isinstance(right, Percent) else right)


def times(left: Fraction, right: Fraction) -> Fraction:
    """Multiply; a product of percentages is a plain number."""
    return Fraction(left) * Fraction(right)


_OPERATIONS: dict[type, Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: plus, ast.Sub: lambda left, right: plus(left, right, -1), ast.Mult: times,
    ast.Div: lambda left, right: times(left, 1 / right),
}  # fmt: skip


def compute(text: str) -> Fraction:
    """Compute an expression of numbers, signs, percentages and functions.

    Raises:
        DeclinedError: It is no expression.
        InvalidInputError: It divides by zero, or grows beyond reason.
    """
    if len(text) > _MAX_CHARS:
        raise InvalidInputError(f"{text[:60]} … is too large to compute.")
    words = "|".join((*_FUNCTIONS, *_SCALES, "pi", "of"))
    for wrong in re.sub(rf"{NUMBER}|\b(?:{words})\b|[-+*/^()%!×÷−]", " ", text, flags=re.ASCII).split():
        raise DeclinedError(f"{wrong!r} is not arithmetic.", hint="Write it as in '(3 + 4) * 5' or '12 miles in km'.")
    source = " ".join(text.replace(",", "").split())
    for pattern, python in _PYTHON:
        source = re.sub(pattern, python, source)
    with computing(text):
        return _value(ast.parse(source, mode="eval").body, source)


def _value(node: ast.expr, source: str) -> Fraction:
    match node:
        case ast.Constant():
            return Fraction(str(ast.get_source_segment(source, node)))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            value = _value(operand, source)
            return type(value)(-value) if isinstance(sign, ast.USub) else value
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left, source), _value(right, source))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATIONS:
            return _OPERATIONS[type(sign)](_value(left, source), _value(right, source))
        case ast.Name(id="pi"):
            return _exact(math.pi)
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
            value = _value(argument, source)
            if name == "percent":
                return Percent(value / 100)
            if name == "factorial" and value > 170:
                raise OverflowError
            return Fraction(math.factorial(int(value))) if name == "factorial" else _exact(_FUNCTIONS[name](float(value)))
    raise TypeError


def _exact(value: float) -> Fraction:
    """The fraction that a float shows, so that 0.1 stays one tenth."""
    return Fraction(Decimal(repr(value)))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        return _exact(float(base) ** float(exponent))
    if abs(exponent) * math.log10(max(abs(base.numerator), base.denominator, 2)) > _MAX_DIGITS:
        raise OverflowError
    return Fraction(base) ** int(exponent)


def show(number: Fraction) -> str:
    """Write a number: exactly when its decimals end within fifteen digits, else with fifteen significant digits."""
    if isinstance(number, Percent):
        return f"{show(Fraction(number) * 100)} %"
    if number.denominator == 1:
        return str(number.numerator) if abs(number) < 10**40 else f"{Decimal(number.numerator):.12e}"
    text = f"{Decimal(number.numerator) / Decimal(number.denominator):.15g}"
    return text if "e" in text or "." not in text else text.rstrip("0").rstrip(".")


def convert(amount: str, unit: str) -> str:
    """Convert an amount such as `5 feet 10 inches` to a unit, and write it.

    Raises:
        InvalidInputError: The amount has no unit, or one of another dimension, or a unit is not known or has several sizes.
    """
    part = rf"(-?{NUMBER})\s*([^\d,]*?[^\d\s,][23]?)(?:$|\s+(?:and\s+)?(?=[\d.]))"
    if re.sub(part, "", amount):
        raise InvalidInputError(
            f"{amount!r} is no amount to convert.", hint="Write it as in '12 miles in km', or '5 feet 10 inches in cm'."
        )
    wanted, values = _unit(unit), []
    for number, name in re.findall(part, amount):
        value = _registry().Quantity(Fraction(number.replace(",", "")), _unit(name))
        if not value.is_compatible_with(wanted):
            raise InvalidInputError(f"{name} cannot be converted to {unit}.")
        values.append(value.to(wanted).magnitude)
    if len(values) > 1 and "deg" in str(wanted):
        raise InvalidInputError("Temperatures are converted one at a time.")
    return f"{show(sum(values))} {unit}"


def _unit(text: str) -> Any:
    written = _TEMPERATURES.get(re.sub(r"degrees? |\s", "", text.lower()), text)
    for pattern, replacement in _UNIT_WORDS:
        written = re.sub(pattern, replacement, written, flags=re.IGNORECASE)
    for spelling in dict.fromkeys((written, written.lower())):
        words = re.findall(r"[^\W\d]+", spelling)
        if not re.fullmatch(r"[\w°µ/^]+", spelling):
            break
        try:
            names = [next(iter(_registry().parse_units(word.removeprefix("us_"))._units)) for word in words]
            found = _registry().parse_units(re.sub(r"\bus_", "", spelling))
        except (AttributeError, ValueError, TypeError, StopIteration):  # pint's own for a name that it does not know are such
            continue
        for name, word in zip(names, words, strict=True):
            if name in _AMBIGUOUS and ("_" not in word or word.startswith("fluid")):
                raise InvalidInputError(f"{word!r} has several sizes.", hint=f"Say {_AMBIGUOUS[name]}.".replace("_", " "))
        return found
    raise InvalidInputError(f"{text!r} is not a unit that is known.", hint="Use names such as km, mile, kg, litre, °C.")


def _registry() -> Any:
    with _REGISTRY_LOCK:  # tasks run in threads, and quantities of two registries do not mix
        return _created_registry()


@lru_cache(maxsize=1)
def _created_registry() -> Any:
    # here, since an agent that has nothing to do yet should not take 10 MB for it
    return import_module("pint").UnitRegistry(non_int_type=Fraction)
