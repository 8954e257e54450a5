"""The language of questions about a table, read strictly from left to right (docs/questions.md): nothing is skipped or chosen."""

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, NoReturn, TypeVar

import pandas as pd

from ioa import InvalidInputError
from ioa.files import missing
from request import TABLES, fold
from tables import WRITTEN, Column, Table, name_words
from totals import sum_so_far

_LEAD = r"(?:please )?(?:what(?:'s| is| are| was| were)|compute|calculate|show|give|get|tell|find)?(?: me)?"
FILLER, _ROWS = r"the|an|a|all|please", r"rows?|records?"
_FIGURES = {
    "count": rf"(?:how many|(?:total )?number of|count(?: of)?)(?: the)? (?:{_ROWS})",
    "nunique": r"(?:how many|(?:total )?number of) (?:distinct|different|unique)",
    "sum": r"sum|total", "mean": r"average|mean", "median": r"median",
    "min": r"minimum|min|lowest|smallest|earliest", "max": r"maximum|max|highest|largest|latest",
}  # fmt: skip
_SPOKEN = {
    "count": "number of rows", "nunique": "number of distinct", "sum": "sum of", "mean": "average of", "median": "median of",
    "min": "minimum of", "max": "maximum of",
}  # fmt: skip
_MOST, _LEAST, _HAVE = "most|highest|largest", "fewest|least|lowest|smallest", "has|have|had|with"
_COMPARISONS = {
    ">=": r">=|≥|at least|since", "<=": r"<=|≤|at most|until", "!=": r"!=|<>|≠", ">": r">(?=[\s\d.-])|above|over|more than|after",
    "<": r"<(?=[\s\d.-])|below|under|less than|fewer than|before", "=": r"==?|:|in|on",
}  # fmt: skip
GRAINS = {"day": "D", "month": "M", "quarter": "Q", "year": "Y"}
PER = r"per|by|grouped by|for every|(?:for|in|of|from) each"
_WHERE = r"(?:that |which )?(?:have|has|had)|where|with|whose"
_ARE, _IS = r"are there|there are|are", r"is|are|was|were|of"
_WHEN = {"=": "in|on", ">=": "since", ">": "after", "<": "before", "<=": "until"}
_MONTH = "|".join(filter(None, (*calendar.month_name, *calendar.month_abbr))).lower()
_DAY = rf"(?:\d\d? )?(?:{_MONTH}) \d{{4}}|(?:{_MONTH}) \d\d?, ?\d{{4}}"
DATE = rf"(?:\d{{4}}(?:-q[1-4]|-\d\d(?:-\d\d)?)?|{_DAY}|q[1-4] \d{{4}})(?!(?:[^\W\d]|[.,-])*+\d)"
_DATES = "Dates are written 2024, 2024-03, 2024-03-31, March 2024, 31 March 2024 or Q1 2024; 'in' is said of them, or of the file."
_FORMS_IN_CELLS = "Dates in cells are all written as 2024-03-31, 31.3.2024, 31/03/2024, 31 Mar 2024 or Mar 31, 2024"
_A_FIGURE = "how many rows, number of distinct COLUMN, or total, average, median, minimum or maximum of COLUMN"
_NUMBER, _VALUE_WORDS = r"[-−]?\d++(?:,\d{3})*+(?:\.\d++)?+(?!(?:[^\W\d]|[,.])*+\d)", 10

T = TypeVar("T")


class Figure(NamedTuple):
    """What is computed, by the name of pandas: of a column, or of none when rows are counted."""

    operation: str
    column: Column | None = None

    @property
    def measured(self) -> list[Column]:
        """The column whose numbers it is computed of, if there is one: different cells are counted as they are."""
        return [self.column] if self.column and self.operation != "nunique" else []

    def __str__(self) -> str:
        return f"{_SPOKEN[self.operation]} {self.column or ''}".strip()


class Key(NamedTuple):
    """What rows are grouped by: a column, or the day, month, quarter or year of its dates."""

    column: Column
    grain: str = ""

    def __str__(self) -> str:
        return f"{self.grain} of {self.column}" if self.grain else self.column.name


class Span(NamedTuple):
    """A number, from itself to itself, or the time of a date such as 2024-03."""

    written: str
    first: Any
    last: Any


