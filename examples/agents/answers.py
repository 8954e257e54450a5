"""What a question comes to, by pandas: the figure, and its reading: of what, per what, which rows, how many, what was left out."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_float

from ioa import InvalidInputError
from questions import GRAINS, Condition, Key, Question, Reader
from request import fold, format_number
from tables import Column, Table, read_table
from totals import lines_of_totals

SHOWN = 25
_WRITTEN = {"second": "%Y-%m-%d %H:%M:%S", "day": "%Y-%m-%d", "month": "%Y-%m", "quarter": "%Y-Q%q", "year": "%Y"}


@dataclass(frozen=True)
class Answer:
    """The answer in words, and its table when it has one: the groups, then the figure. Its name and title say what was chosen."""

    text: str
    reading: str
    frame: pd.DataFrame | None = None
    title: str = ""


def answer_of_file(text: str, path: Path) -> tuple[str, str, str]:
    """Answer a question about a file: in words, and by a table in CSV with its title; both are empty if it has none."""
    table = read_table(path)
    found = answer(Reader(text, table).question(), table)
    return found.text, found.title, "" if found.frame is None else found.frame.to_csv(index=False, float_format="%.15g")


def answer(question: Question, table: Table) -> Answer:
    """Compute the figure of a question; refuses if no row, or no cell of those rows, can be used."""
    figure = question.figure
    cells, reading = used_rows(question, table)
    per = f" per {' and '.join(map(str, question.keys))}" if question.keys else ""
    title = f"{table.name}: {figure}{per}"
    if not question.keys:
        value = getattr(cells["figure"], figure.operation)()
        told = _exactly(value, cells["figure"], figure.operation)
        row = _row_of(value, cells["figure"], table) if figure.operation in ("min", "max") else ""
        return Answer(f"{title}{where(question)}: {told} ({reading}{row}).", reading)
    groups = cells.groupby([str(at) for at in range(len(question.keys))], observed=True, sort=not question.limit)["figure"]
    figures, ties, rank = getattr(groups, figure.operation)(), "", ""
    if question.limit:
        ordered = figures.sort_values(ascending=not question.descending, kind="stable")
        figures = ordered.head(question.limit)
        equal = int((ordered.iloc[question.limit :] == figures.iloc[-1]).sum())
        rank = f"the {'highest' if question.descending else 'lowest'} {len(figures)} of {len(ordered)}"
        title += f", {rank}"
        ties = f"\n{equal} more of {len(ordered)} with the same figure as the last of these." * bool(equal)
    chosen = f"{rank}{f', {equal} more like the last' if ties else ''}{where(question)}".strip()
    unit = "".join(f" in {one.amounts[1]}" for one in figure.measured if one.amounts[1])
    name = f"{figure}{unit} ({chosen})" if chosen else f"{figure}{unit}"
    frame = figures.reset_index().set_axis([*map(str, question.keys), name], axis=1)
    lines = [f"- {', '.join(map(show, row[:-1]))}: {show(row[-1])}" for row in frame.head(SHOWN).itertuples(index=False)]
    lines += [f"- … and {len(frame) - SHOWN} more in the attached table"] * (len(frame) > SHOWN)
    text = "\n".join([f"{title}{where(question)} ({reading}):", *lines]) + ties
    return Answer(text, reading, frame, f"{name} by {' '.join(map(str, question.keys))}")


def _exactly(value: Any, values: pd.Series, operation: str) -> str:
    """Write a figure, behind `≈` if it is rounded: an average as a sum and its rows, too, with which later tasks calculate."""
    shown, total = show(value), show(values.sum() if operation == "mean" else value)
    if not is_float(value) or isclose(float(shown), value, rel_tol=1e-12):
        return shown
    is_sum = operation == "mean" and isclose(float(total), values.sum(), rel_tol=1e-12)
    return f"{total} / {len(values)} ≈ {shown}" if is_sum else f"≈ {shown}"


def _row_of(value: Any, values: pd.Series, table: Table) -> str:
    at = list(values.index[values.eq(value)])
    row = ", ".join(f"{column} {show(column.cells[at[0]])}" for column in table.columns[:SHOWN])
    return f"; its row: {row}" if len(at) == 1 else f"; {len(at)} of these {len(values)} rows have it"


def used_rows(question: Question, table: Table) -> tuple[pd.DataFrame, str]:
    """Keep the rows that are asked about and can be used: figures and labels; say how many were left out, and why. Refuses none."""
    figure = question.figure
    used, among, notes = pd.Series(True, index=range(table.rows)), pd.Series(True, index=range(table.rows)), list[str]()
    told = [f"read as {table.assumed}"] * bool(table.assumed)
    _refuse_blocks(question, table)

    def leave_out(column: Column, read: pd.Series) -> pd.Series:
        nonlocal used
        lost = used & read.isna()
        missing = lost & column.is_missing
        unread = lost & ~missing
        if missing.any():
            notes.append(f"{missing.sum()} without {column} ({column.missing(missing)})".removesuffix(" ()"))
        if unread.any():
            notes.append(f"{unread.sum()} that cannot be read, such as {column.cells[unread].iloc[0]!r}")
        used &= ~lost
        return read

    for condition in question.conditions:
        column = condition.column
        if "missing" in condition.sign:
            fits = column.is_missing.eq(condition.sign == "is missing")
            told += [f"missing is what is empty, {written}" for written in [column.missing()] if written]
        else:
            leave_out(column, column.cells if condition.sign in ("=", "!=") else _measured(column))
            fits = _passes(condition, column.cells if condition.values else _measured(column))
        used &= fits
        among &= fits | bool(condition.span and column.dates is None)  # a number is compared in each row
    may_be_none = figure.operation in ("count", "nunique") and not question.keys
    if not used.any() and not may_be_none:
        raise InvalidInputError(f"No row of {table.name} fits{where(question)}.")
    measured = dict.fromkeys([*figure.measured, *(one.column for one in question.conditions if one.span)])
    _refuse_stand_ins(measured, question, used)
    units = {one: one.amounts[1] for one in measured if one.holds("numbers") and one.amounts[1]}
    told += [f"in {unit}" if one is figure.column else f"{one} in {unit}" for one, unit in units.items()]
    cells = pd.DataFrame({"figure": 1}, index=range(table.rows))
    if figure.column:
        read = _measured(figure.column) if figure.measured else _labels(Key(figure.column))
        cells["figure"] = leave_out(figure.column, read)
    cells = cells.assign(**{str(at): leave_out(key.column, _labels(key)) for at, key in enumerate(question.keys)})
    _refuse_several_units(question, measured, table, among)
    by_why = defaultdict[str, list[str]](list)
    for at, why in _lines_of_totals(question, list(measured), table, used).items():
        by_why[why].append(_row(table, at))
    told += [f"{len(rows)} of them {why}, such as {'; '.join(rows[:3])}" for why, rows in by_why.items()]
    told += _told_apart(question, cells[used])
    left_out = ", ".join(notes)
    if not used.any() and not may_be_none:
        raise InvalidInputError(f"Nothing is left to compute the {figure} of: {left_out}.")
    reading = ", ".join([f"{used.sum()} of {table.rows} rows", *told])
    return cells[used], f"{reading}; left out: {left_out}" if notes else reading


def _refuse_blocks(question: Question, table: Table) -> None:
    """Refuse labels that may stand in the first row of each block alone, as of cells that were merged, unless it is said."""
    known = [one.column for one in question.conditions if "missing" in one.sign]
    compared = [one.column for one in question.conditions if one.sign in ("=", "!=") or one.column.is_of_time]
    for column in [one for one in (*(key.column for key in question.keys), *compared) if one not in known]:
        kept = [one.is_missing[column.is_missing].all() for one in question.figure.measured if column.is_missing.any()]
        if not any(kept) and column.is_in_blocks(table.columns):  # figures that stand in those rows alone lose none
            hint = f"Write it in each row, or say 'where {column} is not missing' if each belongs to its row alone."
            raise InvalidInputError(f"{column} may stand in the first row of each block alone.", hint=hint)


def _refuse_several_units(question: Question, asked: Iterable[Column], table: Table, among: pd.Series) -> None:
    """Refuse figures of rows whose units differ, as another column tells, unless each unit has a figure of its own."""
    known = {*(key.column for key in question.keys), *(one.column for one in question.conditions if one.sign == "is not missing")}
    amounts = [one for one in asked if one.holds("numbers")]
    for one in [one for one in table.columns if one not in known] if amounts else ():
        if one.tells_units() and len(units := one.cells[among].dropna().unique()) > 1:
            hint = f"Say 'where {one} is {units[0]}' or 'per {one}'. "
            hint += f"If {amounts[0]} is in none of them, say 'where {one} is not missing'."
            raise InvalidInputError(f"{one} tells of {units[0]} and {units[1]} in these rows; nothing is converted.", hint=hint)


def _refuse_stand_ins(columns: Iterable[Column], question: Question, used: pd.Series) -> None:
    """Refuse numbers in nines alone, such as -9999, farther from all others than these are from each other, unless it is said."""
    known = [one.column for one in question.conditions if one.sign not in ("<", "<=", ">", ">=")]
    for column in [one for one in columns if one not in known and one.holds("numbers")]:
        numbers = _measured(column)
        for number in filter(lambda one: re.fullmatch(r"-9|-?99[9.]*", show(one)), {numbers[used].min(), numbers[used].max()}):
            others = numbers[numbers != number].dropna()
            if len(others) > 2 and not 2 * others.min() - others.max() <= number <= 2 * others.max() - others.min():
                count, without = (numbers[used] == number).sum(), f"'where {column} is not {show(number)}'"
                way = f"Say {without}, or 'where {column} is not missing' if it is a number like others."
                raise InvalidInputError(f"{column} is {show(number)} in {count} rows, which may stand for no number.", hint=way)


def _lines_of_totals(question: Question, asked: list[Column], table: Table, used: pd.Series) -> dict[int, str]:
    """Refuse to count lines of totals; return the used rows that may be such, for who only counts rows, or knows better."""
    named = [one.column for one in question.conditions if one.sign == "=" and one.values]
    lines = lines_of_totals(table, asked, named)
    rows = {at: why for at, why in lines.items() if used[at]}
    counted = [at for at in rows if any(one.holds("numbers") and pd.notna(_measured(one)[at]) for one in asked)]
    is_known = used.sum() == 1 or any(one.sign == "is not missing" for one in question.conditions)
    if counted and not is_known:
        whys, first = " or ".join(dict.fromkeys(rows[at] for at in counted)), "; ".join(_row(table, at) for at in counted[:3])
        others = f" and {len(counted) - 3} more" * (len(counted) > 3)
        hint = "Take lines of totals out of the file, or choose rows by a condition that they do not meet."
        labels = [one for one in table.columns if not one.is_numeric and not one.is_missing[counted].any()]
        hint += "".join(f" If they are rows like others, say 'where {one} is not missing'." for one in labels[:1])
        raise InvalidInputError(f"{table.name} has rows {whys}, that may hold totals or means: {first}{others}.", hint=hint)
    return rows


def _row(table: Table, at: int) -> str:
    return repr(", ".join(str(cell) for one in table.columns if not pd.isna(cell := one.cells[at]))[:80])


def _told_apart(question: Question, cells: pd.DataFrame) -> list[str]:
    """Say which values differ by case or accents alone: a condition takes them for one. A ranking of such is refused."""
    counted = [("figure", question.figure.column)] if question.figure.operation == "nunique" else []
    parted = [*((str(at), key.column) for at, key in enumerate(question.keys) if not key.grain), *counted]
    words = [cells[at].drop_duplicates().dropna() for at, one in parted if one and not one.is_numeric]
    alike = [", ".join(map(repr, sorted(some[some.map(fold).duplicated(keep=False)], key=fold)[:6])) for some in words]
    if any(alike) and question.limit:
        hint = "Write each of them in one way in the file, or ask for all by 'by'."
        raise InvalidInputError(f"A ranking would part what may belong together: {' '.join(alike)}.", hint=hint)
    return [f"told apart: {some}" for some in alike if some]


def where(question: Question) -> str:
    """Say which rows a question is about."""
    return " where " + " and ".join(map(str, question.conditions)) if question.conditions else ""


def _measured(column: Column) -> pd.Series:
    cells = column.numbers if column.dates is None else column.dates
    assert cells is not None
    return cells


def _passes(condition: Condition, cells: pd.Series) -> pd.Series:
    if not condition.span:
        return cells.isin(list(condition.values)).eq(condition.sign == "=")
    _, first, last = condition.span
    if condition.sign in ("=", "!="):
        return cells.between(first, last).eq(condition.sign == "=")
    fits: dict[str, pd.Series] = {">": cells > last, ">=": cells >= first, "<": cells < first, "<=": cells <= last}
    return fits[condition.sign]


def _labels(key: Key) -> pd.Series:
    """What rows are told apart by: times and numbers in their order, of which none must be written in two ways."""
    codes, written = key.column.coded
    order = written
    if key.column.dates is not None or key.column.holds("numbers"):
        rows = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))  # where each different cell stands first
        order = _measured(key.column).take(rows).set_axis(written.index)
    if key.column.dates is not None:
        grain = key.grain or ("second" if (order != order.dt.normalize())[order.notna()].any() else "day")
        order = written = order.dt.to_period(GRAINS.get(grain, "s")).dt.strftime(_WRITTEN[grain])
    elif len(twice := written[order.duplicated(keep=False) & order.notna()]):
        both = " and ".join(map(repr, twice[:2]))
        raise InvalidInputError(f"{key.column} has {both}, which are one number, or two names.", hint="Write it in one way.")
    order = written if order.isna().any() else order
    labels = pd.Categorical(written, written[order.sort_values().index].dropna().unique())
    return pd.Series(labels.take(codes, allow_fill=True))


def show(value: object) -> str:
    """Write a cell: numbers exactly, dates as dates."""
    if pd.isna(value):  # type: ignore[call-overload]
        return "not available"
    if isinstance(value, pd.Timestamp):
        return str(value).removesuffix(" 00:00:00")
    return format_number(float(value)) if is_float(value) else str(value)
