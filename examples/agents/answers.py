"""What a question comes to, by pandas: the figure, and its reading: of what, per what, which rows, how many, what was left out."""

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from math import isclose
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_float

from ioa import InvalidInputError
from questions import GRAINS, Condition, Key, Question, Reader
from request import fold, format_number
from tables import CHECKED, NOTHING, Apart, Column, Table, read_table

SHOWN, _BLOCK, _CHANCE = 25, 1_000, 0.05
_WRITTEN = {"day": "%Y-%m-%d", "month": "%Y-%m", "quarter": "%Y-Q%q", "year": "%Y"}


@dataclass(frozen=True)
class Answer:
    """The answer in words, and its table when it has one: the groups, then the figure. Its name and title say what was chosen."""

    text: str
    reading: str
    frame: pd.DataFrame | None = None
    title: str = ""


def answer_of_file(text: str, path: Path) -> tuple[str, str, str]:
    """Answer a question about a file: in words, and by a table in CSV with its title; both are empty if it has none."""
    found = answer(Reader(text, table := read_table(path)).question(), table)
    return found.text, found.title, "" if found.frame is None else found.frame.to_csv(index=False, float_format="%.15g")


def reads(text: str, path: Path) -> bool:
    """Whether a text is a question that can be read of a file."""
    with suppress(InvalidInputError):
        return Reader("", read_table(path)).reads(text)
    return False


def answer(question: Question, table: Table) -> Answer:
    """Compute the figure of a question; refuses if no row, or no cell of those rows, can be used."""
    figure = question.figure
    cells, reading = used_rows(question, table)
    if figure.operation == "rows":
        shown = figure.columns or table.columns
        columns = list(dict.fromkeys((*shown, *(one.column for one in question.conditions))))
        frame = pd.DataFrame({at: column.cells[cells.index] for at, column in enumerate(columns)})
        frame.columns = pd.Index(map(str, columns))
        title = f"{table.name}: rows{where(question)}, as {', '.join(frame.columns)}"
        return _listed(title, reading, frame, f"{figure}{where(question)}")
    per = f" per {' and '.join(map(str, question.keys))}" if question.keys else ""
    title = f"{table.name}: {figure}{per}"
    if not question.keys:
        value = getattr(cells["figure"], figure.operation)()
        row = _row_of(value, cells["figure"], table) if figure.operation in ("min", "max") else ""
        return Answer(f"{title}{where(question)}: {show(value)} ({reading}).{row}", reading)
    groups = cells.groupby([str(at) for at in range(len(question.keys))], observed=True, sort=not question.limit)["figure"]
    figures, ties, rank = getattr(groups, figure.operation)(), "", ""
    if question.limit:
        ordered = figures.sort_values(ascending=not question.descending, kind="stable")
        figures = ordered.head(question.limit)
        equal = int((ordered.iloc[question.limit :] == figures.iloc[-1]).sum())
        if alike := _alike(cells["0"].drop_duplicates()):
            hint = "Write each of them in one way in the file, or ask for all by 'per'."
            raise InvalidInputError(f"A ranking would part what may belong together: {alike}.", hint=hint)
        rank = f"the {'highest' if question.descending else 'lowest'} {len(figures)} of {len(ordered)}"
        title += f", {rank}"
        have = "has" if equal == 1 else "have"
        ties = f"\n{equal} more of {len(ordered)} {have} the same figure as the last of these." * bool(equal)
    chosen = f"{rank}{f', {equal} more like the last' if ties else ''}{where(question)}".strip()
    unit = "".join(f" in {one.amounts[1]}" for one in figure.columns if figure.operation != "nunique" and one.amounts[1])
    name = f"{figure}{unit} ({chosen})" if chosen else f"{figure}{unit}"
    frame = figures.reset_index().set_axis([*map(str, question.keys), name], axis=1)
    return _listed(f"{title}{where(question)}", reading, frame, f"{name} by {' '.join(map(str, question.keys))}", ": ", ties)


def _listed(title: str, reading: str, frame: pd.DataFrame, name: str, joint: str = ", ", ties: str = "") -> Answer:
    if frame.empty:
        return Answer(f"{title} ({reading}): none.", reading)
    shown = frame.head(SHOWN).itertuples(index=False)
    lines = [f"- {', '.join(map(show, row[:-1]))}{joint if len(row) > 1 else ''}{show(row[-1])}" for row in shown]
    lines += [f"- … and {len(frame) - SHOWN} more in the attached table"] * (len(frame) > SHOWN)
    return Answer("\n".join([f"{title} ({reading}):", *lines]) + ties, reading, frame, name)


