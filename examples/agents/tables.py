"""Read a CSV file as it is written. What its cells are, numbers or dates, is asked of one column when a question needs it.

Nothing is repaired in silence: cells that are missing or cannot be read are counted, and what can be read in two ways is refused.
"""

import csv
import io
import json
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import combinations
from pathlib import Path
from typing import Any
from unicodedata import category

import numpy as np
import pandas as pd

from ioa import InvalidInputError
from ioa.files import read_and_tell
from request import RECORDS, fold

CHECKED, _SAMPLE_ROWS, _LAST, _GROUPS = 50_000, 1_000, 3, 25
NOTHING = [sign * times for sign in "-–—−.…?" for times in (1, 2, 3)]
_WORD = re.compile(r"[^\W_]+")
_FIGURES = r"[-+−]?(?:[1-9]\d{0,2}(?: \d{3})+(?!\d)[\d.,]*|[\d.,'’]+)"
_AMOUNT = rf"(\()?([-+−])?([€$£¥₹])?[^\S\n]*({_FIGURES})[^\S\n]*([€$£¥₹%]|°?[^\W\d_][^\s\d.,()]*[²³]?)?(\))?"
CODE = r"0\d+|\d+[eE]\d+|[-+]?\d{16,}"
"""What looks like a number and is none: its zeros count, `10E2` is no thousand, and it may be too long to be exact."""
_POINT, _COMMA = r"[-+]?(?:(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)", r"[-+]?(?:[1-9]\d{0,2}(?:\.\d{3})+|\d+)(?:,\d+)?"
_DAY_IN_FIGURES = r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}\b"
_LIKE_A_DATE = r"\d{4}-\d\d\b|\d{1,4}[/.]\d{1,2}[/.]\d{1,4}|\d{1,2}[ -][A-Za-z]{3,9}[ -]\d{4}|[A-Za-z]{3,9} \d{1,2}, \d{4}"
_NO_NAME = rf"[-+]?\d*[.,]\d+|(?:{_LIKE_A_DATE}).*"
_MEASURED = rf"(?:{_AMOUNT}|(?:{_LIKE_A_DATE}).*)"
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_DATE_FORMATS = "ISO8601|%d.%m.%Y|%Y/%m/%d|%d/%m/%Y|%m/%d/%Y|%d %b %Y|%d %B %Y|%d-%b-%Y|%d-%B-%Y|%b %d, %Y|%B %d, %Y".split("|")
WRITTEN = "as 1234.5, all with one unit behind them (5 km), or one sign before them (€5), or neither"
_ONE_WAY = f"Write all its numbers in one way: {WRITTEN}."
_CALLED_A_FIGURE = (
    r"(?i)(?:.*\b|grand[ -]?|sub-?)?totals?\b:?(?: of .*)?|(?:sum|mean|average|median|minimum|maximum)s?\b:?(?: of .*)?"
    r"|(?:avg|tot)\.?:?"
)
_RATES, _CODES = "percent percentage pct rate ratio share margin price per average avg mean median", "id year rank zip"
_STATES = "temperature temp pressure humidity speed velocity density voltage concentration ph age rating grade index level"
_CALLED_A_TOTAL = r"(?i).{0,30}\b(?:sub-?)?total\b.{0,20}"
"""What one line alone is called that is a total of something: `Total EUR`. A name, such as a customer's, stands in several."""
_UNIT_WORDS = frozenset("currency currencies unit units uom".split())
"""What a column is called that tells in which unit the numbers beside it are."""
_NOT_ADDED = frozenset(f"{_RATES} {_CODES} {_STATES} latitude longitude altitude elevation".split())


