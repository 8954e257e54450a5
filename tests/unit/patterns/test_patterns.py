"""No text that anybody sends keeps a process busy for longer than its length explains: every regular expression is tried."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from ioa.agent.file_names import names_in
from ioa.protocol.word_forms import looks_like
from tests.unit.patterns.attacks import attacks_on
from tests.unit.patterns.bounding import TakesForEverError, bounded
from tests.unit.patterns.collecting import Source, hidden, patterns, sources

_CHARS = (80, 320, 1_280, 5_120)
"""Each four times the one before, and all of them longer than the pieces of a text that its reader remembers (64)."""
_STEEP = 8.0
"""What takes four times the text takes four times the time if it is linear, and sixteen times if it is quadratic."""
_MEASURABLE_SECONDS = 0.001
"""Below this, growth cannot be told from noise. What is quadratic takes several times as long at the largest length."""
_CPU_SECONDS = 1.0
"""What takes so long for one text is worse than quadratic: no growth need be measured."""
_REPEATS = 5
_CONFIRMATIONS = 3
"""What grows too fast does so each time; what was disturbed, by a cache that others empty, does not."""

_SHORT = ("calculator", "chart_maker", "questions", "tables")
"""Modules of agents that read what is short, or in a child that ends after a while; unit/examples/test_long_tasks.py tries them."""
_SOURCES = sources(*_SHORT)

Ask = Callable[[str], object]


def _seconds(ask: Ask, text: str, *, repeats: int = 1) -> float:
    """The least CPU time of some tries; other processes do not count, and what disturbs one try seldom disturbs them all."""
    least = float("inf")
    for _ in range(repeats):
        began = time.thread_time()
        ask(text)
        least = min(least, time.thread_time() - began)
    return least


def _grows_too_fast(ask: Ask, text: Callable[[int], str]) -> bool:
    """Whether time grows faster than the text, at some length at which it can be measured: if at any, then at the largest."""
    for longer, shorter in pairwise(reversed(_CHARS)):
        try:
            with bounded(_CPU_SECONDS):
                if _seconds(ask, text(longer)) < _MEASURABLE_SECONDS:
                    return False
                if all(_is_steep(ask, text(shorter), text(longer)) for _ in range(_CONFIRMATIONS)):
                    return True
        except TakesForEverError:
            return True
    return False


def _is_steep(ask: Ask, shorter: str, longer: str) -> bool:
    taken = _seconds(ask, longer, repeats=_REPEATS)
    return taken >= _MEASURABLE_SECONDS and taken > _STEEP * _seconds(ask, shorter, repeats=_REPEATS)


def _asking(pattern: re.Pattern[Any], method: str) -> Ask:
    """Have a pattern of texts or of bytes read a text."""
    is_of_bytes, blank = (True, b" ") if isinstance(pattern.pattern, bytes) else (False, " ")

    def ask(text: str) -> object:
        read = text.encode("latin-1", "replace") if is_of_bytes else text
        match method:
            case "sub" | "subn":
                return pattern.sub(blank, read)
            case "finditer":
                return sum(1 for _ in pattern.finditer(read))
            case _:
                return getattr(pattern, method)(read)

    return ask


@pytest.mark.parametrize("source", _SOURCES, ids=lambda source: source.name)
def test_every_expression_takes_time_in_proportion_to_the_text(source: Source) -> None:
    """No part of any expression, repeated, makes it try each position anew, or one position in many ways."""
    slow = [
        f"{found.where}.{method}: {attack}"
        for found in patterns(source)
        for attack in attacks_on(found.pattern)
        for method in found.methods
        if _grows_too_fast(_asking(found.pattern, method), attack.text)
    ]
    assert slow == []


@pytest.mark.parametrize("source", sources(looks_like.__module__, names_in.__module__, *_SHORT), ids=lambda source: source.name)
def test_no_expression_is_made_in_a_function(source: Source) -> None:
    """Each expression stands in its module or in a call as it is, so that the test above finds it.

    But for those of forms that authors wait for, and of names of files, which `unit/growth` tries.
    """
    assert hidden(source) == []


@pytest.mark.parametrize(
    "expression", [r"\d[\d,.]*x", r"(?:a+)+b", r"<(\s*/?\s*a)", r"\S+\.\w{1,5}\b", r"(?:\w+\.)*\w+@", r"\s+$", r"\beyJ[\w-]{10,}\."]
)
def test_what_backtracks_is_found(expression: str) -> None:
    """The attacks and the measure tell quadratic and exponential expressions from linear ones."""
    pattern = re.compile(expression)
    assert any(_grows_too_fast(_asking(pattern, "sub"), attack.text) for attack in attacks_on(pattern))


@pytest.mark.parametrize("form", ["*a*b", "*ab*ab*c", "*?*?*a", "*#*#b*", "?*" * 12 + "b", "*" + "a?" * 20 + "b*", "a*" * 20 + "b"])
@pytest.mark.parametrize("unit", ["a", "ab", "ba", "1", "a1"])
def test_what_has_a_form_is_found_in_proportion_to_the_text(form: str, unit: str) -> None:
    """Authors write the forms of which expressions are made, and anybody the texts."""
    assert not _grows_too_fast(lambda text: looks_like(text, form), lambda chars: unit * (chars // len(unit)))
