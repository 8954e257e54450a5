"""Compute arithmetic, percentages and unit conversions exactly, from the request or from an earlier task's result."""

from __future__ import annotations

import calendar
import math
import re
import statistics
from collections.abc import Callable
from fractions import Fraction

from arithmetic import NUMBER, Percent, compute, computing, convert, plus, show, times
from ioa import Agent, InvalidInputError, TaskContext
from words import NUMBER_WORDS

agent = Agent(
    "calculator",
    description="A calculator: arithmetic, percentages, roots and powers, averages of given numbers, and conversion between units "
    "of length, mass, time, speed, volume, data and temperature.",
    skills=["arithmetic", "percentages", "unit conversion"],
    examples=[
        "what is 15 % of 240", "convert 12 miles to km", "calculate (3.5 + 4) * 2^3", "the sum of 3, 4 and 5",
        "100 degrees fahrenheit in celsius", "20 is what percent of 80?", "divide the total by 12", "add 19 % VAT to it",
        "how many litres are in 5 imperial gallons", "square root of 144",
    ],
    tags=["math", "units"],
    may_team_up=False,
)  # fmt: skip
_MONTHS = "|".join([*calendar.month_name[1:], *calendar.month_abbr[1:]])
_DATE = re.compile(
    rf"\b(?:\d{{4}}-\d\d-\d\d|(?:\d{{1,2}}\.? )?(?:{_MONTHS})(?: \d+)+)\b",
    re.IGNORECASE,
)
_VALUE = rf"-?[€$£]?{NUMBER}"
_LEAD = re.compile(
    r"^\s*(?:(?:please|then|now|and|can you|could you|what(?:'s| is| are| would be| does)?|how much (?:is|are)|how many (?:is|are)"
    r"|calculate|compute|work out|evaluate|solve|convert|find|tell me|give me|the (?:result|value|amount) of|determine|the)\s+)+",
    re.IGNORECASE,
)
_WORDS = (
    (r"\bto the power of\b|\braised to(?: the)?\b", "^"), (r"\bfactorial\b", "!"), (r"\bsquared\b|²", "^2"), (r"\bcubed\b|³", "^3"),
    (r"\bplus\b", "+"), (r"\bminus\b", "-"), (r"\b(?:multiplied by|times)\b", "*"), (r"(?<=[\d)])\s*x\s*(?=[\d(])", "*"),
    (r"\bdivided by\b", "/"), (r"\bsquare root(?: of)?\b|√", "sqrt"), (r"\bcube root(?: of)?\b", "cbrt"),
    (r"\bhalf(?: of)?\b", "0.5 *"), (r"\ba third(?: of)?\b", "1/3 *"), (r"\ba quarter(?: of)?\b", "0.25 *"),
    (r"\b(?:twice|double)\b", "2 *"),
    (r"\bper ?cent(?:age)?\b", "%"),
)  # fmt: skip


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Compute the expression the task holds and show it beside its value."""
    text = _LEAD.sub("", re.sub(r"[?.= ]+$", "", _with_results(task, ctx).strip()))
    if date := _DATE.search(text):
        raise InvalidInputError(f"Dates such as {date[0]} are not computed here.", hint="Numbers, percentages and units are.")
    if len(signs := set(re.findall(r"[€$£](?=\d)", text))) > 1:
        raise InvalidInputError(f"{' and '.join(sorted(signs))} are two currencies, whose rate is not known here.")
    text = re.sub(r"[€$£](?=\d)", "", text)
    for word, number in NUMBER_WORDS.items():
        text = re.sub(rf"\b{word}\b", str(number), text, flags=re.IGNORECASE)
    asked = re.sub(
        r"^how many ([^\d]+?) (?:are|is)(?: there)?(?: in)? (?:an? (?=\D)|(?=\d))(.+)", _as_conversion, text, flags=re.IGNORECASE
    )
    text = _LEAD.sub("", asked).strip()
    if len(re.findall(r"\d\S* [^\W\d]\S* (?:in|to|into) ", text)) > 1:
        raise InvalidInputError("One amount is converted at a time.", hint="Say 'Convert 5 miles to km. Convert 3 kg to pounds.'")
    if match := _CONVERSION.fullmatch(text):
        return f"{text} = {convert(match['amount'], match['unit'])}"
    for pattern, form in _FORMS:
        if match := re.fullmatch(pattern, text, re.IGNORECASE):
            operands = [_value(_one_operand(part)) for _, part in sorted(match.groupdict().items())]
            with computing(text):
                return f"{text} = {show(form(*operands))}"
    if match := re.fullmatch(rf"({'|'.join(_AGGREGATES)})(?: (?:of|between))? (?:the )?(?:numbers )?(.*\d.*)", text, re.IGNORECASE):
        parts = re.split(r"\s*(?:,\s+and\b|,(?!\d{3}\b)|,\s|;|\band\b|&)\s*", match[2])
        values = [_value(part) for part in [*parts[:-1], _one_operand(parts[-1], "-+*^×−")]]
        if len(values) < 2 or (match[1].lower() == "difference" and len(values) > 2):
            raise InvalidInputError(f"{match[1]} is of {'two' if len(values) > 2 else 'several'} numbers, not of {len(values)}.")
        return f"{text} = {show(_AGGREGATES[match[1].lower()](values))}"
    return f"{text} = {show(_value(text))}"


def _as_conversion(match: re.Match[str]) -> str:
    return f"{match[2] if match[2][0].isdigit() else f'1 {match[2]}'} in {match[1]}"


def _value(text: str) -> Fraction:
    text = _LEAD.sub("", text)
    if scaled := re.search(r"\b(?:half|a third|a quarter|twice|double)\b(.*)", text, re.IGNORECASE):
        _one_operand(scaled[1])
    return compute(_signs(text))


def _signs(text: str) -> str:
    for pattern, sign in _WORDS:
        text = re.sub(pattern, f" {sign} ", text, flags=re.IGNORECASE)
    return text


def _one_operand(text: str, signs: str = "-+*/^×÷−") -> str:
    """Refuse what may end before its last sign: `half of 50 plus 10` may be 35 or 30."""
    if re.search(rf"[\d%!)]\s*[{signs}]", re.sub(r"\([^()]*\)", "0", _signs(text))):
        raise InvalidInputError(
            f"It is not clear what belongs together in {text.strip()!r}.", hint="Write it with signs and brackets."
        )
    return text


def _share(part: Fraction, whole: Fraction) -> Fraction:
    return Percent(part / whole)


def _minus(left: Fraction, right: Fraction) -> Fraction:
    return plus(left, right, -1)


_CONVERSION = re.compile(
    r"(?P<amount>-?[\d.].*?[^\W\d].*?)\s+(?:in|to|into|as|expressed in)\s+(?P<unit>(?!(?:a )?per ?cent)[^\d%]+[23]?)", re.IGNORECASE
)
_AGGREGATES: dict[str, Callable[[list[Fraction]], Fraction]] = {
    **dict.fromkeys(("sum", "total", "add"), lambda values: sum(values, Fraction())),
    **dict.fromkeys(("product", "multiply"), lambda values: math.prod(values, start=Fraction(1))),
    **dict.fromkeys(("average", "mean"), lambda values: sum(values, Fraction()) / len(values)), "median": statistics.median,
    "difference": lambda values: abs(values[0] - values[1]),
    **dict.fromkeys(("maximum", "max", "largest", "highest"), lambda values: max(values)),
    **dict.fromkeys(("minimum", "min", "smallest", "lowest"), lambda values: min(values)),
}  # fmt: skip
_PER_CENT = r"(?:percent(?:age)?|per cent|%)"
_FORMS: list[tuple[str, Callable[[Fraction, Fraction], Fraction]]] = [
    (rf"(?P<a>.+?) is what {_PER_CENT} of (?P<b>.+)", _share),
    (rf"{_PER_CENT}\s*of (?P<b>.+?) is (?P<a>.+)", _share),
    (rf"(?P<a>.+?) (?:out )?of (?P<b>[^%]+?) (?:as|in) (?:a )?{_PER_CENT}", _share),
    (rf"{_PER_CENT} change from (?P<a>.+?) to (?P<b>.+)", lambda a, b: _share(b - a, a)),
    (r"add (?P<b>.+?)(?:(?<=%) (?:VAT|tax))? to (?P<a>.+)", plus),
    (r"(?:increase|raise) (?P<a>.+?) by (?P<b>.+)", plus),
    (r"(?:decrease|reduce|lower|cut) (?P<a>.+?) by (?P<b>.+)", _minus),
    (r"(?:subtract|deduct|take) (?P<b>.+?) from (?P<a>.+)", _minus),
    (r"(?P<b>[^%]+%) off (?P<a>.+)", _minus),
    (r"divide (?P<a>.+?) by (?P<b>.+)", lambda a, b: a / b),
    (r"multiply (?P<a>.+?) (?:by|with) (?P<b>.+)", times),
]
_REFERENCE = re.compile(
    r"\b(?:(?:the|this|that) (?:result|total|sum|average|mean|number|value|answer|amount|figure|median|count)|it|that|this)\b",
    re.IGNORECASE,
)
_THEM = re.compile(r"\b(?:them|these|those|both|the (?:results|numbers|values|figures|totals|answers))\b", re.IGNORECASE)


def _with_results(task: str, ctx: TaskContext) -> str:
    """Put the figures of earlier results in the place of `it` and `them`."""
    figures = [figure for result in ctx.results for figure in _figures(result.content)]
    if ctx.results and _THEM.search(task):
        if len(figures) < 2:
            raise InvalidInputError(f"The earlier results hold {len(figures)} figures, not several.")
        return _THEM.sub(", ".join(figures[:-1]) + f" and {figures[-1]}", task, count=1)
    if not ctx.results or not _REFERENCE.search(task):
        return task
    if len(set(figures)) != 1:
        found = f"several figures: {', '.join(figures[:10])}" if figures else "no figure"
        raise InvalidInputError(f"The earlier result holds {found}.", hint="Say which number to calculate with.")
    return _REFERENCE.sub(figures[0], task)


def _figures(content: str) -> list[str]:
    """The figures a result reports: what follows the last colon or equals sign of a line, else its only number."""
    found = []
    for line in content.splitlines():
        numbers = re.findall(rf"(?<![\w-]){_VALUE}(?![\w-])", line)
        if tail := re.search(rf"[:=]\s*({_VALUE})(?=[^\d:=]*(?:\(.*)?$)", line):
            found.append(tail[1])
        elif len(numbers) == 1 and not line.rstrip().endswith(":"):
            found.append(numbers[0])
    return [figure.rstrip(",") for figure in found]


if __name__ == "__main__":
    agent.run()
