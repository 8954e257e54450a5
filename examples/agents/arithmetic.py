"""A safe calculator: parses arithmetic with units into exact fractions and pint quantities. Nothing is ever executed.

Grammar: sum = term (("+" | "-") term)* · term = factor (("*" | "/" | "of") factor)* · factor = ("-" | "+") factor | power ·
power = postfix ("^" factor)? · postfix = atom ("%" | "!" | unit)* · atom = number | "(" sum ")" | function "(" sum ")"
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Any

from ioa import InvalidInputError

MAX_DIGITS = 400
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d{1,3}(?:,\d{3})+(?![\d])|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)|(?P<word>log10|log2|[^\W\d_]+"
    r"|[°µ][^\W\d_]*|[€$£])|(?P<sign>\*\*|[-+*/^()%!,×÷·−]))"
)
_SIGNS = {"×": "*", "·": "*", "÷": "/", "−": "-", "**": "^"}
_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt, "cbrt": math.cbrt, "ln": math.log, "log10": math.log10, "log2": math.log2, "exp": math.exp, "abs": abs,
    "round": round, "floor": math.floor, "ceil": math.ceil,
}  # fmt: skip
_CONSTANTS = {"pi": math.pi, "π": math.pi, "e": math.e}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "dozen": 12, "k": 1_000}
_UNIT_NAMES = {
    "c": "degC", "°c": "degC", "celsius": "degC", "centigrade": "degC", "f": "degF", "°f": "degF", "fahrenheit": "degF",
    "kelvin": "kelvin", "kelvins": "kelvin", "kmh": "km/hour", "kph": "km/hour", "sqm": "m^2", "sqft": "ft^2", "lbs": "lb",
    "tonne": "metric_ton", "tonnes": "metric_ton", "mins": "minute", "secs": "second", "hrs": "hour", "°": "degree",
}  # fmt: skip


_ANGLES: dict[str, Callable[[float], float]] = {"sin": math.sin, "cos": math.cos, "tan": math.tan}
_TWO_SIZES = ("gallon", "quart", "pint", "gill", "fluid_ounce")
_AMBIGUOUS = {
    **{unit: f"'US {name}' or 'imperial {name}'" for unit in _TWO_SIZES for name in (unit.replace("_", " "),)},
    "ton": "'short ton' (US), 'long ton' (UK) or 'metric ton'",
    "ounce": "'avoirdupois ounce', 'troy ounce', 'US fluid ounce' or 'imperial fluid ounce'",
    "hundredweight": "pounds or kg", "barrel": "litres", "cup": "'US cup', 'imperial cup' or millilitres",
    "tablespoon": "millilitres", "teaspoon": "millilitres", "horsepower": "'metric horsepower' or watts",
    "calorie": "'kcal' for food, or joules", "month": "days", "year": "days",
}  # fmt: skip
_QUALIFIED = re.compile(r"\b(us|imperial|short|long|metric|troy|avoirdupois)\s+(fluid\s+)?([a-z]+)", re.IGNORECASE)

_REGISTRY_LOCK = Lock()


def _pint() -> ModuleType:
    return import_module("pint")  # here, since an agent that has nothing to do yet should not take 10 MB for it


def _registry() -> Any:
    with _REGISTRY_LOCK:  # tasks run in threads, and quantities of two registries do not mix
        return _created_registry()


@lru_cache(maxsize=1)
def _created_registry() -> Any:
    return _pint().UnitRegistry(non_int_type=Fraction)


class Percent(Fraction):
    """A percentage as written: `+ 5 %` adds five percent of what stands before it."""


def unit_of(text: str) -> Any:
    """Find a unit such as `km`, `miles per hour`, `square metres` or `°F`.

    Raises:
        InvalidInputError: No such unit is known, or units of several sizes go by its name.
    """
    words = text.strip().strip(".?!").replace("²", "^2").replace("³", "^3").replace(" per ", "/")
    words = _QUALIFIED.sub(lambda match: "_".join(match[0].lower().split()), words)
    words = re.sub(r"\bfluid\s+(?=\w)", "fluid_", words, flags=re.IGNORECASE)
    words = re.sub(r"\bdegrees?\s+(?=\w)", "", words, flags=re.IGNORECASE)
    words = re.sub(r"\bsquare (\w+)", r"\1^2", words)
    words = re.sub(r"\bcubic (\w+)", r"\1^3", words)
    words = re.sub(r"(?<=[a-zA-Z])([23])\b", r"^\1", words)
    words = re.sub(r"[°]?[^\W\d_]+", lambda match: _UNIT_NAMES.get(match[0].lower(), match[0]), words)
    try:
        if not re.fullmatch(r"[\w°µ/^* ()]+", words):
            raise ValueError
        return _parsed(words, text)
    except (_pint().UndefinedUnitError, _pint().DefinitionSyntaxError, ValueError, TypeError, AttributeError):
        try:
            return _parsed(words.lower(), text)
        except (_pint().UndefinedUnitError, _pint().DefinitionSyntaxError, ValueError, TypeError, AttributeError):
            raise InvalidInputError(
                f"{text.strip()!r} is not a unit that is known.",
                hint="Use names such as km, mile, kg, litre, °C, and ask for one conversion at a time.",
            ) from None


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
    try:
        return value.to(unit)
    except _pint().DimensionalityError as error:
        raise InvalidInputError(f"{value.units} cannot be converted to {unit}: {error}.".replace("..", ".")) from None


class Parser:
    """Parse one expression of numbers, signs, functions and units."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(text.rstrip()):
            match = _TOKEN.match(text, place)
            if not match:
                raise InvalidInputError(f"{text[place:].strip()[:40]!r} is not arithmetic.")
            kind = match.lastgroup or ""
            self.tokens.append((kind, _SIGNS.get(match[kind], match[kind])))
            place = match.end()
        self.place = 0

    def value(self) -> Any:
        """Compute the whole expression.

        Raises:
            InvalidInputError: It is no expression, divides by zero, or grows beyond reason.
        """
        try:
            result = self._sum()
            if self.place < len(self.tokens):
                raise InvalidInputError(f"{self.tokens[self.place][1]!r} does not belong in {self.text.strip()!r}.")
            return result
        except ZeroDivisionError:
            raise InvalidInputError(f"{self.text.strip()} divides by zero.") from None
        except (OverflowError, RecursionError):
            raise InvalidInputError(f"{self.text.strip()[:60]} is too large to compute.") from None
        except _pint().PintError as error:
            raise InvalidInputError(f"{self.text.strip()} does not fit together: {error}.") from None
        except (ValueError, TypeError) as error:
            raise InvalidInputError(f"{self.text.strip()} cannot be computed: {error}.") from None

    def _next(self) -> tuple[str, str]:
        return self.tokens[self.place] if self.place < len(self.tokens) else ("", "")

    def _take(self, *signs: str) -> str:
        kind, text = self._next()
        if text.lower() in signs and kind in ("sign", "word"):
            self.place += 1
            return text.lower()
        return ""

    def _sum(self) -> Any:
        result = self._term()
        while sign := self._take("+", "-"):
            right = self._term()
            if isinstance(right, Percent) and isinstance(result, Percent):
                raise InvalidInputError(
                    f"{self.text.strip()!r} can mean a sum of percentages, or one percentage of the other.",
                    hint="Leave the % signs out to add them up, or say 'of'.",
                )
            if isinstance(right, Percent):
                right = result * Fraction(right)
            result = result + right if sign == "+" else result - right
        return result

    def _term(self) -> Any:
        result = self._factor()
        while sign := self._take("*", "/", "of"):
            right = self._factor()
            left = Fraction(result) if isinstance(result, Percent) else result
            right = Fraction(right) if isinstance(right, Percent) else right
            result = left / right if sign == "/" else left * right
        return result

    def _factor(self) -> Any:
        if sign := self._take("-", "+"):
            value = self._factor()
            return -value if sign == "-" else value
        base = self._postfix()
        if self._take("^"):
            return _power(base, self._factor())
        return base

    def _postfix(self) -> Any:
        value = self._atom()
        while True:
            if self._take("%", "percent"):
                value = Percent(value / 100)
            elif self._take("!"):
                value = _factorial(value)
            elif (scale := self._next()[1]) in _SCALES and self._next()[0] == "word":
                self.place += 1
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
            ahead = self.tokens[self.place : self.place + 2]
            is_power = [kind for kind, _ in ahead] == ["sign", "number"] and ahead[0][1] == "^"
            if is_power or ([kind for kind, _ in ahead] == ["sign", "word"] and ahead[0][1] in "/*"):
                parts.append(ahead[0][1])
                self.place += 1
                if is_power:
                    parts.append(ahead[1][1])
                    self.place += 1
        return " ".join(parts)

    def _atom(self) -> Any:
        kind, text = self._next()
        self.place += 1
        if kind == "number":
            return Fraction(text.replace(",", "").replace(" ", ""))
        if text == "(":
            value = self._sum()
            if not self._take(")"):
                raise InvalidInputError(f"A bracket is not closed in {self.text.strip()!r}.")
            return value
        word = text.lower()
        if word in _FUNCTIONS or word in _ANGLES:
            return self._function(word)
        if word == "log":
            raise InvalidInputError("log can mean log10 or ln.", hint="Say 'log10(100)' or 'ln(100)'.")
        if word in _CONSTANTS:
            return exact(_CONSTANTS[word])
        if not text:
            raise InvalidInputError(f"{self.text.strip()!r} is not complete.")
        raise InvalidInputError(f"{text!r} is not arithmetic.", hint="Write it as in '(3 + 4) * 5' or '12 miles in km'.")

    def _function(self, word: str) -> Fraction:
        in_brackets = self._next()[1] == "("
        value = self._postfix()
        if not in_brackets and self._next()[1] in ("+", "-", "*", "/", "^", "of"):
            raise InvalidInputError(f"It is not clear where {word} ends in {self.text.strip()!r}.", hint=f"Say '{word}(…)'.")
        if word in _FUNCTIONS:
            return exact(_FUNCTIONS[word](float(value)))
        if not isinstance(value, _registry().Quantity):
            raise InvalidInputError(f"{word} of degrees or of radians?", hint=f"Say '{word}(30 degrees)' or '{word}(0.5 radians)'.")
        return exact(round(_ANGLES[word](float(value.to("radian").magnitude)), 15))


