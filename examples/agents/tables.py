"""Read a table as it is written. What its cells are is asked of one column when needed; nothing is repaired in silence."""

import csv
import io
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from unicodedata import category

import iso4217
import numpy as np
import pandas as pd

from ioa import InvalidInputError
from ioa.files import read_and_tell
from request import fold

CHECKED, _SAMPLE_ROWS, _FEW = 50_000, 1_000, 10
_NOTHING = [sign * times for sign in "-–—−.…?" for times in (1, 2, 3)]
_WORD = re.compile(r"[^\W_]+")
_AMOUNT = r"([-+−])?([€$£¥₹])?[^\S\n]*(\.?\d[\d.,]*)[^\S\n]*([€$£¥₹%]|°?[^\W\d_][^\s\d.,()]*[²³]?)?"
CODE = r"0\d[\d.,]*|\d+[eE]\d+|[-+]?\d{16,}"  # no number: zeros count, `10E2` is no thousand, or it is too long to be exact
_POINT, _COMMA = r"[-+]?(?:(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)", r"[-+]?(?:[1-9]\d{0,2}(?:\.\d{3})+|\d+)(?:,\d+)?"
_READ = _AMOUNT.replace(r"\.?\d[\d.,]*", f"{_POINT}|{_COMMA}")
_IN_WORDS = r"\d\d?[ -][A-Za-z]{3,9}[ -]\d{4}|[A-Za-z]{3,9} \d\d?, \d{4}"
LIKE_A_DATE = rf"(?:\d{{4}}[-/]\d\d?[-/]\d\d?|\d\d?[./-]\d\d?[./-](?:\d\d)?\d\d|{_IN_WORDS})(?=[ T]|$)"
_NO_NAME = rf"(?![12]\d{{3}}$)[-+]?\d*[.,]?\d+|(?:{LIKE_A_DATE}).*"  # a year may well be one
_NO_FIGURE = r"(?:\D|(?<=[^\W\d])\d+)+"  # `m3/h` is none
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_DATE_FORMATS = "%Y-%m-%d|%d.%m.%Y|%Y/%m/%d|%d/%m/%Y|%m/%d/%Y|%d %b %Y|%d %B %Y|%d-%b-%Y|%b %d, %Y|%B %d, %Y".split("|")
WRITTEN = "as 1234.5, all with one unit behind them (5 km), or one sign before them (€5), or neither"
_ONE_WAY = f"Write all its numbers in one way: {WRITTEN}."
_RATES, _CODES = "percent percentage pct rate ratio share margin price per average avg mean median", "id year rank zip"
_STATES = "temperature temp pressure humidity speed velocity density voltage concentration ph age rating grade index level"
_NOT_ADDED = frozenset(f"{_RATES} {_CODES} {_STATES} latitude longitude altitude elevation".split())
_CURRENCIES = frozenset(one.code for one in iso4217.Currency)
_UNIT_WORDS = frozenset("currency currencies unit units uom".split())  # call a column that tells of the unit of others