def _row_of(value: Any, values: pd.Series, table: Table) -> str:
    """Say where a lowest or highest figure stands."""
    at = list(values.index[values.eq(value)])
    row = ", ".join(f"{column} {show(column.cells[at[0]])}" for column in table.columns[:SHOWN])
    row += f", and {len(table.columns) - SHOWN} more columns" * (len(table.columns) > SHOWN)
    return f"\nIts row: {row}." if len(at) == 1 else f"\n{len(at)} of {table.rows} rows have it."


def used_rows(question: Question, table: Table) -> tuple[pd.DataFrame, str]:
    """Keep the rows that are asked about and can be used: figures and labels; say how many were left out, and why. Refuses none."""
    figure = question.figure
    used, notes, told = pd.Series(True, index=range(table.rows)), list[str](), list[str]()

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
            used &= column.is_missing.eq(condition.sign == "is missing")
            told += [f"missing is what is empty, {written}" for written in [column.missing()] if written]
            told += [f"{one!r} among words is a value" for one in column.different if one in NOTHING]
        else:
            fits = _passes(condition, leave_out(column, column.cells if condition.values else _measured(column)))
            if condition.sign == "=" and column.is_numeric:
                others = set(column.cells[fits].dropna()) - {span.written for span in condition.spans}
                told += [f"with {', '.join(map(repr, sorted(others)[:3]))}"] * bool(others)
            used &= fits
    may_be_none = figure.operation in ("count", "nunique", "rows") and not question.keys
    if not used.any() and not may_be_none:
        raise InvalidInputError(f"No row of {table.name} fits{where(question)}.")
    columns = () if figure.operation in ("rows", "nunique") else figure.columns
    measured = dict.fromkeys([*columns, *(one.column for one in question.conditions if one.spans)])
    units = {column: column.amounts[1] for column in measured if column.holds("numbers") and column.amounts[1]}
    told += [f"in {unit}" if column in columns else f"{column} in {unit}" for column, unit in units.items()]
    doubtful = [pair for one in measured for pair in zip(one.doubt, _measured(one)[one.doubt.index], strict=True)]
    told += [f"{cell!r} is read as {show(number)}" for cell, number in doubtful]
    cells = {"figure": pd.Series(1, index=range(table.rows))}
    for column in () if figure.operation == "rows" else figure.columns:  # a cell that is missing is listed as such
        cells["figure"] = leave_out(column, _told_apart(column) if figure.operation == "nunique" else _measured(column))
    cells |= {str(at): leave_out(key.column, _labels(key)) for at, key in enumerate(question.keys)}
    apart = _without_lines_of_totals(question, list(measured), table, used)
    remarks = [at for at in table.remarks if used[at]]
    told += [f"{len(remarks)} of them with one cell alone, such as {_row(table, at)}" for at in remarks[:1]]
    edge = [(at, why) for at, why in apart.items() if used[at] and at not in remarks]
    told += [f"{len(edge)} of them {why.what}, such as {_row(table, at)}" for at, why in edge[:1]]
    parted = [key.column for key in question.keys if not key.grain] + list(figure.columns) * (figure.operation == "nunique")
    told += [f"told apart: {alike}" for column in parted if not column.is_numeric and (alike := _alike(column.cells[used]))]
    left_out = ", ".join(notes)
    if not used.any() and not may_be_none:
        raise InvalidInputError(f"Nothing is left to compute the {figure} of: {left_out}.")
    reading = ", ".join([f"{used.sum()} of {table.rows} rows", *told])
    return pd.DataFrame(cells)[used], f"{reading}; left out: {left_out}" if notes else reading


