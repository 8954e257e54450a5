"""The language of questions about a table, read strictly: docs/questions.md is its one page.

A question is read from left to right. Its fixed words are those below; every other word is a column's name, or a value that is
in the table. Nothing is skipped, and nothing is chosen: what can mean two things is refused with both, and what cannot be read
is refused with where it was understood last, and with questions of this table that can be read.
"""

import calendar
import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Any, NamedTuple, NoReturn, TypeVar

import pandas as pd

from ioa import InvalidInputError
from ioa.files import missing
from request import TABLES, fold
from tables import WRITTEN, Column, Table, name_words

_LEAD = r"(?:please )?(?:what(?:'s| is| are| was| were)|compute|calculate|show|give|get|tell|find)?(?: me)?"
FILLER = r"the|an|a|all|please"
_ROWS = r"rows?|records?"
_FIGURES = {
    "count": rf"(?:how many|(?:total )?number of|count(?: of)?)(?: the)? (?:{_ROWS})",
    "nunique": r"(?:how many|(?:total )?number of) (?:distinct|different|unique)",
    "sum": r"sum|total", "mean": r"average|mean", "median": r"median", "std": r"standard deviation",
    "min": r"minimum|min|lowest|smallest|earliest", "max": r"maximum|max|highest|largest|latest",
}  # fmt: skip
_SPOKEN = {
    "count": "number of rows", "nunique": "number of distinct", "sum": "sum of", "mean": "average of", "median": "median of",
    "std": "standard deviation of", "min": "minimum of", "max": "maximum of", "rows": "rows",
}  # fmt: skip
_MOST, _LEAST, _HAVE = "most|highest|largest|latest", "fewest|least|lowest|smallest|earliest", "has|have|had|with"
_COMPARISONS = {
    ">=": r">=|≥|at least|since", "<=": r"<=|≤|at most|until", "!=": r"!=|<>|≠", ">": r">(?=[\s\d.-])|above|over|more than|after",
    "<": r"<(?=[\s\d.-])|below|under|less than|fewer than|before", "=": r"==?|:|in|on", "between": "between|from",
}  # fmt: skip
GRAINS = {"day": "D", "month": "M", "quarter": "Q", "year": "Y"}
PER = r"per|by|grouped by|for every|(?:for|in|of|from) each"
_WHERE = r"(?:that |which )?(?:have|has|had)|where|with|whose"
_LIST = rf"(?:{_LEAD} )?list(?: me)?|(?:please )?(?:show|find|give me|which|what)(?: me)?"
_ARE, _IS = r"are there|there are|are", r"is|are|was|were|of"
_WHEN = {"=": "in|on", ">=": "since", "between": "from|between", ">": "after", "<": "before", "<=": "until"}
_MONTH = "|".join(filter(None, (*calendar.month_name, *calendar.month_abbr))).lower()
_DAY = rf"(?:\d\d? )?(?:{_MONTH}) \d{{4}}|(?:{_MONTH}) \d\d?, ?\d{{4}}"
DATE = rf"(?:\d{{4}}(?:-q[1-4]|-\d\d(?:-\d\d)?)?|{_DAY}|q[1-4] \d{{4}})(?![\w.,-]*\d)"
_DATES = "Dates are written 2024, 2024-03, 2024-03-31, March 2024, 31 March 2024 or Q1 2024; 'in' is said of them, or of the file."
_FIGURES_ARE = (
    "how many rows, number of distinct COLUMN, or total, average, median, minimum, maximum or standard deviation of COLUMN"
)
_NUMBER = r"[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w,.]*\d)"
_NO_VALUE = rf"\W*(?:{FILLER}|(?!0\d){_NUMBER}|{'|'.join(_FIGURES.values())})\W*"
_VALUE_WORDS, _ADVISED_WORDS, _ADVISED = 10, 30, 3

T = TypeVar("T")


class Figure(NamedTuple):
    """What is computed, by the name of pandas: of a column, or of none when rows are counted. Of shown rows several are named."""

    operation: str
    columns: tuple[Column, ...] = ()

    def __str__(self) -> str:
        return f"{_SPOKEN[self.operation]} {', '.join(map(str, self.columns))}".strip()


