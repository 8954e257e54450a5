"""Find lines of totals, which hold sums or means of others, as words, gaps or numbers tell: they are refused, never left out."""

import calendar
import re
from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal
from functools import reduce
from itertools import permutations
from math import exp, inf, lgamma, log, prod
from typing import Any

import numpy as np
import pandas as pd

from tables import CHECKED, LIKE_A_DATE, Column, Table

_LAST, _MOST = 3, 8  # so many rows at an end may be such lines: if they are called nothing, and if they are called what they hold
_FEW = 3  # so few numbers, or rows beside a line, tell nothing
_RARE, _CHANCE = 0.01, 0.05  # what happens no more often by chance is none: once, and where sums cover all rows
_TRIES = 100_000  # a wider table is not searched whole by pairs of columns, by each other column: that takes minutes
_HARDLY = 1e-9  # how likely by chance a number is that is called what it holds
_ROUND = (500, 100, 50, 10, 5, 1)  # numbers may be multiples of one of these, and so meet more often
_SAID = {
    "sum": re.compile(r"\b(?:sub-?)?totals?\b|\bsum\b"), "mean": re.compile(r"\b(?:means?|averages?|avg)\b"),
    "median": re.compile(r"\bmedian\b"), "min": re.compile(r"\b(?:min(?:imum)?|lowest|smallest)\b"),
    "max": re.compile(r"\b(?:max(?:imum)?|highest|largest)\b"), "count": re.compile(r"\b(?:count|number|n)\b"),
    "spread": re.compile(r"\b(?:sd|std|stdev|deviation)\b"),
}  # fmt: skip
"""Words of the figures that a line may hold: they say what its numbers are where these fit, and nothing alone."""
_NAMES = "|".join(filter(None, (*calendar.month_name, *calendar.month_abbr, *calendar.day_name, *calendar.day_abbr)))
_DATED = rf"(?i)(?:{_NAMES})\.?(?:[ -]\d{{4}})?|[12]\d{{3}}(?:-\d\d|-?Q[1-4])?|Q[1-4](?: \d{{4}})?|{LIKE_A_DATE}.*"
_CALLED_A_FIGURE = r"(?i)(?:(?:.*\b|grand|sub)?total|sum|mean|average|median|minimum|maximum)s?\b:?(?: of .*)?|(?:avg|tot)\.?:?"
_CALLED_A_TOTAL = r"(?i).{0,30}\b(?:sub-?)?total\b.{0,20}"  # `Total EUR` alone: a name, such as a customer's, stands in several


