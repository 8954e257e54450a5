"""Compute the answer to a query over a table, and say in words what was computed of which rows."""

from __future__ import annotations

import pandas as pd

from answer_parts import SHOWN, Answer, artifact_name, filter_words, filtered, grouped, key_words, listed, scope, show
from ioa.errors import InvalidInputError
from table_growth import growth
from table_query import Filter, Measure, Query
from table_reading import Table
from words import format_number


def answer(query: Query, table: Table) -> Answer:
    """Compute what the query asks for.

    Raises:
        InvalidInputError: No row passes the filters, or a column cannot be computed that way.
    """
    rows = filtered(table, query.filters)
    if (query.kind not in ("figures", "growth", "rows") and rows.empty) or (rows.empty and query.filters and not _is_count(query)):
        raise InvalidInputError(f"No row of {table.name} has {filter_words(query)}.", hint="Ask for other values or a wider range.")
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
            return growth(query, table, rows)
    if query.share:
        return _share(query, table, rows)
    return _grouped(query, table, rows) if query.keys else _figures(query, table, rows)


def _is_count(query: Query) -> bool:
    return not query.keys and not query.share and all(measure.operation == "count" for measure in query.measures)


def _figures(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    parts = []
    for measure in query.measures:
        text = f"{measure}: {show(measure.of(rows))}"
        if measure.operation in ("min", "max") and measure.column and len(rows):
            text += _where(measure, rows)
        parts.append(text)
    head = scope(query, table, rows)
    return Answer(f"{head}: {parts[0]}." if len(parts) == 1 else f"{head}:\n" + "\n".join(f"- {part}" for part in parts))


def _where(measure: Measure, rows: pd.DataFrame) -> str:
    """Say in which row an extreme value stands, if it stands in one only."""
    hits = rows[rows[measure.column] == measure.of(rows)]
    if len(hits) != 1:
        return f" (in {len(hits)} rows)"
    others = [
        f"{name} {show(hits.iloc[0][name])}" for name in rows.columns if name != measure.column and not pd.isna(hits.iloc[0][name])
    ]
    return f" (in the row with {', '.join(others[:6])})" if others else ""


def _grouped(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    frame = grouped(query, rows)
    figure = frame.columns[len(query.keys)]
    if query.over_groups is not None:
        return _over_groups(query, query.over_groups, table, rows, frame)
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
    head = f"{scope(query, table, rows)}: {' and '.join(map(str, query.measures))} per {key_words(query.keys)}"
    if query.having:
        head += " with a value " + " and ".join(
            f"{sign} {', '.join(map(format_number, numbers))}" for sign, numbers in query.having
        )
    if query.limit is not None:
        head += f", the {'highest' if query.descending else 'lowest'} {min(query.limit, total)} of {total}"
    if frame.empty:
        return Answer(f"{head}: none.")
    text = f"{head}:\n{listed(frame, len(query.keys))}" + ("" if query.limit or query.having else _overall(query, rows))
    return Answer(text, frame, artifact_name(query))


def _over_groups(query: Query, outer: Measure, table: Table, rows: pd.DataFrame, frame: pd.DataFrame) -> Answer:
    if len(query.keys) > 1:
        raise InvalidInputError(
            f"{outer} over {key_words(query.keys)} can be taken in two ways.", hint="Ask for one of them at a time."
        )
    figure = str(frame.columns[-1])
    value = Measure(outer.operation, figure, outer.quantile).of(frame)
    groups = f"the {len(frame)} {query.keys[0].name}s that occur"
    return Answer(
        f"{scope(query, table, rows)}: {outer} of the {query.measures[-1]} over {groups}: {show(value)}.",
        frame,
        artifact_name(query),
    )


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
        frame = grouped(query, rows)
        figure = str(frame.columns[-1])
        frame["percent"] = frame[figure] / frame[figure].sum() * 100
        if query.descending is not None:
            frame = frame.sort_values(figure, ascending=not query.descending, kind="stable")
        head = f"{scope(query, table, rows)}: share of each {key_words(query.keys)} in the {measure}"
        return Answer(
            f"{head}:\n{listed(frame.head(query.limit or len(frame)), len(query.keys))}", frame, "share-" + artifact_name(query)
        )
    whole = filtered(table, [one for one in query.filters if one.sign == "period"] if _has_condition(query) else [])
    part, base = float(str(measure.of(rows))), float(str(measure.of(whole)))
    if not base:
        raise InvalidInputError(f"The {measure} of the whole is 0, so there is no share of it.")
    return Answer(f"{scope(query, table, rows)}: {show(part / base * 100)} % of the {measure} ({show(part)} of {show(base)}).")


def _has_condition(query: Query) -> bool:
    return any(one.sign != "period" for one in query.filters)


def _correlation(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    columns = list(dict.fromkeys(name for name in query.columns if name in table.numbers))
    if len(columns) < 2:
        columns = columns + [name for name in table.numbers if name not in columns]
    if len(columns) < 2:
        raise InvalidInputError(f"A correlation needs two columns of numbers; {table.name} has {', '.join(columns) or 'none'}.")
    matrix = rows[columns].corr()
    pairs = [(left, right) for index, left in enumerate(columns) for right in columns[index + 1 :]]
    named = [f"- {left} and {right}: {show(matrix.loc[left, right])}" for left, right in pairs]
    head = f"{scope(query, table, rows)}: Pearson correlation"
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
        f"{scope(query, table, rows)}: {total} missing values, in {incomplete} rows.\n{listed(frame, 1)}", frame, "missing-values"
    )


def _distinct(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    column = (query.columns or [key.column for key in query.keys])[0]
    counts = rows[column].dropna().value_counts().sort_index()
    frame = pd.DataFrame({column: counts.index, "rows": counts.to_numpy()})
    return Answer(
        f"{scope(query, table, rows)}: {len(frame)} distinct values of {column} and their rows:\n{listed(frame, 1)}",
        frame,
        "values",
    )


def _rows(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    if query.descending is not None and query.columns:
        rows = rows.sort_values(query.columns[-1], ascending=not query.descending, kind="stable")
    if rows.empty:
        return Answer(f"{scope(query, table, rows)}.")
    return Answer(f"{scope(query, table, rows)}:\n{_records(rows)}", rows, "rows")


def _top_rows(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    column = next((measure.column for measure in query.measures if measure.column), None)
    if column is None:
        raise InvalidInputError("The request does not say by which column to rank.", hint=f"Columns: {', '.join(rows.columns)}.")
    top = rows.sort_values(column, ascending=not query.descending, kind="stable").head(query.limit or 1)
    word = "highest" if query.descending else "lowest"
    return Answer(
        f"{scope(query, table, rows)}: the {len(top)} rows with the {word} {column}:\n{_records(top)}", top, f"{word}-{column}"
    )


def _records(rows: pd.DataFrame) -> str:
    lines = [
        "- " + ", ".join(f"{name} {show(value)}" for name, value in zip(rows.columns, row, strict=True) if not pd.isna(value))
        for row in rows.head(SHOWN).itertuples(index=False, name=None)
    ]
    more = len(rows) - SHOWN
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
    return Answer(f"{scope(query, table, rows)}, {len(rows.columns)} columns:\n" + "\n".join(lines), frame, "summary")