@dataclass(eq=False)
class Column:
    """One column: its cells as they stand in the file, and what they are as numbers, dates or words."""

    name: str
    cells: pd.Series
    as_written: Callable[[], pd.DataFrame]  # reads its cells again: only those that are empty are missing then
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
    def numbers(self) -> pd.Series | None:
        """Its cells as numbers, missing where they are none; None if most are none. Refuses two readings, and several units."""
        return self.amounts[0]

    def holds(self, kind: str, *, in_doubt: bool = False) -> bool:
        """Whether it holds `numbers` or `dates` that are read in one way only; `in_doubt` also in two."""
        try:
            return getattr(self, kind) is not None
        except InvalidInputError:
            return in_doubt

    @cached_property
    def amounts(self) -> tuple[pd.Series | None, str]:
        """Its numbers, and the unit of its cells, such as `km` or `%`; empty if they are plain."""
        if not self._sample.str.fullmatch(_AMOUNT).any() or self._sample.str.fullmatch(CODE).any():
            return None, ""
        if (read := self._figures) is not None:
            if read.abs().sum() >= (2**53 if (read.dropna() % 1 == 0).all() else 2**53 / 10_000):  # four decimals are shown
                raise InvalidInputError(f"{self} holds numbers that are too large to be added up exactly here.")
            return read, ""
        codes, texts = self.coded
        if any(map(re.compile(CODE).fullmatch, texts)):
            return None, ""
        parts = _lines_of(_AMOUNT, texts)
        written = [sign.replace("−", "-") + number for sign, _, number, _ in parts]
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
        units = {before + re.sub(r"(?<=\w{3})s$", "", after) for _, before, _, after in given}  # a day, two days
        if len(units) > 1:
            kinds = " and ".join(sorted(repr(unit) if unit else "no unit" for unit in units)[:4])
            raise InvalidInputError(f"{self} mixes numbers with {kinds}; nothing is converted.", hint=_ONE_WAY)
        return spread, str(units.pop())

    def missing(self, rows: pd.Series | bool = True) -> str:
        """How cells of some rows are written that are missing and not empty, such as `n/a` or `-`."""
        return ", ".join(map(repr, self.as_written().iloc[:, 0][self.is_missing & rows].dropna().unique()[:3]))

    @cached_property
    def dates(self) -> pd.Series | None:
        """Its cells as dates, all in one form, missing where they are none; None if most are none. Refuses two readings."""
        if not self._sample.str.match(LIKE_A_DATE).any():
            return None
        codes, texts = self.coded
        given = texts[texts.str.match(LIKE_A_DATE)]
        if len(given) * 2 <= len(texts):
            return None
        zones = given.str.extract(r"\d:\d.*?(Z|[+-]\d\d:?(?:\d\d)?)?$")[0].unique()
        written = given.str.replace("T", " ").str.slice(0, 19) if given.iloc[0][4:5] == "-" else given
        time = ("", " %H:%M", " %H:%M:%S")[min(2, written.iloc[0].count(":"))]
        forms = [form for form in _DATE_FORMATS if _days(written[:_SAMPLE_ROWS], form + time).notna().all()]
        readings = [read for form in forms if (read := _days(written, form + time)).notna().all()]
        if not readings or len(zones) > 1:
            most = max((_days(written, form + time) for form in _DATE_FORMATS), key=pd.Series.count)
            some = ", ".join(map(repr, given[most.isna()].head(2) if most.isna().any() else given.iloc[[0, -1]]))
            said = f"{self} has dates that are not read, or not all in one form and zone: {some}."
            raise InvalidInputError(said, hint="Write all as 2024-03-31, or as 2024-03-31 08:00 and in one zone.")
        if len(readings) > 1 and (differs := readings[0] != readings[1]).any():
            said = f"{self} can be read in two ways: {given[differs].iloc[0]} may begin with the day or with the month."
            raise InvalidInputError(said, hint="Write its dates as 2024-03-31.")
        return pd.Series(readings[0].reindex(texts.index).array.take(codes, allow_fill=True))

    @cached_property
    def grain(self) -> float:
        """What all its numbers are multiples of."""
        assert self.numbers is not None
        decimals = 10.0 ** self._sample.str.extract(r"[.,](\d+)\D*$")[0].str.len().fillna(0).max()
        numbers = np.round(self.numbers.dropna().to_numpy() * decimals).astype(np.int64)
        whole = np.gcd.reduce(numbers) if len(numbers) > _FEW else 1  # of few numbers it says nothing
        return float(max(whole, 1) / decimals)

    @property
    def different(self) -> list[str]:
        """Its different cells, in order."""
        return self.coded[1].to_list()

    @property
    def example(self) -> str:
        """A cell that is no number or date, if there is one."""
        others = self._sample[~self._sample.str.fullmatch(rf"{_READ}|(?:{LIKE_A_DATE}).*")]
        return next(iter(others), next(iter(self.different), ""))

    @cached_property
    def values(self) -> dict[str, list[str]]:
        """Its different cells by what they are folded: those that differ by case and accents alone are one value."""
        cells = defaultdict[str, list[str]](list)
        for cell in self.different:
            cells[fold(" ".join(cell.split()))].append(cell)
        return dict(cells)

    def tells_units(self) -> bool:
        """Whether it tells in which unit the numbers beside it are: by its name, or by signs or codes of currencies alone."""
        if _UNIT_WORDS & {*(words := name_words(self.name)), "".join(words)}:
            return not self.holds("numbers", in_doubt=True)
        return all(one in _CURRENCIES or (len(one) == 1 and category(one) == "Sc") for one in self._sample.unique())

    @property
    def why_rate(self) -> str:
        """Why its figures must not be added up; empty when they may."""
        of_year = "" if self._sample.str.fullmatch(r"[12]\d{3}").any() else "year"  # such as visits of last year
        words = [word for word in name_words(self.name) if word != of_year]
        says_so = _NOT_ADDED & {*words, "".join(words)} or (words[1:] and words[0] in ("unit", "hourly"))
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
        """Whether some of its cells are like a date, a month or a year."""
        return bool(self._sample.str.match(rf"{LIKE_A_DATE}|[12]\d{{3}}(?:-\d\d)?$").any())

    def is_in_blocks(self, others: Iterable["Column"]) -> bool:
        """Whether it may stand in the first row of each block alone, as gaps, another column's runs or ditto marks say."""
        given, is_sign = ~self.is_missing.to_numpy(), [not re.search(r"[\w€$£¥₹]", one) for one in self._sample]
        runs = (np.diff(one.coded[0], prepend=-2) != 0 for one in others if given.sum() < len(given) - 1 and one is not self)
        is_first = given[0] and (1 < given.sum() <= len(given) / 2 or any((given == run).all() for run in runs))
        return bool(is_first or (any(is_sign) and not is_sign[0]))

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