def lines_of_totals(table: Table, asked: Collection[Column], known: Collection[Column]) -> dict[int, str]:
    """Rows that may hold figures of others, and why. What they are called in a `known` column was said, and is no reason."""
    columns, found = [one for one in (table.columns if table.rows <= CHECKED else asked) if one.holds("numbers")], dict[int, str]()
    words, each = [one for one in table.columns if table.rows <= CHECKED and not one.is_numeric], 2 * len(table.columns)
    tried = columns if len(columns) * len(words) * each <= _TRIES else asked
    for one in columns:
        found |= dict.fromkeys(_sums_of_others(_numbers(one), one.grain, _RARE / len(columns)), f"with sums of others in {one}")
        found |= dict(_figures_by_label(one, words[: 1 + _TRIES // (each * len(tried))], table)) if words and one in tried else {}
    called = _called(table, ())
    found |= _figures_of_others(columns, table, {*found, *called}) | found
    found |= dict(_over_totals(columns, [at for at in called if _SAID["sum"].search(called[at].lower())], {*found, *called}))
    reasons = {at: f"called {name!r}" for at, name in _called(table, known).items()}
    return dict(sorted((found | _gaps(table) | reasons).items()))


def _called(table: Table, known: Collection[Column]) -> dict[int, str]:
    """What rows are called that are called a figure, but for columns that are `known`."""
    found = dict[int, str]()
    for column in table.columns:
        names = column.cells if table.rows <= CHECKED else column.cells.iloc[[0, *range(-_LAST, 0)]]
        once = names.str.fullmatch(_CALLED_A_TOTAL, na=False) & ~names.duplicated(keep=False)
        called = once | names.str.fullmatch(_CALLED_A_FIGURE, na=False)
        found |= {at: names[at] for at in called.index[called] if column not in known}
    return found


def _over_totals(columns: list[Column], totals: list[int], known: Collection[int]) -> Iterator[tuple[int, str]]:
    """All other rows, if they come to twice or thrice what is called their total: some of them hold sums of others, too."""
    for column in [one for one in columns if len(totals) == 1 and not one.why_rate]:
        values, rest = _numbers(column), np.delete(_numbers(column), [*known])
        times = np.outer(values[totals], (2, 3))
        if (np.abs(rest.sum() - times) <= column.grain * np.sqrt(len(rest)))[times > 0].any():
            yield from ((at, f"that come to twice their total in {column}, or more") for at in {*range(len(values))} - {*known})


def _gaps(table: Table) -> dict[int, str]:
    """The first row, or up to three last ones, without a cell or date that all others have, and with one word at most; headings."""
    found, last = dict[int, str](), [*range(max(1, table.rows - _LAST), table.rows)]
    edges = [*range(_LAST + 1), *last] if table.rows > _LAST else []
    for column in table.columns:
        dated = column.cells[edges].str.fullmatch(_DATED, na=False)
        is_dated = dated.any() and not dated.all() and not column.is_numeric
        lacking = ~column.cells.str.fullmatch(_DATED, na=False) if is_dated else column.is_missing
        gaps = np.flatnonzero(lacking).tolist()
        if gaps in ([0], last[-len(gaps) :]) and len(gaps) + _LAST <= table.rows:
            found |= dict.fromkeys(gaps, f"without {f'a date in {column}' if is_dated else column}, which all others have")
    given = sum((~one.is_missing).astype(int) for one in table.columns if table.rows <= CHECKED)
    alone = np.flatnonzero(given == 1).tolist() if len(table.columns) > 1 else []
    words = [one for one in table.columns if not one.holds("numbers", in_doubt=True)] if found or alone else []
    said = {at: sum(not one.is_missing[at] for one in words) for at in (*found, *alone)}
    headings = dict.fromkeys([at for at in alone if said[at]], "with one word and no other cell")
    return headings | {at: why for at, why in found.items() if said[at] < 2}


def _sums_of_others(values: Any, grain: float, rare: float) -> set[int]:
    """Rows that hold the sum of two or more right above them, or right below, if that happens more often than by chance."""
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
    expected, many = tries * step / usual, len({*values[[*found]].tolist()})  # so many or more, by Poisson's distribution
    rarity = 1 - sum(exp(k * log(expected) - expected - lgamma(k + 1)) for k in range(many)) if expected else 0.0
    found = whole or (found if rarity < rare else set())
    halves = np.flatnonzero(2 * numbers == numbers.sum()).tolist() if len(numbers) > _FEW else []
    edges = [at for at in halves if at in (0, len(numbers) - 1) or some[at] * _RARE > 1]
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


def _figures_by_label(column: Column, words: Iterable[Column], table: Table) -> Iterator[tuple[int, str]]:
    """Rows with one word that hold the sum of those beside them each time, or as it says the mean of those beside or before."""
    values, given = np.rint(_numbers(column) / column.grain).astype(np.int64), ~column.is_missing.to_numpy()
    for one in [one for one in words if values.any() and one is not column]:
        labels, others = one.coded[0] + 1, [other.coded[0] for other in table.columns if other not in (one, column)]
        sums = np.bincount(labels, values)
        means = [at for at, cell in enumerate(one.different, 1) if _SAID["mean"].search(cell.lower())]
        halves = np.flatnonzero(2 * sums == sums.sum()).tolist() or [int(sums.argmax())]  # two of them may balance
        for label in [*means[:_MOST], *(halves if len(halves) == 1 else ())]:
            rows = labels == label
            keys = [key for key in others if key.max() < rows.sum() and np.isin(key, key[rows]).all()]  # each has some beside it
            for some in (keys, *([key] for key in keys), [rows[::-1].cumsum()[::-1]]):
                groups = reduce(lambda sofar, key: pd.factorize(sofar * (key.max() + 2) + key + 1)[0], some, 0 * labels)
                beside, counts = (np.bincount(groups, each)[groups] - each for each in (values, given.astype(int)))
                is_mean = label in means and (np.abs(beside / np.maximum(counts, 1) - values)[rows] <= 0.51).all()
                times = np.bincount(groups[rows], minlength=groups.max() + 1)
                if times.max() == 1 < times.sum():
                    found = [label] if is_mean else _counted_twice(values, labels, groups, label) if times.all() else []
                    said = f"with {'means' if is_mean else 'sums'} of others in {column}"
                    yield from ((at, said) for at in np.flatnonzero(np.isin(labels, found)).tolist())


def _counted_twice(values: Any, labels: Any, groups: Any, word: int) -> list[int]:
    """A word with the sum of all others in each group but for up to two, which are counted twice as well; all, if it has half."""
    wide, rows = int(groups.max()) + 1, np.lexsort((groups, labels))
    rows = rows[(np.bincount(labels) == wide)[labels[rows]]].reshape(-1, wide)
    rows = rows[(groups[rows] == range(wide)).all(axis=1)]
    words, numbers = [*labels[rows[:, 0]].tolist(), -1], np.vstack([values[rows], np.zeros(wide, np.int64)])
    mix = np.cumprod(np.full(wide, 6364136223846793005))  # what differs in some group differs in one number
    places = {mixed: at for at, mixed in enumerate((numbers @ mix).tolist())}
    for times in (2, 3, 4):
        rest = np.bincount(groups, values).astype(np.int64) - times * numbers[words.index(word)]
        needed = enumerate((rest @ mix - numbers @ mix).tolist())
        for left in sorted(({words[at], words[places[mixed]]} - {-1} for at, mixed in needed if mixed in places), key=len):
            by_chance = len(words) ** len(left) / prod(np.maximum(1, values[rows].std(axis=0)).tolist())
            is_all = word not in left and (numbers[[words.index(one) for one in left]].sum(axis=0) == rest).all()
            if is_all and (by_chance < _RARE or (times == 2 and not left)):
                return [word, *left] if times == 2 else [*labels]
    return []


def _figures_of_others(columns: list[Column], table: Table, known: Collection[int]) -> dict[int, str]:
    """First or last rows with sums, means and the like of all others, rounded or not, as their words say or hardly by chance."""
    rest, found = np.delete(np.arange(table.rows), [*known]), dict[int, str]()
    words = [one for one in table.columns if table.rows <= CHECKED and not one.is_numeric]
    for order in (rest, rest[::-1]) if table.rows <= CHECKED else ():
        said = [" ".join(str(one.cells[at]) for one in words).lower() for at in order[:_MOST]]
        is_said = [any(one.search(text) for one in _SAID.values()) for text in said]
        most = max(_LAST, [*is_said, False].index(False))
        for many in range(1, 1 + min(most, len(rest) - _FEW)):
            others, chances = order[many:], list[dict[str, float]]()
            for at, text in zip(order[:many], said, strict=False):
                each = [_chances(one, at, others, text) for one in columns]
                chances.append({kind: prod(chance[kind] for chance in each) for kind in _SAID})
            if prod(min(chance.values()) for chance in chances) < 2 * _RARE:
                kinds = [min(chance, key=lambda kind: chance[kind]) for chance in chances]
                found |= {at: f"with the {kind} of all others" for at, kind in zip(order.tolist(), kinds, strict=False)}
    return found


def _chances(column: Column, at: int, rows: Any, said: str) -> dict[str, float]:
    """How likely a row is that near to figures of others by chance: 1 if it has no number, infinite if it is not near."""
    number, others = _numbers(column)[at], _numbers(column)[rows[~column.is_missing.to_numpy()[rows]]]
    if column.is_missing[at] or not len(others):
        return dict.fromkeys(_SAID, 1.0 if column.is_missing[at] else inf)
    decimals = max(0, -int(Decimal(repr(float(number))).normalize().as_tuple().exponent))
    near = 0.5 / 10**decimals
    is_finest = decimals and np.allclose(others, others.round(decimals - 1))  # as one row of so many is by chance
    spread, found = others.std(ddof=min(1, len(others) - 1)), dict.fromkeys(_SAID, inf)
    figures = {"sum": others.sum(), "mean": others.mean(), "median": np.median(others), "min": others.min(), "max": others.max()}
    for kind, wanted in (figures | {"count": len(others), "spread": spread}).items():
        reach = near + 0.6 * column.grain * np.sqrt(len(others)) * (kind == "sum")  # each of the others may be rounded
        wide = abs(wanted) if kind == "sum" else spread
        by_chance = min(1.0, 2 * reach / max(wide, 1e-9)) / (len(others) + 1 if is_finest else 1)
        is_said = _SAID[kind].search(said)
        if number and abs(number - wanted) <= reach and (is_said or kind in ("sum", "mean")):
            found[kind] = _HARDLY if is_said else float(by_chance)
    return found | ({"sum": 1.0} if column.why_rate else {})


def sum_so_far(column: Column, table: Table) -> str:
    """The other columns of which each number is the sum so far, the oldest first or last, of all rows or of each account, say."""
    if column.numbers is None or not _FEW < table.rows <= CHECKED or column.is_missing.any():
        return ""
    reach, amounts = column.grain / 2, {one: _numbers(one) for one in table.holding("numbers") if one is not column}
    accounts = [np.zeros(table.rows, int), *(one.coded[0] for one in table.columns if one is not column)]
    is_wide = (len(amounts) + 1) * len(amounts) * len(accounts) > _TRIES
    nothing = ("", 0 * _numbers(column))
    pairs: list[Any] = [(one, nothing) for one in amounts.items()] if is_wide else [*permutations([*amounts.items(), nothing], 2)]
    for codes in accounts[: _TRIES // max(1, len(pairs)) + 1]:
        rows = np.argsort(codes, kind="stable")
        within, run = np.diff(codes[rows]) == 0, np.diff(_numbers(column)[rows])
        for (name, added), (less, taken) in pairs:
            steps = (added - taken)[rows]
            for step in (steps[1:], -steps[:-1]):
                hits = (np.abs(run - step) <= reach)[within]  # in each row, but for where it begins anew
                if 3 * hits.sum() > 2 * len(hits) and (step[within][hits] != 0).sum() >= _FEW and len({*steps.tolist()}) > 2:
                    return " less ".join(filter(None, (str(name), str(less))))
    return ""


def _numbers(column: Column) -> Any:
    assert column.numbers is not None
    return column.numbers.fillna(0).to_numpy()