class Key(NamedTuple):
    """What rows are grouped by: a column, or the day, month, quarter or year of its dates."""

    column: Column
    grain: str = ""

    @property
    def is_of_time(self) -> bool:
        """Whether it has times, as by its name; the days of months are none."""
        has_none = self.grain == "day" and self.column.months
        return not has_none and (self.column.dates is not None or fold(self.column.name) in GRAINS)

    def __str__(self) -> str:
        return f"{self.grain} of {self.column}" if self.grain else self.column.name


class Span(NamedTuple):
    """A number, from itself to itself, or the days of a date such as 2024-03."""

    written: str
    first: Any
    last: Any


@dataclass(frozen=True)
class Condition:
    """Which rows are kept: those whose cell stands to spans, or to values, as `sign` says."""

    column: Column
    sign: str
    spans: tuple[Span, ...] = ()
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.sign == "between" and self.spans[0].first > self.spans[1].last:
            raise InvalidInputError(f"{self} holds of no row: the first is the greater one.", hint="Change them round.")
        if days := [one.written for one in self.spans if one.written.count("-") == 2 and self.column.months]:
            raise InvalidInputError(f"{self.column} holds months, and {days[0]} is a day.", hint=f"Say {days[0][:7]}.")

    def __str__(self) -> str:
        quoted = (f'"{value}"' if re.match(r"(?i)(?:not|missing)\b", value) else value for value in self.values)
        shown = [span.written for span in self.spans] or list(quoted)
        sign = {"=": "is", "!=": "is not", "between": "is between"}.get(self.sign, self.sign)
        return f"{self.column} {sign} {(' and ' if self.sign == 'between' else ' or ').join(shown)}".rstrip()


class Question(NamedTuple):
    """One question, understood; `limit` is how many of its groups are asked for, 0 for all."""

    figure: Figure
    keys: tuple[Key, ...] = ()
    conditions: tuple[Condition, ...] = ()
    limit: int = 0
    descending: bool = False


