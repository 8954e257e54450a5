"""Compute arithmetic, percentages and unit conversions exactly, from the request or from an earlier task's result.

15 % of 240
12 miles in km
(3.5 + 4) * 2^3
sum of 3, 4 and 5
100 °F to celsius
20 is what percent of 80
add 19 % to it
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from arithmetic import Parser, convert, exact, show, unit_of
from ioa import Agent, InvalidInputError, TaskContext
from words import NUMBER_WORDS

agent = Agent(
    "calculator",
    description="A calculator: arithmetic, percentages, roots and powers, averages of given numbers, and conversion between units "
    "of length, mass, time, speed, volume, data and temperature.",
    skills=["arithmetic", "percentages", "unit conversion"],
    examples=[
        "what is 15 % of 240",
        "convert 12 miles to km",
        "calculate (3.5 + 4) * 2^3",
        "the sum of 3, 4 and 5",
        "100 degrees fahrenheit in celsius",
        "20 is what percent of 80?",
        "divide the total by 12",
        "add 19 % VAT to it",
        "how many litres are in 5 imperial gallons",
        "square root of 144",
    ],
    tags=["math", "units"],
    may_team_up=False,
)
_VALUE = r"-?[€$£]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?"
_LEAD = re.compile(
    r"^\s*(?:(?:please|then|now|and|can you|could you|what(?:'s| is| are| would be| does)?|how much (?:is|are)"
    r"|how many (?:is|are)|calculate|compute"
    r"|work out|evaluate|solve|convert|find|tell me|give me|the (?:result|value|amount) of|result of|value of|determine|the)\s+)+",
    re.IGNORECASE,
)
_WORDS: tuple[tuple[str, str], ...] = (
    (r"\bto the power of\b|\braised to(?: the)?\b", "^"), (r"\bfactorial\b", "!"), (r"\bsquared\b", "^2"),
    (r"\bcubed\b", "^3"), (r"\bplus\b", "+"),
    (r"\bminus\b|\bless\b", "-"), (r"\b(?:multiplied by|times)\b", "*"), (r"(?<=[\d)])\s*x\s*(?=[\d(])", "*"),
    (r"\bdivided by\b", "/"), (r"\bsquare root(?: of)?\b|√", "sqrt"), (r"\bcube root(?: of)?\b", "cbrt"),
    (r"\bhalf(?: of)?\b", "0.5 *"),
    (r"\ba third(?: of)?\b", "1/3 *"), (r"\ba quarter(?: of)?\b", "0.25 *"), (r"\b(?:twice|double)\b", "2 *"),
    (r"\bper ?cent(?:age)?\b", "%"),
)  # fmt: skip


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Compute the expression the task holds and show it beside its value."""
    text = _clean(_with_results(task, ctx))
    for pattern, compute in _FORMS:
        if match := re.fullmatch(pattern, text, re.IGNORECASE):
            return f"{text} = {compute(match)}"
    return f"{text} = {show(_evaluate(text))}"


def _clean(task: str) -> str:
    text = _LEAD.sub("", re.sub(r"[?.= ]+$", "", task.strip()))
    if len(signs := set(re.findall(r"[€$£](?=\d)", text))) > 1:
        raise InvalidInputError(f"{' and '.join(sorted(signs))} are two currencies, whose rate is not known here.")
    text = re.sub(r"[€$£](?=\d)", "", text)
    for word, number in NUMBER_WORDS.items():
        text = re.sub(rf"\b{word}\b", str(number), text, flags=re.IGNORECASE)
    return _LEAD.sub("", text).strip()


def _evaluate(text: str) -> Any:
    """Compute an expression, with `… in UNIT` at its end or not."""
    text = _LEAD.sub("", text)
    match = re.fullmatch(r"(?P<what>.+?)\s+(?:in|to|into|as|expressed in)\s+(?P<unit>[^\d]+[23]?)", text, re.IGNORECASE)
    if match and re.search(r"\d", match["what"]):
        value = _evaluate(match["what"])
        if re.fullmatch(r"(?:a )?(?:percent(?:age)?|%)", match["unit"]):
            return exact(float(value * 100)) if not isinstance(value, Fraction) else value * 100
        return convert(value, unit_of(match["unit"]))
    for pattern, sign in _WORDS:
        text = re.sub(pattern, f" {sign} ", text, flags=re.IGNORECASE)
    # `5 feet 10 inches` is one length
    text = re.sub(r"(\d\s*(?:feet|foot|ft|hours?|h|pounds?|lb|minutes?|min|kg|km|m))\s+(?:and\s+)?(\d)", r"\1 + \2", text)
    return Parser(text.replace("²", "^2").replace("³", "^3")).value()


def _numbers(text: str) -> list[Any]:
    parts = [part for part in re.split(r"\s*(?:,\s+and\s+|,\s*(?!\d{3}\b)|,\s+|;|\band\b|&)\s*", text.strip()) if part]
    return [_evaluate(part) for part in parts]


def _aggregate(match: re.Match[str]) -> str:
    values = _numbers(match["list"])
    match match["what"].lower().split()[0]:
        case "sum" | "total" | "add":
            return show(sum(values[1:], values[0]))
        case "product" | "multiply":
            result = values[0]
            for value in values[1:]:
                result = result * value
            return show(result)
        case "average" | "mean":
            return show(sum(values[1:], values[0]) / len(values))
        case "median":
            ordered = sorted(values)
            middle = len(ordered) // 2
            return show(ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2)
        case "difference" if len(values) != 2:
            raise InvalidInputError(f"A difference is of two numbers, not of {len(values)}.")
        case "difference":
            return show(max(values[:2]) - min(values[:2]))
        case "maximum" | "max" | "largest" | "highest":
            return show(max(values))
    return show(min(values))