@dataclass(eq=False)
class Column:
    """One column: its cells as they stand in the file, and what they are as numbers, dates or words."""

    name: str
    cells: pd.Series
    as_written: Callable[[], pd.DataFrame]
    """Reads its cells again: only those that are empty are missing then."""
    has_decimal_commas: bool = False

    def __str__(self) -> str:
        return self.name

    @cached_property
    def is_missing(self) -> pd.Series:
        """Which of its cells are missing."""
        return self.cells.isna()

    @cached_property
    def patterns(self) -> list[re.Pattern[str]]:
        """How a folded question names it: its words, without what stands in brackets if you like, and a plural's `s`."""
        spoken = dict.fromkeys((self.name, re.sub(r"\s*(?:\(.*?\)|\[.*?\])", "", self.name)))
        found = [(name_words(name), [re.escape(f"\0{signs}") for signs in re.split(r"\w", name)]) for name in spoken]
        named = [(r"[\W_]*".join([*words[:-1], _in_any_number(words[-1])]), signs) for words, signs in found if words]
        return [re.compile(rf"(?:[{signs[0]}]\s*)*{words}(?:\s*[{signs[-1]}])*(?<!\s)") for words, signs in named]

    @property
    def has_commas(self) -> bool:
        """Whether some cells have a comma that may be of decimals."""
        return self.has_decimal_commas and bool(self.coded[1].str.contains(",").any())

    @property
    def numbers(self) -> pd.Series | None:
        """Its cells as numbers, missing where they are none; None if most are none. Refuses two readings, and several units."""
        return self.amounts[0]

    def holds(self, kind: str, *, in_doubt: bool = False) -> bool:
        """Whether it holds `numbers` or `dates` that are read in one way only; `in_doubt` also in two, or what is like a date."""
        try:
            is_like = in_doubt and kind == "dates" and self._sample.str.match(_DAY_IN_FIGURES).mean() > 0.5
            return getattr(self, kind) is not None or bool(is_like)
        except InvalidInputError:
            return in_doubt

    @cached_property
    def amounts(self) -> tuple[pd.Series | None, str]:
        """Its numbers, and the unit of its cells, such as `km` or `%`; empty if they are plain."""
        sample = self._sample
        if not sample.str.fullmatch(_AMOUNT).any() or sample.str.fullmatch(CODE).any():
            return None, ""
        if (read := self._figures) is not None:
            if read.abs().sum() >= (2**53 if (read.dropna() % 1 == 0).all() else 2**53 / 10_000):  # four decimals are shown
                raise InvalidInputError(f"{self} holds numbers that are too large to be added up exactly here.")
            return read, ""
        codes, texts = self.coded
        if any(map(re.compile(CODE).fullmatch, texts)):
            return None, ""
        parts = _lines_of(_AMOUNT, texts)  # in brackets bookkeepers write what is negative
        written = [("-" * bool(opened) + sign + number) * (bool(opened) == bool(end)) for opened, sign, _, number, _, end in parts]
        written = [re.sub(r"(?<=\d)['’ ](?=\d{3}(?!\d))", "", one) if re.search("['’ ]", one) else one for one in written]
        written = [one.replace("−", "-") for one in written]
        points = _floats("\n".join(_lines_of(f"({_POINT})", written)).replace(",", ""))
        commas = _floats("\n".join(_lines_of(f"({_COMMA})", written)).translate({ord("."): None, ord(","): "."}))
        read, differs = points.notna() | commas.notna(), points.notna() & commas.notna() & points.ne(commas)
        need_points, need_commas = bool((read & commas.isna()).any()), bool((read & points.isna()).any())
        in_doubt = differs.any() and not need_points and need_commas != self.has_decimal_commas
        if in_doubt or (need_points and need_commas):
            example = texts[differs if in_doubt else read & points.isna()].iloc[0]
            said = f"{self} can be read in two ways: {example!r} has a sign for thousands or decimals."
            raise InvalidInputError(said, hint="Write all its numbers in one way, without a sign for thousands.")
        values = commas if need_commas else points
        spread = pd.Series(values.array.take(codes, allow_fill=True))
        if spread.count() * 2 <= (~self.is_missing).sum():
            return None, ""
        if other := next(iter(texts[values.isna() & texts.str.contains(r"\d")]), ""):  # an amount too, in words or signs of its own
            raise InvalidInputError(f"{self} holds numbers, and {other!r}, which is not read as one.", hint=_ONE_WAY)
        given = (parts[at] for at in values.dropna().index)
        units = {before + re.sub(r"(?<=\w{3})s$", "", after) for _, _, before, _, after, _ in given}  # a day, two days
        if len(units) > 1:
            kinds = " and ".join(sorted(repr(unit) if unit else "no unit" for unit in units)[:4])
            raise InvalidInputError(f"{self} mixes numbers with {kinds}; nothing is converted.", hint=_ONE_WAY)
        return spread, str(units.pop())

    @property
    def units(self) -> list[str]:
        """What is said with its numbers: the unit of its cells, or else of its name: in brackets, or its last word of several."""
        words = name_words(self.name)
        named = [] if "per" in words or re.search(r"[(\[]", self.name) else words[1:][-1:]
        named += [*re.findall(r"[(\[](.+?)[)\]]", self.name), *["%"] * ("%" in self.name)]
        units = [self.amounts[1]] if self.amounts[1] else named  # those of both may differ, and nothing is converted
        return [unit for unit in dict.fromkeys(units + ["per cent", "percent"] * ("%" in units)) if unit]

    def missing(self, rows: pd.Series | bool = True) -> str:
        """How cells of some rows are written that are missing and not empty: as `n/a`, and among numbers and dates as `-`."""
        return ", ".join(map(repr, self.as_written().iloc[:, 0][self.is_missing & rows].dropna().unique()[:3]))

    @cached_property
    def dates(self) -> pd.Series | None:
        """Its cells as dates, missing where they are none; None if most are none. Refuses what may begin with day or month."""
        if not self._sample.str.match(_LIKE_A_DATE).any():
            return None
        codes, texts = self.coded
        texts = texts.mask(texts.str.fullmatch(r"\d{4}"), "")  # a year beside days or months is no day of it
        forms, has_times = _DATE_FORMATS, texts.str.contains(":").any()
        timed = [f"{form} {at}" for form in forms[1:] for at in ("%H:%M", "%H:%M:%S") if has_times]
        zones = texts.str.extract(r"\d:\d.*?(Z|[+-]\d\d:?(?:\d\d)?)?$")[0]
        if len(found := zones[texts.str.contains(r"\d:\d")].fillna("none").unique()) > 1:
            raise InvalidInputError(f"{self} has times of several zones: {', '.join(found[:3])}.", hint="Write all in one.")
        readings = [pd.to_datetime(texts.str.slice(0, 19), format=forms[0], errors="coerce")]
        readings += [pd.to_datetime(texts, format=form, errors="coerce") for form in (*forms[1:], *timed)]
        readings = sorted((one for one in readings if one.notna().any()), key=lambda one: -one.count())
        for one, other in combinations(readings, 2):
            differs = one.notna() & other.notna() & one.ne(other)
            if differs.any() and (one.notna() & other.isna()).any() == (other.notna() & one.isna()).any():
                said = f"{self} can be read in two ways: {texts[differs].iloc[0]} may begin with the day or with the month."
                raise InvalidInputError(said, hint="Write its dates as 2024-03-31.")
        dates = reduce(pd.Series.fillna, readings, pd.Series(pd.NaT, index=texts.index, dtype="datetime64[us]"))
        if dates.count() * 2 <= len(texts):
            return None
        return pd.Series(dates.array.take(codes, allow_fill=True))

    @cached_property
    def grain(self) -> float:
        """What all its numbers are multiples of."""
        assert self.numbers is not None
        decimals = 10.0 ** self._sample.str.extract(r"[.,](\d+)\D*$")[0].str.len().fillna(0).max()
        whole = np.gcd.reduce(np.round(self.numbers.dropna().to_numpy() * decimals).astype(np.int64))
        return float(max(whole, 1) / decimals)

    @property
    def months(self) -> list[str]:
        """Its cells that are months such as 2024-03, of which no day is known."""
        return [] if self.dates is None else self.coded[1][self.coded[1].str.fullmatch(r"\d{4}-\d\d")].to_list()

    @property
    def different(self) -> list[str]:
        """Its different cells, in order."""
        return self.coded[1].to_list()

    @property
    def unread(self) -> list[str]:
        """Those of some of its cells that are no numbers, such as `1,23,456`."""
        plain = self._sample.str.replace(r"(?<=\d)['’ ](?=\d{3}\b)", "", regex=True)
        return self._sample[~(self._sample.str.fullmatch(_AMOUNT) & plain.str.fullmatch(rf"\D*(?:{_POINT}|{_COMMA})\D*"))].to_list()

    @cached_property
    def _by_words(self) -> dict[str, list[str]]:
        """Its different cells by their folded words, joined."""
        cells = defaultdict[str, list[str]](list)
        for cell in self.different:
            cells[joined(fold(cell))].append(cell)
        cells.pop("", None)
        return cells

    def values(self, said: str) -> tuple[str, ...]:
        """The cells that folded words say; signs count between digits alone, and a last `s` does not."""
        said = joined(said)
        spoken = (said, said.removesuffix("s"), f"{said}s")
        return next((tuple(self._by_words[words]) for words in spoken if words in self._by_words), ())

    def tells_units(self, other: "Column", is_beside: bool) -> bool:
        """Whether it tells in which unit the numbers of another are: by name or by signs of currencies; codes beside it may."""
        some = self._sample.unique().tolist()
        says_so = _UNIT_WORDS & _in_one_too(name_words(self.name))
        if says_so or all(len(one) == 1 and category(one) == "Sc" for one in some):
            return not self.holds("numbers", in_doubt=True)
        are_codes = is_beside and 2 * len(some) <= len(self._sample) and all(re.fullmatch("[A-Z]{3}", one) for one in some)
        return are_codes and other.numbers is not None and bool((other.numbers.dropna() % 1).any())

    @property
    def why_rate(self) -> str:
        """Why its figures must not be added up; empty when they may."""
        of_year = "" if self._sample.str.fullmatch(r"[12]\d{3}").any() else "year"  # such as visits of last year
        words = [word for word in name_words(self.name) if word != of_year]
        says_so = _NOT_ADDED & _in_one_too(words) or (words[1:] and words[0] in ("unit", "hourly"))
        if says_so or any(word.endswith("code") for word in words) or re.search(r"[%°]|[^\W\d]/[^\W\d]", self.name):
            return "by its name"
        numbers, unit = self.amounts
        if re.search("[%°/]", unit):
            return f"by the {unit!r} of its cells"
        given = pd.Series() if numbers is None else numbers.dropna()
        is_share = not unit and not re.search(r"[(\[]", self.name) and given.between(0, 1).all() and (given % 1).any()
        return "since all its values lie between 0 and 1" if is_share else ""

    @property
    def is_numeric(self) -> bool:
        """Whether all its cells are numbers that are written in figures alone."""
        return self._figures is not None

    @property
    def is_of_time(self) -> bool:
        """Whether some of its cells are like a date or a year."""
        return bool(self._sample.str.match(rf"{_LIKE_A_DATE}|[12]\d{{3}}$").any())

    @property
    def doubt(self) -> pd.Series:
        """A cell as it is written, if all have three digits behind one sign, which may be of decimals or of thousands."""
        return self._sample.head(int(self._sample.str.fullmatch(r"\D*[1-9]\d{0,2}[.,]\d{3}\D*").all()))

    @property
    def is_amount(self) -> bool:
        """Whether its numbers count or measure something: they have decimals or are many, or its name has a plural's `s`."""
        numbers = self.numbers.dropna() if self.holds("numbers") and self.numbers is not None else pd.Series()
        is_plural = re.search(r"\w{2}[^\W_su]s(?:\s*[(\[].*)?$", fold(self.name))
        are_many = max(_GROUPS, len(numbers) / 2) < numbers.nunique() and not self.why_rate
        return bool(len(numbers)) and bool(is_plural or (numbers % 1).any() or are_many)

    @cached_property
    def _given(self) -> pd.Series:
        return self.cells[~self.is_missing] if self.is_missing.any() else self.cells

    @cached_property
    def _sample(self) -> pd.Series:
        """Some of its cells: what none of them is like, the column is not taken for."""
        return self._given.head(_SAMPLE_ROWS)

    @cached_property
    def coded(self) -> tuple[Any, pd.Series]:
        """Which of its different cells each row holds (-1: none), and those. A million rows hold few."""
        codes, unique = pd.factorize(self.cells)
        return codes, pd.Series(np.asarray(unique, dtype=object), dtype=object)

    @cached_property
    def _figures(self) -> pd.Series | None:
        """Its cells as numbers, if each is written in figures alone, with a point for decimals if that is sure."""
        is_repetitive = self._sample.duplicated().mean() > 0.5  # each different one is read once then
        given = self.coded[1] if is_repetitive else self._given.astype(object)
        lines = "\n".join(["", *given.to_list()]).encode()
        is_other = lines.translate(None, b"\n-0123456789" + b"." * (not self.has_decimal_commas))
        if is_other or re.search(rb"\n0\d", lines) or b"0" * 16 in lines.translate(_ZEROS):
            return None  # what has 16 digits, or begins with 0, may be a code
        try:
            read = given.astype(float)
        except ValueError:
            return None
        return pd.Series(read.array.take(self.coded[0], allow_fill=True)) if is_repetitive else read.reindex(self.cells.index)


