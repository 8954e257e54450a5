"""Tell which numbers of a list hold sums of those before them, or behind them: subtotals, and totals of these."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from math import lgamma, log, prod
from typing import Any

import numpy as np

_ROW, _SUM, _AGAIN = range(3)
_LONGEST, _CHANCE, _RARE, _ROUND = 1_000, 0.05, 0.01, (500, 100, 50, 10, 5, 1)


class Sums:
    """Numbers are taken one by one, none of which is 0, and kept on a stack, as terms of sums are in postfix notation.

    One that is the sum of at least two on top of it stands for them then. A group of one row has its number again as its sum; a sum
    of groups counts that once.
    """

    def __init__(self, highest: int, *, have_signs: bool) -> None:
        self.found, self.numbers, self.tries = list[int](), set[int](), 0
        """Which rows hold sums, which sums of different numbers there are, and how many others there might have been."""
        self._highest, self._have_signs = highest, have_signs
        self._terms, self._ends = list[tuple[int, int, int]](), ([0], [0])
        self._places: tuple[dict[int, int], ...] = ({0: 0}, {0: 0})

    def take(self, at: int, number: int, *, is_row: bool = False) -> None:
        """Take the number of row `at`, which may be known to hold no sum."""
        terms, sums = self._terms, self._ends[0]
        self.tries += max(0, len(terms) - 1 - (0 if self._have_signs else bisect_left(sums, sums[-1] - self._highest)))
        if is_row:
            self._push(at, number, _ROW)
            return
        if terms and number == terms[-1][1]:
            is_group = terms[-1][2] != _ROW or len(terms) == 1 or terms[-2][2] != _ROW
            self._push(at, number, _AGAIN if is_group else _ROW)
            return
        for once, (ends, places) in enumerate(zip(self._ends, self._places, strict=True)):
            base = places.get(ends[-1] - number, len(terms))
            if base < len(terms) - 1 and ends[base] == ends[-1] - number:
                is_once = once or terms[base][2] == _AGAIN
                while terms[base][2] == _AGAIN:
                    base -= 1
                self.found += [at, *(row for row, _, kind in terms[base:] if is_once and kind == _AGAIN)]
                self.numbers |= {number} if len({one for _, one, _ in terms[base:]}) > 1 else set()
                del terms[base:], self._ends[0][base + 1 :], self._ends[1][base + 1 :]
                self._push(at, number, _SUM)
                return
        self._push(at, number, _ROW)

    def _push(self, at: int, number: int, kind: int) -> None:
        self._terms.append((at, number, kind))
        for ends, places, more in zip(self._ends, self._places, (number, number * (kind != _AGAIN)), strict=True):
            ends.append(ends[-1] + more)
            places[ends[-1]] = len(self._terms)

    def close(self) -> int:
        """How many rows neither hold a sum nor are in one. The first may be the sum of all behind it, the last what they leave."""
        terms = self._terms
        self.found += [at for at, _, kind in terms if kind == _AGAIN]
        if len(terms) > 2 and self._ends[1][-1] == 2 * terms[0][1]:
            self.found.append(terms[-1 if terms[0][2] else 0][0])
            self.numbers.add(terms[0][1])
            return 0
        kinds = [*(kind for _, _, kind in terms), _ROW]
        return sum(kind == _ROW and after != _AGAIN for kind, after in pairwise(kinds))


def sums_among(numbers: Any) -> tuple[set[int], bool]:
    """Rows that hold sums of others right above them, or below, given the numbers of all, an array of whole ones; is it sure which?

    Either every row is read so, or it happens more often than it would by chance among numbers of so many digits.
    """
    if not len(rows := np.flatnonzero(numbers)):
        return set(), True
    sizes = np.abs(numbers[rows[:: 1 + len(rows) // 50_000]])  # some of a million
    grain = next(one for one in _ROUND if 2 * np.count_nonzero(sizes % one == 0) >= len(sizes))  # most may be round
    readings = [found for order in (rows, rows[::-1]) for found in _readings(order, numbers, sizes, grain)]
    found = set[int]().union(*readings)
    return found, all(one == found for one in readings)


def _readings(order: Any, numbers: Any, sizes: Any, grain: int) -> Iterator[set[int]]:
    """The ways to read rows in one order, hardly by chance: some that happen to hold a sum may be rows of a group like others."""
    usual, plain, tried = max(1.0, float(np.median(sizes)) / grain), set[int](), 1

    def read(plain: set[int]) -> tuple[Sums, int]:
        found, last = Sums(int(np.abs(numbers).max()), have_signs=bool((numbers < 0).any())), 0
        for place, (at, number) in enumerate(zip(map(int, order), map(int, numbers[order]), strict=True)):
            found.take(at, number, is_row=at in plain)
            last = place if found.found[-1:] == [at] else last
            if place - last > _LONGEST or found.tries > usual * (len(found.numbers) + _LONGEST / 10):
                break  # of a million rows few are looked at
        return found, found.close() + len(order) - place - 1

    def is_meant(found: Sums) -> bool:
        return tried * prod(min(1, grain / abs(one)) for one in found.numbers) < _CHANCE

    first, left = best, _ = read(plain)
    looked_at = first.found * (len(first.found) * len(order) < _LONGEST * 10)
    for at in looked_at if left else ():
        tried, (other, fewer) = tried + 1, read({*plain, at})
        if fewer < left:
            best, left, plain = other, fewer, {*plain, at}
    if best.numbers and not left and is_meant(best):
        yield set(best.found)
        others = (read({*plain, at}) for at in looked_at)
        yield from (set(other.found) for other, left in others if not left and other.numbers and is_meant(other))
    elif hits := len(first.numbers):
        expected = max(first.tries, 1) / usual
        if hits > expected and hits * log(expected) - lgamma(hits + 1) < log(_RARE):
            yield set(first.found)
