"""Read a CSV file as it is written. What its cells are, numbers or dates, is asked of one column when a question needs it.

Nothing is repaired in silence: cells that are missing or cannot be read are counted, and what can be read in two ways is refused.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ioa import InvalidInputError
from task_files import encoding_of
from words import fold, name_words

SUFFIXES = (".csv", ".tsv", ".tab")
_SAMPLE_ROWS = 1_000
_SIGN = r"[€$£¥₹%]|[A-Z]{3}\b"
_AMOUNT = re.compile(
    rf"(?P<open>\()?(?P<lead>-)?(?P<before>{_SIGN})?\s*(?P<minus>[-+])?(?P<number>[\d.,]+(?:[eE][+-]?\d+)?)\s*(?P<after>{_SIGN}|(?<=\s)[^\W\d_]{{1,4}})?"
    r"(?(open)\))"
)
_POINT = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+")
_COMMA = re.compile(r"(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?")
_LIKE_A_DATE = re.compile(r"\d{4}-\d\d\b|\d{1,4}[/.]\d{1,2}[/.]\d{1,4}")
_DATE_FORMATS = ("ISO8601", "%d.%m.%Y", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y")
_PER_CENT_WORDS = frozenset({"percent", "percentage", "pct"})
_RATE_WORDS = frozenset("rate ratio percent percentage pct share margin price per average avg mean median".split())


@dataclass(frozen=True)
class Cells:
    """One column, read: its values where they could be, and how many of its cells were missing or unreadable."""

    values: pd.Series
    is_missing: pd.Series
    unreadable: tuple[str, ...] = ()
    sign: str = ""


@dataclass(frozen=True)
class Table:
    """A file's rows. Columns go by their position, since two may have one name."""

    name: str
    names: tuple[str, ...]
    frame: pd.DataFrame
    delimiter: str = ","
    _read: dict[tuple[str, int], Cells | None] = field(default_factory=dict)

    @cached_property
    def patterns(self) -> list[tuple[re.Pattern[str], int]]:
        """How each column is named in a folded question: its words with anything between them, and a plural's `s`."""
        found = []
        for position, name in enumerate(self.names):
            for written in dict.fromkeys((name, re.sub(r"\s*\(.*?\)|\s*\[.*?\]", "", name))):  # `Output (kWh)` is `output`, too
                if words := name_words(written):
                    tail = r"\s*%?" if written.rstrip().endswith("%") else ""
                    found.append((re.compile(r"[\W_]*".join(map(re.escape, words)) + rf"s?(?![^\W_]){tail}"), position))
        return found

    def numbers(self, column: int) -> Cells:
        """Read a column as numbers.

        Raises:
            InvalidInputError: Most of its cells are none, or they can be read in two ways.
        """
        cells = self._cached("numbers", column)
        if cells is None:
            example = self._unique(column)[1]
            raise InvalidInputError(
                f"{self.names[column]} in {self.name} holds no numbers{f', but cells such as {example[0]!r}' if example else ''}.",
                hint=f"Columns of numbers: {self.listed(self.number_columns)}.",
            )
        return cells

    def dates(self, column: int) -> Cells | None:
        """Read a column as dates; None when it holds none.

        Raises:
            InvalidInputError: Day and month cannot be told apart.
        """
        return self._cached("dates", column)

    @cached_property
    def number_columns(self) -> list[int]:
        """The columns that hold numbers, those that can be read in two ways left out."""
        return [column for column in range(len(self.names)) if self.holds_numbers(column)]

    @cached_property
    def amounts(self) -> list[int]:
        """The columns of numbers that may be added up and are no row's identity: neither rates, nor different in each row."""
        return [
            column
            for column in self.number_columns
            if not self.why_rate(column) and not (self._is_whole(column) and self.frame[column].is_unique)
        ]

    @cached_property
    def date_columns(self) -> list[int]:
        """The columns that hold dates, those whose days and months cannot be told apart left out."""
        return [column for column in range(len(self.names)) if self._holds("dates", column)]

    @cached_property
    def text_columns(self) -> list[int]:
        """The columns that hold neither numbers nor dates."""
        return [column for column in range(len(self.names)) if column not in (*self.number_columns, *self.date_columns)]

    def listed(self, columns: list[int] | range) -> str:
        """Name columns."""
        return ", ".join(self.names[column] for column in columns) or "none"

    def why_rate(self, column: int) -> str:
        """Say why a column's figures must not be added up; empty when they may."""
        words = name_words(self.names[column])
        if "%" in self.names[column] or _RATE_WORDS & set(words) or (len(words) > 1 and words[0] in ("unit", "hourly")):
            return "by its name"
        cells = self.numbers(column)
        if cells.sign == "%":
            return "by its per cent signs"
        values = cells.values.dropna()
        if len(values) and bool(values.between(0, 1).all()) and not bool((values % 1 == 0).all()):
            return "since all its values lie between 0 and 1"
        return ""

    def is_per_cent(self, column: int) -> bool:
        """Whether a column's figures are in per cent: by its name, unless they are shares of one, or by the signs in its cells."""
        named = _PER_CENT_WORDS & set(name_words(self.names[column]))
        shares = self.numbers(column).values.dropna().between(0, 1).all() if named else False
        return "%" in self.names[column] or self.numbers(column).sign == "%" or bool(named and not shares)

    def values_like(self, column: int) -> dict[str, list[object]]:
        """The values of a column by their folded words; several that differ in case or punctuation only stand together."""
        cells = self.frame[column].dropna()
        unique = pd.unique(cells)
        blob = fold("\n".join(str(value).replace("\n", " ") for value in unique))
        found: dict[str, list[object]] = {}
        for folded, value in zip(re.sub(r"[^\w\n]+|_", " ", blob).split("\n"), unique, strict=True):
            found.setdefault(" ".join(folded.split()), []).append(value)
        return found

    def holds_numbers(self, column: int) -> bool:
        """Whether a column holds numbers that can be read in one way."""
        return self._holds("numbers", column)

    def _holds(self, kind: str, column: int) -> bool:
        try:
            return self._cached(kind, column) is not None
        except InvalidInputError:
            return False

    def _cached(self, kind: str, column: int) -> Cells | None:
        if (kind, column) not in self._read:
            self._read[kind, column] = self._as_numbers(column) if kind == "numbers" else self._as_dates(column)
        return self._read[kind, column]

    def _is_numeric(self, column: int) -> bool:
        kind = self.frame[column].dtype
        return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)

    def _is_whole(self, column: int) -> bool:
        return pd.api.types.is_integer_dtype(self.frame[column].dtype)

    def _unique(self, column: int) -> tuple[Any, list[str]]:
        """The different cells of a column as text, and which of them each row holds (-1: none). A million rows hold few."""
        codes, unique = pd.factorize(self.frame[column])
        return codes, [str(value).strip() for value in unique]

    def _as_numbers(self, column: int) -> Cells | None:
        cells = self.frame[column]
        if self._is_numeric(column):
            return Cells(cells, cells.isna())
        codes, unique = self._unique(column)
        if any(re.fullmatch(r"0\d+", text) for text in unique[:_SAMPLE_ROWS]):  # a leading zero marks a code
            return None
        amounts = [_AMOUNT.fullmatch(text) for text in unique]
        readings = [_numbers(amounts, form) for form in ((_POINT,) if self.delimiter == "," else (_POINT, _COMMA))]
        readable = [sum(value is not None for value in reading) for reading in readings]
        best = readings[readable.index(max(readable))]
        if len(readings) > 1 and readable[0] == readable[1] and readings[0] != readings[1]:
            example = next(text for text, one, two in zip(unique, *readings, strict=True) if one != two)
            raise InvalidInputError(
                f"{self.names[column]} in {self.name} can be read in two ways: {example!r} has a sign for thousands or decimals.",
                hint="Write its numbers without a sign for thousands.",
            )
        values = _spread(pd.Series([*best, None], dtype=float), codes)
        if values.notna().sum() <= (values.isna() & cells.notna()).sum():
            return None
        signs = {
            (one["before"] or one["after"] or "") for one, value in zip(amounts, best, strict=True) if one and value is not None
        }
        if len(signs) > 1:
            kinds = " and ".join(sorted(repr(sign) if sign else "no sign" for sign in signs))
            raise InvalidInputError(f"{self.names[column]} in {self.name} mixes numbers with {kinds}; they do not add up.")
        unreadable = tuple(text for text, value in zip(unique, best, strict=True) if value is None)
        return Cells(values, cells.isna(), unreadable, next(iter(signs)))

    def _as_dates(self, column: int) -> Cells | None:
        if self._is_numeric(column):
            return None
        codes, unique = self._unique(column)
        if not any(_LIKE_A_DATE.match(text) for text in unique[:_SAMPLE_ROWS]):
            return None
        texts = pd.Series(unique, dtype=object).str.slice(0, 19)
        readings = [pd.to_datetime(texts, format=form, errors="coerce") for form in _DATE_FORMATS]
        counts = [int(reading.notna().sum()) for reading in readings]
        if max(counts) * 2 <= len(unique):
            return None
        best = counts.index(max(counts))
        if best == 3 and counts[4] == counts[3] and not readings[4].equals(readings[3]):
            example = next(text for text in unique if _LIKE_A_DATE.match(text))
            raise InvalidInputError(
                f"{self.names[column]} in {self.name} can be read in two ways: {example} may begin with the day or with the month.",
                hint="Write its dates as 2024-03-31.",
            )
        values = _spread(pd.concat([readings[best], pd.Series([pd.NaT])]), codes)
        unreadable = tuple(text for text, value in zip(unique, readings[best].isna(), strict=True) if value)
        return Cells(values, self.frame[column].isna(), unreadable)


