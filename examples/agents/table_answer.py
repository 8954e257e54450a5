"""Compute the answer to a query over a table, and say in words what was computed of which rows."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ioa.errors import InvalidInputError
from table_query import Filter, Key, Measure, Query
from table_reading import Table
from words import format_number

_SHOWN = 25


@dataclass(frozen=True)
class Answer:
    """The answer in words, and its table when it has one."""

    text: str
    frame: pd.DataFrame | None = None
    name: str = "result"


def answer(query: Query, table: Table) -> Answer:
    """Compute what the query asks for.

    Raises:
        InvalidInputError: No row passes the filters, or a column cannot be computed that way.
    """
    rows = filtered(table, query.filters)
    if (query.kind not in ("figures", "growth", "rows") and rows.empty) or (rows.empty and query.filters and not _is_count(query)):
        raise InvalidInputError(f"No row of {table.name} has {_filters(query)}.", hint="Ask for other values or a wider range.")
    match query.kind:
        case "describe":
            return _describe(query, table, rows)
        case "missing":
            return _missing(query, table, rows)
        case "correlation":
            return _correlation(query, table, rows)
        case "distinct":
            return _distinct(query, table, rows)
        case "rows":
            return _rows(query, table, rows)
        case "top_rows":
            return _top_rows(query, table, rows)
        case "growth":
            return _growth(query, table, rows)
    if query.share:
        return _share(query, table, rows)
    return _grouped(query, table, rows) if query.keys else _figures(query, table, rows)


def _is_count(query: Query) -> bool:
    return not query.keys and not query.share and all(measure.operation == "count" for measure in query.measures)


def filtered(table: Table, filters: list[Filter]) -> pd.DataFrame:
    """Keep the rows that pass all filters."""
    mask = pd.Series(True, index=table.frame.index)
    for one in filters:
        mask &= one.mask(table.frame)
    return table.frame[mask]


def _filters(query: Query) -> str:
    return " and ".join(str(one) for one in query.filters)


def _scope(query: Query, table: Table, rows: pd.DataFrame) -> str:
    """Say which file and rows the figures are of."""
    chosen = f", rows where {_filters(query)}: {len(rows)} of {len(table.frame)}" if query.filters else f", all {len(rows)} rows"
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


def _lines(frame: pd.DataFrame, keys: int) -> str:
    """List a result's rows; a long one is cut and says so."""
    shown = frame.head(_SHOWN)
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