def _without_lines_of_totals(question: Question, asked: list[Column], table: Table, used: pd.Series) -> dict[int, Apart]:
    """Refuse to count lines of totals; return the rows that may be such, for who only counts rows, or says that they are rows."""
    checked, is_small = [one for one in dict.fromkeys([*asked, *table.summed]) if one.holds("numbers")], 3 < table.rows <= CHECKED
    others = [one for one in table.columns if is_small and one not in checked and one.holds("numbers")]
    numbers = {one: _measured(one).fillna(0).to_numpy() for one in (*checked, *others)}
    sums = {one: _sums_of_all(values, one) for one, values in numbers.items()}
    named = {*(key.column for key in question.keys), *(one.column for one in question.conditions)}
    apart = {at: why for at, why in table.apart.items() if why.by not in named}
    apart = (_figures_of_others(table, numbers, sums) if is_small else {}) | apart
    for column in checked:
        values = numbers[column]
        found = {at for at in sums[column] if column in asked or not _is_by_chance(column, values[[at]])}
        found |= _sums_of_others(values, table.gaps, column) if column in table.summed else set()
        found |= _sums_by_label(values, table, column) if is_small else set()
        double = _counted_twice(column, values, found, apart, used)
        if double and any(one.sign == "is not missing" for one in question.conditions):
            apart |= {at: Apart("with the sum of others") for at in double if at not in apart}
        elif double:
            _refuse_lines_of_totals(column, double, found, table, apart)
    return apart


def _figures_of_others(table: Table, numbers: dict[Column, Any], sums: dict[Column, set[int]]) -> dict[int, Apart]:
    """The first or the last row, if it holds the sum of all others in some column, or their means in all of several."""
    found = dict[int, Apart]()
    for at in (0, table.rows - 1):
        if summed := [one for one in table.columns if at in sums.get(one, ())]:
            by_chance = all(_is_by_chance(one, numbers[one][[at]]) for one in summed)
            found[at] = Apart(f"with the sum of all others in {summed[0]}", by_chance=by_chance)
        elif len(numbers) > 1 and all(
            all_[at] and _is_near(all_[at], np.delete(all_, at).mean(), one, at, 0) for one, all_ in numbers.items()
        ):
            found[at] = Apart("with the means of all others")
    return found


def _is_by_chance(column: Column, amounts: Any, tries: int = 1) -> bool:
    """Whether amounts of so few digits may well each be one of so many sums without being meant to."""
    units = np.unique(np.abs(amounts[amounts != 0])) / column.grain  # what is repeated says no more
    return bool(np.prod(np.minimum(1, tries / units)) > _CHANCE)


def _is_near(value: float, wanted: float, column: Column, at: int, whole: float = 0.5) -> bool:
    """Whether a cell may be a number, rounded as it is written; by how much if it is a whole one."""
    decimals = re.search(r"[.,](\d+)\D*$", str(column.cells[at]))
    return bool(abs(value - wanted) <= (0.5 * 10.0 ** -len(decimals[1]) if decimals else whole) + 1e-9 * abs(wanted))


def _counted_twice(column: Column, values: Any, found: set[int], apart: dict[int, Apart], used: pd.Series) -> list[int]:
    """The used rows that hold sums of others, or may hold sums, means or anything else of them.

    Such is what lacks what all others have, or is called a figure, and what holds the sum of all others in another column; if that
    may be so by chance, only if it is the largest in this one.
    """
    held = {at: why for at, why in apart.items() if not pd.isna(_measured(column)[at])}
    may_be = {at for at, why in held.items() if not why.by_chance or values[at] >= np.delete(values, at).max()}
    return [at for at in sorted(found | may_be) if used.iloc[at]]


def _refuse_lines_of_totals(column: Column, double: list[int], found: set[int], table: Table, apart: dict[int, Apart]) -> None:
    lacking = [one for one in table.columns if set(np.flatnonzero(one.is_missing)) >= {*double} and not one.is_missing.all()]
    other = "".join(f", such as 'where {one} is not missing'" for one in lacking[:1])
    doubts = [apart[at] for at in double if at in apart and at not in found]
    what = f"{doubts[0].what}, that may hold totals or means" if doubts else "that hold sums of others"
    fill = ", or fill in what others lack" * (bool(doubts) and doubts[0].lacks)
    labels = [one for one in table.columns if not one.is_numeric and not one.values("missing") and not one.is_missing[double].any()]
    rows = "".join(f". If they are rows like others, say 'where {one} is not missing'" for one in labels[:1])
    hint = f"Take lines of totals out of the file{fill}, or choose rows by a condition that they do not meet{other}{rows}."
    named = "; ".join(_row(table, at) for at in double[:3]) + f" and {len(double) - 3} more" * (len(double) > 3)
    raise InvalidInputError(f"{table.name} has rows {what} of {column}: {named}.", hint=hint)


