"""The language of questions about a table, read strictly: docs/questions.md is its one page.

A question is read from left to right. Its fixed words are those below; every other word is a column's name, or a value that is
in the table. Nothing is skipped, and nothing is chosen: what can mean two things is refused with both, and what cannot be read
is refused with where it was understood last.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NoReturn, TypeVar

import pandas as pd

from ioa import InvalidInputError
from request import TABLES, fold, not_there, words_of_names
from tables import Column, Table

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
_HAS = rf"(?:has|have|had|with) (?:the )?(?=(?:{_MOST[True]}|{_MOST[False]})\b)"
_COMPARISONS = {
    ">=": r">=|at least|since", "<=": r"<=|at most|until", ">": r">(?=[\s\d.-])|above|over|more than|after",
    "<": r"<(?=[\s\d.-])|below|under|less than|fewer than|before", "=": r"=|in",
}  # fmt: skip
GRAINS = {"day": "D", "month": "M", "quarter": "Q", "year": "Y"}
PER = r"per|by|grouped by|for every|(?:for|in|of|from) each"
_WHERE = r"(?:that |which )?(?:have|has)|where|with|whose"
_LIST = r"(?:please )?(?:list|show|find|give me|which|what)(?: me)?"
_ARE, _IS = r"are there|there are|are", r"is|are|was|were|of"
_WHEN = {"=": "in|on", ">=": "since", "between": "from", ">": "after", "<": "before", "<=": "until"}
_MONTH = "|".join(filter(None, (*calendar.month_name, *calendar.month_abbr))).lower()
_DAY = rf"(?:\d\d? )?(?:{_MONTH}) \d{{4}}|(?:{_MONTH}) \d\d?, ?\d{{4}}"
DATE = rf"(?:\d{{4}}(?:-\d\d(?:-\d\d)?)?|{_DAY}|q[1-4] \d{{4}})(?![\w.,-]*\d)"
_DATES = "Dates are written 2024, 2024-03, 2024-03-31, March 2024, 31 March 2024 or Q1 2024."
_COUNTS = "'how many rows' counts rows, 'number of distinct COLUMN' counts the different cells of a column."
_KEYS = "A KEY is a COLUMN, or 'day', 'month', 'quarter' or 'year' of one."
_AMOUNTS, _OF_TIME = "above | below | at least | at most NUMBER", "in | since | before | after | until DATE"
_CONDITIONS = f"A condition is 'COLUMN is VALUE', 'is not', 'is missing', '{_AMOUNTS}', '{_OF_TIME}' or 'between A and B'."
_RANKS = "Here may stand has the highest | lowest FIGURE, or has the most | fewest rows."
_NUMBER = r"-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w,.]*\d)"
_VALUE_WORDS = 10
_BEGINNINGS = "A question begins with a figure, such as 'total COLUMN' or 'how many rows', 'top 3 KEY by' one or 'list rows'."

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
    values: tuple[object, ...] = ()

    def __str__(self) -> str:
        shown = [span.written for span in self.spans] or [str(value) for value in self.values]
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

    def __init__(self, text: str, table: Table) -> None:
        self.text, self.table, self.at, self.far = fold(" ".join(text.split())), table, 0, 0
        self.begins, self.could_stand = 0, dict[int, str]()
        name = re.escape(fold(table.name))
        self._file = rf"(?:(?:in|of|from|for|on|does) )?(?:the )?(?:file )?{name}(?!\.?\w)(?: (?:have|has)(?=\W*$))?"

    def question(self) -> Question:
        """Read the question; refuse what cannot be read, or in two ways."""
        self._take(rf"{self._file}(?:\s*[,:])?")
        if found := self._try(self._rows):
            return found
        self._take(_LEAD)
        self.begins = max(self.begins, self.at)
        found = self._clauses(self._try(self._ranked) or Question(self._figure()))
        if not self._ended:
            other = re.match(r"\s*(?:[,;?.!]|and\b)\s*(.*)", self.text[self.at :])
            self._fail(f"If {other[1]!r} is another question, make the questions the items of a list." if other else "")
        return found

    @property
    def _ended(self) -> bool:
        return re.fullmatch(rf"(?:[\s.?!,;]|\b(?:{FILLER})\b)*", self.text[self.at :]) is not None

    def _rows(self) -> Question | None:
        """Read `list rows where …` or `which COLUMN have …`: the rows themselves."""
        if not self._take(_LIST):
            return None
        self.begins = self.at
        columns = [] if self._take(_ROWS) else self._list(self._column, ",|and") if self._named()[1] else None
        if columns is None or self._take(_HAS):
            return None
        question = self._clauses(Question(Figure("rows", tuple(columns))))
        return question if question.conditions and self._ended else None

    def _ranked(self) -> Question | None:
        """Read `top N KEY by FIGURE`, `which KEY has the highest FIGURE`, or `which KEY has the most rows`."""
        if side := self._take("top|bottom"):
            descending, count = side == "top", self._take(r"\d{1,6}")
            key = self._key() if count else None
            if key is None or not self._take("by"):
                return None
        else:
            key, count = self._key() if self._take("which|what") else None, "1"
            self.could_stand[self.at] = f"{_RANKS * bool(key)} {self.could_stand.get(self.at, '')}".strip()
            if key is None or not self._take(_HAS):
                return None
            descending = bool(side := self._take(_MOST[True]))
            side = side or self._take(_MOST[False])
        if (counts := side in ("most", "fewest", "least")) and not self._take(_ROWS):
            self._fail("'Most' and 'fewest' are said of rows: 'which KEY has the most rows'.")
        figure = Figure("count") if counts else self._figure()
        return Question(figure, (key,), limit=int(count), descending=descending)

    def _clauses(self, question: Question) -> Question:
        """Read what follows a figure: keys, conditions and the file's name, in any order."""
        keys, conditions = list(question.keys), list(question.conditions)
        may_group = not question.limit and question.figure.operation != "rows"
        text = f"Here may stand {'per KEY, ' * may_group}where CONDITION, {_OF_TIME}, or from DATE to DATE. {_CONDITIONS}"
        while True:
            start = self.at
            self._take(",")
            self.could_stand.setdefault(self.at, text)
            if self._ended:
                break
            if self._take(self._file):
                continue
            if may_group and self._take(PER):
                keys += self._list(self._key, ",|and|per|by", _KEYS)
            elif self._take(_WHERE):
                conditions += self._list(self._condition, "and", _CONDITIONS)
            elif condition := self._try(self._when):
                conditions.append(condition)
            else:
                self.at = start
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
            columns = (self._column() or self._fail(self._counts()),) if operation == "nunique" else ()
            self._take(_ARE)
            return Figure(operation, columns)
        self._take("of")
        if not (column := self._column()):
            self._fail(f"Columns of numbers: {', '.join(map(str, self.table.holding('numbers'))) or 'none'}.")
        if column.numbers is None and not (operation in ("min", "max") and column.dates is not None):
            self._no_numbers(column)
        if operation == "sum" and column.why_rate:
            said = f"{column} is taken for a rate, a price of one unit, a state such as a temperature, or a code, {column.why_rate}"
            raise InvalidInputError(f"{said}; these are not added up.", hint=f"Say 'average {column}' or 'maximum {column}'.")
        return Figure(operation, (column,))

    def _no_numbers(self, column: Column) -> NoReturn:
        example = next(iter(column.cells.dropna().astype(str)), "")
        code = "; a number that begins with 0 is taken for a code" * bool(re.fullmatch(r"0\d+", example))
        held = "numbers" if column.dates is not None else "numbers or dates that are read here"
        raise InvalidInputError(f"{column} holds no {held}, but cells such as {example!r}{code}.")

    def _no_figure(self) -> NoReturn:
        """Refuse a column without a figure, with each figure that can be said of it; what else stands there is no column alone."""
        counts, at = self._counts() if self._take("how many|number of") else "", self.at
        column = self._column() or self._fail(counts)
        if not self._ended and not self._take(rf"{self._file}|{PER}|{_WHERE}|{'|'.join(_WHEN.values())}"):
            self._fail(counts, at)
        amounts = ["sum"] * (not column.why_rate) + ["mean", "max"] if column.holds("numbers") else []
        said = " or ".join(repr(str(Figure(one, (column,)))) for one in [*amounts, "nunique"])
        self._fail(f"It is not said what to compute of {column}: {said}. {counts}".strip(), at)

    def _counts(self) -> str:
        """What may be meant by `how many`: rows, different cells, or the total of a column that can be added up."""
        added = " or ".join(f"'total {one}'" for one in self.table.holding("numbers") if not one.why_rate)
        return f"{_COUNTS}{f' A column is added up by {added}.' * bool(added)}"

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
        columns = self.table.holding("dates")
        if len(columns) != 1:
            _ = [column.dates for column in self.table.columns]  # one that can be read in two ways says so
            names = ", ".join(map(str, columns))
            said = f"several columns of dates: {names}" if columns else "no column of dates that are read here"
            years = "Such are 2024-03-31 or 31.3.2024; years alone are compared as numbers: 'where COLUMN at least 2005'."
            hint = f"Say which: {' or '.join(repr(said_of(column)) for column in columns)}." if columns else years
            raise InvalidInputError(f"{self.table.name} has {said}.", hint=hint)
        return columns[0]

    def _when(self) -> Condition | None:
        """Read `in 2024`, `since 2024-01-15` or `from 2024-01 to 2024-03`: of the only column of dates."""
        sign = self._one_of(_WHEN)
        first = self._date() if sign else None
        if first is None:
            return None
        last = ((self._date() if self._take("to|until") else None) or self._fail()) if sign == "between" else None
        spans = (first, last) if last else (first,)
        dates, others = self.table.holding("dates"), [one for one in self.table.columns if sign == "=" and one.is_of_time]
        if dates and (others := [one for one in others if one not in dates and one.values(first.written)]):
            names, hint = [*dates, *others], " or ".join(f"'where {one} is {first.written}'" for one in (*dates, *others))
            said = f"{first.written} may be said of several columns: {', '.join(map(str, names))}."
            raise InvalidInputError(said, hint=f"Say {hint}.")
        return Condition(self._the_date(lambda one: f"where {Condition(one, sign, spans)}"), sign, spans)

    def _condition(self) -> Condition | None:
        column = self._column()
        if column is None:
            return None
        self._take(_IS)
        here = self.at
        if re.match(r"\s*(?:not|missing)\b", self.text[here:]) and self._value(column):
            said = self.text[here : self.at].strip()
            said, hint = f"{said!r} is a value of {column}, and words of the language.", f'Put it in quotes: {column} is "{said}".'
            raise InvalidInputError(said, hint=hint)
        negated = bool(self._take("not"))
        if self._take("missing"):
            return Condition(column, "is not missing" if negated else "is missing")
        if not negated and (joint := {"between": "and", "from": "to|until"}.get(self._take("between|from"))):
            first = self._span(column) or self._fail()
            return Condition(column, "between", (first, (self._span(column) if self._take(joint) else None) or self._fail()))
        sign = "!=" if negated else self._one_of(_COMPARISONS) or "="
        is_value = sign in ("=", "!=")
        if (not is_value or column.dates is not None or column.holds("numbers")) and (span := self._span(column)):
            return Condition(column, sign, (span, *self._more(lambda: self._span(column), r", or|,|or")) if is_value else (span,))
        if not is_value:
            self._fail() if column.dates is not None or column.numbers is not None else self._no_numbers(column)
        if not (values := self._value(column)):
            some = ", ".join(map(str, column.different[:8]))
            none = f" A cell without one ({column.missing() or 'empty'}) is 'missing'." if column.cells.isna().any() else ""
            self._fail(f"Values of {column} are {some}{', …' * (len(column.different) > 8)}.{none} {_CONDITIONS}")
        return Condition(column, sign, values=sum(self._more(lambda: self._value(column), r", or|,|or"), values))

    def _span(self, column: Column) -> Span | None:
        if column.dates is not None or column.numbers is None:
            return self._date() if column.dates is not None else None
        self.could_stand[self.at] = "Numbers are written 1000, 1,000 or 1000.5."
        units = "|".join(re.escape(fold(one)) + "s?" * (len(one) > 2) for one in column.units) or "(?!)"
        said = re.search(_NUMBER, self._take(rf"(?:(?:{units}) ?)?{_NUMBER}(?: ?(?:{units}))?"))
        if said is None:
            return None
        self.could_stand[self.at] = f"A number of {column} is said alone{''.join(f' or with {one!r}' for one in column.units)}."
        if column.has_decimal_commas and re.fullmatch(r"-?\d{1,3}[.,]\d{3}", said[0]):
            hint = f"Write {said[0].translate({44: None, 46: None})} or {said[0].replace(',', '.')}0."
            raise InvalidInputError(f"{said[0]} can be read in two ways: with a sign for thousands, or for decimals.", hint=hint)
        number = said[0].replace(",", "")
        return Span(number, float(number), float(number))

    def _date(self) -> Span | None:
        self.could_stand[self.at] = f"Here may stand a date. {_DATES}"
        if not (text := self._take(DATE)):
            return None
        try:
            period = pd.Period(re.sub(r"(q\d) (\d+)", r"\2\1", text))
        except ValueError:
            raise InvalidInputError(f"{text} is not a date of the calendar.", hint=_DATES) from None
        return Span(str(period), period.start_time, period.end_time)

    def _value(self, column: Column) -> tuple[object, ...]:
        """Read the next words, the most first, as a value of a column, and the signs around them that belong to it."""
        word, start = re.compile(r"[^\W_]+"), self._after(r"\s*(?:the )?", self.at)
        found = list(word.finditer(self.text, start))[:_VALUE_WORDS]
        for last, begin in product(reversed(found), dict.fromkeys((start, self.at))):
            if values := column.values(" ".join(word.findall(self.text[begin : last.end()]))):
                break
        else:  # a cell of signs, such as `?`
            signs = re.compile(r"[\s\"“”'`]*([^\w\s\"“”'’`]+)[\"“”'’`]*").match(self.text, self.at)
            if signs is None or signs[1] not in column.different:
                return ()
            self.at, self.far = signs.end(), max(self.far, signs.end())
            return (signs[1],)
        places = start, found[0].start(), self._after(r"\s*", self.at), self._after(r"[\s\"“”'‘`]*", self.at)
        cells = ((one, fold(str(one))) for one in values)
        ends = {one: max((at + len(cell) for at in places if self.text.startswith(cell, at)), default=0) for one, cell in cells}
        values = tuple(one for one in values if ends[one] == max(ends.values()))
        if len({fold(str(one)) for one in values}) > 1:
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

    def _list(self, read: Callable[[], T | None], joint: str, hint: str = "") -> list[T]:
        return [read() or self._fail(hint), *self._more(read, joint)]

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
        """Refuse the question where it was understood last, with what could stand there."""
        at = self.far if at is None else at
        understood, rest = self.text[:at].strip(), self.text[at:].strip(" ?.!,;")
        after = f" after {understood!r}" * bool(understood)
        said = f"{rest!r} is not understood{after}." if rest else f"Something is missing at the end of {understood!r}."
        files = not_there((word for word in words_of_names(rest) if word not in fold(self.table.name)), TABLES)
        columns = f"Columns of {self.table.name}: {', '.join(map(str, self.table.columns))}."
        hints = [hint, self.could_stand.get(at, ""), _BEGINNINGS * (at <= self.begins), columns]
        chosen = next(filter(None, (self._choosing(at + word.start()) for word in re.finditer(r"\w+", self.text[at:]))), [])
        hints.append(f"Rows are chosen as in {' or '.join(chosen)}; 'is not' leaves them out." * bool(chosen))
        hints.append("All forms of a question: docs/questions.md.")
        raise InvalidInputError(files or said, hint=" ".join(filter(None, hints)))

    def _choosing(self, at: int) -> list[str]:
        """How rows are chosen by the value or date that stands there: of each column that holds it."""
        found = list[str]()
        for column in self.table.columns:
            self.at = at
            with suppress(InvalidInputError):
                if column.dates is None:
                    found += [f"'where {column} is \"{one}\"'" for one in (() if column.is_numeric else self._value(column))[:1]]
                elif (date := self._date()) and column.dates.between(date.first, date.last).any():
                    found.append(f"'where {column} is {date.written}'")
        return found
