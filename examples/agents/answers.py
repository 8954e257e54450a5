"""What a question comes to, by pandas: the figure, and its reading: of what, per what, which rows, how many, what was left out."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ioa import InvalidInputError
from questions import Condition, Figure, Key, Question
from tables import Column, Table
from words import format_number

SHOWN = 25
_SIGNS: dict[str, Callable[[Any, Any], Any]] = {"*": operator.mul, "/": operator.truediv, "+": operator.add, "-": operator.sub}
_GRAINS = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "quarter": "%Y-Q", "year": "%Y", "weekday": "%u %A"}


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
    if not question.keys:
        method = {"count": "size", "distinct": "nunique"}.get(operation, operation)
        value = values.corr(cells["other"]) if operation == "correlation" else getattr(values, method)
        value = value() if callable(value) else value
        return Answer(f"{table.name}: {title}{where(question)}: {show(value)} ({reading}).", reading)
    labels = [cells[str(at)].to_numpy() for at in range(len(question.keys))]
    figures = getattr(values.groupby(labels), {"count": "size", "distinct": "nunique"}.get(operation, operation))()
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


def used_rows(question: Question, table: Table) -> tuple[pd.DataFrame, str]:
    """Keep the rows that a question is about and that can be used: their figures and labels, and how many were left out, and why.

    Raises:
        InvalidInputError: There is none, and it is not asked how many.
    """
    figure, keys = question.figure, question.keys
    columns = dict(zip(("figure", "other"), figure.columns, strict=False)) | {str(at): key.column for at, key in enumerate(keys)}
    cells = {"figure": pd.Series(1, index=range(table.rows))}
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
    if figure.operation == "distinct":
        return column.cells
    cells = column.dates if figure.operation in ("min", "max") and not figure.sign else None
    cells = column.numbers if cells is None else cells
    assert cells is not None
    return cells


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
    if isinstance(value, pd.Timestamp):
        return value.strftime("%Y-%m-%d" if value == value.normalize() else "%Y-%m-%d %H:%M:%S")
    if isinstance(value, str | bool) or not (hasattr(value, "item") or isinstance(value, int | float)):
        return str(value)
    return format_number(float(value))  # type: ignore[arg-type]
