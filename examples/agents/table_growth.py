"""How a figure changed, from one period to another or along a series of them."""

from __future__ import annotations

import pandas as pd

from answer_parts import Answer, artifact_name, filtered, grouped, key_words, listed, scope, show
from ioa.errors import InvalidInputError
from table_query import Filter, Key, Query
from table_reading import Table


def growth(query: Query, table: Table, rows: pd.DataFrame) -> Answer:
    """Compute how a figure changed: between two periods, or from each period to the next."""
    query.measures = query.measures[:1]
    spans = [period for one in query.filters if one.sign == "period" for two in one.periods for period in (two.parts or (two,))]
    if len(spans) >= 2:
        return _between(query, table, rows, [spans[0], spans[-1]])
    times = [key for key in query.keys if key.is_time] or [key for key in query.keys if key.grain == "" and _is_order(table, key)]
    query.keys = times[:1] or query.keys
    if not times:
        raise InvalidInputError(f"Growth needs two periods to compare, not {key_words(query.keys)}.", hint="Say from when to when.")
    frame = grouped(query, rows)
    figure = str(frame.columns[-1])
    frame["change"] = frame[figure].diff()
    frame["percent"] = frame[figure].pct_change(fill_method=None) * 100
    first, last = float(frame[figure].iloc[0]), float(frame[figure].iloc[-1])
    head = f"{scope(query, table, rows)}: {query.measures[0]} per {key_words(query.keys)} and its change"
    text = f"{head}:\n{listed(frame, 1)}\nFrom {show(frame.iloc[0, 0])} to {show(frame.iloc[-1, 0])}: {_change(first, last)}."
    return Answer(text, frame, "growth-" + artifact_name(query))


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
    head = f"{scope(query, table, base)}: change of {measure} from {labels[0]} to {labels[1]}"
    if not query.keys:
        return Answer(f"{head}: {_change(float(str(measure.of(first))), float(str(measure.of(last))))}.")
    names = [key.name for key in query.keys]
    frame = grouped(query, first).merge(
        grouped(query, last), on=names, how="outer", suffixes=(f" in {labels[0]}", f" in {labels[1]}")
    )
    before, after = frame.columns[-2:]
    frame["change"] = frame[after] - frame[before]
    frame["percent"] = frame["change"] / frame[before].abs() * 100
    return Answer(f"{head} per {key_words(query.keys)}:\n{listed(frame, len(names))}", frame, "growth-" + artifact_name(query))


def _change(first: float, last: float) -> str:
    percent = f" ({show((last - first) / abs(first) * 100)} %)" if first else " (no percentage, since it starts at 0)"
    return f"{show(first)} to {show(last)}, a change of {show(last - first)}{percent}"