def name_words(name: str) -> list[str]:
    """Split `unitPrice`, `unit_price` or `Unit price` into comparable words."""
    return _WORD.findall(fold(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)))


def _in_one_too(words: list[str]) -> set[str]:
    """The words of a name, and all of them as one: capitals part `pH` and `UoM`, too."""
    return {*words, "".join(words)}


def joined(text: str) -> str:
    """Words without the signs between them, but for those between digits: `LS-4` is `LS4`, and `5.5` is not `55`."""
    return re.sub(r"(?<![\d\W_])[\W_]+|(?<=\d)[\W_]++(?!\d)", "", text)


def _in_any_number(word: str) -> str:
    """A pattern of a word in the singular or the plural, whichever of them it is."""
    one = re.sub(r"(?<=\w{3})(?<![su])s$", "", word)
    return re.sub("(?:y|ie)$", "(?:y|ie)", re.sub("(x|[cs]h|ss)e$", r"\1e?", one)) + r"(?:e?s)?(?![^\W_])"


def _lines_of(pattern: str, texts: Iterable[str]) -> list[Any]:
    """What the groups of a pattern find in each text, at once for all; they are empty if it does not fit the whole of one."""
    return re.findall(rf"^(?:{pattern}|.*)$", "\n".join(text.replace("\n", " ") for text in texts), re.MULTILINE)