def _share(part: Any, whole: Any) -> str:
    if whole == 0:
        raise InvalidInputError("There is no percentage of 0.")
    return f"{show(Fraction(part) / Fraction(whole) * 100)} %"


def _of(names: str, compute: Callable[..., str]) -> Callable[[re.Match[str]], str]:
    return lambda match: compute(*(_evaluate(match[name]) for name in names))


def _counted(match: re.Match[str]) -> str:
    return show(convert(_evaluate(match["a"] if re.match(r"\d", match["a"]) else f"1 {match['a']}"), unit_of(match["u"])))


_FORMS: list[tuple[str, Callable[[re.Match[str]], str]]] = [
    (r"(?P<a>.+?) is (?:what|which|how many) (?:percent(?:age)?|%) of (?P<b>.+)", _of("ab", _share)),
    (r"(?:percent(?:age)?|%)\s*of (?P<b>.+?) is (?P<a>.+)", _of("ab", _share)),
    (r"(?P<a>.+?) (?:out )?of (?P<b>[^%]+?) (?:as|in) (?:a )?(?:percent(?:age)?|%)", _of("ab", _share)),
    (
        r"(?:percent(?:age)? |% |relative )?(?:change|increase|decrease|growth) (?:from |between )(?P<a>.+?) (?:to|and) (?P<b>.+)",
        _of("ab", lambda a, b: f"{show(b - a)} ({_share(b - a, a)})"),
    ),
    (
        (
            r"(?P<what>sum|total|product|average|mean|median|difference|maximum|minimum|max|min|largest|smallest|highest|lowest)"
            r"(?: value)? (?:of|between) (?:the )?(?:numbers )?(?P<list>.*\d.*(?:,| and |;|&).*)"
        ),
        _aggregate,
    ),
    (rf"(?P<what>add|multiply) (?P<list>{_VALUE}(?:(?:,| and| with)\s*{_VALUE})+)", _aggregate),
    (r"add (?P<p>[^%]+%)(?: VAT| tax)? to (?P<a>.+)", lambda match: show(_evaluate(f"({match['a']}) + {match['p']}"))),
    (r"(?:increase|raise) (?P<a>.+?) by (?P<b>.+)", lambda match: show(_evaluate(f"({match['a']}) + {match['b']}"))),
    (r"(?:decrease|reduce|lower|cut) (?P<a>.+?) by (?P<b>.+)", lambda match: show(_evaluate(f"({match['a']}) - {match['b']}"))),
    (r"add (?P<b>.+?) to (?P<a>.+)", lambda match: show(_evaluate(f"({match['a']}) + {match['b']}"))),
    (r"(?:subtract|deduct|take) (?P<b>.+?) from (?P<a>.+)", lambda match: show(_evaluate(f"({match['a']}) - {match['b']}"))),
    (r"divide (?P<a>.+?) by (?P<b>.+)", lambda match: show(_evaluate(f"({match['a']}) / ({match['b']})"))),
    (r"multiply (?P<a>.+?) (?:by|with) (?P<b>.+)", lambda match: show(_evaluate(f"({match['a']}) * ({match['b']})"))),
    (r"how many (?P<u>[\w°/ ]+?) (?:are|is)(?: there)?(?: in)? (?:an? )?(?P<a>\d.*|[^\d]+)", _counted),
    (r"(?P<p>[^%]+%) off (?P<a>.+)", lambda match: show(_evaluate(f"({match['a']}) - {match['p']}"))),
    (r"how many (?P<u>[\w°/ ]+?) (?:does|do|make|makes|equal|=) (?P<a>.+)", _counted),
]
_REFERENCE = re.compile(
    r"\b(?:(?:the|this|that) (?:result|total|sum|average|mean|number|value|answer|amount|figure|median|count)|it|that|this)\b",
    re.IGNORECASE,
)
_THEM = re.compile(r"\b(?:them|these|those|both|the (?:results|numbers|values|figures|totals|answers))\b", re.IGNORECASE)


def _with_results(task: str, ctx: TaskContext) -> str:
    """Put the figures of earlier results in the place of `it` and `them`."""
    if not ctx.results:
        return task
    figures = [figure for result in ctx.results for figure in _figures(result.content)]
    if _THEM.search(task):
        if len(figures) < 2:
            raise InvalidInputError(f"The earlier results hold {len(figures)} figures, not several.")
        return _THEM.sub(", ".join(figures[:-1]) + f" and {figures[-1]}", task, count=1)
    if not _REFERENCE.search(task):
        return task
    if len(set(figures)) != 1:
        found = f"several figures: {', '.join(figures[:10])}" if figures else "no figure"
        raise InvalidInputError(f"The earlier result holds {found}.", hint="Say which number to calculate with.")
    return _REFERENCE.sub(figures[0], task)


def _figures(content: str) -> list[str]:
    """The figures a result reports: what follows the last colon or equals sign of a line, else its only number."""
    found = []
    for line in content.splitlines():
        if line.startswith("Over all"):
            continue
        tail = re.search(rf"[:=]\s*(?:about )?({_VALUE})(?=[^\d:=]*(?:\(.*)?$)", line)
        numbers = re.findall(rf"(?<![\w-]){_VALUE}(?![\w-])", line)
        if tail:
            found.append(tail[1])
        elif len(numbers) == 1 and not line.rstrip().endswith(":"):
            found.append(numbers[0])
    return [figure.rstrip(",") for figure in found]


if __name__ == "__main__":
    agent.run()