def _row(table: Table, at: int) -> str:
    return repr(", ".join(str(cell) for one in table.columns if not pd.isna(cell := one.cells[at]))[:80])


def _sums_of_all(values: Any, column: Column) -> set[int]:
    """Rows that hold the sum of all others, rounded as they are written, of all above, or of the block that they begin or end."""
    found, above, total = set[int](), np.cumsum(values) - values, values.sum()
    halves = np.flatnonzero((np.abs(2 * values - total) <= 1 + 1e-9 * abs(total)) & (values != 0))
    for at in halves.tolist() if np.count_nonzero(values) > 3 else ():
        is_edge = at in (0, len(values) - 1)
        if _is_near(values[at], total - values[at], column, at) and (is_edge or not _is_by_chance(column, values[[at]])):
            found.add(at)
    blocks = [_sums_of_blocks(values, least) for least in (2, 1)]
    blocks += [{len(values) - 1 - at for at in _sums_of_blocks(values[::-1], least)} for least in (2, 1)]
    found = found.union(*(rows for rows in blocks if not _is_by_chance(column, values[[*rows]])))
    if (values >= 0).all():
        sums = np.flatnonzero((np.cumsum(values != 0) > 3) & np.isclose(values, above, rtol=1e-9) & (values != 0)).tolist()
        found |= {at for at in sums if not _is_by_chance(column, values[[at]])}
    return found


def _sums_by_label(values: Any, table: Table, column: Column) -> set[int]:
    """Rows with one label, one beside some others, that each hold the sum of these, such as `World` of each year."""
    found, total = set[int](), values.sum()
    for one in table.columns if total else ():
        alike = np.flatnonzero(np.isclose(2 * np.bincount(one.codes, values), total, rtol=1e-9) & (not one.is_numeric))
        keys = [other.codes for other in table.columns if other not in (one, column) and not other.is_amount]
        if len(alike) != 1 or not keys:
            continue
        rows, groups = one.codes == alike[0], pd.DataFrame(keys).T.groupby([*range(len(keys))]).ngroup()
        parts, wholes, number = (np.bincount(groups, of) for of in (values * rows, values, rows))
        is_of_each = len(number) > 1 and (number == 1).all() and np.allclose(2 * parts, wholes, rtol=1e-9)
        if is_of_each and not _is_by_chance(column, parts, len(table.columns)):
            found |= set(np.flatnonzero(rows).tolist())
    return found


def _sums_of_blocks(values: Any, least: int) -> set[int]:
    """Rows of which each is the sum of those since the one before, if every row but a sum of all of them is in such a block.

    Each sums `least` rows, and two of them sum several.
    """
    found, size, total, of_several = list[int](), 0, 0.0, 0
    for at, value in enumerate(values):  # of a million rows few are looked at
        if size > _BLOCK:
            return set()
        if size >= least and total and isclose(value, total, rel_tol=1e-9):
            found, of_several, size, total = [*found, at], of_several + (size > 1), 0, 0.0
        else:
            size, total = size + 1, total + value
    if size == 1 and isclose(values[-1], values[found].sum(), rel_tol=1e-9):
        found, size = [*found, len(values) - 1], 0
    return set(found) if of_several > 1 and not size else set()


def _sums_of_others(values: Any, gaps: Any, column: Column) -> set[int]:
    """Rows that hold the sum of others, if all that lack the same cells do: of all, of all above or below, or of those between.

    If most of them do, and hardly so by chance, it is enough.
    """
    kinds: list[Any] = [rows for kind, rows in pd.Series(gaps).groupby(gaps).indices.items() if kind != 0]
    found = np.zeros(len(values), bool)
    for _ in range(3):  # what sums of sums are of is known then
        told, amounts = found.copy(), np.where(found, 0, values)
        for alike in kinds:
            rows = alike[~told[alike]]
            stretches = [_stretches(cells, rows) for cells in (amounts, amounts != 0)]
            sizes = [size * np.isclose(sums, values[rows], rtol=1e-9) for sums, size in zip(*stretches, strict=True)]
            hits = rows[np.any(sizes, axis=0) & (values[rows] != 0)]  # those of one row, too, if there are others
            enough = 1 if len(hits) > 1 else 3  # one row that is the sum of two others may be so by chance
            number = told[alike].sum() + len(hits)
            most = 2 * number >= len(alike) and not _is_by_chance(column, values[hits], len(stretches[0]))
            found[hits] |= np.max(sizes, initial=0) > enough and (most or number == len(alike))
    return set(np.flatnonzero(found).tolist())