def _floats(lines: str) -> pd.Series:
    return pd.Series(pd.to_numeric(np.array(lines.split("\n"), dtype=object), errors="coerce"), dtype=float)


@dataclass(frozen=True)
class Table:
    """A file's rows. Two columns may have one name."""

    name: str
    columns: tuple[Column, ...]
    rows: int
    assumed: str
    """The encoding in which it was read, if nothing tells that it is the right one."""

    @property
    def remarks(self) -> list[int]:
        """Rows of a first cell alone, of several: they may be no rows, which nobody can tell but who wrote them."""
        given = [~one.is_missing for one in self.columns]
        return np.flatnonzero((np.sum(given, axis=0) == 1) & given[0]).tolist() if len(given) > 1 else []

    def doubts(self, known: Collection[Column]) -> dict[int, str]:
        """Rows that may hold figures of others, and why: a cell calls them so, unless of a known column, or they lack one.

        That is the first, or up to three last ones, without a cell that all others have. Who lacks it and has words in two others
        is a row like them: an order that has not come.
        """
        found, last = dict[int, str](), [*range(max(1, self.rows - _LAST), self.rows)]
        for column in self.columns:
            gaps = np.flatnonzero(column.is_missing).tolist()
            if gaps in ([0], last[-len(gaps) :]) and len(gaps) + _LAST <= self.rows:
                cells = {at: [one.cells[at] for one in self.columns if not one.is_missing[at]] for at in gaps}
                few = [at for at in gaps if sum(not re.fullmatch(_AMOUNT, cell) for cell in cells[at]) < 2]
                found |= dict.fromkeys(few, f"without {column}, which all others have")
        looked_at = [*range(self.rows)] if self.rows <= CHECKED else [0, *last]
        for column in self.columns:
            names = column.cells.iloc[looked_at]
            once = names.str.fullmatch(_CALLED_A_TOTAL, na=False) & ~names.duplicated(keep=False)
            called = once | names.str.fullmatch(_CALLED_A_FIGURE, na=False)
            found |= {at: f"called {column.cells[at]!r}" for at in called.index[called] if at not in found and column not in known}
        return found

    def only(self, rows: list[int]) -> "Table":
        """Some of its rows, counted anew."""
        columns = (replace(one, cells=one.cells.iloc[rows].reset_index(drop=True)) for one in self.columns)
        return replace(self, columns=tuple(columns), rows=len(rows))

    def runs(self, column: Column) -> str:
        """Of which other column each number of one is the sum so far, such as a balance's; empty if of none."""
        numbers = column.numbers
        if numbers is None or not 3 < self.rows <= CHECKED or column.is_missing.any():
            return ""
        for one in self.holding("numbers"):
            steps = (numbers if one.numbers is None else one.numbers).fillna(0)[1:]
            is_sum = one is not column and steps.nunique() > 1
            if is_sum and np.allclose(np.diff(numbers.to_numpy()), steps, rtol=0, atol=column.grain / 2):
                return str(one)
        return ""

    def holding(self, kind: str, *, in_doubt: bool = False) -> list[Column]:
        """The columns that hold `numbers` or `dates`; those that can be read in two ways if they are asked for `in_doubt`."""
        return [column for column in self.columns if column.holds(kind, in_doubt=in_doubt)]


