"""Regular expressions on strangers' text: each takes time linear in the text."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from tests.rig.cpu_time import is_linear

_ROOT = Path(__file__).parents[3]
_SEARCHED = re.compile(r"(\w+)\.(?:search|sub|subn|finditer|findall|split)\(")
_UNITS = ("a", "a ", "1", "1,", "a.", " ", "\n", "-", "_", '"', "[(", "\\", "字", "http://a/", "x, y, ", "'")
_TAILS = ("", "\x01")
_SIZE = 6_000
_MAX_LETTERS = 10


def _searches() -> dict[str, Callable[[str], object]]:
    """Find the compiled patterns in the modules of libraries and services, as they are applied, by module and name."""
    sources = [path for folder in ("libs", "services") for path in sorted((_ROOT / folder).rglob("*.py"))]
    searched = {name for path in sources for name in _SEARCHED.findall(path.read_text("utf-8"))}
    found: dict[str, Callable[[str], object]] = {}
    for path in sources:
        if "re.compile(" in path.read_text("utf-8"):
            module = ".".join(path.relative_to(_ROOT).with_suffix("").parts[1:]).removesuffix(".__init__")
            for name, value in vars(importlib.import_module(module)).items():
                for number, one in enumerate(_in(value)):
                    if isinstance(one.pattern, str):
                        is_searched = name in searched or not isinstance(value, re.Pattern)
                        found[f"{module}.{name}[{number}]"] = partial(one.sub, "") if is_searched else one.match
    return found


def _in(value: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list | frozenset):
        for one in value:
            yield from _in(one)
    elif isinstance(value, dict):
        for one in (*value, *value.values()):
            yield from _in(one)


def _applied_pattern(search: Any) -> str:
    pattern: str = getattr(search, "func", search).__self__.pattern
    return pattern


def _slow_text(search: Callable[[str], object], pattern: str) -> str | None:
    """Return a text whose repetition makes the search take more than linear time."""
    letters = sorted({one for one in re.sub(r"\\.", "", pattern) if one not in "()|?+^$"})[:_MAX_LETTERS]
    units = dict.fromkeys((*_UNITS, *letters, *(f"{a}{b}" for a, b in pairwise(letters)), *(f"a{one}" for one in letters)))
    for unit, tail in product(units, _TAILS):
        make = lambda size, unit=unit, tail=tail: unit * (size // len(unit)) + tail  # noqa: E731
        if not is_linear(search, make, _SIZE):
            return f"{unit}…{tail}"
    return None


def test_every_pattern_takes_time_linear_in_the_text() -> None:
    """No repeated text makes a pattern try each position again."""
    slow = {name: text for name, search in _searches().items() if (text := _slow_text(search, _applied_pattern(search)))}
    assert slow == {}


@pytest.mark.parametrize("pattern", [r"\d[\d,.]*x", r"(?:a+)+b", r"\S+\.\w{1,5}\b", r"(?:\w+\.)*\w+@", r"\s+$"])
def test_backtracking_pattern_is_found(pattern: str) -> None:
    """The texts and the measure distinguish quadratic from linear patterns."""
    assert _slow_text(partial(re.compile(pattern).sub, ""), pattern)
