"""The language of questions about a table, read strictly: docs/questions.md is its one page.

A question is read from left to right. Its fixed words are those below; every other word is a column's name, or a value that is
in the table. Nothing is skipped, and nothing is chosen: what can mean two things is refused with both, and what cannot be read
is refused with where it was understood last, and with all that could stand there.
"""

import calendar
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any, NoReturn, TypeVar

import pandas as pd

from ioa import InvalidInputError
from ioa.files import missing
from request import TABLES, fold
from tables import CODE, WRITTEN, Column, Table, name_words

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
_MOST = {True: "most|highest|largest", False: "fewest|least|lowest|smallest"}
_HAVE = "has|have|had|with"
_HAS = rf"(?:{_HAVE}) (?:the )?(?=(?:{_MOST[True]}|{_MOST[False]})\b)"
_COMPARISONS = {
    ">=": r">=|≥|at least|since", "<=": r"<=|≤|at most|until", "!=": r"!=|<>|≠", ">": r">(?=[\s\d.-])|above|over|more than|after",
    "<": r"<(?=[\s\d.-])|below|under|less than|fewer than|before", "=": r"==?|:|in|on",
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
_DATES = "Dates are written 2024, 2024-03, 2024-03-31, March 2024, 31 March 2024 or Q1 2024."
_COUNTS = "Rows are counted, the different cells of a column are counted as distinct, and 'total COLUMN' adds a column up."
_NUMBER = r"[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w,.]*\d)"
_VALUE_WORDS, _WORDS_BEFORE, _ADVISED = 10, 30, 3
_PIECES = (
    "how many rows where {condition}", "average {figure} per {key}", "which {key} has the highest average {figure}",
    "how many rows", "rows", "rows where {condition}", "distinct {key}", "{key} has the highest average {figure}",
    "{key} where {condition}", "has the highest average {figure}", "the highest average {figure}", "the most rows",
    "{key} by average {figure}", "by average {figure}", "average {figure}", "{figure}", "per {key}", "{key}",
    "where {condition}", "{condition}", "since {time}", "above {number}", "{date}", "{time}", "{number}",
)  # fmt: skip
"""Parts of questions: those that can be read where one stops are advised."""

T = TypeVar("T")


@dataclass(frozen=True)
class Figure:
    """What is computed, by the name of pandas: of a column, or of none when rows are counted. Of shown rows several are named."""

    operation: str
    columns: tuple[Column, ...] = ()

    def __str__(self) -> str:
        return f"{_SPOKEN[self.operation]} {', '.join(map(str, self.columns))}".strip()


@dataclass(frozen=True)
class Key:
    """What rows are grouped by: a column, or the day, month, quarter or year of its dates."""

    column: Column
    grain: str = ""

    def __str__(self) -> str:
        return f"{self.grain} of {self.column}" if self.grain else self.column.name


@dataclass(frozen=True)
class Span:
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
        if days := [one.written for one in self.spans if one.written.count("-") == 2 and self.column.holds_months]:
            raise InvalidInputError(f"{self.column} holds months, and {days[0]} is a day.", hint=f"Say {days[0][:7]}.")

    def __str__(self) -> str:
        quoted = (f'"{value}"' if re.match(r"(?i)(?:not|missing)\b", value) else value for value in self.values)
        shown = [span.written for span in self.spans] or list(quoted)
        sign = {"=": "is", "!=": "is not", "between": "is between"}.get(self.sign, self.sign)
        return f"{self.column} {sign} {(' and ' if self.sign == 'between' else ' or ').join(shown)}".rstrip()


@dataclass(frozen=True)
class Question:
    """One question, understood; `limit` is how many of its groups are asked for, 0 for all."""

    figure: Figure
    keys: tuple[Key, ...] = ()
    conditions: tuple[Condition, ...] = ()
    limit: int = 0
    descending: bool = False


class Reader:
    """Reads a text from `at`; what stands before `far` was understood, in one way or another."""

    def __init__(self, text: str, table: Table, *, advises: bool = True) -> None:
        self.said, self.table, self.advises = " ".join(unicodedata.normalize("NFC", text).split()), table, advises
        self.text, self.told, self.at, self.far, self.beginning = fold(self.said), dict[int, str](), 0, 0, 0
        name = re.escape(fold(table.name))
        self._file = rf"(?:(?:in|of|from|for|on|does) )?(?:the )?(?:file )?(?:[\w.~-]*/)*{name}(?!\.?\w)(?: (?:have|has)(?=\W*$))?"

    def question(self) -> Question:
        """Read the question; refuse what cannot be read, or in two ways. Two that are joined are told from one that is not read."""
        try:
            return self.read()
        except InvalidInputError as error:
            for joint in islice(re.finditer(r"[,;?.!]\s|\band\b", self.said), _WORDS_BEFORE):
                parts = [self.said[: joint.start()].strip(), self.said[joint.end() :].strip()]
                if all(map(self.reads, parts)):
                    hint = f"If {parts[1]!r} is another question, make the questions the items of a list."
                    raise InvalidInputError(error.message, hint=f"{hint} {error.hint}") from None
            words = list(re.finditer(r"(?<=\s)\S+", self.said))[: _WORDS_BEFORE * (self.far <= self.beginning)]
            later = filter(self.reads, (self.said[word.start() :] for word in words))
            alone = "".join(f"{part!r} alone is read. " for part in islice(later, 1))
            raise InvalidInputError(error.message, hint=f"{alone}{error.hint}") from None

    def read(self) -> Question:
        """Read the whole text as one question; refuse it with what could stand where it stops being one."""
        self._take(rf"{self._file}(?:\s*[,:])?")
        ranked = self._try(self._ranked)
        if not ranked and (found := self._try(self._rows)):
            return found
        if not ranked:
            self._take(_LEAD)
            self.beginning = self.at
        found = self._clauses(ranked or self._try(self._ranked) or Question(self._figure()))
        return found if self._ended else self._fail()

    def reads(self, text: str) -> bool:
        """Whether a text is a question that can be read: nothing else is advised."""
        with suppress(InvalidInputError):
            return bool(Reader(text, self.table, advises=False).read())
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
        columns = [] if self._take(_ROWS) else self._list(self._column, ",|and") if self._named()[1] else None
        if columns is None or self._take(_HAS):
            return None
        question = self._clauses(Question(Figure("rows", tuple(columns))))
        return question if question.conditions and self._ended else None

    def _ranked(self) -> Question | None:
        """Read `top N KEY by FIGURE`, `which KEY has the highest FIGURE`, or `which KEY has the most rows`."""
        if side := self._take("top|bottom"):
            descending, count = side == "top", self._take(r"[1-9]\d{0,5}")
            key = self._key() if count else None
            if key is None or not self._take("by"):
                return None
            if turned := re.match(r"\s*(?:the )?(lowest|smallest|earliest|highest|largest|latest)\b", self.text[self.at :]):
                said = f"'{side} … by {turned[1]}' may mean the {side} ones of what is {turned[1]} in each, or those that have it."
                raise InvalidInputError(
                    said, hint="Say 'top 3 KEY by maximum COLUMN', 'bottom 3 KEY by minimum COLUMN' or the like."
                )
        else:
            key, count = self._key() if self._take("which|what") else None, "1"
            if key is None or not self._take(_HAVE):
                return None
            descending = bool(side := self._take(_MOST[True]))
            if not (side := side or self._take(_MOST[False])):
                return None
        if (counts := side in ("most", "fewest", "least")) and not self._take(_ROWS):
            self._fail("'Most' and 'fewest' are said of rows, 'the highest' and 'lowest' of figures, as in 'the highest total'.")
        figure = Figure("count") if counts else self._figure()
        return Question(figure, (key,), limit=int(count), descending=descending)

    def _clauses(self, question: Question) -> Question:
        """Read what follows a figure: keys, conditions and the file's name, in any order."""
        keys, conditions = list(question.keys), list(question.conditions)
        may_group = not question.limit and question.figure.operation != "rows"
        while True:
            start = self.at
            self._take(",")
            if self._ended:
                break
            if self._take(self._file):
                continue
            if may_group and (joint := self._take(PER)):
                keys += (groups := self._list(self._key, ",|and|per|by"))
                amounts = [key.column for key in groups if not key.grain and key.column.is_amount and not joint.endswith("by")]
                if amounts and question.figure.columns and question.figure.operation != "nunique":
                    said = f"'{joint} {amounts[0]}' may mean for each number of {amounts[0]}, or divided by it: nothing is divided."
                    raise InvalidInputError(said, hint=f"Say 'by {amounts[0]}' for each number of it.")
            elif self._take(_WHERE):
                conditions += self._list(self._condition, "and")
            elif condition := self._try(self._when):
                conditions.append(condition)
            else:
                self.at = start
                if conditions and re.match(r"\s*or\b", self.text[start:]):
                    self.told[start] = "'or' stands between values of one column; conditions of several are joined by 'and'."
                break
        if len(set(keys)) < len(keys):
            raise InvalidInputError("The question groups by the same column twice.")
        return replace(question, keys=tuple(keys), conditions=tuple(conditions))

    def _figure(self) -> Figure:
        start, (end, _) = self.at, self._named()
        operation = self._one_of(_FIGURES)
        if end > self.at or not operation:  # `Total cost` is a column's name, too
            self.at = start
            self._no_figure()
        if operation in ("count", "nunique"):
            columns = (self._column() or self._fail(_COUNTS),) if operation == "nunique" else ()
            self._take(_ARE)
            return Figure(operation, columns)
        self._take("of")
        here = self.at
        column = self._column() or self._fail("It is not said of which column." * bool(self._take(rf"{PER}|{_WHERE}")), here)
        if column.numbers is None and not (operation in ("min", "max") and column.dates is not None):
            self._no_numbers(column)
        if operation == "sum" and column.why_rate:
            said = f"{column} is taken for a rate, a price of one unit, a state such as a temperature, or a code, {column.why_rate}"
            raise InvalidInputError(f"{said}; these are not added up.", hint=f"Say 'average {column}' or 'maximum {column}'.")
        return Figure(operation, (column,))

    def _no_numbers(self, column: Column) -> NoReturn:
        if not column.different:
            raise InvalidInputError(f"{column} is empty in all rows.", hint="Ask about another column.")
        example = next(iter(column.unread or column.different))
        code = "; what begins with 0, has an E or over 15 digits is taken for a code" * bool(re.fullmatch(CODE, example))
        held = "numbers" if column.dates is not None else "numbers or dates"
        hint = f"Numbers are written {WRITTEN}; dates as in 2024-03-31."
        raise InvalidInputError(f"{column} is not read as {held}: it has cells such as {example!r}{code}.", hint=hint)

    def _no_figure(self) -> NoReturn:
        """Refuse a column without a figure, with all figures; what else stands there is no column alone."""
        counts, at = _COUNTS * bool(self._take("how many|number of")), self.at
        column = self._column() or self._fail(counts)
        if not self._ended and not self._take(rf"{self._file}|{PER}|{_WHERE}|{'|'.join(_WHEN.values())}"):
            self._fail(counts, at)
        figures = "the number of distinct ones, since it holds no numbers"
        if column.dates is not None or column.numbers is not None:
            figures = (
                "minimum or maximum" if column.numbers is None else "total, average, median, minimum, maximum or standard deviation"
            )
        self._fail(f"It is not said which figure of {column} is meant: {figures}. {counts}".strip(), at)

    def _key(self) -> Key | None:
        start, (end, _) = self.at, self._named()
        grain = self._take(f"(?:{'|'.join(GRAINS)})s?").rstrip("s")
        is_name = bool(end) and end == self.at
        if not grain or end > self.at or (is_name and not self._take("of")):
            self.at = start
            column = self._column()
            if others := [str(one) for one in self.table.holding("dates") if grain and is_name and one is not column]:
                hint = f"Say '{grain} of {others[0]}', or write \"{column}\" in quotes for the column."
                raise InvalidInputError(f"{grain!r} may be said of several columns: {column}, {', '.join(others)}.", hint=hint)
            return Key(column) if column else None
        has_name = is_name or self._take("of")
        column = (self._column() or self._fail()) if has_name else self._the_date(lambda one: str(Key(one, grain)))
        if column.dates is None:
            raise InvalidInputError(f"{column} holds no dates.", hint=_DATES)
        return Key(column, grain)

    def _the_date(self, said_of: Callable[[Column], str]) -> Column:
        columns = self.table.holding("dates", in_doubt=True)
        if len(columns) == 1 and columns[0].dates is None:  # one that can be read in two ways says so
            self._no_numbers(columns[0])
        if len(columns) != 1:
            names = ", ".join(map(str, columns))
            said = f"several columns of dates: {names}" if columns else "no column of dates that are read here"
            years = "Such are 2024-03-31 or 31.3.2024; years alone are compared as numbers: 'where COLUMN at least 2005'."
            hint = f"Say which: {' or '.join(repr(said_of(column)) for column in columns)}." if columns else years
            raise InvalidInputError(f"{self.table.name} has {said}.", hint=hint)
        return columns[0]

    def _when(self) -> Condition | None:
        """Read `in 2024`, `since 2024-01-15` or `from 2024-01 to 2024-03`: of the only column of dates."""
        sign = self._one_of(_WHEN)
        if sign:
            is_in = "'In' is said of a date with its year, or of the file; no unit is said, and nothing is converted."
            self.told[self.at] = f"{is_in} {_DATES}" if sign == "=" else _DATES
        first = self._date() if sign else None
        if first is None:
            return None
        last = ((self._date() if self._take("to|until|and") else None) or self._fail()) if sign == "between" else None
        spans = (first, last) if last else (first,)
        if last and all(one.written.isdecimal() for one in spans) and not self._is_of_years(spans):
            said = f"{first.written} and {last.written} are years that no date is of, or numbers of another column."
            raise InvalidInputError(said, hint="Say of which column: 'where COLUMN between A and B'.")
        dates, others = self.table.holding("dates"), [one for one in self.table.columns if sign == "=" and one.is_of_time]
        if dates and (others := [one for one in others if one not in dates and one.values(first.written)]):
            names, hint = [*dates, *others], " or ".join(f"'where {one} is {first.written}'" for one in (*dates, *others))
            said = f"{first.written} may be said of several columns: {', '.join(map(str, names))}."
            raise InvalidInputError(said, hint=f"Say {hint}.")
        return Condition(self._the_date(lambda one: f"where {Condition(one, sign, spans)}"), sign, spans)

    def _is_of_years(self, spans: Iterable[Span]) -> bool:
        """Whether one of some years lies among those of the only column of dates."""
        found = [one.dates.dropna() for one in self.table.holding("dates") if one.dates is not None]
        return len(found) != 1 or any(found[0].min() <= span.last and span.first <= found[0].max() for span in spans)

    def _condition(self) -> Condition | None:
        column = self._column()
        if column is None:
            return None
        self._take(_IS)
        here = self.at
        words = rf"\s*(?:not|missing|{'|'.join(_COMPARISONS.values())})\b(?!\s*[\"“”'`])"
        if column.dates is None and not column.is_numeric and re.match(words, self.text[here:]) and self._value(column):
            said = self._as_said(here, self.at).strip()
            other = f', or {column} is not "{said[4:]}"' * (said[:4].lower() == "not " and bool(column.values(fold(said[4:]))))
            hint = f'Put it in quotes: {column} is "{said}"{other}.'
            raise InvalidInputError(f"{said!r} is a value of {column}, and words of the language.", hint=hint)
        negated = bool(self._take("not"))
        if self._take("missing"):
            if column.values("missing"):
                hint = f'Put it in quotes: {column} is not "missing". Of empty cells nothing can be asked then.'
                raise InvalidInputError(f"'missing' is a value of {column}, and a word of the language.", hint=hint)
            return Condition(column, "is not missing" if negated else "is missing")
        if not negated and (joint := {"between": "and", "from": "to|until"}.get(self._take("between|from"))):
            first = self._span(column) or self._fail()
            return Condition(column, "between", (first, (self._span(column) if self._take(joint) else None) or self._fail()))
        sign = "!=" if negated else self._one_of(_COMPARISONS) or "="
        is_value = sign in ("=", "!=")
        if (not is_value or column.dates is not None or column.holds("numbers")) and (span := self._span(column)):
            return Condition(column, sign, (span, *(self._others(column, sign, self._span) if is_value else ())))
        if not is_value:
            self._fail() if column.dates is not None or column.numbers is not None else self._no_numbers(column)
        if not (values := self._value(column)):
            some = ", ".join(f'"{one}"' if "," in one else one for one in column.different[:8])
            none = f" A cell without one ({column.missing() or 'empty'}) is 'missing'." if column.is_missing.any() else ""
            self._fail(f"Values of {column} are {some}{', …' * (len(column.different) > 8)}.{none}")
        return Condition(column, sign, values=sum(self._others(column, sign, self._value), values))

    def _others(self, column: Column, sign: str, read: Callable[[Column], T | None]) -> list[T]:
        """Read more values: `or VALUE`, `or COLUMN is VALUE`."""

        def another() -> T | None:
            start = self.at
            if sign != "=" or self._named()[1] != [column] or not self._column() or not self._take("is"):
                self.at = start
            return read(column)

        return self._more(another, r", or|,|or")

    def _span(self, column: Column) -> Span | None:
        if column.dates is not None or column.numbers is None:
            return self._date() if column.dates is not None else None
        self.told[self.at] = "A number is written 1000, 1,000 or 1000.5."
        units = "|".join(re.escape(fold(one)) + "s?" * (len(one) > 2) for one in column.units) or "(?!)"
        said = re.search(_NUMBER, self._take(rf"(?:(?:{units}) ?)?{_NUMBER}(?: ?(?:{units}))?"))
        if said is None:
            return None
        units, some = "".join(f" or with {one!r}" for one in column.units), f"{column.numbers.dropna().iloc[0]:g}"
        self.told[self.at] = f"A number of {column} is said alone{units}. It holds such as {some}."
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
            raise InvalidInputError(
                f"{self._as_said(start, self.at).strip()} is not a date of the calendar.", hint=_DATES
            ) from None
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
            self.at, self.far = signs.end(), max(self.far, signs.end())
            return (signs[1],)
        said, is_quoted = self.text[found[0].start() : last.end()], self.text[begin : found[0].start()].strip() != ""
        if not is_quoted and (first := said.partition(" or ")[0]) != said and column.values(first):
            hint = f'Say "{said}" in quotes, or \'{column} is "{first}" or {column} is …\'.'
            raise InvalidInputError(f"{said!r} is a value of {column}, and {first!r} is another.", hint=hint)
        places = [start, self._after(r"\s*", self.at), self._after(r"[\s\"“”'‘`]*", self.at)]
        before = re.sub(r"[\s\"“”'‘’`]", "", self.text[start : found[0].start()])
        places += [found[0].start()] * (not before)
        cells = ((one, fold(one)) for one in values)
        ends = {one: max((at + len(cell) for at in places if self.text.startswith(cell, at)), default=0) for one, cell in cells}
        values = tuple(one for one in values if ends[one] == max(ends.values()))
        if before and not any(ends.values()):
            return ()  # what is no part of the value may turn it round
        if len({fold(one) for one in values}) > 1:
            said = self.text[start : last.end()]
            raise InvalidInputError(f"{said!r} may be said of several values of {column}: {', '.join(map(repr, values))}.")
        self.at = self._after(r"[\"“”'’`]*", max(last.end(), *ends.values()))
        self.far = max(self.far, self.at)
        return values

    def _take(self, words: str) -> str:
        """Take one of these words if it stands here, and the filler before it."""
        # a word ends where it ends: `mean` does not stand in `meaning`, while `>` stands before any figure
        match = re.compile(rf"\s*(?:(?:{FILLER})\s+)*({words})(?:(?<!\w)|(?!\w))").match(self.text, self.at)
        if match is None or not match[1]:
            return ""
        self.at = match.end()
        self.far = max(self.far, self.at)
        return match[1]

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
        self.at, self.far = end or self.at, max(self.far, end)
        if not columns:
            return None
        if len(columns) > 1:
            places = " and ".join(f"'{column}' (column {self.table.columns.index(column) + 1})" for column in columns)
            whole = "Say the whole name, or give" if len({fold(str(column)) for column in columns}) > 1 else "Give"
            hint = f"{whole} them different names in the file."
            raise InvalidInputError(f"{len(columns)} columns of {self.table.name} go by that name: {places}.", hint=hint)
        return columns[0]

    def _list(self, read: Callable[[], T | None], joint: str) -> list[T]:
        return [read() or self._fail(), *self._more(read, joint)]

    def _more(self, read: Callable[[], T | None], joint: str) -> list[T]:
        found = list[T]()
        while more := self._try(lambda: read() if self._take(joint) else None):
            found.append(more)
        return found

    def _try(self, read: Callable[[], T | None]) -> T | None:
        before = self.at
        found = read()
        if not found:
            self.at = before
        return found

    def _fail(self, hint: str = "", at: int | None = None) -> NoReturn:
        """Refuse the question where it was understood last, with what may stand there."""
        at = self.far if at is None else at
        understood, rest = self._as_said(0, at).strip(), self._as_said(at).lstrip(" ,;").rstrip(" ?.!,;")
        if lost := missing(rest, TABLES, [self.table.name]):
            raise InvalidInputError(lost, hint=f"The file that is asked about here is {self.table.name}.")
        after = f" after {understood!r}" * bool(understood)
        said = f"{rest!r} is not understood{after}." if rest else f"Something is missing at the end of {understood!r}."
        if not self.advises:
            raise InvalidInputError(said)
        values = ", ".join(f"'where {column} is {' or '.join(given)}'" for column, given in self._values_in(at).items())
        chosen = f"Rows are chosen as in {values}; 'is not' leaves them out." * bool(values)
        pieces = (one for one in dict.fromkeys(self._pieces()) if self.reads(f"{understood} {one}"))
        goes_on = ", ".join(map(repr, islice(pieces, _ADVISED)))
        stands = f"{'Here may stand' if at > self.beginning else 'Questions are such as'} {goes_on}, …" * bool(goes_on)
        names = (f'"{one}"' if "," in one.name else one.name for one in self.table.columns)
        hints = [hint, chosen, self.told.get(at, ""), stands]
        hints += [f"Columns of {self.table.name}: {', '.join(names)}.", "All forms of a question: docs/questions.md."]
        raise InvalidInputError(said, hint=" ".join(filter(None, hints)))

    def _pieces(self) -> Iterator[str]:
        """Parts of questions of this table, whole ones first, and of the columns that are named: of figures, words and dates."""
        words = set(name_words(self.text))

        def rank(column: Column) -> tuple[int, bool, int]:
            few = column.cells.duplicated().sum()
            return -len(words.intersection(name_words(column.name))), bool(column.is_missing.any()), -few

        columns = sorted(self.table.columns, key=rank)
        figures, dates = ([one for one in columns if one.holds(kind)] for kind in ("numbers", "dates"))
        keys = [one for one in columns if one not in figures and one not in dates and 1 < len(one.different) < self.table.rows]
        keys = [one for one in keys if len({fold(cell) for cell in one.different}) == len(one.different)]
        numbers = [f"{one.numbers.median():g}" for one in figures[:1] if one.numbers is not None]
        times = [f"{one.dates.median():%Y-%m}" for one in dates[:1] if one.dates is not None]
        conditions = [f'{one} is "{one.different[0]}"' for one in keys[:1]]
        conditions += [f"{one} above {number}" for one, number in zip(figures, numbers, strict=False)]
        conditions += [f"{one} since {time}" for one, time in zip(dates, times, strict=False)]
        given: dict[str, list[Any]] = {"figure": figures, "key": keys, "condition": conditions}
        given |= {"date": dates, "number": numbers, "time": times}
        for at in range(_ADVISED):
            filled = {name: some[at] for name, some in given.items() if at < len(some)}
            for piece in _PIECES:
                with suppress(KeyError):
                    yield piece.format_map(filled)

    def _values_in(self, at: int) -> dict[Column, list[str]]:
        """The values that stand behind a place, of each column that holds one, in quotes. A number may be of any."""
        found, end = defaultdict[Column, list[str]](list), at
        for word in re.finditer(r"\w+", self.text[at:]):
            if at + word.start() < end or re.fullmatch(rf"{FILLER}|{'|'.join(_FIGURES.values())}", word[0]):
                continue
            of_word = list[tuple[int, Column, str]]()
            for column in self.table.columns:
                self.at = at + word.start()
                with suppress(InvalidInputError):
                    values = () if column.is_numeric else self._value(column)
                    spelled = max(values, key=lambda one: one in self.said, default="")
                    stands = self.text.startswith(fold(spelled), at + word.start())
                    is_part = re.match(r"[/.:-]\w", self.text[self.at :]) or re.search(r"\w[/.:-]$", self.text[: at + word.start()])
                    is_number = column.holds("numbers") or re.fullmatch(rf"(?!0\d){_NUMBER}", spelled)
                    is_code = stands and not is_number and not is_part
                    is_fit = is_code if re.search(r"\d", spelled) else spelled
                    if is_fit and self.reads(f'how many rows where {column} is "{spelled}"'):
                        of_word.append((self.at, column, f'"{spelled}"'))
            end = max((stop for stop, *_ in of_word), default=end)
            for stop, column, spelled in of_word:
                if stop == end and spelled not in found[column]:  # `No` is a part of `No. 3`
                    found[column].append(spelled)
        return found