def _figures(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    parts = []
    for measure in query.measures:
        text = f"{measure}: {show(measure.of(rows))}"
        if measure.operation in ("min", "max") and measure.column and len(rows):
            text += _where(measure, rows)
        parts.append(text)
    scope = _scope(query, table, rows)
    return Answer(f"{scope}: {parts[0]}." if len(parts) == 1 else f"{scope}:\n" + "\n".join(f"- {part}" for part in parts))


def _where(measure: Measure, rows: pd.DataFrame) -> str:
    """Say in which row an extreme value stands, if it stands in one only."""
    hits = rows[rows[measure.column] == measure.of(rows)]
    if len(hits) != 1:
        return f" (in {len(hits)} rows)"
    others = [
        f"{name} {show(hits.iloc[0][name])}" for name in rows.columns if name != measure.column and not pd.isna(hits.iloc[0][name])
    ]
    return f" (in the row with {', '.join(others[:6])})" if others else ""


def _group(query: Query, rows: pd.DataFrame) -> pd.DataFrame:
    """Group the rows; each key and each figure becomes a column. Groups stand in their natural order."""
    by = [key.of(rows).rename(key.name) for key in query.keys]
    records = []
    for labels, group in rows.groupby(by, sort=True, dropna=True):
        records.append((*labels, *(measure.of(group) for measure in query.measures)))
    if not records:
        raise InvalidInputError(f"{' and '.join(map(str, query.keys))} is empty in every row.")
    return pd.DataFrame(records, columns=[*(key.name for key in query.keys), *(_column_name(one) for one in query.measures)])


def _column_name(measure: Measure) -> str:
    return (
        "rows"
        if measure.column is None
        else f"{measure.operation if measure.operation != 'distinct' else 'distinct'} of {measure.column}"
    )


def _keys(keys: list[Key]) -> str:
    return " and ".join(str(key) for key in keys)


def _artifact_name(query: Query) -> str:
    words = [str(one) for one in query.measures[:2]] + ["by"] + [key.name for key in query.keys]
    name = "-".join("".join(char if char.isalnum() else "-" for char in word.lower()).strip("-") for word in words)
    return name[:80]


def _grouped(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    frame = _group(query, rows)
    figure = frame.columns[len(query.keys)]
    for sign, numbers in query.having:
        frame = frame[Filter(figure, sign, numbers).mask(frame)]
    total = len(frame)
    if query.descending is not None:
        sort_by = [
            name
            for name, one in zip(frame.columns[len(query.keys) :], query.measures, strict=True)
            if one.column == query.sort_column
        ]
        frame = frame.sort_values((sort_by or [figure])[0], ascending=not query.descending, kind="stable")
    if query.limit is not None:
        outer = [key.name for key in query.keys if key != (query.ranked or query.keys[0])]
        if outer:
            frame = frame.groupby(outer, sort=False).head(query.limit).sort_values(outer, kind="stable")
        else:
            frame = _with_ties(frame, figure, query.limit)
    head = f"{_scope(query, table, rows)}: {' and '.join(map(str, query.measures))} per {_keys(query.keys)}"
    if query.having:
        head += " with a value " + " and ".join(
            f"{sign} {', '.join(map(format_number, numbers))}" for sign, numbers in query.having
        )
    if query.limit is not None:
        head += f", the {'highest' if query.descending else 'lowest'} {min(query.limit, total)} of {total}"
    if frame.empty:
        return Answer(f"{head}: none.")
    text = f"{head}:\n{_lines(frame, len(query.keys))}" + ("" if query.limit or query.having else _overall(query, rows))
    return Answer(text, frame, _artifact_name(query))


def _with_ties(frame: pd.DataFrame, figure: str, limit: int) -> pd.DataFrame:
    """Keep the first `limit` groups; when one is asked for, all that share its value."""
    return frame[frame[figure] == frame[figure].iloc[0]] if limit == 1 and len(frame) else frame.head(limit)


def _overall(query: Query, rows: pd.DataFrame) -> str:
    shown = [f"{one} {show(one.of(rows))}" for one in query.measures if one.operation in ("sum", "count", "mean", "median")]
    return f"\nOver all of these rows: {', '.join(shown)}." if shown else ""


def _share(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    query.measures = query.measures[:1]
    measure = query.measures[0]
    if query.keys:
        frame = _group(query, rows)
        figure = str(frame.columns[-1])
        frame["percent"] = frame[figure] / frame[figure].sum() * 100
        if query.descending is not None:
            frame = frame.sort_values(figure, ascending=not query.descending, kind="stable")
        head = f"{_scope(query, table, rows)}: share of each {_keys(query.keys)} in the {measure}"
        return Answer(
            f"{head}:\n{_lines(frame.head(query.limit or len(frame)), len(query.keys))}", frame, "share-" + _artifact_name(query)
        )
    whole = filtered(table, [one for one in query.filters if one.sign == "period"] if _has_condition(query) else [])
    part, base = float(str(measure.of(rows))), float(str(measure.of(whole)))
    if not base:
        raise InvalidInputError(f"The {measure} of the whole is 0, so there is no share of it.")
    return Answer(f"{_scope(query, table, rows)}: {show(part / base * 100)} % of the {measure} ({show(part)} of {show(base)}).")


def _has_condition(query: Query) -> bool:
    return any(one.sign != "period" for one in query.filters)


def _growth(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    query.measures = query.measures[:1]
    spans = [period for one in query.filters if one.sign == "period" for two in one.periods for period in (two.parts or (two,))]
    if len(spans) >= 2:
        return _between(query, table, rows, [spans[0], spans[-1]])
    times = [key for key in query.keys if key.is_time] or [key for key in query.keys if key.grain == "" and _is_order(table, key)]
    query.keys = times[:1] or query.keys
    if not times:
        raise InvalidInputError(f"Growth needs two periods to compare, not {_keys(query.keys)}.", hint="Say from when to when.")
    frame = _group(query, rows)
    figure = str(frame.columns[-1])
    frame["change"] = frame[figure].diff()
    frame["percent"] = frame[figure].pct_change(fill_method=None) * 100
    first, last = float(frame[figure].iloc[0]), float(frame[figure].iloc[-1])
    head = f"{_scope(query, table, rows)}: {query.measures[0]} per {_keys(query.keys)} and its change"
    text = f"{head}:\n{_lines(frame, 1)}\nFrom {show(frame.iloc[0, 0])} to {show(frame.iloc[-1, 0])}: {_change(first, last)}."
    return Answer(text, frame, "growth-" + _artifact_name(query))


def _is_order(table: Table, key: Key) -> bool:
    return table.is_year(key.column) or key.column in table.dates


def _between(query: Query, table: Table, rows: pd.DataFrame, spans: list[object]) -> Answer:
    column = next(one.column for one in query.filters if one.sign == "period")
    others = [one for one in query.filters if one.sign != "period"]
    query.filters = others
    base = filtered(table, others)
    measure = query.measures[0]
    first, last = (base[Filter(column, "period", periods=(span,)).mask(base)] for span in spans)  # type: ignore[arg-type]
    labels = [span.label for span in spans]  # type: ignore[attr-defined]
    query.keys = [key for key in query.keys if not key.is_time]
    if first.empty or last.empty:
        raise InvalidInputError(f"{table.name} has no rows in {labels[0] if first.empty else labels[1]}.")
    head = f"{_scope(query, table, base)}: change of {measure} from {labels[0]} to {labels[1]}"
    if not query.keys:
        return Answer(f"{head}: {_change(float(str(measure.of(first))), float(str(measure.of(last))))}.")
    names = [key.name for key in query.keys]
    frame = _group(query, first).merge(
        _group(query, last), on=names, how="outer", suffixes=(f" in {labels[0]}", f" in {labels[1]}")
    )
    before, after = frame.columns[-2:]
    frame["change"] = frame[after] - frame[before]
    frame["percent"] = frame["change"] / frame[before].abs() * 100
    return Answer(f"{head} per {_keys(query.keys)}:\n{_lines(frame, len(names))}", frame, "growth-" + _artifact_name(query))


def _change(first: float, last: float) -> str:
    percent = f" ({show((last - first) / abs(first) * 100)} %)" if first else " (no percentage, since it starts at 0)"
    return f"{show(first)} to {show(last)}, a change of {show(last - first)}{percent}"


def _correlation(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    columns = list(dict.fromkeys(name for name in query.columns if name in table.numbers))
    if len(columns) < 2:
        columns = columns + [name for name in table.numbers if name not in columns]
    if len(columns) < 2:
        raise InvalidInputError(f"A correlation needs two columns of numbers; {table.name} has {', '.join(columns) or 'none'}.")
    matrix = rows[columns].corr()
    pairs = [(left, right) for index, left in enumerate(columns) for right in columns[index + 1 :]]
    named = [f"- {left} and {right}: {show(matrix.loc[left, right])}" for left, right in pairs]
    head = f"{_scope(query, table, rows)}: Pearson correlation"
    if len(pairs) == 1:
        return Answer(f"{head} of {columns[0]} and {columns[1]}: {show(matrix.iloc[0, 1])}.")
    frame = pd.DataFrame([(*pair, matrix.loc[pair]) for pair in pairs], columns=["column", "with", "correlation"])
    return Answer(f"{head}:\n" + "\n".join(named), frame, "correlations")


def _missing(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    columns = list(dict.fromkeys([*query.columns, *(key.column for key in query.keys)])) or list(rows.columns)
    counts = [(name, int(rows[name].isna().sum())) for name in columns]
    frame = pd.DataFrame(counts, columns=["column", "missing"])
    total = int(frame["missing"].sum())
    incomplete = int(rows[columns].isna().any(axis=1).sum())
    return Answer(
        f"{_scope(query, table, rows)}: {total} missing values, in {incomplete} rows.\n{_lines(frame, 1)}", frame, "missing-values"
    )


def _distinct(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    column = (query.columns or [key.column for key in query.keys])[0]
    counts = rows[column].dropna().value_counts().sort_index()
    frame = pd.DataFrame({column: counts.index, "rows": counts.to_numpy()})
    return Answer(
        f"{_scope(query, table, rows)}: {len(frame)} distinct values of {column} and their rows:\n{_lines(frame, 1)}",
        frame,
        "values",
    )


def _rows(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    if query.descending is not None and query.columns:
        rows = rows.sort_values(query.columns[-1], ascending=not query.descending, kind="stable")
    if rows.empty:
        return Answer(f"{_scope(query, table, rows)}.")
    return Answer(f"{_scope(query, table, rows)}:\n{_records(rows)}", rows, "rows")


def _top_rows(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    column = next((measure.column for measure in query.measures if measure.column), None)
    if column is None:
        raise InvalidInputError("The request does not say by which column to rank.", hint=f"Columns: {', '.join(rows.columns)}.")
    top = rows.sort_values(column, ascending=not query.descending, kind="stable").head(query.limit or 1)
    word = "highest" if query.descending else "lowest"
    return Answer(
        f"{_scope(query, table, rows)}: the {len(top)} rows with the {word} {column}:\n{_records(top)}", top, f"{word}-{column}"
    )


def _records(rows: pd.DataFrame) -> str:
    lines = [
        "- " + ", ".join(f"{name} {show(value)}" for name, value in zip(rows.columns, row, strict=True) if not pd.isna(value))
        for row in rows.head(_SHOWN).itertuples(index=False, name=None)
    ]
    more = len(rows) - _SHOWN
    return "\n".join(lines + ([f"- … and {more} more in the attached table"] if more > 0 else []))


def _describe(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    lines, records = [], []
    columns = query.columns or list(rows.columns)
    for name in columns:
        cells = rows[name].dropna()
        missing = len(rows) - len(cells)
        note = f", {missing} missing" if missing else ""
        if name in table.numbers and len(cells):
            figures = [Measure(one, name) for one in ("sum", "mean", "median", "min", "max", "std")]
            lines.append(f"- {name}: numbers, " + ", ".join(f"{one.operation} {show(one.of(rows))}" for one in figures) + note)
            records.append((name, len(cells), *(one.of(rows) for one in figures)))
        elif name in table.dates and len(cells):
            lines.append(f"- {name}: dates from {show(cells.min())} to {show(cells.max())}{note}")
        else:
            top = ", ".join(f"{value} ({count})" for value, count in cells.value_counts().sort_index().nlargest(5).items())
            lines.append(f"- {name}: {cells.nunique()} distinct values" + (f", most often {top}" if top else "") + note)
    frame = pd.DataFrame(records, columns=["column", "values", "sum", "mean", "median", "min", "max", "std"]) if records else None
    return Answer(f"{_scope(query, table, rows)}, {len(rows.columns)} columns:\n" + "\n".join(lines), frame, "summary")
