"""What a question comes to, by pandas: the figure, and its reading: of what, per what, which rows, how many, what was left out."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ioa import InvalidInputError
from questions import Condition, Figure, Key, Question, unsaid
from tables import Column, Table
from words import format_number

SHOWN = 25
_METHODS = {"distinct": "nunique", "share": "sum", "only": "max"}
_SIGNS: dict[str, Callable[[Any, Any], Any]] = {"*": operator.mul, "/": operator.truediv, "+": operator.add, "-": operator.sub}
_GRAINS = {
    "date": "%Y-%m-%d",
    "day": "%Y-%m-%d",
    "week": "%G-W%V",
    "month": "%Y-%m",
    "quarter": "%Y-Q",
    "year": "%Y",
    "weekday": "%u %A",
}


@dataclass(frozen=True)
class Answer:
    """The answer in words, and its table when it has one: the groups, then the figure."""

    text: str
    reading: str
    frame: pd.DataFrame | None = None


def answer(question: Question, table: Table) -> Answer:
    """Compute the figure of a question.

    Raises:
        InvalidInputError: No row, or no cell of those rows, can be used.
    """
    figure, operation = question.figure, question.figure.operation
    cells, reading = used_rows(question, table)
    per = " and ".join(str(key) for key in question.keys)
    title = f"{figure}{' of each row' * (figure.sign in _SIGNS)}{f' per {per}' if per else ''}"
    values = cells["figure"]
    if operation == "rows":
        return _listed(question, table, cells, reading)
    if not question.keys:
        value, row = _value(question, table, cells)
        return Answer(f"{table.name}: {title}{where(question)}: {show(value)} ({reading}).{row}", reading)
    groups = values.groupby([cells[str(at)].to_numpy() for at in range(len(question.keys))])
    if operation == "only" and groups.size().gt(1).any():
        raise unsaid(figure, question.around, table)
    figures = getattr(groups, _METHODS.get(operation, operation))()
    figures = _shares(figures, values) if operation == "share" else figures
    ties = ""
    if question.limit:
        ordered = figures.sort_values(ascending=not question.descending, kind="stable")
        figures = ordered.head(question.limit)
        equal = int((ordered.iloc[question.limit :] == figures.iloc[-1]).sum())
        title += f", the {'highest' if question.descending else 'lowest'} {len(figures)} of {len(ordered)}"
        ties = f"\n{equal} more {'has' if equal == 1 else 'have'} the same figure as the last of these." if equal else ""
    frame = figures.reset_index().set_axis([*map(str, question.keys), str(figure)], axis=1)
    lines = [f"- {', '.join(map(show, row[:-1]))}: {show(row[-1])}" for row in frame.head(SHOWN).itertuples(index=False)]
    lines += [f"- … and {len(frame) - SHOWN} more in the attached table"] * (len(frame) > SHOWN)
    return Answer("\n".join([f"{table.name}: {title}{where(question)} ({reading}):", *lines]) + ties, reading, frame)


def _value(question: Question, table: Table, cells: pd.DataFrame) -> tuple[object, str]:
    """The one figure of a question without groups; of a lowest or highest one the row as well."""
    operation, values = question.figure.operation, cells["figure"]
    if operation == "only" and len(values) > 1:
        raise unsaid(question.figure, question.around, table)
    if operation == "correlation":
        return values.corr(cells["other"]), ""
    if operation == "share":
        if not question.conditions:
            raise InvalidInputError("All rows together have a share of 100 per cent.", hint="Say of which rows, or per what.")
        whole, _ = used_rows(replace(question, conditions=()), table)
        return _shares(values.reindex(whole.index, fill_value=0), whole["figure"]).sum(), ""
    value = getattr(values, _METHODS.get(operation, operation))()
    at = list(values.index[values.eq(value)]) if operation in ("min", "max") else []
    where_found = ", ".join(f"{column} {show(column.cells[at[0]])}" for column in table.columns[:8]) if len(at) == 1 else ""
    return value, f"\nIts row: {where_found}." if where_found else f"\n{len(at)} rows have it." if len(at) else ""


def _shares(parts: pd.Series, whole: pd.Series) -> pd.Series:
    if whole.lt(0).any() or not whole.sum():
        raise InvalidInputError("Shares are of figures of which none is negative, and not all are 0.")
    return parts / whole.sum() * 100


def _listed(question: Question, table: Table, cells: pd.DataFrame, reading: str) -> Answer:
    """The rows themselves: the columns that are asked for, and those that the conditions speak of."""
    columns = dict.fromkeys((*question.figure.columns, *(one.column for one in question.conditions)))
    shown = list(columns if question.figure.columns else table.columns)
    index = cells.index
    if question.limit:  # by what is listed, the first column first
        keys = {str(at): _ordering(column)[index] for at, column in enumerate(question.figure.columns)}
        index = pd.DataFrame(keys).sort_values(list(keys), ascending=not question.descending, kind="stable").index
    frame = pd.DataFrame({at: column.cells[index] for at, column in enumerate(shown)})
    lines = [f"- {', '.join(map(show, row))}" for row in frame.head(SHOWN).itertuples(index=False)]
    lines += [f"- … and {len(frame) - SHOWN} more in the attached table"] * (len(frame) > SHOWN)
    frame.columns = pd.Index(map(str, shown))
    title = f"rows{where(question)}, as {', '.join(map(str, shown))}"
    return Answer("\n".join([f"{table.name}: {title} ({reading}):", *lines]), reading, frame)


def _ordering(column: Column) -> pd.Series:
    """A column's cells by what they mean: numbers and dates before texts."""
    cells = column.numbers if column.dates is None else column.dates
    return column.cells.astype(str) if cells is None else cells


