"""What a question comes to, by pandas: the figure, and its reading: of what, per what, which rows, how many, what was left out."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pandas as pd

from ioa import InvalidInputError
from questions import Condition, Expression, Key, Question, Span
from tables import Table
from words import format_number

SHOWN = 25
_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "*": operator.mul, "/": operator.truediv, "+": operator.add, "-": operator.sub, "=": operator.eq, "!=": operator.ne,
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le,
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """The answer in words, and its table when it has one: the groups, then the figure."""

    text: str
    frame: pd.DataFrame | None = None
    name: str = "result"


def answer(question: Question, table: Table) -> Answer:
    """Compute the figure of a question.

    Raises:
        InvalidInputError: No row, or no cell of those rows, can be used.
    """
    assert question.measure is not None
    chosen = kept(question, table)
    left_out = _not_compared(question, table)
    cells, what = _cells(question, table, chosen, left_out)
    is_computed = question.measure.operation != "correlation" and question.measure.what and question.measure.what.signs
    title = f"{what}{' of each row' if is_computed else ''}" + "".join(
        f" {'per' if at == 0 else 'and'} {key.written(table)}" for at, key in enumerate(question.keys)
    )
    where = _where(question, table)
    if not question.keys:
        value = _apply(cells, question.measure.operation, table, question)
        return Answer(f"{table.name}: {title}{where}: {show(value)} ({_rows(len(cells), table, left_out)}).")
    labels = [_labels(key, table)[cells.index].rename(key.written(table)) for key in question.keys]
    unlabelled = int(pd.concat([one.isna() for one in labels], axis=1).any(axis=1).sum())
    if unlabelled:
        left_out.append(f"{unlabelled} without {' or '.join(key.written(table) for key in question.keys)}")
    by = [one.to_numpy() for one in labels]
    if question.measure.operation == "correlation":
        raise InvalidInputError("A correlation is not computed per group.", hint="Ask for one of all rows, or with 'where'.")
    name = {"count": "size", "distinct": "nunique"}.get(question.measure.operation, question.measure.operation)
    figures = getattr(cells.groupby(by, sort=True), name)()
    if figures.empty:
        raise InvalidInputError(f"No row of {table.name} has a {question.keys[0].written(table)}{where}.")
    ties = ""
    if question.limit:
        ordered = figures.sort_values(ascending=not question.descending, kind="stable")
        figures = ordered.head(question.limit)
        equal = int((ordered == figures.iloc[-1]).sum() - (figures == figures.iloc[-1]).sum())
        side = "highest" if question.descending else "lowest"
        title += f", the {side} {len(figures)} of {len(ordered)}"
        ties = f"\n{equal} more {'has' if equal == 1 else 'have'} the same figure as the last of these." if equal else ""
    frame = figures.rename(what).reset_index()
    frame.columns = pd.Index([*(key.written(table) for key in question.keys), what])
    head = f"{table.name}: {title}{where} ({_rows(len(cells) - unlabelled, table, left_out)})"
    file = re.sub(r"[^a-z0-9]+", "-", f"{what} by {' '.join(str(one.name) for one in labels)}".lower()).strip("-")[:80]
    return Answer(f"{head}:\n{listed(frame)}{ties}", frame, file)


def kept(question: Question, table: Table) -> pd.Series:
    """Which rows pass all conditions.

    Raises:
        InvalidInputError: None does, and it is not asked how many.
    """
    chosen = pd.Series(True, index=table.frame.index)
    for condition in question.conditions:
        chosen &= _passes(condition, table)
    counts = question.measure is not None and question.measure.operation in ("count", "distinct") and not question.keys
    if not chosen.any() and not counts:
        raise InvalidInputError(f"No row of {table.name} fits{_where(question, table)}.")
    return chosen


def _passes(condition: Condition, table: Table) -> pd.Series:
    if condition.kind == "value":
        cells = table.frame[condition.column]
        held = cells.isin(list(condition.operands))
        return held if condition.sign == "=" else ~held & cells.notna()
    if condition.kind == "missing":
        return table.frame[condition.column].isna() == (condition.sign == "=")
    if condition.kind == "number":
        values = table.numbers(condition.column).values
        if condition.sign == "between":
            return values.between(*condition.operands)
        compared: pd.Series = values.notna() & _SIGNS[condition.sign](values, condition.operands[0])
        return compared
    read, first, last = table.dates(condition.column), condition.operands[0], condition.operands[-1]
    assert read is not None and isinstance(first, Span) and isinstance(last, Span)
    dates = read.values
    match condition.sign:
        case ">":
            return dates >= first.end
        case ">=":
            return dates >= first.start
        case "<":
            return dates < first.start
        case "<=":
            return dates < first.end
    inside = (dates >= first.start) & (dates < last.end)
    return ~inside & dates.notna() if condition.sign == "!=" else inside


def _not_compared(question: Question, table: Table) -> list[str]:
    """Note the rows of which a condition cannot tell whether they pass."""
    notes = {}
    for condition in question.conditions:
        read = {"number": table.numbers, "date": table.dates}.get(condition.kind)
        cells = read(condition.column) if read else None
        if cells is not None and (count := int(cells.values.isna().sum())):
            notes[condition.column] = f"{count} without a {table.names[condition.column]} that can be read"
    return list(notes.values())


def _cells(question: Question, table: Table, chosen: pd.Series, left_out: list[str]) -> tuple[pd.Series, str]:
    """The cells a figure is computed of, and its name; what was left out is noted."""
    measure = question.measure
    assert measure is not None
    name = measure.written(table)
    if measure.what is None:
        return pd.Series(1, index=chosen.index)[chosen], name
    columns = measure.what.columns
    if measure.operation == "distinct":
        cells = table.frame[columns[0]][chosen]
    elif not measure.what.signs and (dates := table.dates(columns[0])) is not None:
        cells = dates.values[chosen]
    else:
        cells = _computed(measure.what, table)[chosen]
    usable = cells.notna() & cells.abs().ne(float("inf")) if pd.api.types.is_numeric_dtype(cells) else cells.notna()
    for column in dict.fromkeys(columns):
        missing = int(table.frame[column][chosen].isna().sum())
        if missing:
            left_out.append(f"{missing} without {table.names[column]}")
    unread = int((~usable).sum()) - int(pd.concat([table.frame[c][chosen].isna() for c in columns], axis=1).any(axis=1).sum())
    if unread:
        examples = [] if measure.operation == "distinct" else [text for c in columns for text in _unreadable(table, c)]
        left_out.append(f"{unread} that cannot be read{f', such as {examples[0]!r}' if examples else ' or divided'}")
    if not usable.any() and measure.operation != "distinct":
        raise InvalidInputError(f"Nothing is left to compute the {name} of: {'; '.join(left_out)}.")
    return cells[usable], name


def _unreadable(table: Table, column: int) -> tuple[str, ...]:
    dates = table.dates(column)
    return dates.unreadable if dates is not None else table.numbers(column).unreadable


def _computed(what: Expression, table: Table) -> pd.Series:
    """Compute an expression: products and quotients first, then sums and differences, from the left."""
    terms: list[Any] = []
    plus: list[str] = []
    for sign, operand in zip(("+", *what.signs), what.operands, strict=True):
        value = table.numbers(operand).values if isinstance(operand, int) else operand
        if sign in "*/":
            terms[-1] = _SIGNS[sign](terms[-1], value)
        else:
            terms.append(value)
            plus.append(sign)
    total = reduce(lambda left, right: _SIGNS[right[0]](left, right[1]), zip(plus[1:], terms[1:], strict=True), terms[0])
    assert isinstance(total, pd.Series)
    return total


def _apply(cells: pd.Series, operation: str, table: Table, question: Question) -> object:
    match operation:
        case "count":
            return len(cells)
        case "distinct":
            return cells.nunique()
        case "correlation":
            assert question.measure is not None and question.measure.what is not None
            first, second = (table.numbers(column).values[cells.index] for column in question.measure.what.columns)
            return first.corr(second)
    return getattr(cells, operation)()


def _labels(key: Key, table: Table) -> pd.Series:
    if not key.grain:
        cells = table.frame[key.column]
        whole = pd.api.types.is_float_dtype(cells) and bool((cells.dropna() % 1 == 0).all())
        return cells.astype("Int64").astype(object).where(cells.notna(), None) if whole else cells
    found = table.dates(key.column)
    assert found is not None
    codes, unique = pd.factorize(found.values)
    match key.grain:
        case "weekday":
            labels = [f"{day.isoweekday()} {day.day_name()}" for day in unique]
        case "quarter":
            labels = [f"{day.year}-Q{day.quarter}" for day in unique]
        case grain:
            form = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}[grain]
            labels = [day.strftime(form) for day in unique]
    return pd.Series(pd.Series([*labels, None], dtype=object).array.take(codes))


def _where(question: Question, table: Table) -> str:
    return " where " + " and ".join(one.written(table) for one in question.conditions) if question.conditions else ""


def _rows(used: int, table: Table, left_out: list[str]) -> str:
    notes = f"; left out: {', '.join(left_out)}" if left_out else ""
    return f"{used} of {len(table.frame)} rows{notes}"


def show(value: object) -> str:
    """Write a cell: numbers exactly, dates as dates."""
    if isinstance(value, pd.Timestamp):
        return value.strftime("%Y-%m-%d" if value == value.normalize() else "%Y-%m-%d %H:%M:%S")
    if isinstance(value, str | bool) or not (hasattr(value, "item") or isinstance(value, int | float)):
        return str(value)
    return format_number(float(value))  # type: ignore[arg-type]


def listed(frame: pd.DataFrame) -> str:
    """List a result's groups; a long list is cut and says so."""
    lines = [f"- {', '.join(map(show, row[:-1]))}: {show(row[-1])}" for row in frame.head(SHOWN).itertuples(index=False)]
    more = [f"- … and {len(frame) - SHOWN} more in the attached table"] if len(frame) > SHOWN else []
    return "\n".join([*lines, *more])