def _spread(values: pd.Series, codes: Any) -> pd.Series:
    """Give each row the value of its code; the last value is that of rows without one."""
    return pd.Series(values.array.take(codes))


def _numbers(amounts: list[re.Match[str] | None], form: re.Pattern[str]) -> list[float | None]:
    found: list[float | None] = []
    for amount in amounts:
        if amount is None or not form.fullmatch(amount["number"]):
            found.append(None)
            continue
        text = amount["number"].replace(",", "") if form is _POINT else amount["number"].replace(".", "").replace(",", ".")
        found.append(-float(text) if (amount["open"] is not None) != ("-" in (amount["lead"], amount["minus"])) else float(text))
    return found


def read_table(path: Path, name: str | None = None) -> Table:
    """Read a delimited file with a header.

    Raises:
        InvalidInputError: The file is empty, has no rows, or is not a table.
    """
    name, data = name or path.name, path.read_bytes()
    encoding = encoding_of(data)
    head = data[:65_536].decode(encoding, errors="replace")
    if not head.strip("\x00 \r\n\t\ufeff"):
        raise InvalidInputError(f"{name} is empty.", hint="Send a CSV file with a header line and rows.")
    if "\x00" in head:
        raise InvalidInputError(f"{name} is not a text file.", hint="Send a CSV file.")
    delimiter = _delimiter(head)
    names = [title.strip() for title in next(row for row in csv.reader(io.StringIO(head), delimiter=delimiter) if any(row))]
    options: dict[str, Any] = {
        "sep": delimiter, "header": 0, "names": range(len(names)), "index_col": False,
        "skipinitialspace": True, "encoding": encoding,
    }  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            sample = pd.read_csv(io.BytesIO(data), dtype=str, nrows=_SAMPLE_ROWS, **options)
            codes = {column: str for column in sample if sample[column].str.fullmatch(r"0\d+").any()}
            # a decimal comma is told from a point by all of a column's cells, which must not have become numbers before
            kinds = codes if delimiter == "," else str
            frame = pd.read_csv(io.BytesIO(data), dtype=kinds, low_memory=False, **options)
    except (pd.errors.ParserError, pd.errors.ParserWarning, ValueError) as error:
        raise InvalidInputError(f"{name} cannot be read as a table: {error}".strip()) from None
    kept = [at for at, title in enumerate(names) if title or frame[at].notna().any()]
    if frame.empty:
        raise InvalidInputError(f"{name} has a header but no rows.", hint=f"Its columns: {', '.join(names)}.")
    titles = tuple(names[at] or f"column {at + 1}" for at in kept)
    return Table(name, titles, frame[kept].set_axis(range(len(kept)), axis=1), delimiter)


def _delimiter(head: str) -> str:
    lines = [line for line in head.splitlines() if line.strip()][:20]
    best, most = ",", 0
    for candidate in (",", ";", "\t", "|"):
        counts = [len(row) for row in csv.reader(lines, delimiter=candidate)]
        # A real delimiter cuts the header and the rows alike; a decimal comma cuts only the rows.
        if counts and counts[0] > 1 and counts.count(counts[0]) * 2 >= len(counts) and counts[0] > most:
            best, most = candidate, counts[0]
    return best