def read_table(path: Path) -> Table:
    """Read a delimited file with a header, or JSON records: its cells as they are written."""
    name, (text, assumed) = path.name, read_and_tell(path)
    text, delimiter = _records(name, text) if name.lower().endswith(RECORDS) else (text, _delimiter(name, text[:65_536]))
    if named := re.match(r"sep=(.)\r?\n", text):  # a line for spreadsheets
        text, delimiter = text[named.end() :], named[1]
    head = (text := _tidy(text, delimiter))[:65_536]
    titles = [title.strip() for title in next(row for row in csv.reader(io.StringIO(head), delimiter=delimiter) if any(row))]
    places = range(len(titles))
    read = partial(_read, name, text.encode(), names=places, sep=delimiter)
    if text.rstrip().count(f"\n{text.strip().partition(chr(10))[0]}\n") and len(titles) > 1:
        raise InvalidInputError(f"{name} has its header in it again, which is no row.", hint="Take it out of the file.")
    if (first := read(nrows=_SAMPLE_ROWS)).empty:
        raise InvalidInputError(f"{name} has a header but no rows.", hint=f"Its columns: {', '.join(titles)}.")
    _refuse_other_heads(name, titles, first)
    unnamed = [at for at in places if re.fullmatch(_NO_NAME, titles[at]) and first[at].str.fullmatch(_NO_NAME).any()]
    for title in (titles[at] for at in unnamed):
        hint = "Write the names of the columns above it."
        raise InvalidInputError(f"The first line of {name} is taken for the names of columns, and {title!r} is none.", hint=hint)
    measured = [at for at in places if _is_measured(first[at]).mean() > 0.5]
    frame = read(na_values=dict.fromkeys(measured, NOTHING))
    _refuse_short_lines(name, text, delimiter, len(frame), titles)
    _refuse_a_second_head(name, text, delimiter, frame[measured])

    as_written = partial(read, keep_default_na=False, na_values=[""])
    columns = tuple(
        Column(title or f"column {at + 1}", frame[at], partial(as_written, usecols=[at]), delimiter != ",")
        for at, title in enumerate(titles)
        if title or frame[at].notna().any()
    )
    return Table(name, columns, len(frame), assumed)