def exact(value: float) -> Fraction:
    """The fraction that a float shows, so that 0.1 stays one tenth."""
    return Fraction(Decimal(repr(float(value))))


def _power(base: Any, exponent: Any) -> Any:
    exponent = Fraction(exponent)
    if exponent.denominator == 1 and abs(exponent) < 2_000:
        if (
            isinstance(base, Fraction)
            and abs(float(exponent)) * math.log10(max(abs(base.numerator), base.denominator, 2)) > MAX_DIGITS
        ):
            raise OverflowError
        return base ** int(exponent)
    return exact(float(base) ** float(exponent))


def _factorial(value: Any) -> Fraction:
    if value != int(value) or not 0 <= value <= 170:
        raise InvalidInputError("A factorial needs a whole number from 0 to 170.")
    return Fraction(math.factorial(int(value)))


def show(value: Any) -> str:
    """Write a value: exactly when its decimals end within fifteen digits, else with fifteen significant digits."""
    if isinstance(value, _registry().Quantity):
        return f"{show(value.magnitude)} {_unit_name(value.units)}".strip()
    number = Fraction(value)
    if number.denominator == 1:
        digits = str(number.numerator)
        return digits if len(digits) <= 40 else f"{Decimal(number.numerator):.12e}"
    decimal = Decimal(number.numerator) / Decimal(number.denominator)
    text = f"{decimal:.15g}"
    return text if "e" in text.lower() else text.rstrip("0").rstrip(".") if "." in text else text


def _unit_name(units: Any) -> str:
    # pint's own short form cannot write the fractions that its exponents are here
    powers = {
        _registry().get_symbol(name): int(power) if power == int(power) else float(power) for name, power in units._units.items()
    }
    above = [name if power == 1 else f"{name}^{power:g}" for name, power in powers.items() if power > 0]
    below = [name if power == -1 else f"{name}^{-power:g}" for name, power in powers.items() if power < 0]
    text = "·".join(above) or ("1" if below else "")
    return {"Δ°C": "°C", "Δ°F": "°F"}.get(text, "/".join([text, *below]))
