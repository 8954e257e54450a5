"""Read a CSV file as people really write them: any delimiter, encoding, decimal comma, currency sign, percent, date format.

A column becomes numbers or dates only if every value in it does; otherwise it stays text, so nothing is lost silently.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ioa.errors import InvalidInputError
from task_files import decode
from words import name_stems

SUFFIXES = (".csv", ".tsv", ".tab")
_MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "--", "?", "#n/a"}
_CURRENCY = re.compile(r"[\s\u00a0\u202f$€£¥₹'’]|(?:EUR|USD|GBP|CHF|Rs\.?)", re.IGNORECASE)
_PLAIN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_COMMA_DECIMAL = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+)?,\d+|[+-]?\d{1,3}(?:\.\d{3})+")
_COMMA_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DATE = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{4}-\d{2}\b|\d{1,2}[ -][A-Za-z]{3,9}[ -,]+\d{4}|[A-Za-z]{3,9} \d{1,2},? \d{4}"
    r"|[A-Za-z]{3,9}[ -]\d{4}"
)
_ID_WORDS = {"id", "code", "zip", "zipcode", "postcode", "postal", "phone", "number", "no", "nr", "key", "index", "sku", "isbn"}


@dataclass(frozen=True)
class Table:
    """A file's rows with typed columns, and what was noticed while reading."""

    name: str
    frame: pd.DataFrame

    @property
    def numbers(self) -> list[str]:
        """Columns that hold quantities; identifiers such as `order_id` and years are left out."""
        return [name for name in self.frame.columns if self.is_number(name) and not self._is_label(name)]

    @property
    def dates(self) -> list[str]:
        """Columns that hold dates."""
        return [name for name in self.frame.columns if pd.api.types.is_datetime64_any_dtype(self.frame[name])]

    @property
    def texts(self) -> list[str]:
        """Columns that hold text or truth values."""
        return [name for name in self.frame.columns if not self.is_number(name) and name not in self.dates]

    def is_number(self, column: str) -> bool:
        """Whether the column holds numbers, identifiers included."""
        kind = self.frame[column]
        return bool(pd.api.types.is_numeric_dtype(kind)) and not pd.api.types.is_bool_dtype(kind)

    def is_year(self, column: str) -> bool:
        """Whether the column holds years."""
        if not self.is_number(column) or "year" not in name_stems(column):
            return False
        years = self.frame[column].dropna()
        return bool(len(years)) and bool(years.between(1000, 2999).all())

    def _is_label(self, column: str) -> bool:
        return self.is_year(column) or self.is_identifier(column)

    def is_identifier(self, column: str) -> bool:
        """Whether the column's name says that it identifies rows, as `order_id` and `Customer No.` do."""
        words = name_stems(column)
        return bool(words) and (words[-1] in _ID_WORDS or words[0] == "id")


def read_table(path: Path, name: str | None = None, *, keep_dates_as_text: bool = False) -> Table:
    """Read a delimited file; `keep_dates_as_text` leaves months such as `2024-03` as they are written.

    Raises:
        InvalidInputError: The file is empty, has no rows, or is not a table.
    """
    name = name or path.name
    text = decode(path.read_bytes())
    if not text.strip("\x00 \r\n\t\ufeff"):
        raise InvalidInputError(f"{name} is empty.", hint="Send a CSV file with a header line and rows.")
    if "\x00" in text:
        raise InvalidInputError(f"{name} is not a text file.", hint="Send a CSV file.")
    raw = _read(text, _delimiter(text), name)
    if raw.empty:
        raise InvalidInputError(f"{name} has a header but no rows.", hint=f"Its columns: {', '.join(map(str, raw.columns))}.")
    return Table(name, pd.DataFrame({column: _typed(raw[column], keep_dates_as_text) for column in raw.columns}))


def _read(text: str, delimiter: str, name: str) -> pd.DataFrame:
    try:
        raw = pd.read_csv(
            io.StringIO(text), sep=delimiter, dtype=str, keep_default_na=False, skipinitialspace=True, index_col=False
        )
    except (pd.errors.ParserError, pd.errors.ParserWarning, ValueError) as error:
        raise InvalidInputError(f"{name} cannot be read as a table: {error}".strip()) from None
    raw.columns = pd.Index([str(column).strip() for column in raw.columns])
    unnamed = [column for column in raw.columns if column.startswith("Unnamed:") and (raw[column].fillna("") == "").all()]
    return raw.drop(columns=unnamed)


def _delimiter(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()][:20]
    best, most = ",", 0
    for candidate in (",", ";", "\t", "|"):
        counts = [len(row) for row in csv.reader(lines, delimiter=candidate)]
        # A real delimiter cuts the header and the rows alike; a decimal comma cuts only the rows.
        if counts and counts[0] > 1 and counts.count(counts[0]) * 2 >= len(counts) and counts[0] > most:
            best, most = candidate, counts[0]
    return best


def _typed(column: pd.Series, keep_dates_as_text: bool) -> pd.Series:
    text = column.fillna("").str.strip()
    missing = text.str.lower().isin(_MISSING)
    present = text[~missing]
    if present.empty:
        return pd.Series([None] * len(text), index=text.index, dtype=object)
    for convert in (_as_numbers,) if keep_dates_as_text else (_as_numbers, _as_dates):
        converted = convert(present)
        if converted is not None:
            return converted.reindex(text.index)
    return text.where(~missing, None).astype(object)


def _as_numbers(text: pd.Series) -> pd.Series | None:
    if text.str.fullmatch(r"0\d+").any():  # a leading zero marks a code, such as a postal code
        return None
    bare = text.str.replace(r"^\((.*)\)$", r"-\1", regex=True)
    percent = bool(bare.str.endswith("%").all())
    bare = bare.str.rstrip("%").str.replace(_CURRENCY, "", regex=True)
    if bare.str.fullmatch(_PLAIN).all():
        pass
    elif bare.str.fullmatch(f"(?:{_COMMA_THOUSANDS.pattern})|(?:{_PLAIN.pattern})").all():
        bare = bare.str.replace(",", "")
    elif bare.str.fullmatch(f"(?:{_COMMA_DECIMAL.pattern})|(?:[+-]?\\d+)").all():
        bare = bare.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    else:
        return None
    numbers = pd.to_numeric(bare)
    numbers.attrs["percent"] = percent
    return numbers


def _as_dates(text: pd.Series) -> pd.Series | None:
    sample = text.drop_duplicates()
    if not sample.str.match(_DATE).all():
        return None
    for options in ({"format": "ISO8601"}, {}, {"dayfirst": True}, {"format": "mixed"}):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # pandas warns that it guesses the order of day and month
                parsed = pd.to_datetime(sample, **options)
        except (ValueError, TypeError):
            continue
        if parsed.dt.tz is not None:
            parsed = parsed.dt.tz_convert("UTC").dt.tz_localize(None)
        return text.map(dict(zip(sample, parsed, strict=True)))
    return None