def _is_measured(cells: pd.Series) -> pd.Series:
    """Which cells that are given are amounts or dates."""
    return cells[~cells.isin(NOTHING)].dropna().str.fullmatch(_MEASURED)


def _refuse_other_heads(name: str, titles: list[str], first: pd.DataFrame) -> None:
    """Refuse a title above the names of columns, and names in two lines: the second one would be a row."""
    hint = "Write the names of all columns, and nothing else, in the first line."
    if lost := [at for at in range(1, len(titles)) if not titles[at] and first[at].notna().any()]:
        named = f"names but its first column, {titles[0]!r}" if not any(titles[1:]) else f"names no column {lost[0] + 1}"
        example = first[lost[0]].dropna().iloc[0]
        raise InvalidInputError(f"The first line of {name} {named}; without a name are cells such as {example!r}.", hint=hint)
    if len(set(titles)) < len(titles) and pd.isna(first[0][0]):
        raise InvalidInputError(f"The first line of {name} has names twice, and the next one no first cell.", hint=hint)
    kinds = [kinds for at in first if len(kinds := _is_measured(first[at])) > 1 and kinds.iloc[1:].all() and kinds.index[0] == 0]
    if kinds and not any(of[0] for of in kinds):
        row = ", ".join(first.iloc[0].dropna())
        raise InvalidInputError(f"The second line of {name}, {row!r}, has words where all others have amounts.", hint=hint)


