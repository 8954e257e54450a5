"""A safe calculator: parses arithmetic with units into exact fractions and pint quantities. Nothing is ever executed.

Grammar: sum = term (("+" | "-") term)* · term = factor (("*" | "/" | "of") factor)* · factor = ("-" | "+") factor | power ·
power = postfix ("^" factor)? · postfix = atom ("%" | "!" | scale | unit)* · atom = number | "(" sum ")" | function "(" sum ")"
"""

from __future__ import annotations

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

from ioa import InvalidInputError

_MAX_DIGITS = 400
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)|(?P<word>log10|°?[^\W\d_]+|°)"
    r"|(?P<sign>\*\*|[-+*/^()%!×÷·−]))"
)
_SIGNS = {"×": "*", "·": "*", "÷": "/", "−": "-", "**": "^"}
_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt, "cbrt": math.cbrt, "ln": math.log, "log10": math.log10, "abs": abs, "round": round,
}  # fmt: skip
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "dozen": 12}
_UNIT_NAMES = {
    "c": "degC", "°c": "degC", "celsius": "degC", "f": "degF", "°f": "degF", "fahrenheit": "degF", "kmh": "km/hour", "kph": "km/hour",
    "lbs": "lb", "tonne": "metric_ton", "tonnes": "metric_ton", "mins": "minute", "secs": "second", "hrs": "hour", "°": "degree",
}  # fmt: skip
_AMBIGUOUS = {
    **{unit: f"'US {unit}' or 'imperial {unit}'" for unit in ("gallon", "quart", "pint", "gill")},
    "fluid_ounce": "'US fluid ounce' or 'imperial fluid ounce'", "ton": "'short ton' (US), 'long ton' (UK) or 'metric ton'",
    "ounce": "'avoirdupois ounce', 'troy ounce', 'US fluid ounce' or 'imperial fluid ounce'",
    "hundredweight": "pounds or kg", "barrel": "litres", "cup": "'US cup', 'imperial cup' or millilitres",
    "tablespoon": "millilitres", "teaspoon": "millilitres", "horsepower": "'metric horsepower' or watts",
    "calorie": "'kcal' for food, or joules", "month": "days", "year": "days",
}  # fmt: skip
_UNIT_WORDS = (
    (r"\b(us|imperial|short|long|metric|troy|avoirdupois)\s+(?:(fluid)\s+)?([a-z]+)", lambda match: "_".join(filter(None, match.groups()))),
    (r"\bfluid\s+(?=\w)", "fluid_"), (r"\bdegrees?\s+(?=\w)", ""), (r"\bsquare (\w+)", r"\1^2"), (r"\bcubic (\w+)", r"\1^3"),
    ("²", "^2"), ("³", "^3"), (r"\bper\b", "/"), (r"(?<=[a-zA-Z])([23])\b", r"^\1"),
    (r"°?[^\W\d_]+|°", lambda match: _UNIT_NAMES.get(match[0].lower(), match[0])),
)  # fmt: skip
_REGISTRY_LOCK = Lock()


def _registry() -> Any:
    with _REGISTRY_LOCK:  # tasks run in threads, and quantities of two registries do not mix
        return _created_registry()


@lru_cache(maxsize=1)
def _created_registry() -> Any:
    # here, since an agent that has nothing to do yet should not take 10 MB for it
    return import_module("pint").UnitRegistry(non_int_type=Fraction)


class Percent(Fraction):
    """A percentage as written: `+ 5 %` adds five percent of what stands before it."""


@contextmanager
def computing(text: str) -> Iterator[None]:
    """Raise what goes wrong within as a refusal of `text`."""
    what = text.strip()[:60]
    try:
        yield
    except ZeroDivisionError:
        raise InvalidInputError(f"{what} divides by zero.") from None
    except (OverflowError, RecursionError):
        raise InvalidInputError(f"{what} is too large to compute.") from None
    except (ValueError, TypeError, AttributeError) as error:
        if type(error).__module__.startswith("pint"):
            raise InvalidInputError(f"{what} does not fit together: {error}.") from None
        raise InvalidInputError(f"{what} cannot be computed: {error}.") from None


