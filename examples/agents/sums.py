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

    def take(self, at: int, number: int) -> None:
        """Take the number of row `at`."""
        terms, sums = self._terms, self._ends[0]
        self.tries += max(0, len(terms) - 1 - (0 if self._have_signs else bisect_left(sums, sums[-1] - self._highest)))
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

    def close(self) -> bool:
        """Whether every row holds a sum or is in one; the first may be the sum of all behind it, the last what they leave of it."""
        terms = self._terms
        self.found += [at for at, _, kind in terms if kind == _AGAIN]
        if len(terms) > 2 and self._ends[1][-1] == 2 * terms[0][1]:
            self.found.append(terms[-1 if terms[0][2] else 0][0])
            self.numbers.add(terms[0][1])
            return True
        kinds = [*(kind for _, _, kind in terms), _ROW]
        return all(kind != _ROW or after == _AGAIN for kind, after in pairwise(kinds))


def sums_among(numbers: Any) -> Iterator[list[int]]:
    """Yield rows that hold sums of others right above them, or below, given the numbers of all, an array of whole ones.

    Either every row is read so, or it happens more often than it would by chance among numbers of so many digits.
    """
    if not len(rows := np.flatnonzero(numbers)):
        return
    sizes = np.abs(numbers[rows[:: 1 + len(rows) // 50_000]])  # some of a million
    grain = next(one for one in _ROUND if 2 * np.count_nonzero(sizes % one == 0) >= len(sizes))  # most may be round
    usual = max(1.0, float(np.median(sizes)) / grain)
    for order in (rows, rows[::-1]):
        read, last = Sums(int(np.abs(numbers).max()), have_signs=bool((numbers < 0).any())), 0
        for place, (at, number) in enumerate(zip(map(int, order), map(int, numbers[order]), strict=True)):
            read.take(at, number)
            last = place if read.found[-1:] == [at] else last
            if place - last > _LONGEST or read.tries > usual * (len(read.numbers) + _LONGEST / 10):
                break  # of a million rows few are looked at
        if hits := len(read.numbers):
            expected = max(read.tries, 1) / usual
            is_rare = hits > expected and hits * log(expected) - lgamma(hits + 1) < log(_RARE)
            if (read.close() and prod(min(1, grain / abs(one)) for one in read.numbers) < _CHANCE) or is_rare:
                yield read.found
