"""The form that a text may have: what a policy waits for to be said, or to stand in a field."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache


def looks_like(text: str, pattern: str) -> bool:
    """Whether a text has the form of a pattern: `*` is anything, `?` any character, `#` a digit; case does not count."""
    return has_form(text.casefold(), pattern)


def has_form(folded: str, pattern: str) -> bool:
    """Whether a text whose case is folded has the form of a pattern, for who asks for many forms of one text.

    What was found between two stars stays. Words take a few steps for each character of the text, however long they are; only where
    `?` and `#` stand among them it may take one for each sign of those words.

    So they are looked for as expressions: what of one was found is never read again for the next try (Knuth, Morris and Pratt,
    1977), where `in` and `find` try short words letter by letter at each place of a short text.
    """
    first, *others = _parts_of(pattern)
    if not others:
        return len(first) == len(folded) and first.stands_at(folded, 0)
    *between, last = others
    if not first.stands_at(folded, 0):
        return False
    at = len(first)
    for part in between:
        at = part.end_of_first(folded, at)
        if at < 0:
            return False
    begin = len(folded) - len(last)
    return at <= begin and last.stands_at(folded, begin)


def is_held(word: str, folded: Iterable[str]) -> bool:
    """Whether one of some texts whose case is folded holds a word, of which each sign stands for itself; see `has_form`."""
    search = _literal(word).search
    return any(search(text) for text in folded)


def wild_signs(pattern: str) -> int:
    """How many signs those parts of a pattern have in which `?` or `#` stands."""
    return sum(len(part) for part in _parts_of(pattern) if part.is_wild)


class _Part:
    """What stands between two stars."""

    def __init__(self, written: str) -> None:
        self._written = written
        self.is_wild = not {"?", "#"}.isdisjoint(written)
        self._pattern = re.compile("".join(map(_sign, written)), re.DOTALL)

    def __len__(self) -> int:
        return len(self._written)

    def stands_at(self, text: str, at: int) -> bool:
        return self._pattern.match(text, at) is not None if self.is_wild else text.startswith(self._written, at)

    def end_of_first(self, text: str, at: int) -> int:
        """Where the first one ends that begins there or behind it; -1 if there is none."""
        found = self._pattern.search(text, at)
        return -1 if found is None else found.end()


@lru_cache(maxsize=1_024)
def _parts_of(pattern: str) -> tuple[_Part, ...]:
    return tuple(map(_Part, pattern.casefold().split("*")))


@lru_cache(maxsize=1_024)
def _literal(word: str) -> re.Pattern[str]:
    return re.compile(re.escape(word.casefold()))


def _sign(sign: str) -> str:
    return {"?": ".", "#": r"\d"}.get(sign) or re.escape(sign)