def unit_of(text: str) -> Any:
    """Find a unit such as `km`, `miles per hour`, `square metres` or `°F`.

    Raises:
        InvalidInputError: No such unit is known, or units of several sizes go by its name.
    """
    words = text.strip().strip(".?!")
    for pattern, replacement in _UNIT_WORDS:
        words = re.sub(pattern, replacement, words, flags=re.IGNORECASE)
    for spelling in dict.fromkeys((words, words.lower())):
        try:
            if re.fullmatch(r"[\w°µ/^* ()]+", spelling):
                return _parsed(spelling, text)
        except InvalidInputError:
            raise
        except (AttributeError, ValueError, TypeError):  # pint's own for a name it does not know, and for what is no unit at all
            continue
    raise InvalidInputError(
        f"{text.strip()!r} is not a unit that is known.",
        hint="Use names such as km, mile, kg, litre, °C, and ask for one conversion at a time.",
    )


def _parsed(words: str, text: str) -> Any:
    for word in re.findall(r"[^\W\d]+", words):
        names = list(_registry().parse_units(word.removeprefix("us_"))._units)
        plain = "_" not in word or word.startswith("fluid")
        if plain and names and names[0] in _AMBIGUOUS:
            raise InvalidInputError(f"{word!r} in {text.strip()!r} has several sizes.", hint=f"Say {_AMBIGUOUS[names[0]]}.")
    return _registry().parse_units(re.sub(r"\bus_", "", words))


def convert(value: Any, unit: Any) -> Any:
    """Convert a quantity to a unit.

    Raises:
        InvalidInputError: The value has no unit, or one of another dimension.
    """
    if not isinstance(value, _registry().Quantity):
        raise InvalidInputError(f"{show(value)} has no unit to convert from.", hint="Write it as in '12 miles in km'.")
    if not value.is_compatible_with(unit):
        raise InvalidInputError(f"{value.units} cannot be converted to {unit}.")
    return value.to(unit)


def plus(left: Any, right: Any, sign: int = 1) -> Any:
    """Add, or subtract; per cent are per cent of what they are added to."""
    if isinstance(right, Percent) and isinstance(left, Percent):
        raise InvalidInputError(
            "It can mean a sum of percentages, or one percentage of the other.",
            hint="Leave the % signs out to add them up, or say 'of'.",
        )
    return left + sign * (left * Fraction(right) if isinstance(right, Percent) else right)


