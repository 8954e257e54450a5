"""What a question comes to, by pandas: the figure, and its reading: of what, per what, which rows, how many, what was left out."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import and_, or_
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_float

from ioa import InvalidInputError
from questions import GRAINS, Condition, Key, Question, Reader
from request import fold, format_number
from sums import sums_among
from tables import CHECKED, NOTHING, Column, Table, read_table

SHOWN, _CHANCE, _RARE, _FEW = 25, 0.05, 0.02, 2
_SURE, _UNSURE = "that hold sums of others", "of which some hold sums of others, in more ways than one,"
_CALLED_AN_EDGE = r"(?i)^(min|max)(?:imum)?\.?:?$"
_WRITTEN = {"second": "%Y-%m-%d %H:%M:%S", "day": "%Y-%m-%d", "month": "%Y-%m", "quarter": "%Y-Q%q", "year": "%Y"}
Found = tuple[Any, int]
"""Rows that hold sums, and of how many tries."""


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
    found = answer(Reader(text, table, answered=lambda question: answer(question, table)).question(), table)
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
        if alike := _alike(cells["0"]):
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
    return f"\nIts row: {row}." if len(at) == 1 else f"\n{len(at)} of these {len(values)} rows have it."


def used_rows(question: Question, table: Table) -> tuple[pd.DataFrame, str]:
    """Keep the rows that are asked about and can be used: figures and labels; say how many were left out, and why. Refuses none."""
    figure = question.figure
    used, notes = pd.Series(True, index=range(table.rows)), list[str]()
    told = [f"read as {table.assumed}"] * bool(table.assumed)

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
            if condition.sign == "=" and condition.spans and column.dates is None:
                written = {span.written for span in condition.spans}
                others = {cell for cell in column.cells[fits].dropna() if re.sub(r"[^\d.,]", "", cell) not in written}
                told += [f"with {', '.join(map(repr, sorted(others)[:3]))}"] * bool(others)
            used &= fits
    may_be_none = figure.operation in ("count", "nunique", "rows") and not question.keys
    if not used.any() and not may_be_none:
        raise InvalidInputError(f"No row of {table.name} fits{where(question)}.")
    columns = () if figure.operation in ("rows", "nunique") else figure.columns
    measured = dict.fromkeys([*columns, *(one.column for one in question.conditions if one.spans)])
    _refuse_stand_ins(measured, question, used)
    units = {column: column.amounts[1] for column in measured if column.holds("numbers") and column.amounts[1]}
    told += [f"in {unit}" if column in columns else f"{column} in {unit}" for column, unit in units.items()]
    doubtful = [pair for one in measured for pair in zip(one.doubt, _measured(one)[one.doubt.index], strict=True)]
    told += [f"{cell!r} is read as {show(number)}" for cell, number in doubtful]
    cells = {"figure": pd.Series(1, index=range(table.rows))}
    for column in () if figure.operation == "rows" else figure.columns:  # a cell that is missing is listed as such
        cells["figure"] = leave_out(column, _labels(Key(column)) if figure.operation == "nunique" else _measured(column))
    cells |= {str(at): leave_out(key.column, _labels(key)) for at, key in enumerate(question.keys)}
    doubts = pd.Series(_lines_of_totals(question, list(measured), table, used), dtype=object)
    by_why = doubts.groupby(doubts, sort=False).groups.items()
    told += [f"{len(rows)} of them {why}, such as {'; '.join(_row(table, at) for at in rows[:3])}" for why, rows in by_why]
    parted = {str(at): key.column for at, key in enumerate(question.keys) if not key.grain}
    parted |= dict.fromkeys(["figure"], figure.columns[0]) if figure.operation == "nunique" else {}
    told += [f"told apart: {alike}" for at, one in parted.items() if not one.is_numeric and (alike := _alike(cells[at][used]))]
    left_out = ", ".join(notes)
    if not used.any() and not may_be_none:
        raise InvalidInputError(f"Nothing is left to compute the {figure} of: {left_out}.")
    reading = ", ".join([f"{used.sum()} of {table.rows} rows", *told])
    return pd.DataFrame(cells)[used], f"{reading}; left out: {left_out}" if notes else reading


def _refuse_several_units(question: Question, asked: Iterable[Column], table: Table, used: pd.Series) -> None:
    """Refuse figures of rows whose units differ, as another column tells, unless each unit has a figure of its own."""
    known = {*(key.column for key in question.keys), *(one.column for one in question.conditions if one.sign == "is not missing")}
    if any(one.spans and one.column.dates is None for one in question.conditions):  # each row's number is compared, or left out
        chosen = [(one, one.column.cells if one.values else one.column.dates) for one in question.conditions]
        used = reduce(
            and_, (_passes(one, cells) for one, cells in chosen if cells is not None and (one.values or one.spans)), used | True
        )
    amounts = {table.columns.index(one): one for one in asked if one.holds("numbers")}
    for at, one in enumerate(table.columns) if amounts else ():
        if one not in known and any(one.tells_units(beside, abs(at - place) == 1) for place, beside in amounts.items()):
            if len(units := one.cells[used].dropna().unique()) > 1:
                per = f" or 'per {one}'" * (question.figure.operation != "rows")
                hint = f"Say 'where {one} is {units[0]}'{per}. If these are no units, say 'where {one} is not missing'."
                raise InvalidInputError(f"{one} tells of {units[0]} and {units[1]} in these rows; nothing is converted.", hint=hint)


def _refuse_stand_ins(columns: Iterable[Column], question: Question, used: pd.Series) -> None:
    """Refuse numbers in nines alone, such as -9999, farther from all others than these are from each other, unless it is said."""
    known = [one.column for one in question.conditions if one.sign not in ("between", "<", "<=", ">", ">=")]
    for column in [one for one in columns if one not in known and one.holds("numbers")]:
        numbers = _measured(column)
        for number in filter(lambda one: re.fullmatch(r"-?999+", show(one)), {numbers[used].min(), numbers[used].max()}):
            others = numbers[numbers != number].dropna()
            if len(others) > _FEW and not 2 * others.min() - others.max() <= number <= 2 * others.max() - others.min():
                count, without = (numbers[used] == number).sum(), f"'where {column} is not {show(number)}'"
                way = f"Say {without}, or 'where {column} is not missing' if it is a number like others."
                raise InvalidInputError(f"{column} is {show(number)} in {count} rows, which may stand for no number.", hint=way)


def _lines_of_totals(question: Question, asked: list[Column], table: Table, used: pd.Series) -> dict[int, str]:
    """Refuse to count lines of totals; return the used rows that may be such, or no rows, for who only counts rows."""
    _refuse_several_units(question, asked, table, used)
    named = [one.column for one in question.conditions if one.sign == "=" and one.values]
    doubts, whys = _doubtful(asked, table, named)
    for column, double in whys.items():
        rows = [at for at in double if used[at]]
        is_named = used.sum() == 1 and column in asked and not question.keys and bool(named)  # one row alone holds its own figure
        if rows and (is_named or any(one.sign == "is not missing" for one in question.conditions)):
            doubts = dict.fromkeys(rows, "with the sum of others") | doubts
        elif rows:
            double = _also_doubtful(column, asked, table, named, double)
            _refuse_lines_of_totals(table, column, {at: why for at, why in double.items() if used[at]}, used)
    doubts |= dict.fromkeys(table.remarks, "with one cell alone")
    return {at: why for at, why in sorted(doubts.items()) if used[at]}


def _doubtful(asked: list[Column], table: Table, named: list[Column]) -> tuple[dict[int, str], dict[Column, dict[int, str]]]:
    """Rows that may hold figures of others, and why; and those without which the figures of a column are asked for, by column."""
    others = table.holding("numbers") if 2 < table.rows <= CHECKED else []
    sums = {one: _sums_of_others(one, table) for one in dict.fromkeys([*asked, *others]) if one.holds("numbers")}
    doubts = table.doubts(named)
    doubts = _figures_of_others(others, table, {*doubts}.union(*sums.values())) | doubts
    summed = {at: [one for one in sums if at in sums[one]] for at in sorted(set[int]().union(*sums.values()))}
    doubts = {at: f"with the sum of others in {ones[0]}" for at, ones in summed.items()} | doubts
    by_chance = {at for at, ones in summed.items() if all(_is_by_chance(one, [at]) for one in ones)}
    lacking = np.any([one.is_missing for one in table.columns], axis=0)
    whys = dict[Column, dict[int, str]]()
    for column, found in sums.items():  # who counts rows is refused but for sums that are told from rows by what they lack
        cells = _measured(column)
        sure = [at for at in doubts if pd.notna(cells[at]) and (at not in by_chance or cells[at] >= cells.drop(at).max())]
        rows = {*found, *sure} if column in asked else {at for at in found if lacking[at]}
        whys[column] = {at: found.get(at) or doubts[at] for at in sorted(rows)}
    return doubts, whys


def _also_doubtful(column: Column, asked: list[Column], table: Table, named: list[Column], rows: dict[int, str]) -> dict[int, str]:
    """These rows, and those of which it shows once they are left out: what is advised is tried, or else none is sure."""
    for _ in range(_FEW + 1):
        if table.rows > CHECKED or not (kept := [at for at in range(table.rows) if at not in rows]):
            return rows
        rest = table.only(kept)
        twins = dict(zip(table.columns, rest.columns, strict=True))
        more = _doubtful([twins[one] for one in asked], rest, [twins[one] for one in named])[1].get(twins[column])
        if not more:
            return rows
        rows = rows | {kept[at]: why for at, why in more.items()}
    return dict.fromkeys(rows, _UNSURE)


def _figures_of_others(columns: list[Column], table: Table, known: Iterable[int]) -> dict[int, str]:
    """A first or last row with the mean, or the rounded sum, of others in each column, hardly by chance, and a Min or Max."""
    if not columns:
        return {}
    numbers = pd.DataFrame({at: _measured(one) for at, one in enumerate(columns)}, index=range(table.rows))
    cells = pd.concat([one.cells for one in table.columns if one not in columns] or [pd.Series(dtype=object)])
    called = cells.str.extract(_CALLED_AN_EDGE)[0].str.lower().dropna().groupby(level=0).first().to_dict()
    others, found = numbers.drop([*{*called, *known}]), dict[int, str]()
    for at in [*called, *others.index[[0, -1]]] if len(others) > _FEW else ():
        held = [
            (one, others[place].drop(at, errors="ignore")) for place, one in enumerate(columns) if not pd.isna(numbers[place][at])
        ]
        added = [(one, of) for one, of in held if not one.why_rate and len(others) > _FEW + 1]
        for kind, among in ((called[at], held),) if at in called else (("mean", held), ("sum", added)):
            is_near, chance = True, 1.0
            for one, of in among:
                more = 0.6 * one.grain * np.sqrt(len(of)) * (kind == "sum")  # since each of the others may be rounded
                is_near &= bool(_is_near(one, [at], getattr(of, kind)(), more).all())
                wide = abs(of.sum()) if kind == "sum" else of.std()
                chance *= min(1, 2 * (_reach(one, [at]).iloc[0] + more) / max(wide, 1e-9))
            if is_near and (at in called or chance < _RARE):
                found[at] = f"with the {kind} of all others"
    return found


def _refuse_lines_of_totals(table: Table, column: Column, rows: dict[int, str], used: pd.Series) -> None:
    found, doubt = [*rows], " or ".join(dict.fromkeys(rows.values()))
    labels = [one for one in table.columns if not one.is_numeric and not one.values("missing") and not one.is_missing[found].any()]
    ways = [f"{one} is not missing" for one in table.columns if np.flatnonzero(one.is_missing & used).tolist() == found]
    for one in labels:  # what leaves out other rows, too, would give another figure
        cells = one.cells[found].unique().tolist()
        if len(cells) <= SHOWN and np.flatnonzero(one.cells.isin(cells) & used).tolist() == found:
            ways.append(f"{one} is not " + " or ".join(f'"{cell}"' for cell in cells))
    ways = [way for way in ways if Reader("", table).reads(f"how many rows where {way}")] if _UNSURE not in rows.values() else []
    other = "".join(f", such as 'where {way}'" for way in sorted(ways, key=lambda way: way.count('" or "'))[:1])
    fill = ", or fill in what others lack" * doubt.startswith("without")
    known = "".join(f". If they are rows like others, say 'where {one} is not missing'" for one in labels[:1])
    hint = f"Take lines of totals out of the file{fill}, or choose rows by a condition that they do not meet{other}{known}."
    what = doubt + ", that may hold totals or means" * (doubt not in (_SURE, _UNSURE))
    named = "; ".join(_row(table, at) for at in found[:3]) + f" and {len(found) - 3} more" * (len(found) > 3)
    raise InvalidInputError(f"{table.name} has rows {what} of {column}: {named}.", hint=hint)


def _row(table: Table, at: int) -> str:
    return repr(", ".join(str(cell) for one in table.columns if not pd.isna(cell := one.cells[at]))[:80])


def _sums_of_others(column: Column, table: Table) -> dict[int, str]:
    """Rows that hold the sum of others in one of the ways below, and not by chance, and whether that is sure."""
    values = _measured(column).fillna(0).to_numpy()
    found, is_sure = sums_among(np.rint(values / column.grain).astype(np.int64))
    ways = [_sums_of_all(values, column), _sums_by_label(values, column, table), _sums_by_gaps(values, table)]
    for rows, tries in chain(*ways):
        found |= set() if _is_by_chance(column, rows, tries) else {*np.asarray(rows).tolist()}
    return dict.fromkeys(sorted(found), _SURE if is_sure else _UNSURE)


def _is_by_chance(column: Column, rows: Any, tries: int = 1) -> bool:
    """Whether numbers of so few digits may well each be one of so many sums without being meant to."""
    units = _measured(column).iloc[rows].abs().unique() / column.grain  # what is repeated says no more
    return bool(np.prod(np.minimum(1, tries / units[units > 0])) > _CHANCE)


def _is_near(column: Column, rows: Any, wanted: Any, more: float = 0) -> Any:
    """Which rows may hold a number, rounded as it is written there, and by more."""
    numbers = _measured(column).iloc[rows]
    return (((numbers - wanted).abs() <= _reach(column, rows) + more + 1e-9 * np.abs(wanted)) & (numbers != 0)).to_numpy()


def _reach(column: Column, rows: Any) -> pd.Series:
    """By how much numbers may be rounded as they are written."""
    cells = column.cells.iloc[rows]
    decimals = cells.str.extract(r"[.,](\d+)\D*$")[0].str.len()
    is_whole = cells.str.replace(r"\D", "", regex=True) == _measured(column).iloc[rows].abs().map("{:.0f}".format)
    reach: pd.Series = 0.5 / 10.0 ** decimals.mask(is_whole)
    return reach.fillna(0.5)  # else its sign is one for thousands


def _sums_of_all(values: Any, column: Column) -> Iterator[Found]:
    """The row that holds the sum of all others, of three at least, or of all above it, if none is negative."""
    number, total, above = np.cumsum(values != 0), values.sum(), np.cumsum(values) - values
    halves = np.flatnonzero((np.abs(2 * values - total) <= 1 + 1e-9 * abs(total)) & (values != 0) & (number[-1] > 3))
    sums = np.flatnonzero(np.isclose(values, above, rtol=1e-9) & (number > 3) & (values.min() >= 0))
    for at in [*halves[_is_near(column, halves, total - values[halves])].tolist(), *sums.tolist()]:
        yield [at], int(0 < at < len(values) - 1)  # the first and the last row are where totals stand: that is no chance


def _sums_by_gaps(values: Any, table: Table) -> Iterator[Found]:
    """Rows that lack the same words and come to what all rows without gaps do: one level of totals, in whichever order."""
    words = [one.is_missing for one in table.columns if one.is_missing.any() and not one.is_numeric]
    gaps = pd.DataFrame(dict(enumerate(words)))
    whole = values[~gaps.any(axis=1)].sum() if words else 0
    for rows in gaps.groupby([*gaps]).indices.values() if whole and table.rows <= CHECKED else ():
        if gaps.iloc[rows[0]].any() and np.isclose(values[rows].sum(), whole, rtol=1e-9):
            yield rows, 1


def _sums_by_label(values: Any, column: Column, table: Table) -> Iterator[Found]:
    """Rows with one label, one beside some others, that each hold the sum of these, such as `World` of each year."""
    for one in table.columns if table.rows <= CHECKED and values.sum() else ():
        halves = np.flatnonzero(np.isclose(2 * np.bincount(one.coded[0] + 1, values), values.sum(), rtol=1e-9))
        if len(halves) == 1 and not one.is_numeric:
            rows = one.coded[0] == halves[0] - 1
            keys = [other.coded[0] for other in table.columns if other not in (one, column) and not other.is_amount]
            beside = pd.DataFrame({"number": rows, "sum": values * rows, "all": values}).groupby([0 * rows, *keys]).sum()
            if len(beside) > 1 and (beside["number"] == 1).all() and np.allclose(2 * beside["sum"], beside["all"], rtol=1e-9):
                yield np.flatnonzero(rows), len(table.columns)


def _alike(cells: pd.Series) -> str:
    """Values that differ by case or accents alone: a condition takes them for one."""
    words = pd.Series(cells.dropna().unique().tolist(), dtype=object)
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
        return reduce(or_, (cells.between(one.first, one.last) for one in condition.spans)).eq(condition.sign == "=")
    first, last = condition.spans[0].first, condition.spans[-1].last
    fits: dict[str, pd.Series] = {">": cells > last, ">=": cells >= first, "<": cells < first, "<=": cells <= last}
    return fits.get(condition.sign, cells.between(first, last))


def _labels(key: Key) -> pd.Series:
    """What rows are told apart by: times and numbers in their order, of which none must be written in two ways."""
    codes, written = key.column.coded
    rows = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))  # where each different cell stands first
    order = written
    if key.column.dates is not None:
        dates = key.column.dates.take(rows).set_axis(written.index)
        is_twice, months = dates.count() > dates.nunique(), key.column.months
        if months and (key.grain == "day" or (is_twice and not key.grain)):
            said = f"{key.column} holds months such as {months[0]!r}, of which no day is known."
            raise InvalidInputError(said, hint=f"Say 'per month of {key.column}'.")
        if months and not key.grain:
            order, written = dates, written.where(dates.notna())
        elif key.grain or is_twice or not written.str.match(r"\d{4}-\d\d").all():  # else in order as they stand
            grain = key.grain or ("second" if (dates != dates.dt.normalize())[dates.notna()].any() else "day")
            order = written = dates.dt.to_period(GRAINS.get(grain, "s")).dt.strftime(_WRITTEN[grain])
    elif key.column.holds("numbers"):
        order = _measured(key.column).take(rows).set_axis(written.index)
        if len(twice := written[order.duplicated(keep=False) & order.notna()]):
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