@dataclass(frozen=True)
class Condition:
    """Which rows are kept: those whose cell stands as `sign` says to a number, a date, or all cells that are one value."""

    column: Column
    sign: str
    span: Span | None = None
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        quoted = (f'"{value}"' if re.match(r"(?i)(?:not|missing)\b", value) else value for value in self.values)
        sign = {"=": "is", "!=": "is not"}.get(self.sign, self.sign)
        return f"{self.column} {sign} {self.span.written if self.span else ' or '.join(quoted)}".rstrip()


class Question(NamedTuple):
    """One question, understood; `limit` is how many of its groups are asked for, 0 for all."""

    figure: Figure
    keys: tuple[Key, ...] = ()
    conditions: tuple[Condition, ...] = ()
    limit: int = 0
    descending: bool = False


class Reader:
    """Reads a text from `at`; before `far` it was understood, in one way or another."""

    def __init__(self, text: str, table: Table) -> None:
        self.said, self.table = " ".join(text.split()), table
        self.text, self.at, self.far = fold(self.said), 0, 0
        name = rf"(?:the )?(?:file )?[\"“”'‘’`]*(?:[\w.~-]*/)*{re.escape(fold(table.name))}(?!\.?\w)[\"“”'‘’`]*"
        if not {"file", "table"}.intersection(word for one in table.columns for word in name_words(one.name)):
            name += r"|(?:the|this) (?:csv |tsv )?(?:file|table)"
        self._file = rf"(?:(?:in|of|from|for|on|does) )?(?:{name})(?: (?:have|has)(?=\W*$))?"

    def question(self) -> Question:
        """Read the whole text as one question; refuse what cannot be read, or in two ways, and say what can."""
        self._take(rf"{self._file}(?:\s*[,:])?")
        if not (found := self._try(self._ranked)):
            self._take(_LEAD)
            found = Question(self._figure())
        found = self._clauses(found)
        return found if self._ended else self._fail()

    def _as_said(self, start: int, end: int | None = None) -> str:
        places = [*(at for at, char in enumerate(self.said) for _ in fold(char)), len(self.said)]
        return self.said[places[start] : None if end is None else places[end]]

    @property
    def _ended(self) -> bool:
        return re.fullmatch(rf"(?:[\s.?!,;]|\b(?:{FILLER})\b)*", self.text[self.at :]) is not None

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
        keys, conditions = list(question.keys), list(question.conditions)
        while not self._ended:
            start = self.at
            self._take(",")
            if self._take(self._file):
                continue
            if not question.limit and (joint := self._take(PER)):
                keys += (groups := self._list(self._key, ",|and|per|by") or self._fail())
                for column in question.figure.measured if not joint.endswith("by") else ():
                    self._refuse_two_meanings(question.figure.operation, column, joint, groups)
            elif self._take(_WHERE):
                conditions += self._list(self._condition, "and") or self._fail()
            elif condition := self._try(self._when):
                conditions.append(condition)
            else:
                self.at = start
                break
        if len(set(keys)) < len(keys):
            raise InvalidInputError("The question groups by the same column twice.")
        return question._replace(keys=tuple(keys), conditions=tuple(conditions))

    def _refuse_two_meanings(self, operation: str, column: Column, joint: str, keys: list[Key]) -> None:
        """Refuse `cost per hours`, a division maybe, and `average hours per day`, which may be of rows or of the sums of days."""
        for key in keys:
            may_divide = not key.grain and key.column.holds("numbers") and not key.column.why_rate
            is_of_time = key.column.is_of_time or fold(key.column.name) in GRAINS
            if may_divide or ((joint, operation) == ("per", "mean") and is_of_time and not column.why_rate):
                said = f"'{column} {joint} {key}' may be of the rows of each {key}, of the sum of each {key}, or divided by it"
                raise InvalidInputError(f"{said}: nothing is divided.", hint=f"Say 'by {key}' for the rows of each {key}.")

    def _figure(self) -> Figure:
        start, (end, names) = self.at, self._named()
        operation = self._one_of(_FIGURES)
        if end > self.at or not operation:  # `Total cost` is a column's name, too
            self.at = start
            self._take("how many|number of")
            of = f" '{names[0]}' is a column: say '{_SPOKEN[operation]} …' for that of another." if operation else ""
            self._fail(f"A question has a figure: {_A_FIGURE}.{of}", start if operation else None)
        if operation in ("count", "nunique"):
            counted = (self._column() or self._fail()) if operation == "nunique" else None
            self._take(_ARE)
            return Figure(operation, counted)
        self._take("of")
        before = self.at
        if (column := self._column()) is None:  # `Total` may be a column's name, too
            self._fail(f"What to compute is said, and of which column: {_A_FIGURE}.", start if end else None)
        if column.numbers is None and self._named()[0]:
            self._fail(f"Two columns stand side by side: rows are chosen by 'where {column} is VALUE'.", before)
        if column.numbers is None and not (operation in ("min", "max") and column.dates is not None):
            self._no_numbers(column)
        if re.search("latest|earliest", self.text[start : self.at]) and not column.is_of_time:
            raise InvalidInputError(f"{column} has no dates: nothing of it is the latest.", hint="Say 'maximum' or 'minimum'.")
        if operation == "sum" and column.why_rate:
            said = f"{column} is taken for a rate, a price of one unit, a state such as a temperature, or a code, {column.why_rate}"
            raise InvalidInputError(f"{said}; these are not added up.", hint=f"Say 'average {column}' or 'maximum {column}'.")
        if operation == "sum" and (other := sum_so_far(column, self.table)):
            said = f"{column} is the sum of {other} so far, in each row; such are not added up."
            raise InvalidInputError(said, hint=f"Say 'maximum {column}', or what to compute of another column.")
        return Figure(operation, column)

    def _no_numbers(self, column: Column) -> NoReturn:
        held = " or ".join(kind for kind in ("numbers", "dates") if getattr(column, kind) is None)
        cells = f"it has cells such as {column.example!r}" if column.different else "all its cells are missing"
        form = f"Numbers are written {WRITTEN}; what begins with 0, has an E or over 15 digits is a code. Dates are as 2024-03-31."
        years = f"Mere years are numbers: 'where {column} is YEAR', 'where {column} since YEAR'." * column.is_numeric
        raise InvalidInputError(f"{column} is not read as {held}: {cells}.", hint=years or form)

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
        return Key(named, grain if is_name and named.holds("dates") else "") if named else None

    def _the_date(self, *others: Column) -> Column:
        columns = list(dict.fromkeys((*self.table.holding("dates", in_doubt=True), *others)))
        if not columns:
            hint = f"{_FORMS_IN_CELLS}; mere years are numbers: 'where COLUMN is YEAR', 'where COLUMN since YEAR'."
            raise InvalidInputError(f"{self.table.name} has no column that is read as one of dates.", hint=hint)
        if len(columns) > 1:
            said = f"{self.table.name} has {len(columns)} columns that the date may be of: {', '.join(map(str, columns))}."
            hint = "Say which: 'year of COLUMN', 'where COLUMN in DATE', 'where COLUMN since DATE'; in quotes 'year' is a column."
            raise InvalidInputError(said, hint=hint)
        return columns[0] if columns[0].dates is not None else self._no_numbers(columns[0])

    def _when(self) -> Condition | None:
        if not (sign := self._one_of(_WHEN)):
            return None
        here, span = self._after(r"\s*", self.at), self._date() or self._fail(_DATES)
        said = {fold(span.written), self.text[here : self.at]}
        others = [one for one in self.table.columns if (one.is_of_time or not one.is_numeric) and said & one.values.keys()]
        return Condition(self._the_date(*others), sign, span)

    def _condition(self) -> Condition | None:
        if not (column := self._column()):
            return None
        self._take(_IS)
        self._refuse_words(column)
        if negated := bool(self._take("not")):
            self._refuse_words(column)
        if self._take("missing"):
            return Condition(column, "is not missing" if negated else "is missing")
        if re.match(r"\s*(?:since|until|before|after|in|on)\b", self.text[self.at :]) and not column.is_of_time:
            raise InvalidInputError(f"{column} is not read as dates: it has cells such as {column.example!r}.", hint=_DATES)
        sign = "!=" if negated else self._one_of(_COMPARISONS) or "="
        is_value = sign in ("=", "!=")
        if column.dates is not None or column.holds("numbers"):
            if span := self._span(column):
                return Condition(column, sign, span)
            if not is_value:
                self._fail(f"A number is written 1000, 1,000 or 1000.5, and alone. {_DATES} {column} has {column.different[0]!r}.")
        elif not is_value:
            self._no_numbers(column)
        if not (values := self._value(column)):
            some = ", ".join(f'"{one}"' for one in column.different[:8]) + ", …" * (len(column.different) > 8)
            self._fail(f"Values of {column} are {some or 'none'}, said as they are written; a cell without one is 'missing'.")
        return Condition(column, sign, values=values)

    def _refuse_words(self, column: Column) -> None:
        here = self.at
        stands = re.match(rf"\s*(?:not|missing|{'|'.join(_COMPARISONS.values())})\b", self.text[here:])
        if stands and not column.is_numeric and self._value(column):
            said = self._as_said(here, self.at).strip()
            raise InvalidInputError(f"{said!r} is a value of {column}, and of the language.", hint=f'Say "{said}" in quotes.')
        self.at = here

    def _span(self, column: Column) -> Span | None:
        if column.dates is not None:
            return self._date()
        if not (said := self._take(_NUMBER)):
            return None
        has_commas = column.has_decimal_commas and column.coded[1].str.contains(",").any()
        if has_commas and re.fullmatch(r"[-−]?[1-9]\d{0,2}[.,]\d{3}", said):
            hint = f"Write {said.translate({44: None, 46: None})}, or {float(said.replace(',', '.'))}."
            raise InvalidInputError(f"{said} can be read in two ways: with a sign for thousands, or for decimals.", hint=hint)
        number = said.replace(",", "").replace("−", "-")
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
        """Read a cell as it is written, the longest that stands here, in any case and without accents, in quotes or not."""
        start = self._after(r"\s*", self.at)
        quoted = re.compile(r"[\"“”„](.+?)[\"“”](?![\w\"“”])|['‘`](.+?)['’`](?!\w)").match(self.text, start)
        if quoted and (values := column.values.get((quoted[1] or quoted[2]).strip())):
            self._move(quoted.end())
            return tuple(values)
        for begin in dict.fromkeys((start, self._after(r"\s*(?:the )?", self.at))):
            words = islice(re.compile(r"\S+").finditer(self.text, begin), _VALUE_WORDS)
            ends = [at for word in words for at in (begin + len(self.text[begin : word.end()].rstrip(".,;:?!")), word.end())]
            found = [end for end in ends if self.text[begin:end] in column.values]
            if found:
                self._move(found[-1])
                return tuple(column.values[self.text[begin : found[-1]]])
        return ()

    def _take(self, words: str) -> str:
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
            raise InvalidInputError(f"{places} go by one name.", hint="Say the whole one, or change their names in the file.")
        return columns[0]

    def _list(self, read: Callable[[], T | None], joint: str) -> list[T]:
        found: list[T] = []
        while more := self._try(lambda: read() if not found or self._take(joint) else None):
            found.append(more)
        return found

    def _try(self, read: Callable[[], T | None]) -> T | None:
        before, found = self.at, read()
        self.at = self.at if found else before
        return found

    def _fail(self, hint: str = "", at: int | None = None) -> NoReturn:
        at = self.far if at is None else at
        understood, rest = self._as_said(0, at).strip(), self._as_said(at).lstrip(" ,;").rstrip(" ?.!,;")
        if lost := missing(rest, TABLES, [self.table.name]):
            raise InvalidInputError(lost, hint=f"The file that is asked about here is {self.table.name}.")
        after = f" after {understood!r}" if understood else ""
        said = f"{rest!r} is not understood{after}." if rest else f"Something is missing at the end of {understood!r}."
        names = ", ".join(f'"{one}"' if "," in one.name else one.name for one in self.table.columns)
        assumed = f", which is read as {self.table.assumed}" * bool(self.table.assumed)
        hint = f"{hint} Columns of {self.table.name}{assumed}: {names}. All forms of a question: docs/questions.md.".strip()
        raise InvalidInputError(said, hint=hint)