def _refuse_short_lines(name: str, text: str, delimiter: str, rows: int, titles: list[str]) -> None:
    """Refuse a line that has fewer cells than the header, such as a remark below the table: pandas takes it for a row."""
    bare = re.sub('"[^"]*"', "", text) if '"' in text else text
    if bare.count(delimiter) == (rows + 1) * (len(titles) - 1):  # of a million rows each is not looked at
        return
    for cells in csv.reader(io.StringIO(text), delimiter=delimiter):
        if 0 < len(cells) < len(titles):
            said = f"{name} has a line of {len(cells)} instead of {len(titles)} cells: {delimiter.join(cells)[:80]!r}."
            raise InvalidInputError(
                said, hint="Complete it, or take it out of the file, with a table below it: it would count as a row."
            )


def _refuse_a_second_head(name: str, text: str, delimiter: str, measured: pd.DataFrame) -> None:
    """Refuse a line with words of its own where others have amounts or dates, in several columns or below an empty line."""
    if measured.empty or len(measured) > CHECKED:
        return
    is_word = measured.iloc[:, 0].str.fullmatch(r"\D*[^\W\d]\D*", na=False)
    for at in is_word.index[is_word]:
        cells = measured.loc[at].to_list()
        are_names = len({*cells}) == len(cells) and all(isinstance(one, str) and not re.search(r"\d", one) for one in cells)
        if are_names and (len(cells) > 1 or re.search(rf"\n\n[^\n]*{re.escape(cells[0])}[^\n]*\n", text)):
            if all((measured[one] == cell).sum() == 1 for one, cell in zip(measured, cells, strict=True)):
                said = (
                    f"{name} has a line below others, with {', '.join(map(repr, cells))}, that may name columns of a second table."
                )
                raise InvalidInputError(said, hint="Write one table in a file, and fill in, or leave empty, what has no number.")


