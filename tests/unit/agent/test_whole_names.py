"""Names of files are found whole in a text, by one reading of it."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from ioa.agent.whole_names import WholeNames
from tests.rig.calls import calls_of

_LETTERS = st.text("aéB1!_.- ", max_size=8)


def _tried_one_by_one(text: str, names: frozenset[str]) -> set[str]:
    """What is meant, as a pattern says it that tries each name at each place, the longest first."""
    one = "|".join(map(re.escape, sorted(filter(None, names), key=len, reverse=True)))
    return set(re.findall(rf"(?<![\w.\-])(?:{one})(?!\w)", text)) if one else set()


@given(st.text("aéB1!_.- ", max_size=40), st.frozensets(_LETTERS, max_size=6))
@example("a!a a", frozenset({"a", "a!", "a!a b"}))
@example("!!a!!a", frozenset({"!", "!!", "!!a!", "a"}))
def test_names_stand_whole_as_a_pattern_says(text: str, names: frozenset[str]) -> None:
    """Of those that begin at one place the longest, from left to right, and no part of a word."""
    assert WholeNames(names).found_in(text) == _tried_one_by_one(text, names)


def test_names_that_are_nearly_right_everywhere_are_looked_for_once() -> None:
    """A hundred of 250 letters were tried at each place: by results of that a leader's event loop stood for seconds."""
    names = WholeNames({"z", *(f"{'!' * 250}{number:04}" for number in range(99))})
    names.found_in("z")  # what they are is remembered
    assert calls_of(lambda: names.found_in("z " + "!" * 10_000)) < 10 * 10_000


def test_of_very_many_names_those_are_looked_for_that_are_there() -> None:
    """A letter of one takes 245 bytes, and they are not kept."""
    names = WholeNames(f"{'long' * 50} {number}.csv" for number in range(1_000))
    assert names.found_in(f"see {'long' * 50} 7.csv.") == {f"{'long' * 50} 7.csv"}
    assert names.found_in(f"see {'long' * 50} 8.csv") == {f"{'long' * 50} 8.csv"}