class Parser:
    """Parse one expression of numbers, signs, functions and units."""

    def __init__(self, text: str) -> None:
        self.text, self.place = text.strip(), 0
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(text.rstrip()):
            match = _TOKEN.match(text, place)
            if not match:
                raise InvalidInputError(f"{text[place:].strip()[:40]!r} is not arithmetic.")
            kind = match.lastgroup or ""
            self.tokens.append((kind, _SIGNS.get(match[kind], match[kind])))
            place = match.end()

    def value(self) -> Any:
        """Compute the whole expression.

        Raises:
            InvalidInputError: It is no expression, divides by zero, or grows beyond reason.
        """
        with computing(self.text):
            result = self._sum()
        if self.place < len(self.tokens):
            raise InvalidInputError(f"{self.tokens[self.place][1]!r} does not belong in {self.text!r}.")
        return result

    def _next(self, ahead: int = 0) -> tuple[str, str]:
        return self.tokens[self.place + ahead] if self.place + ahead < len(self.tokens) else ("", "")

    def _take(self, *words: str) -> str:
        word = self._next()[1].lower()
        self.place += word in words
        return word if word in words else ""

    def _sum(self) -> Any:
        result = self._term()
        while sign := self._take("+", "-"):
            result = plus(result, self._term(), 1 if sign == "+" else -1)
        return result

    def _term(self) -> Any:
        result = self._factor()
        while sign := self._take("*", "/", "of"):
            # a product of percentages is a plain number
            left, right = (Fraction(one) if isinstance(one, Percent) else one for one in (result, self._factor()))
            result = left / right if sign == "/" else left * right
        return result

    def _factor(self) -> Any:
        if sign := self._take("-", "+"):
            return self._factor() * (-1 if sign == "-" else 1)
        base = self._postfix()
        return _power(base, self._factor()) if self._take("^") else base

    def _postfix(self) -> Any:
        value = self._atom()
        while True:
            if self._take("%"):
                value = Percent(value / 100)
            elif self._take("!"):
                if value != int(value) or not 0 <= value <= 170:
                    raise InvalidInputError("A factorial needs a whole number from 0 to 170.")
                value = Fraction(math.factorial(int(value)))
            elif scale := self._take(*_SCALES):
                value = value * _SCALES[scale]
            elif unit := self._unit():
                value = _registry().Quantity(value, unit_of(unit))
            else:
                return value

    def _unit(self) -> str:
        parts = []
        while self._next()[0] == "word" and self._next()[1].lower() != "of":
            parts.append(self._next()[1])
            self.place += 1
            (_, sign), (kind, power) = self._next(), self._next(1)
            if sign == "^" and kind == "number":
                parts += [sign, power]
                self.place += 2
            elif sign in ("/", "*") and kind == "word":
                parts.append(sign)
                self.place += 1
        return " ".join(parts)

    def _atom(self) -> Any:
        kind, text = self._next()
        self.place += 1
        if kind == "number":
            return Fraction(text.replace(",", ""))
        if text == "(":
            value = self._sum()
            if not self._take(")"):
                raise InvalidInputError(f"A bracket is not closed in {self.text!r}.")
            return value
        if text.lower() in _FUNCTIONS:
            in_brackets, value = self._next()[1] == "(", self._postfix()
            if not in_brackets and self._next()[1] in ("+", "-", "*", "/", "^", "of"):
                raise InvalidInputError(f"It is not clear where {text} ends in {self.text!r}.", hint=f"Say '{text}(…)'.")
            return exact(_FUNCTIONS[text.lower()](float(value)))
        if text.lower() == "log":
            raise InvalidInputError("log can mean log10 or ln.", hint="Say 'log10(100)' or 'ln(100)'.")
        if text.lower() in ("pi", "π"):
            return exact(math.pi)
        if not text:
            raise InvalidInputError(f"{self.text!r} is not complete.")
        raise InvalidInputError(f"{text!r} is not arithmetic.", hint="Write it as in '(3 + 4) * 5' or '12 miles in km'.")


def exact(value: float) -> Fraction:
    """The fraction that a float shows, so that 0.1 stays one tenth."""
    return Fraction(Decimal(repr(float(value))))


def _power(base: Any, exponent: Any) -> Any:
    exponent = Fraction(exponent)
    if exponent.denominator != 1:
        return exact(float(base) ** float(exponent))
    size = max(abs(base.numerator), base.denominator, 2) if isinstance(base, Fraction) else 10
    if abs(exponent) > 2_000 or abs(int(exponent)) * math.log10(size) > _MAX_DIGITS:
        raise OverflowError
    return base ** int(exponent)


def show(value: Any) -> str:
    """Write a value: exactly when its decimals end within fifteen digits, else with fifteen significant digits."""
    if not isinstance(value, Fraction | int):
        return f"{show(value.magnitude)} {_unit_name(value.units)}".strip()
    number = Fraction(value)
    if number.denominator == 1:
        digits = str(number.numerator)
        return digits if len(digits) <= 40 else f"{Decimal(number.numerator):.12e}"
    text = f"{Decimal(number.numerator) / Decimal(number.denominator):.15g}"
    return text if "e" in text.lower() or "." not in text else text.rstrip("0").rstrip(".")


def _unit_name(units: Any) -> str:
    # pint's own short form cannot write the fractions that its exponents are here
    powers = [(_registry().get_symbol(name), float(power)) for name, power in units._units.items()]
    above, below = (
        "·".join(name if power == sign else f"{name}^{power * sign:g}" for name, power in powers if power * sign > 0)
        for sign in (1, -1)
    )
    return f"{above or '1'}/{below}" if below else {"Δ°C": "°C", "Δ°F": "°F"}.get(above, above)