def _in_any_number(word: str) -> str:
    one = re.sub(r"(?<=\w{3})(?<![su])s$", "", word)
    return re.sub("(?:y|ie)$", "(?:y|ie)", re.sub("(x|[cs]h|ss)e$", r"\1e?", one)) + r"(?:e?s)?(?![^\W_])"


def _lines_of(pattern: str, texts: Iterable[str]) -> list[Any]:
    """What the groups of a pattern find in each text, at once for all; they are empty if it does not fit the whole of one."""
    return re.findall(rf"^(?:{pattern}|.*)$", "\n".join(text.replace("\n", " ") for text in texts), re.MULTILINE)


def _floats(lines: str) -> pd.Series:
    return pd.Series(pd.to_numeric(np.array(lines.split("\n"), dtype=object), errors="coerce"), dtype=float)


def _days(texts: pd.Series, form: str) -> pd.Series:
    return pd.to_datetime(texts, format=form, errors="coerce")


@dataclass(frozen=True)
class Table:
    """A file's rows. Two columns may have one name."""

    name: str
    columns: tuple[Column, ...]
    rows: int
    assumed: str  # the encoding in which it was read, if nothing tells that it is the right one

    def holding(self, kind: str, *, in_doubt: bool = False) -> list[Column]:
        """The columns that hold `numbers` or `dates`; those that can be read in two ways if they are asked for `in_doubt`."""
        return [column for column in self.columns if column.holds(kind, in_doubt=in_doubt)]


def read_table(path: Path) -> Table:
    """Read a delimited file with a header: its cells as they are written."""
    name, (text, assumed) = path.name, read_and_tell(path)
    delimiter = _delimiter(text[:65_536])
    text = _tidy(text, delimiter)
    titles = [title.strip() for title in next(filter(any, csv.reader(io.StringIO(text[:65_536]), delimiter=delimiter)))]
    read = partial(_read, name, text.encode(), names=range(len(titles)), sep=delimiter)
    frame = read(na_values=_NOTHING)
    if frame.empty:
        raise InvalidInputError(f"{name} has a header but no rows.", hint=f"Its columns: {', '.join(titles)}.")
    _refuse_short_lines(name, text, delimiter, len(frame), len(titles))
    _refuse_other_heads(name, titles, frame, text)
    as_written = partial(read, keep_default_na=False, na_values=[""])
    columns = tuple(
        Column(title or f"column {at + 1}", frame[at], partial(as_written, usecols=[at]), delimiter != ",")
        for at, title in enumerate(titles)
        if title or frame[at].notna().any()
    )
    return Table(name, columns, len(frame), assumed)


