"""What every answer about a table is made of: chosen rows, groups, and their wording."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ioa.errors import InvalidInputError
from table_query import Filter, Key, Measure, Query
from table_reading import Table
from words import format_number

SHOWN = 25


@dataclass(frozen=True)
class Answer:
    """The answer in words, and its table when it has one."""

    text: str
    frame: pd.DataFrame | None = None
    name: str = "result"


def filtered(table: Table, filters: list[Filter]) -> pd.DataFrame:
    """Keep the rows that pass all filters."""
    mask = pd.Series(True, index=table.frame.index)
    for one in filters:
        mask &= one.mask(table.frame)
    return table.frame[mask]


def filter_words(query: Query) -> str:
    """Say which rows were asked for."""
    return " and ".join(str(one) for one in query.filters)


def scope(query: Query, table: Table, rows: pd.DataFrame) -> str:
    """Say which file and rows the figures are of."""
    chosen = (
        f", rows where {filter_words(query)}: {len(rows)} of {len(table.frame)}" if query.filters else f", all {len(rows)} rows"
    )
    notes = "".join(f"; {note}" for note in query.notes)
    return f"{table.name}{chosen}{notes}"


def show(value: object) -> str:
    """Write a cell: numbers exactly, dates as dates."""
    if value is None or value is pd.NaT:
        return "not available"
    if isinstance(value, pd.Timestamp):
        return value.strftime("%Y-%m-%d" if value == value.normalize() else "%Y-%m-%d %H:%M:%S")
    if isinstance(value, str | bool):
        return str(value)
    if hasattr(value, "item") or isinstance(value, int | float):
        return format_number(float(value))  # type: ignore[arg-type]
    return str(value)


def listed(frame: pd.DataFrame, keys: int) -> str:
    """List a result's rows; a long one is cut and says so."""
    shown = frame.head(SHOWN)
    figures = list(frame.columns[keys:])
    lines = []
    for row in shown.itertuples(index=False):
        label = ", ".join(show(value) for value in row[:keys])
        values = [show(value) for value in row[keys:]]
        text = values[0] if len(values) == 1 else ", ".join(f"{name} {value}" for name, value in zip(figures, values, strict=True))
        lines.append(f"- {label}: {text}")
    if len(frame) > len(shown):
        lines.append(f"- … and {len(frame) - len(shown)} more in the attached table")
    return "\n".join(lines)


def grouped(query: Query, rows: pd.DataFrame) -> pd.DataFrame:
    """Group the rows; each key and each figure becomes a column. Groups stand in their natural order."""
    by = [key.of(rows).rename(key.name) for key in query.keys]
    records = []
    for labels, group in rows.groupby(by, sort=True, dropna=True):
        records.append((*labels, *(measure.of(group) for measure in query.measures)))
    if not records:
        raise InvalidInputError(f"{' and '.join(map(str, query.keys))} is empty in every row.")
    return pd.DataFrame(records, columns=[*(key.name for key in query.keys), *(figure_name(one) for one in query.measures)])


def figure_name(measure: Measure) -> str:
    """Name the column of a figure in a result's table."""
    return (
        "rows"
        if measure.column is None
        else f"{measure.operation if measure.operation != 'distinct' else 'distinct'} of {measure.column}"
    )


def key_words(keys: list[Key]) -> str:
    """Say what the rows are grouped by."""
    return " and ".join(str(key) for key in keys)


def artifact_name(query: Query) -> str:
    """Name the table of a grouped answer."""
    words = [str(one) for one in query.measures[:2]] + ["by"] + [key.name for key in query.keys]
    name = "-".join("".join(char if char.isalnum() else "-" for char in word.lower()).strip("-") for word in words)
    return name[:80]
