"""What a request brings forth: how it is called, and whether it is a report or a picture. Works on covered text."""

from __future__ import annotations

import re

from ioa.agent.rules.lexicon import CHARTS, MAKING, NOMINAL, REPORTS, TRANSPARENT, alternatives
from ioa.agent.rules.openings import is_question, leading_verb, without_front

_FLAGS = re.IGNORECASE
_REPORT = re.compile(rf"\b{alternatives(REPORTS)}s?\b", _FLAGS)
CHART = re.compile(rf"\b{alternatives(CHARTS)}s?\b|\b(?:plot|chart|graph|visuali[sz]e)\b", _FLAGS)
_HEAD_END = re.compile(
    r"\s+(?:of|in|per|by|for|from|on|with|between|to|at|that|which|who|over|as|and|among|within|about|using|is|are)\b|[,;:(]",
    _FLAGS,
)


def is_report(text: str) -> bool:
    """Whether a request asks for a text made of what is known by then."""
    led = leading_verb(text)
    if led is None:
        return bool(_REPORT.search(head_of(text)))
    return led[0] in ("report", "conclude", "brief") or (led[0] in MAKING and bool(_REPORT.search(head_of(led[1]))))


def is_chart(text: str) -> bool:
    """Whether a request asks for a picture of what is known by then."""
    led = leading_verb(text)
    return bool(CHART.match(text)) or bool(CHART.search(head_of(led[1] if led else text)))


def head_of(phrase: str) -> str:
    """The beginning of a phrase, up to what tells more of it: "the total sales" of "the total sales per region"."""
    return _HEAD_END.split(phrase, maxsplit=1)[0]


def phrase_of(request: str) -> str:
    """Name what a request brings forth: "compute the total sales" becomes "the total sales"."""
    request = (without_front(request.strip()) or request.strip()).rstrip(" .?!")
    request = re.split(r"[.?!]\s", request, maxsplit=1)[0]
    if match := re.match(r"what(?:['’]s|\s+(?:is|are|was|were))\s+(?=the\b|\d|our|my|\S+\s+(?:of|in|per)\b)(.*)", request, _FLAGS):
        return match[1]
    led = leading_verb(request)
    if led is None:
        return f"the answer to “{request}”" if is_question(request) else request
    verb, rest = led
    rest = re.sub(r"^(?:me|us)\s+|^(?:out|up)\s+(?=\w)", "", rest, flags=_FLAGS)
    if is_question(rest):
        return phrase_of(rest)
    if not rest:
        return f"the result of “{request}”"
    if verb in NOMINAL:
        return f"{NOMINAL[verb]} {rest}"
    if verb in TRANSPARENT:
        return re.sub(r"^(?:an?|one)\s+(?!\d)", "the ", rest, flags=_FLAGS)
    return f"the result of “{request}”"