def _refuse_other_heads(name: str, titles: list[str], frame: pd.DataFrame, text: str) -> None:
    """Refuse a first line that does not name the columns, and other lines that do: names in two lines, or of a second table."""
    first, hint = frame.head(_SAMPLE_ROWS), "Write the names of all columns, and nothing else, in the first line."
    if lost := [at for at in range(1, len(titles)) if not titles[at] and first[at].notna().any()]:
        example = first[lost[0]].dropna().iloc[0]
        raise InvalidInputError(f"The first line of {name} does not name the column of {example!r}.", hint=hint)
    kinds = pd.DataFrame({at: first[at].dropna().str.fullmatch(rf"{_AMOUNT}|(?:{LIKE_A_DATE}).*") for at in first})
    if unnamed := [title for at, title in enumerate(titles) if re.fullmatch(_NO_NAME, title) and kinds[at].dropna().any()]:
        raise InvalidInputError(f"The first line of {name} is taken for names, and {unnamed[0]!r} is none.", hint=hint)
    measured = [at for at in first if kinds[at].mean() > 0.5]
    given = frame[measured].head(CHECKED).dropna(how="all")
    words = given.apply(lambda cells: cells.str.fullmatch(_NO_FIGURE, na=True)).all(axis=1)
    heads = frame[0].isin([change(titles[0]) for change in (str, str.lower, str.upper, str.title)])
    for at in [*frame.index[heads], *words.index[words]]:
        cells = frame[measured].loc[at].dropna().to_list()
        is_second = at == 0 and all(kinds[one][1:].dropna().all() for one in measured)
        is_other = len({*cells}) == len(cells) > 1 or re.search(rf"\n\n[^\n]*{re.escape(cells[0])}", text) if cells else False
        if [str(one).lower() for one in frame.loc[at]] == [*map(str.lower, titles)] or (words.get(at) and (is_second or is_other)):
            said = f"{name} has a line that may name columns: {', '.join(frame.loc[at].dropna())[:80]!r}."
            raise InvalidInputError(said, hint=f"{hint} Leave empty what has no number.")


def _refuse_short_lines(name: str, text: str, delimiter: str, rows: int, width: int) -> None:
    """Refuse a line with fewer cells than the header has, such as a remark below the table: pandas takes it for a row."""
    if re.sub('"[^"]*"', "", text).count(delimiter) != (rows + 1) * (width - 1):  # of a million rows each is not looked at
        lines = csv.reader(io.StringIO(text), delimiter=delimiter)
        for cells in (cells for cells in lines if 0 < len(cells) < width):
            said = f"{name} has a line of {len(cells)} instead of {width} cells: {delimiter.join(cells)[:80]!r}."
            raise InvalidInputError(said, hint="Complete it, or take it out of the file: it would count as a row.")


def _tidy(text: str, end: str) -> str:
    """Take away blanks of any kind behind cells and in runs, and lines without a cell: what looks the same is the same."""
    text = re.sub(r"[^\S\n\t ]" if end == "\t" else r"[^\S\n ]", " ", text) if "\t" in text or not text.isascii() else text
    if text.startswith((end, " ")) or f"\n{end}" in text or "\n " in text:
        text = re.sub(rf"(?m)^ *{re.escape(end)}[{re.escape(end)} ]*(?:\n|\Z)", "\n", text).lstrip("\n")
    signs = ("  ", f" {end}", f' "{end}', " \n", ' "\n') if " " in text else ()  # a million rows are not searched in vain
    return re.sub(rf' +(?="?(?:[{re.escape(end)}\n]|$))|(?<= ) +', "", text) if any(sign in text for sign in signs) else text


def _read(name: str, data: bytes, **options: Any) -> pd.DataFrame:
    """Parse the whole of a file: however few of its columns are kept, the length of each row is checked."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            shape: dict[str, Any] = {"header": 0, "index_col": False, "skipinitialspace": True, "dtype": str}
            return pd.DataFrame(pd.read_csv(io.BytesIO(data), **shape, **options))
    except (ValueError, pd.errors.ParserWarning) as error:
        first = data.partition(b"\n")[0][:80].decode(errors="replace").strip()
        hint = f"The first line is taken for the names of columns: {first!r}. Each line has as many cells as it has."
        said = str(error).strip().rpartition("error: ")[2].rstrip(".")
        if isinstance(error, pd.errors.ParserWarning):
            said = "lines have more cells than the first one, which may be a remark above the names"
        raise InvalidInputError(f"{name} cannot be read as a table: {said}.", hint=hint) from None


def _delimiter(head: str) -> str:
    """What parts the header and most of the lines into as many cells, or else these alone: a decimal comma may part them in two."""
    lines = [line for line in head.splitlines() if line.strip()][:20]
    widths = {sign: [len(row) for row in csv.reader(lines, delimiter=sign)] for sign in ",;\t|"}
    usual = {sign: max(width, key=width.count) for sign, width in widths.items()}
    return max(widths, key=lambda sign: (widths[sign][0] == usual[sign] > 1, usual[sign] > 1 + (sign == ","), usual[sign]))
