"""Find lines of totals, which hold sums or means of others, as words, gaps or numbers tell: they are refused, never left out."""

from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal
from itertools import permutations
from math import exp, inf, lgamma, log, prod
from typing import Any

import numpy as np
import pandas as pd

from tables import CHECKED, Column, Table

_LAST, _FEW, _CHANCE, _RARE, _ROUND = 3, 3, 0.05, 0.01, (500, 100, 50, 10, 5, 1)
_CALLED_A_FIGURE = (
    r"(?i)(?:.*\b|grand[ -]?|sub-?)?totals?\b:?(?: of .*)?|(?:sum|mean|average|median|minimum|maximum)s?\b:?(?: of .*)?"
    r"|(?:avg|tot)\.?:?"
)
_CALLED_A_TOTAL = r"(?i).{0,30}\b(?:sub-?)?total\b.{0,20}"
"""What one line alone is called that is a total of something: `Total EUR`. A name, such as a customer's, stands in several."""


def lines_of_totals(table: Table, asked: Iterable[Column], known: Collection[Column]) -> dict[int, str]:
    """Rows that may hold figures of others, and why. What they are called in a `known` column was said, and is no reason."""
    columns = [one for one in (table.columns if table.rows <= CHECKED else asked) if one.holds("numbers")]
    found = dict[int, str]()
    for one in columns:
        found |= dict.fromkeys(_sums_of_others(_numbers(one), one.grain, _RARE / len(columns)), f"with sums of others in {one}")
        found |= dict.fromkeys(_sums_by_label(one, table), f"with sums of others in {one}")
    return dict(sorted((_figures_of_others(columns, table, {*found}) | found | _gaps(table) | _called(table, known)).items()))


def _called(table: Table, known: Collection[Column]) -> dict[int, str]:
    """Rows with a cell such as Total."""
    found, rows = dict[int, str](), range(table.rows)
    looked_at = [*rows] if table.rows <= CHECKED else [0, *rows[-_LAST:]]
    for column in table.columns:
        names = column.cells.iloc[looked_at]
        once = names.str.fullmatch(_CALLED_A_TOTAL, na=False) & ~names.duplicated(keep=False)
        called = once | names.str.fullmatch(_CALLED_A_FIGURE, na=False)
        found |= {at: f"called {names[at]!r}" for at in called.index[called] if column not in known}
    return found


def _gaps(table: Table) -> dict[int, str]:
    """The first row, or up to three last ones, without a cell that all others have, and with words in one column at most."""
    found, last = dict[int, str](), [*range(max(1, table.rows - _LAST), table.rows)]
    for column in table.columns:
        gaps = np.flatnonzero(column.is_missing).tolist()
        if gaps in ([0], last[-len(gaps) :]) and len(gaps) + _LAST <= table.rows:
            words = [one for one in table.columns if not one.holds("numbers", in_doubt=True)]
            few = [at for at in gaps if sum(not one.is_missing[at] for one in words) < 2]
            found |= dict.fromkeys(few, f"without {column}, which all others have")
    return found


def _sums_of_others(values: Any, grain: float, rare: float) -> set[int]:
    """Rows that hold the sum of two or more right above them, or right below, if that happens more often than by chance.

    The first or last row is one of totals if it holds the sum of all others, which may hold such sums themselves.
    """
    rows = np.flatnonzero(values)
    numbers = np.rint(values[rows] / grain).astype(np.int64)
    if not len(numbers):
        return set()
    some, usual = np.abs(numbers), np.median(np.abs(numbers))
    step = next(one for one in _ROUND if 2 * np.count_nonzero(some % one == 0) >= len(some))  # most may be round
    found, tries, whole = set[int](), 0, set[int]()
    for order, places in ((numbers, rows), (numbers[::-1], rows[::-1])) if 1 < len(numbers) <= CHECKED else ():
        hits, ones, is_covered = _sums_behind(order)
        found |= {*places[hits].tolist()}
        tries += int((np.abs(order[2:]) >= np.abs(order[1:-1] + order[:-2])).sum()) if (numbers > 0).all() else len(order)
        if is_covered and hits and np.prod(np.minimum(1, step / np.abs(np.unique(order[hits])))) < _CHANCE:
            whole |= {*places[[*hits, *ones]].tolist()}
    if found and not whole:
        found = found if _rarity(len({*values[[*found]].tolist()}), tries * step / usual) < rare else set()
    if found:  # what is no more than others may well be a sum by chance
        highest = np.abs(np.delete(values, [*found])).max(initial=0)
        found = whole or {at for at in found if abs(values[at]) > highest} or found
    edges = [int(at) for at in np.flatnonzero(2 * numbers == numbers.sum()) if len(numbers) > _FEW]
    edges = [at for at in edges if at in (0, len(numbers) - 1) or some[at] * _RARE > 1]
    edges += [at for at in (0, -1) if some[at] > _FEW * usual and numbers.sum() in (3 * numbers[at], 4 * numbers[at])]
    return found | {*rows[edges].tolist()}