def _tidy(text: str, end: str) -> str:
    """Take away blanks of any kind behind cells and in runs, and lines without a cell: what looks the same is the same."""
    text = text if text.isascii() else re.sub(r"[^\S\n\t ]", " ", text)
    if text.startswith(end) or f"\n{end}" in text:
        text = re.sub(rf"(?m)^{re.escape(end)}[{re.escape(end)} ]*(?:\n|\Z)", "\n", text).lstrip("\n")
    signs = ("  ", f" {end}", f' "{end}', " \n", ' "\n') if " " in text else ()  # a million rows are not searched in vain
    return re.sub(rf' +(?="?(?:[{re.escape(end)}\n]|$))|(?<= ) +', "", text) if any(sign in text for sign in signs) else text


def _read(name: str, data: bytes, **options: Any) -> pd.DataFrame:
    """Parse the whole of a file: however few of its columns are kept, the length of each row is checked."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame: pd.DataFrame = pd.read_csv(
                io.BytesIO(data), header=0, index_col=False, skipinitialspace=True, dtype=str, **options
            )
            return frame
    except (pd.errors.ParserError, pd.errors.ParserWarning, ValueError) as error:
        first = data.partition(b"\n")[0][:80].decode(errors="replace").strip()
        hint = f"The first line is taken for the names of columns: {first!r}. Each line has as many cells as it has."
        said = str(error).strip().rpartition("error: ")[2].rstrip(".")
        if isinstance(error, pd.errors.ParserWarning):
            said = "lines have more cells than the first one, which may be a remark above the names"
        raise InvalidInputError(f"{name} cannot be read as a table: {said}.", hint=hint) from None


def _records(name: str, text: str) -> tuple[str, str]:
    """A list of records, or one in each line, as a delimited text, and its delimiter."""
    lines, records = list(filter(str.strip, text.splitlines())), list[Any]()
    in_lines = len(lines) > 1 and re.fullmatch(r"\s*\{.*\}\s*", lines[0])
    for line in lines if in_lines else [text]:
        try:
            records.append(json.loads(line))
        except ValueError as error:
            if in_lines:
                raise InvalidInputError(f"A line of {name} is no record: {line.strip()[:80]!r}.", hint=f"{error}") from None
    rows = records if in_lines else next((one for one in records if isinstance(one, list)), [])
    are_flat = all(isinstance(row, dict) and not any(isinstance(cell, list | dict) for cell in row.values()) for row in rows)
    if not (are_flat and any(rows)):
        raise InvalidInputError(f"{name} is not a list of flat records.", hint='Send [{"name": "A", "n": 1}, …], or a CSV file.')
    return pd.DataFrame(rows, dtype=object).to_csv(index=False), ","


def _delimiter(name: str, head: str) -> str:
    lines = [line for line in head.splitlines() if line.strip()][:20]
    widths = {sign: [len(row) for row in csv.reader(lines, delimiter=sign)] for sign in ",;\t|"}
    # A real delimiter cuts the header and the rows alike; a decimal comma cuts only the rows.
    alike = {sign: width[0] for sign, width in widths.items() if width[0] > 1 and width.count(width[0]) * 2 >= len(width)}
    for sign, width in widths.items() if not alike else ():
        usual = max(width, key=width.count)
        if usual > (2 if sign == "," else 1) and width.count(usual) * 2 >= len(width):  # a comma may be a decimal one
            said = f"The first line of {name}, {lines[0][:80]!r}, does not name the columns of those below."
            raise InvalidInputError(said, hint="Take away what stands above the line with the names of the columns.")
    return max(alike, key=alike.__getitem__, default=",")