def used_rows(question: Question, table: Table) -> tuple[pd.DataFrame, str]:
    """Keep the rows that a question is about and that can be used: their figures and labels, and how many were left out, and why.

    Raises:
        InvalidInputError: There is none, and it is not asked how many.
    """
    figure, keys = question.figure, question.keys
    columns = dict(zip(("figure", "other"), figure.columns, strict=False)) | {str(at): key.column for at, key in enumerate(keys)}
    cells = {"figure": pd.Series(1, index=range(table.rows))}
    if figure.operation == "rows":  # a cell that is missing is shown as such
        columns = {}
    cells |= {name: _cells(columns[name], figure) for name in ("figure", "other") if name in columns}
    cells |= {str(at): _labels(key) for at, key in enumerate(keys)}
    used, notes = pd.Series(True, index=range(table.rows)), list[str]()

    def leave_out(column: Column, read: pd.Series) -> None:
        nonlocal used
        missing, unread = used & column.cells.isna(), used & column.cells.notna() & read.isna()
        notes.extend([f"{missing.sum()} without {column}"] * bool(missing.any()))
        if unread.any():
            notes.append(f"{unread.sum()} that cannot be read, such as {str(column.cells[unread].iloc[0])!r}")
        used &= read.notna()

    for condition in question.conditions:
        if "missing" not in condition.sign:
            leave_out(condition.column, _compared(condition))
        used &= _passes(condition)
    is_count = figure.operation in ("count", "distinct") and not keys
    if not used.any() and not is_count:
        raise InvalidInputError(f"No row of {table.name} fits{where(question)}.")
    for name, column in columns.items():
        leave_out(column, cells[name])
    if figure.sign in _SIGNS:
        cells["figure"] = _SIGNS[figure.sign](cells["figure"], cells["other"])
    if pd.api.types.is_float_dtype(cells["figure"]):
        endless = used & ~cells["figure"].abs().lt(float("inf"))
        notes += [f"{endless.sum()} without a finite value"] * bool(endless.any())
        used &= ~endless
    left_out = ", ".join(notes)
    if not used.any() and not is_count:
        raise InvalidInputError(f"Nothing is left to compute the {figure} of: {left_out}.")
    return pd.DataFrame(cells)[used], f"{used.sum()} of {table.rows} rows{f'; left out: {left_out}' if notes else ''}"


def where(question: Question) -> str:
    """Say which rows a question is about."""
    return " where " + " and ".join(map(str, question.conditions)) if question.conditions else ""


def _cells(column: Column, figure: Figure) -> pd.Series:
    dates = column.dates if figure.operation in ("min", "max", "only") and not figure.sign else None
    cells = column.cells if figure.operation == "distinct" else column.numbers if dates is None else dates
    return column.cells if cells is None else cells


def _compared(condition: Condition) -> pd.Series:
    column = condition.column
    cells = column.cells if condition.values else column.numbers if column.dates is None else column.dates
    assert cells is not None
    return cells


def _passes(condition: Condition) -> pd.Series:
    if not condition.spans and not condition.values:
        return condition.column.cells.isna().eq(condition.sign == "is missing")
    cells = _compared(condition)
    if condition.values:
        return cells.isin(list(condition.values)).eq(condition.sign == "=")
    first, last = condition.spans[0].first, condition.spans[-1].last
    match condition.sign:
        case ">":
            return cells.gt(last)
        case ">=":
            return cells.ge(first)
        case "<":
            return cells.lt(first)
        case "<=":
            return cells.le(last)
    return cells.between(first, last).eq(condition.sign != "!=")


def _labels(key: Key) -> pd.Series:
    cells = key.column.cells
    if not key.grain:
        is_whole = pd.api.types.is_float_dtype(cells) and bool((cells.dropna() % 1 == 0).all())
        return cells.astype("Int64").astype(object).where(cells.notna(), None) if is_whole else cells
    assert key.column.dates is not None
    codes, unique = pd.factorize(key.column.dates)
    labels = pd.Series(
        [f"{day:{_GRAINS[key.grain]}}" + f"{day.quarter}" * (key.grain == "quarter") for day in unique], dtype=object
    )
    return pd.Series(labels.array.take(codes, allow_fill=True))


def show(value: object) -> str:
    """Write a cell: numbers exactly, dates as dates."""
    if pd.isna(value):  # type: ignore[call-overload]
        return "not available"
    if isinstance(value, pd.Timestamp):
        return value.strftime("%Y-%m-%d" if value == value.normalize() else "%Y-%m-%d %H:%M:%S")
    if pd.api.types.is_bool(value) or isinstance(value, str) or not (hasattr(value, "item") or isinstance(value, int | float)):
        return str(value)
    return format_number(float(value))  # type: ignore[arg-type]