def _stretches(cells: Any, rows: Any) -> list[Any]:
    """What cells of other rows come to for each of these: of all, above, below, since the last of these, and until the next."""
    above = np.append(0, np.cumsum(cells))[rows] - np.append(0, np.cumsum(cells[rows]))[:-1]
    whole = cells.sum() - cells[rows].sum()
    return [np.full(len(rows), whole), above, whole - above, np.diff(above, prepend=0), np.diff(above, append=whole)]


def _alike(cells: pd.Series) -> str:
    """Values that differ by case or accents alone: a condition takes them for one."""
    words = pd.Series(cells.dropna().unique(), dtype=object)
    alike = sorted(words[words.map(fold).duplicated(keep=False)], key=fold)
    return ", ".join(map(repr, alike[:6])) + ", …" * (len(alike) > 6)


def where(question: Question) -> str:
    """Say which rows a question is about."""
    return " where " + " and ".join(map(str, question.conditions)) if question.conditions else ""


def _measured(column: Column) -> pd.Series:
    cells = column.numbers if column.dates is None else column.dates
    assert cells is not None
    return cells


def _passes(condition: Condition, cells: pd.Series) -> pd.Series:
    if condition.values:
        return cells.isin(list(condition.values)).eq(condition.sign == "=")
    if condition.sign in ("=", "!="):
        fits = [cells.between(span.first, span.last) for span in condition.spans]
        return reduce(or_, fits).eq(condition.sign == "=")
    first, last = condition.spans[0].first, condition.spans[-1].last
    limits = {">": ("gt", last), ">=": ("ge", first), "<": ("lt", first), "<=": ("le", last)}
    if condition.sign in limits:
        method, limit = limits[condition.sign]
        passing: pd.Series = getattr(cells, method)(limit)
        return passing
    return cells.between(first, last)


def _told_apart(column: Column) -> pd.Series:
    """What the different cells of a column are counted by: of a million numbers no names are made."""
    if column.is_numeric and _written_once(column) is not None:
        return _measured(column)
    return _labels(Key(column))


def _labels(key: Key) -> pd.Series:
    cells, dates = key.column.cells, key.column.dates
    if dates is None:
        return _names(key.column)
    different = pd.Series(key.column.different)
    if not key.grain and different.str.match(r"\d{4}-\d\d").all() and len(different) == dates.nunique():
        return cells  # they are in order as they stand
    if not key.grain and (dates != dates.dt.normalize())[dates.notna()].any():  # times of a day
        return pd.Series(dates.dt.strftime("%Y-%m-%d %H:%M:%S"))
    codes, unique = pd.factorize(dates)
    written = pd.DatetimeIndex(unique).to_period(GRAINS[key.grain or "day"]).strftime(_WRITTEN[key.grain or "day"])
    spans, labels = pd.factorize(written, sort=True)
    return pd.Series(pd.Categorical.from_codes(np.append(spans, -1)[codes], labels))


def _names(column: Column) -> pd.Series:
    """Its cells as what rows are told apart by: numbers in their order."""
    numbers = _written_once(column)
    if numbers is None or numbers.isna().any():
        return column.cells
    return pd.Series(pd.Categorical(column.cells, column.cells[numbers.sort_values().index]))


def _written_once(column: Column) -> pd.Series | None:
    """Its different cells as numbers, of which none must be written in two ways; None if it holds none."""
    if not column.holds("numbers") or column.numbers is None:
        return None
    cells = column.cells.drop_duplicates().dropna()
    numbers = column.numbers[cells.index]
    if len(twice := cells[numbers.duplicated(keep=False) & numbers.notna()]):
        both = " and ".join(map(repr, twice[:2]))
        raise InvalidInputError(f"{column} has {both}, which are one number, or two names.", hint="Write it in one way.")
    return numbers


def show(value: object) -> str:
    """Write a cell: numbers exactly, dates as dates."""
    if pd.isna(value):  # type: ignore[call-overload]
        return "not available"
    if isinstance(value, pd.Timestamp):
        return str(value).removesuffix(" 00:00:00")
    return format_number(float(value)) if is_float(value) else str(value)