def _sums_behind(order: Any) -> tuple[list[int], list[int], bool]:
    """Which numbers are the sum of two or more right before them, which of one, a group of one row, and are all in such a sum?"""
    ends, starts, spans, last = [0, *np.cumsum(order).tolist()], dict[int, int](), list[tuple[int, int, bool]](), len(order) - 1
    for at, number in enumerate(order.tolist()):
        if (start := starts.get(ends[at] - number)) is not None:
            spans.append((start, at, True))
        elif at and number == order[at - 1]:
            spans.append((at - 1, at, False))
        starts |= {ends[at - 1]: at - 1} if at else {}
    covered, hits, ones, least = np.zeros(len(order), bool), list[int](), list[int](), len(order)
    for start, at, is_sum in reversed(spans):
        covered[start : at + 1] = True
        if start < least:  # else both what it would sum and itself are in another sum
            (hits if is_sum else ones).append(at)
            least = start if is_sum else least
    if hits and 2 * order[-1] == order.sum() - order[[*{*hits, *ones} - {last}]].sum():  # of all that are none themselves
        hits, covered[-1] = [*{*hits, last}], True
    return hits, ones, bool(covered.all())


def _rarity(hits: int, expected: float) -> float:
    """How likely so many hits or more are where so many are expected by chance: the tail of a Poisson distribution."""
    return 1 - sum(exp(k * log(expected) - expected - lgamma(k + 1)) for k in range(hits)) if expected else 0.0


def _sums_by_label(column: Column, table: Table) -> Iterator[int]:
    """Rows with one word, one beside some others each time, that hold the sum of these, such as `World` of each year."""
    values = _numbers(column)
    for one in table.columns if table.rows <= CHECKED and values.sum() else ():
        halves = np.flatnonzero(np.isclose(2 * np.bincount(one.coded[0] + 1, values), values.sum(), rtol=1e-9))
        if len(halves) == 1 and not one.is_numeric:
            rows, others = one.coded[0] == halves[0] - 1, [other for other in table.columns if other not in (one, column)]
            frame = pd.DataFrame({"number": rows, "sum": values * rows, "all": values})
            for keys in ([other for other in others if not other.is_numeric], *([other] for other in others if other.is_numeric)):
                beside = frame.groupby([0 * rows, *(key.coded[0] for key in keys)]).sum()
                if len(beside) > 1 and (beside["number"] == 1).all() and np.allclose(2 * beside["sum"], beside["all"], rtol=1e-9):
                    yield from np.flatnonzero(rows).tolist()


def _figures_of_others(columns: list[Column], table: Table, known: Collection[int]) -> dict[int, str]:
    """Up to three first or last rows with the means of all others, or their sums, rounded or not, hardly by chance."""
    rest, found = np.array([at for at in range(table.rows) if at not in known]), dict[int, str]()
    for many in range(1, 1 + min(_LAST, len(rest) - _FEW)) if table.rows <= CHECKED else ():
        for rows, others in ((rest[:many], rest[many:]), (rest[-many:], rest[:-many])):
            chances = [{kind: prod(_chance(one, kind, at, others) for one in columns) for kind in ("sum", "mean")} for at in rows]
            if prod(min(chance.values()) for chance in chances) < 2 * _RARE:
                kinds = [min(chance, key=lambda kind: chance[kind]) for chance in chances]
                found |= {at: f"with the {kind} of all others" for at, kind in zip(rows, kinds, strict=True)}
    return found


def _chance(column: Column, kind: str, at: int, rows: Any) -> float:
    """How likely a row is that near to a figure of others by chance, 1 if it has no number: infinite if it is not near."""
    number, others = _numbers(column)[at], _numbers(column)[rows[~column.is_missing.to_numpy()[rows]]]
    if column.is_missing[at] or (kind == "sum" and column.why_rate):
        return 1.0
    wanted = getattr(others, kind)() if len(others) else inf
    decimals = max(0, -int(Decimal(repr(float(number))).normalize().as_tuple().exponent))
    reach = 0.5 / 10**decimals + 0.6 * column.grain * np.sqrt(len(others)) * (kind == "sum")  # each of the others may be rounded
    if not number or abs(number - wanted) > reach:
        return inf
    is_finest = decimals and np.allclose(others, others.round(decimals - 1))  # as one row of so many is by chance
    wide = abs(wanted) if kind == "sum" else others.std(ddof=min(1, len(others) - 1))
    return float(min(1.0, 2 * reach / max(wide, 1e-9)) / (len(others) + 1 if is_finest else 1))


def sum_so_far(column: Column, table: Table) -> str:
    """The other columns of which each number is the sum so far, the oldest first or last, of all rows or of each account, say."""
    if column.numbers is None or not _FEW < table.rows <= CHECKED or column.is_missing.any():
        return ""
    reach, amounts = column.grain / 2, {one: _numbers(one) for one in table.holding("numbers") if one is not column}
    for codes in [np.zeros(table.rows, int), *(one.coded[0] for one in table.columns if one is not column)]:
        rows = np.argsort(codes, kind="stable")
        within, run = np.diff(codes[rows]) == 0, np.diff(_numbers(column)[rows])
        for (name, added), (less, taken) in permutations([*amounts.items(), ("", 0 * _numbers(column))], 2):
            steps = (added - taken)[rows]
            for step in (steps[1:], -steps[:-1]):
                hits = (np.abs(run - step) <= reach)[within]  # in each row, but for where it begins anew
                if 3 * hits.sum() > 2 * len(hits) and (step[within][hits] != 0).sum() >= _FEW and len({*steps.tolist()}) > 2:
                    return " less ".join(filter(None, (str(name), str(less))))
    return ""


def _numbers(column: Column) -> Any:
    assert column.numbers is not None
    return column.numbers.fillna(0).to_numpy()
