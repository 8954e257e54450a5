"""Comparing two texts word by word, where the order tells more than the words: the same sentence about something else."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from ioa.group.lexicon import GENERAL_BYTES

_LEAST_ALIGNED = 3
_MOST_EXCHANGED = 2


def is_exchanged(new: Sequence[int], old: Sequence[int]) -> bool:
    """Whether the same sentence speaks of something else: a word or two are others, and all the rest stands in its place."""
    if len(new) == len(old) >= _LEAST_ALIGNED:
        differing = sum(one != other for one, other in zip(new, old, strict=True))
        return differing <= min(_MOST_EXCHANGED, len(new) // 2)
    start = _common_start(new, old)
    end = _common_start(new[start:][::-1], old[start:][::-1])
    exchanged = len(new) - start - end, len(old) - start - end
    return min(exchanged) >= 1 and max(exchanged) <= _MOST_EXCHANGED and start + end >= _LEAST_ALIGNED


def is_swapped(new: Sequence[int], old: Sequence[int], names: Collection[int], numbers: Collection[int]) -> bool:
    """Whether two names have changed places: who does what is another matter then."""
    if len(new) == len(old):
        places = [at for at, (one, other) in enumerate(zip(new, old, strict=True)) if one != other]
        if len(places) == 2 and _are_exchanged([new[at] for at in places], {*names, *numbers}, places[1] - places[0]):
            return True
    said = [word for word in dict.fromkeys(new) if word in old]
    known = [word for word in dict.fromkeys(old) if word in new]
    if [word for word in said if word not in names] != [word for word in known if word not in names]:
        return False
    order = [word for word in said if word in names]
    return any(
        known.index(one) > known.index(other)
        and _holds_others(said[said.index(one) : said.index(other)], names)
        and _holds_others(known[known.index(other) : known.index(one)], names)
        for one, other in pairwise(order)
    )


def _are_exchanged(two: Sequence[int], names: Collection[int], distance: int) -> bool:
    """Whether these two have changed places because they are told apart, not because one of them is put before the other."""
    named = sum(word in names for word in two)
    return named == len(two) or (named == 1 and distance > 1 and not any(word in GENERAL_BYTES for word in two))


def _holds_others(words: Sequence[int], names: Collection[int]) -> bool:
    return any(word not in names for word in words)


def _common_start(one: Sequence[int], other: Sequence[int]) -> int:
    """How many words two sequences have in common before they differ."""
    length = min(len(one), len(other))
    return next((at for at in range(length) if one[at] != other[at]), length)