class Reader:
    """Reads a text from `at`; before `far` it was understood, in one way or another. What is not `answered` is not advised."""

    def __init__(self, text: str, table: Table, *, advises: bool = True, answered: Callable[[Question], object] = bool) -> None:
        self._answered = answered
        self.said, self.table, self.advises = " ".join(unicodedata.normalize("NFC", text).split()), table, advises
        self.text, self.told, self.at, self.far = fold(self.said), dict[int, str](), 0, 0
        name = re.escape(fold(table.name))
        name = rf"[\"“”'‘’`]*(?:[\w.~-]*/)*{name}(?!\.?\w)[\"“”'‘’`]*"
        name = rf"(?:the )?(?:file )?{name}"
        if not {"file", "table"}.intersection(word for one in table.columns for word in name_words(one.name)):
            name += r"|(?:the|this) (?:csv |tsv |json )?(?:file|table)"
        self._file = rf"(?:(?:in|of|from|for|on|does) )?(?:{name})(?: (?:have|has)(?=\W*$))?"

    def question(self) -> Question:
        """Read the whole text as one question; refuse what cannot be read, or in two ways, and say what can."""
        self._take(rf"{self._file}(?:\s*[,:])?")
        if not (found := self._try(self._ranked) or self._try(self._rows)):
            self._take(_LEAD)
            found = Question(self._figure())
        found = self._clauses(found)
        return found if self._ended else self._fail()

    def reads(self, text: str) -> bool:
        """Whether a text is a question that can be read, and answered: nothing else is advised."""
        with suppress(InvalidInputError):
            return bool(self._answered(Reader(text, self.table, advises=False).question()))
        return False

    def _as_said(self, start: int, end: int | None = None) -> str:
        """A part of the text as it was written, before it was folded."""
        places = [*(at for at, char in enumerate(self.said) for _ in fold(char)), len(self.said)]
        return self.said[places[start] : None if end is None else places[end]]

    @property
    def _ended(self) -> bool:
        return re.fullmatch(rf"(?:[\s.?!,;]|\b(?:{FILLER})\b)*", self.text[self.at :]) is not None

    def _rows(self) -> Question | None:
        """Read `list rows where …` or `which COLUMN have …`: the rows themselves."""
        if not self._take(_LIST):
            return None
        if not (is_of_all := self._take(_ROWS)) and not (columns := self._list(self._column, ",|and")):
            return None
        question = self._clauses(Question(Figure("rows", () if is_of_all else tuple(columns))))
        if self._ended and not question.conditions and self.text.startswith("list"):
            named = self.table.columns[0] if is_of_all else columns[0]
            self._fail(f"Rows are listed by a condition; 'where {named} is not missing' is one of all that have it.")
        return question if question.conditions and self._ended else None

    def _ranked(self) -> Question | None:
        """Read `top N KEY by FIGURE`, `which KEY has the highest FIGURE`, or `which KEY has the most rows`."""
        lead = self._take(rf"(?:{_LEAD} )?(?:(?:{FILLER}) )*(?:top|bottom|which|what)")
        is_cut = lead.endswith(("top", "bottom"))
        count = self._take(r"[1-9]\d{0,5}") if is_cut else "1"
        key = self._key() if lead and count else None
        joint = self._take("by" if is_cut else rf"(?:{_HAVE}) (?:(?:{FILLER}) )*(?:{_MOST}|{_LEAST})")
        if not key or not joint:
            return None
        here, side = self.at, joint.split()[-1]
        if is_cut and self._take(f"{_MOST}|{_LEAST}"):  # what is lowest in each, or who has it?
            self._fail("Say 'by number of rows', 'by minimum COLUMN' or 'by maximum COLUMN'.", here)
        if (counts := side in ("most", "fewest", "least")) and not self._take(_ROWS):
            self._fail("'Most' and 'fewest' are said of rows, 'the highest' and 'lowest' of figures, as in 'the highest total'.")
        figure = Figure("count") if counts else self._figure()
        return Question(figure, (key,), limit=int(count), descending=lead.endswith("top") or side in _MOST.split("|"))

    def _clauses(self, question: Question) -> Question:
        """Read what follows a figure: keys, conditions and the file's name, in any order."""
        keys, conditions, is_per = list(question.keys), list(question.conditions), False
        while not self._ended:
            start = self.at
            self._take(",")
            if self._take(self._file):
                continue
            if not question.limit and question.figure.operation != "rows" and (joint := self._take(PER)):
                keys += (groups := self._list(self._key, ",|and|per|by") or self._fail())
                is_per |= joint == "per"
                amounts = [key.column for key in groups if not key.grain and key.column.is_amount and not joint.endswith("by")]
                if amounts and question.figure.columns and question.figure.operation != "nunique":
                    said = f"'{joint} {amounts[0]}' may mean for each number of {amounts[0]}, or divided by it: nothing is divided."
                    raise InvalidInputError(said, hint=f"Say 'by {amounts[0]}' for each number of it.")
            elif self._take(_WHERE):
                conditions += self._list(self._condition, "and") or self._fail()
            elif condition := self._try(self._when):
                conditions.append(condition)
            else:
                self.at = start
                break
        if len(set(keys)) < len(keys):
            raise InvalidInputError("The question groups by the same column twice.")
        if is_per and question.figure.operation == "mean":
            self._refuse_two_averages(question.figure.columns[0], keys)
        return question._replace(keys=tuple(keys), conditions=tuple(conditions))

    def _refuse_two_averages(self, column: Column, keys: list[Key]) -> None:
        """`Average hours per day` may be of rows, or of the sums of days, where a day has several rows and hours are added up."""
        if column.why_rate or not (timed := [key for key in keys if key.is_of_time]):
            return
        days = {one: one.dates.dt.to_period(GRAINS[grain]) if grain and one.dates is not None else one.cells for one, grain in keys}
        if pd.DataFrame(days)[~column.is_missing].dropna().duplicated().any():
            per = " and ".join(map(str, keys))
            said = f"'average {column} per {per}' may be of the rows, or of their sums: there are several rows of one {timed[0]}."
            raise InvalidInputError(said, hint=f"Say 'average {column} by {per}' for that of rows, or 'total {column} per {per}'.")

    def _figure(self) -> Figure:
        start, (end, named) = self.at, self._named()
        operation = self._one_of(_FIGURES)
        if end > self.at or not operation:  # `Total cost` is a column's name, too
            self.at = start
            self._take("how many|number of")
            is_said = re.compile(rf"\b(?:{'|'.join(_FIGURES.values())})\b").search(self.text, self.at) and not end
            hint = "" if is_said else f"It is not said which figure is meant: {_FIGURES_ARE}."
            self._fail(hint, self.at if operation or end else None)
        if operation in ("count", "nunique"):
            columns = (self._column() or self._fail(),) if operation == "nunique" else ()
            self._take(_ARE)
            return Figure(operation, columns)
        self._take("of")
        if (column := self._column()) is None:  # `Total` may be a column's name, too
            hint = "".join(
                f"What to compute of {one} is said, too: 'total {one}', 'average {one}' or 'maximum {one}'." for one in named
            )
            self._fail(hint, start if named and self._ended else None)
        if column.numbers is None and not (operation in ("min", "max") and column.dates is not None):
            self._no_numbers(column)
        if operation == "sum" and column.why_rate:
            said = f"{column} is taken for a rate, a price of one unit, a state such as a temperature, or a code, {column.why_rate}"
            raise InvalidInputError(f"{said}; these are not added up.", hint=f"Say 'average {column}' or 'maximum {column}'.")
        if operation == "sum" and (other := self.table.runs(column)):
            said = f"{column} is the sum of {other} so far, in each row; such are not added up."
            raise InvalidInputError(said, hint=f"Say 'total {other}' or 'maximum {column}'.")
        return Figure(operation, (column,))

    def _no_numbers(self, column: Column) -> NoReturn:
        if not column.different:
            raise InvalidInputError(f"{column} is empty: all of its cells are missing.", hint="Ask for another column.")
        held, example = "numbers" + " or dates" * (column.dates is None), next(iter(column.unread or column.different), "")
        hint = f"Numbers are written {WRITTEN}; what begins with 0, has an E or over 15 digits is a code. Dates are as 2024-03-31."
        raise InvalidInputError(f"{column} is not read as {held}: it has cells such as {example!r}.", hint=hint)

    def _key(self) -> Key | None:
        """Read a column, or `month [of COLUMN]`; where a column is called `month`, that one, if no other holds dates."""
        start, (end, _) = self.at, self._named()
        grain = self._take(f"(?:{'|'.join(GRAINS)})s?").rstrip("s")
        is_name, is_of = end == self.at, grain and end <= self.at and self._take("of")
        if grain and (is_of or not end):
            column = (self._column() or self._fail()) if is_of else self._the_date()
            return Key(column, grain) if column.dates is not None else self._no_numbers(column)
        self.at = start
        named = self._column()
        if named and grain and is_name and any(one is not named for one in self.table.holding("dates")):
            self._the_date(named)
        return Key(named) if named else None

    def _the_date(self, *others: Column) -> Column:
        """The only column of dates; refuses several, or others that may be meant as well."""
        dates = self.table.holding("dates", in_doubt=True)
        columns = list(dict.fromkeys((*dates, *others))) if dates else []
        if len(columns) != 1:
            if not columns:
                shown = ", ".join(f"{one} has {one.different[0]!r}" for one in self.table.columns[:_ADVISED] if one.different)
                hint = f"Dates are written as 2024-03-31 or 2024-03; mere years are numbers: 'COLUMN above 2024'. {shown}."
                raise InvalidInputError(f"No column of {self.table.name} is read as one of dates.", hint=hint)
            names = ", ".join(map(str, columns))
            hint = "Say 'year of COLUMN', 'where COLUMN is 2024', of mere years 'COLUMN above 2024'; in quotes 'year' is a column."
            raise InvalidInputError(f"{self.table.name} has {len(columns)} columns that the date may be of: {names}.", hint=hint)
        return columns[0] if columns[0].dates is not None else self._no_numbers(columns[0])

    def _when(self) -> Condition | None:
        """Read `in 2024`, `since 2024-01-15` or `from 2024-01 to 2024-03`: of the only column of dates."""
        if sign := self._one_of(_WHEN):
            self.told[self.at] = _DATES
        if not sign or not (spans := self._spans(sign, self._date)):
            return None
        others = [one for one in self.table.columns if sign == "=" and one.is_of_time and one.values(spans[0].written)]
        column = self._the_date(*others)
        held = pd.Series(column.dates).dropna()
        is_among = any(held.min() <= one.last and one.first <= held.max() for one in spans)
        if sign == "between" and not is_among and all(one.written.isdecimal() for one in spans):
            said = f"{spans[0].written} and {spans[1].written} are years that no date is of, or numbers of another column."
            raise InvalidInputError(said, hint="Say of which column: 'where COLUMN between A and B'.")
        return Condition(column, sign, spans)

    def _condition(self) -> Condition | None:
        if not (column := self._column()):
            return None
        self._take(_IS)
        self._refuse_words(column)
        if negated := bool(self._take("not")):
            self._refuse_words(column)
        if self._take("missing"):
            return Condition(column, "is not missing" if negated else "is missing")
        sign = "!=" if negated else self._one_of(_COMPARISONS) or "="
        is_value = sign in ("=", "!=")
        if not is_value or column.dates is not None or column.holds("numbers"):
            if spans := self._spans(sign, lambda: self._span(column)):
                return Condition(column, sign, tuple(self._others(column, sign, self._span, *spans)) if is_value else spans)
            if not is_value:
                self._fail() if column.dates is not None or column.numbers is not None else self._no_numbers(column)
        if not (values := self._value(column)):
            if not column.different:
                self._no_numbers(column)
            some = ", ".join(f'"{one}"' if "," in one else one for one in column.different[:8])
            self._fail(f"Values of {column} are {some}{', …' * (len(column.different) > 8)}; a cell without one is 'missing'.")
        return Condition(column, sign, values=sum(self._others(column, sign, self._value, values), ()))

    def _refuse_words(self, column: Column) -> None:
        """Refuse a value that is, or begins with, words of the language; in quotes it is one."""
        here, words = self.at, ["not", "missing", *(_COMPARISONS.values() if column.dates is None else ())]
        stands = re.match(rf"\s*(?:{'|'.join(words)})\b(?!\s*[\"“”'`])", self.text[here:])
        if stands and not column.is_numeric and self._value(column):
            said = self._as_said(here, self.at).strip()
            raise InvalidInputError(
                f"{said!r} is a value of {column}, and of the language.", hint=f'Put values in quotes: "{said}".'
            )
        self.at = here

    def _spans(self, sign: str, read: Callable[[], Span | None]) -> tuple[Span, ...]:
        """Read one span, or the two of `between`; none if the first is not there."""
        first = read()
        if first is None or sign != "between":
            return (first,) if first else ()
        return first, (read() if self._take("and|to|until") else None) or self._fail()

    def _others(self, column: Column, sign: str, read: Callable[[Column], T | None], first: T) -> list[T]:
        """Read more values than the first: `or VALUE`, `or COLUMN is VALUE`."""

        def another() -> T | None:
            self._try(lambda: sign == "=" and self._named()[1] == [column] and self._column() and self._take("is"))
            return read(column)

        return self._list(another, r", or|,|or", first)

    def _span(self, column: Column) -> Span | None:
        if column.dates is not None or column.numbers is None:
            return self._date() if column.dates is not None else None
        here, units = self.at, "|".join(re.escape(fold(one)) + "s?" * (len(one) > 2) for one in column.units) or "(?!)"
        said = re.search(_NUMBER, self._take(rf"(?:(?:{units}) ?)?{_NUMBER}(?: ?(?:{units}))?"))
        also, some = "".join(f" or with {one!r}" for one in column.units), f"{column.numbers.dropna().iloc[0]:g}"
        told = f"A number is written 1000, 1,000 or 1000.5. A number of {column} is said alone{also}. It holds such as {some}."
        self.told[here] = self.told[self.at] = told
        if said is None:
            return None
        if column.has_commas and re.fullmatch(r"[-−]?[1-9]\d{0,2}[.,]\d{3}", said[0]):
            hint = f"Write {said[0].translate({44: None, 46: None})}, or {float(said[0].replace(',', '.'))}."
            raise InvalidInputError(f"{said[0]} can be read in two ways: with a sign for thousands, or for decimals.", hint=hint)
        number = said[0].replace(",", "").replace("−", "-")
        return Span(number, float(number), float(number))

    def _date(self) -> Span | None:
        start = self.at
        if not (text := self._take(DATE)):
            return None
        try:
            period = pd.Period(re.sub(r"(q\d) (\d+)", r"\2\1", text))
        except ValueError:
            self._fail(f"That is not a date of the calendar. {_DATES}", start)
        return Span(str(period).replace("Q", "-Q"), period.start_time, period.end_time)

    def _value(self, column: Column) -> tuple[str, ...]:
        """Read the next words, the most first, as a value of a column, and the signs around them that belong to it."""
        word, start = re.compile(r"[^\W_]+"), self._after(r"\s*(?:the )?", self.at)
        found = list(word.finditer(self.text, start))[:_VALUE_WORDS]
        for last, begin in product(reversed(found), dict.fromkeys((start, self.at))):
            if values := column.values(self.text[begin : last.end()]):
                break
        else:  # a cell of signs, such as `?`
            signs = re.compile(r"[\s\"“”'`]*([^\w\s\"“”'’`]+)[\"“”'’`]*").match(self.text, self.at)
            if signs is None or signs[1] not in column.different:
                return ()
            self._move(signs.end())
            return (signs[1],)
        said, is_quoted = self.text[found[0].start() : last.end()], self.text[begin : found[0].start()].strip() != ""
        if not is_quoted and (first := said.partition(" or ")[0]) != said and column.values(first):
            hint = f'Say "{said}" in quotes, or \'{column} is "{first}" or {column} is …\'.'
            raise InvalidInputError(f"{said!r} is a value of {column}, and {first!r} is another.", hint=hint)
        places = [start, self._after(r"\s*", self.at), self._after(r"[\s\"“”'‘`]*", self.at)]
        before = re.sub(r"[\s\"“”'‘’`]", "", self.text[start : found[0].start()])
        places += [found[0].start()] * (not before)
        ends = {
            one: max((at + len(fold(one)) for at in places if self.text.startswith(fold(one), at)), default=0) for one in values
        }
        values = tuple(one for one in values if ends[one] == max(ends.values()))
        if before and not any(ends.values()):
            return ()  # what is no part of the value may turn it round
        if len({fold(one) for one in values}) > 1:
            raise InvalidInputError(f"{said!r} may be said of several values of {column}: {', '.join(map(repr, values))}.")
        self._move(self._after(r"[\"“”'’`]*", max(last.end(), *ends.values())))
        return values

    def _take(self, words: str) -> str:
        """Take one of these words if it stands here, and the filler before it."""
        # a word ends where it ends: `mean` does not stand in `meaning`, while `>` stands before any figure
        match = re.compile(rf"\s*(?:(?:{FILLER})\s+)*({words})(?:(?<!\w)|(?!\w))").match(self.text, self.at)
        if match is None or not match[1]:
            return ""
        self._move(match.end())
        return match[1]

    def _move(self, end: int) -> None:
        self.at, self.far = end, max(self.far, end)

    def _one_of(self, words: dict[str, str]) -> str:
        return next((meaning for meaning, spoken in words.items() if self._take(spoken)), "")

    def _after(self, pattern: str, at: int) -> int:
        """Where what may stand here ends: the pattern matches nothing, too."""
        match = re.compile(pattern).match(self.text, at)
        assert match is not None
        return match.end()

    def _named(self) -> tuple[int, list[Column]]:
        """Where the longest name of a column ends that stands here, and the columns that have it."""
        for before in (r"[\s\"“”'`]*", rf"\s*(?:(?:{FILLER})\b\s*)*[\"“”'`]*"):
            start = self._after(before, self.at)
            found = [(name.match(self.text, start), column) for column in self.table.columns for name in column.patterns]
            end = max((match.end() for match, _ in found if match), default=0)
            columns = list(dict.fromkeys(column for match, column in found if match and match.end() == end))
            if columns:
                exact = [column for column in columns if fold(column.name) == self.text[start:end]]
                return self._after(r"[\"“”'`]*", end), exact if len(exact) == 1 else columns
        return 0, []

    def _column(self) -> Column | None:
        end, columns = self._named()
        if not columns:
            return None
        self._move(end)
        if len(columns) > 1:
            places = " and ".join(f"'{column}' (column {self.table.columns.index(column) + 1})" for column in columns)
            raise InvalidInputError(
                f"{places} go by one name.", hint="Say the whole one, or give them different names in the file."
            )
        return columns[0]

    def _list(self, read: Callable[[], T | None], joint: str, *first: T) -> list[T]:
        found = list(first)
        while more := self._try(lambda: read() if not found or self._take(joint) else None):
            found.append(more)
        return found

    def _try(self, read: Callable[[], T | None]) -> T | None:
        before = self.at
        found = read()
        if not found:
            self.at = before
        return found

    def _fail(self, hint: str = "", at: int | None = None) -> NoReturn:
        """Refuse the question where it was understood last."""
        at = self.far if at is None else at
        understood, rest = self._as_said(0, at).strip(), self._as_said(at).lstrip(" ,;").rstrip(" ?.!,;")
        if lost := missing(rest, TABLES, [self.table.name]):
            raise InvalidInputError(lost, hint=f"The file that is asked about here is {self.table.name}.")
        after = f" after {understood!r}" if understood else ""
        said = f"{rest!r} is not understood{after}." if rest else f"Something is missing at the end of {understood!r}."
        before = understood * bool(re.match(r"[.,;?!]", self.text[at:]))  # else a part of it would be another question
        hints = [hint, self.told.get(at, ""), *self._advice(before, rest)] if self.advises else []
        raise InvalidInputError(said, hint=" ".join(filter(None, hints)))

    def _advice(self, before: str, rest: str) -> Iterator[str]:
        """Say what can be read: a part of the text, conditions on values in what was not, and questions of this table."""
        words = rest.split()[-_ADVISED_WORDS:]
        if alone := next(filter(self.reads, (*(" ".join(words[at:]) for at in range(len(words))), before)), ""):
            yield f"{alone!r} alone is read; several requests are the items of a list, and speak of 'the result' of one before."
        if re.match(r"or\b", rest) or self.text[: self.far].endswith(" or"):
            yield "'or' stands between values of one column; conditions of several are joined by 'and'."
        chosen = filter(lambda one: self.reads(f"how many rows {one}"), dict.fromkeys(self._values_in(words)))
        asked = islice(filter(self.reads, self._examples()), _ADVISED)
        for what, found in (("Rows are chosen, or left out by 'is not', as in", chosen), ("Questions are such as", asked)):
            if shown := ", ".join(f"'{one}'" for one in found):
                yield f"{what} {shown}."
        names = (f'"{one}"' if "," in one.name else one.name for one in self.table.columns)
        assumed = f", which is read as {self.table.assumed}" * bool(self.table.assumed)
        yield f"Columns of {self.table.name}{assumed}: {', '.join(names)}. All forms of a question: docs/questions.md."

    def _values_in(self, words: list[str]) -> Iterator[str]:
        """Conditions on the values that words are, the most words first. A number may be of any column."""
        columns, end = [one for one in self.table.columns if not one.is_numeric], 0
        for first, last in sorted(combinations(range(len(words) + 1), 2), key=lambda span: (span[0], -span[1])):
            said = fold(" ".join(words[first:last]))
            if first >= end and not re.fullmatch(_NO_VALUE, said):
                found = [(column, column.values(said)) for column in columns]
                yield from (f'where {column} is "{max(values, key=self.said.count)}"' for column, values in found if values)
                end = last if any(values for _, values in found) else end

    def _examples(self) -> Iterator[str]:
        """Questions of this table, of the columns first that the text names."""
        named = set(name_words(self.text))
        columns = sorted(self.table.columns, key=lambda one: (-len(named.intersection(name_words(one.name))), len(one.different)))
        figures = [one for one in columns if one.holds("numbers")]
        words = [one for one in columns if one not in figures and not one.holds("dates")]
        keys = [one for one in words if 1 < len(set(map(fold, one.different))) == len(one.different) < self.table.rows]
        for figure, key in zip(figures[:1], keys, strict=False):
            yield from (f"average {figure} per {key}", f"which {key} has the highest average {figure}")
        yield from (f'how many rows where {key} is "{key.different[0]}"' for key in keys[:1])
        yield from ("how many rows", *(f"average {figure}" for figure in figures[:1]))
