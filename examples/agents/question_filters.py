"""Which rows a question is about: cell values, comparisons with numbers, and periods, each bound to its column."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from ioa.errors import InvalidInputError
from periods import Period
from question_scan import Item
from table_query import Filter
from table_reading import Table

Fail = Callable[[str], InvalidInputError]


def read_filters(items: list[Item], table: Table, fail: Fail) -> tuple[list[Filter], set[int]]:
    """Read the filters, and the indexes of column items that only label one (`region` in `region North`).

    Raises:
        InvalidInputError: A value or comparison fits several columns, or a period meets no date column.
    """
    labels: set[int] = set()
    filters = _values(items, table, labels, fail)
    filters += _numbers(items, table, labels)
    filters += _comparisons(items, table, labels, fail)
    return filters + _periods(items, table, labels, fail), labels


def _near(items: list[Item], index: int, columns: set[str]) -> int | None:
    """The index of a column item next to `index` that names one of `columns`."""
    for place in (index - 1, index + 1, index - 2):
        if 0 <= place < len(items) and items[place].kind == "column" and columns & set(items[place].columns):
            if place != index - 2 or items[index - 1].kind in ("prep", "not", "compare", "and", "value"):
                return place
    return None


def _is_negated(items: list[Item], index: int) -> bool:
    """Whether `not`, `except` … stands before the item, other values joined by `and` between them allowed."""
    place = index - 1
    while place >= 0 and items[place].kind in ("prep", "column", "value", "and"):
        if (
            items[place].kind == "prep"
            and items[place].text.lower() in ("in", "for", "from", "of")
            and items[place - 1].kind != "not"
        ):
            return False
        place -= 1
    return place >= 0 and items[place].kind == "not"


def _values(items: list[Item], table: Table, labels: set[int], fail: Fail) -> list[Filter]:
    chosen: dict[tuple[str, bool], list[object]] = {}
    last_column = ""
    for index, item in enumerate(items):
        if item.kind != "value":
            continue
        columns = {column for column, _ in item.values}
        label = _near(items, index, columns)
        if label is not None:
            columns &= set(items[label].columns)
            labels.add(label)
        if len(columns) > 1 and last_column in columns:
            columns = {last_column}
        if len(columns) > 1:
            raise fail(f"{item.text!r} is a value of {' and of '.join(sorted(columns))}. Name the column before it.")
        last_column = columns.pop()
        values = chosen.setdefault((last_column, _is_negated(items, index)), [])
        found = [value for column, value in item.values if column == last_column]
        values[:] = dict.fromkeys(values + found)
    return [Filter(column, "in", tuple(values), negated) for (column, negated), values in chosen.items()]


def _numbers(items: list[Item], table: Table, labels: set[int]) -> list[Filter]:
    """Read `store 5` and `year 2023`."""
    filters = []
    for index, (left, right) in enumerate(itertools.pairwise(items)):
        if left.kind == "column" and right.kind == "number":
            columns = [column for column in left.columns if table.is_number(column)]
            if columns:
                filters.append(Filter(columns[0], "=", right.numbers))
                labels.add(index)
    return filters


def _comparisons(items: list[Item], table: Table, labels: set[int], fail: Fail) -> list[Filter]:
    filters = []
    for index, item in enumerate(items):
        if item.kind != "compare":
            continue
        if not item.numbers:
            continue
        place = _subject(items, index, table)
        if place is None:
            if len(table.numbers) != 1:
                raise fail(f"It is not clear which column should be {item.text!r}.")
            column = table.numbers[0]
        else:
            column = next(name for name in items[place].columns if table.is_number(name))
            is_measured = place > 0 and items[place - 1].kind in ("sum", "mean", "median", "min", "max", "std", "high", "low")
            if not is_measured and _is_only_compared(items, place, index):
                labels.add(place)
        filters.append(Filter(column, item.sign, item.numbers, index > 0 and items[index - 1].kind == "not"))
    return filters


def _is_only_compared(items: list[Item], place: int, index: int) -> bool:
    """Whether a column stands in a condition and is not what should be computed, too."""
    if place > index:
        return True
    before = items[place - 1].kind if place else ""
    follows_condition = before in ("prep", "and", "not", "rows", "which") and place + 1 == index
    others = any(item.kind == "column" and at != place for at, item in enumerate(items))
    return follows_condition or (others and place + 1 == index)


def _subject(items: list[Item], index: int, table: Table) -> int | None:
    def is_number(place: int) -> bool:
        return items[place].kind == "column" and any(table.is_number(column) for column in items[place].columns)

    if index and is_number(index - 1):
        return index - 1
    if index + 1 < len(items) and is_number(index + 1):
        return index + 1
    before = [place for place in range(index) if is_number(place)]
    return before[-1] if before else None


def _periods(items: list[Item], table: Table, labels: set[int], fail: Fail) -> list[Filter]:
    found: dict[tuple[str, bool], list[Period]] = {}
    for index, item in enumerate(items):
        if item.period is None:
            continue
        times = set(table.dates) | {name for name in table.frame.columns if table.is_year(name)}
        label = _near(items, index, times)
        near = [column for column in items[label].columns if column in times] if label is not None else []
        if label is not None and near == items[label].columns:  # `invoices` may stand for `invoice_date`, but speaks of the rows
            labels.add(label)
        column = near[0] if near else _time_column(table, item.period, fail)
        found.setdefault((column, _is_negated(items, index)), []).append(item.period)
    return [Filter(column, "period", negated=negated, periods=tuple(periods)) for (column, negated), periods in found.items()]


def _time_column(table: Table, period: Period, fail: Fail) -> str:
    if table.dates:
        return table.dates[0]
    if period.grain != "year":
        raise fail(f"{table.name} has years but no dates, so {period.label} cannot be told apart.")
    return next(name for name in table.frame.columns if table.is_year(name))
