"""The language of questions about a table, read strictly: docs/questions.md is its one page.

A question is read from left to right. Its fixed words are those below; every other word is a column's name, or a value that is
in the table. What is neither is refused, with what was understood until there. Nothing is skipped, and nothing is chosen: what
can mean two things is refused with both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, NoReturn, TypeVar

import pandas as pd

from ioa import InvalidInputError
from tables import Column, Table
from words import fold

_LEAD = r"(?:please )?(?:what(?:'s| is| are| was| were)|compute|calculate|show|give|tell|find)?(?: me)?"
_FILLER = r"the|an|a|all|please"
_FIGURES = {
    "count": r"how many|(?:total )?number of|count(?: of)?", "correlation": r"correlation (?:between|of)",
    "sum": r"sum|total", "mean": r"average|mean", "median": r"median", "std": r"standard deviation",
    "min": r"minimum|min|lowest|smallest|earliest", "max": r"maximum|max|highest|largest|latest",
}  # fmt: skip
_SPOKEN = {"std": "standard deviation", "mean": "average", "min": "minimum", "max": "maximum", "distinct": "number of distinct"}
_SIGNS = {"*": r"times|multiplied by|\*|×", "/": r"divided by|/|÷", "+": r"plus|\+", "-": r"minus|-|−"}
_COMPARISONS = {
    ">=": r">=|at least|no less than|since", "<=": r"<=|at most|no more than|up to|until", "!=": r"!=|not equal to",
    ">": r">|above|over|more than|greater than|after", "<": r"<|below|under|less than|fewer than|before", "=": r"=|equals|equal to|one of|in",
}  # fmt: skip
_GRAINS = "day|week|month|quarter|year|weekday"
_ROWS = r"rows?|records?"
_PER = r"per|by|grouped by|for each|for every|in each"
_WHERE = r"where|with|whose|having|have|has|that have"
_IN = r"in|for|from|on|during"
_EXCEPT = r"excluding|except for|except|not in|not from|not for"
_DATE = r"\d{4}(?:-\d\d(?:-\d\d)?)?(?![\w.,-]*\d)"
_DATES = "Dates are written 2024, 2024-03 or 2024-03-31."
_NUMBER = r"-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w,.]*\d)"

T = TypeVar("T")


@dataclass(frozen=True)
class Figure:
    """What is computed of columns: one, two with a sign between them, or none when rows are counted."""

    operation: str
    columns: tuple[Column, ...] = ()
    sign: str = ""

    def __str__(self) -> str:
        match self.operation:
            case "count":
                return "number of rows"
            case "correlation":
                return f"correlation between {self.columns[0]} and {self.columns[1]}"
            case "distinct":
                return f"number of distinct {self.columns[0]}"
        return f"{_SPOKEN.get(self.operation, self.operation)} of {f' {self.sign} '.join(map(str, self.columns))}"


@dataclass(frozen=True)
class Key:
    """What rows are grouped by: a column, or the day, week, month, quarter, year or weekday of a date."""

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
    """One question, understood."""

    figure: Figure
    keys: tuple[Key, ...] = ()
    conditions: tuple[Condition, ...] = ()
    limit: int = 0
    descending: bool = False


def understand(text: str, tables: Sequence[Table]) -> list[tuple[Table, Question]]:
    """Read one or several questions, each about one of the tables.

    Raises:
        InvalidInputError: A word is not accounted for, or a question can be read in two ways.
    """
    readers = [_Reader(text, table) for table in tables]
    found: list[tuple[Table, Question]] = []
    at, joint = 0, ""
    while True:
        fitting, errors = [], []
        for reader in readers:
            reader.at = reader.far = at
            try:
                fitting.append((reader, *reader.question()))
            except InvalidInputError as error:
                errors.append((reader.far, error))
        if not fitting:
            raise max(errors, key=lambda one: one[0])[1]
        if len(fitting) > 1:
            names = " and ".join(reader.table.name for reader, *_ in fitting)
            raise InvalidInputError(f"The question fits {names}.", hint="Ask for each by itself and say which, as in '… in FILE'.")
        reader, question, more = fitting[0]
        bare = found and not (found[-1][1].keys or found[-1][1].conditions)
        if bare and ("and" in joint or "," in joint) and (question.keys or question.conditions):
            raise InvalidInputError(
                f"{text!r} can be read in two ways: what is said last may hold for the last figure, or for all.",
                hint="Ask one question at a time, or say it for each.",
            )
        found.append((reader.table, question))
        if not more:
            return found
        at, joint = reader.at, more


def understand_plot(text: str, table: Table) -> Question:
    """Read `COLUMN`, or `COLUMN against COLUMN`, with conditions: what a histogram or a scatter plot is of.

    Raises:
        InvalidInputError: As for `understand`.
    """
    return _Reader(text, table).plot()


class _Reader:
    def __init__(self, text: str, table: Table) -> None:
        self.text, self.table, self.at, self.far = fold(" ".join(text.split())), table, 0, 0
        name = re.escape(fold(table.name))
        has = r"(?: (?:have|has)(?=\W*$|\W*\band\b))?"
        self.file = rf"(?:(?:in|of|from|for|on|using|does) )?(?:the )?(?:file )?{name}(?!\.?\w){has}"

    # -- the shape of a question ---------------------------------------------------------------------------------------------

    def question(self) -> tuple[Question, str]:
        """Read the question that stands here, and what joins it to the next; empty at the end."""
        if self._take(self.file):
            self._take("[,:]")
        self._take(_LEAD)
        question = self._clauses(self._try(self._ranked) or Question(self._figure()))
        joint = "" if self._ended() else self._take(r"[,;.?!]? ?(?:and then|and also|and|then|also)|[,;.?!]") or self._fail()
        return question, "" if self._ended() else joint

    def plot(self) -> Question:
        columns = self._list(self._column, "against|and|versus|,")
        question = self._clauses(Question(Figure("values", tuple(columns))))
        return question if self._ended() else self._fail()

    def _ended(self) -> bool:
        return re.fullmatch(r"[\s.?!,;]*", self.text[self.at :]) is not None

    def _ranked(self) -> Question | None:
        """Read `top N KEY by FIGURE`, `which KEY has the highest FIGURE`, or `which KEY has the most rows`."""
        if side := self._take("top|bottom"):
            count = self._take(r"\d{1,6}")
            key = self._key() if count else None
            if key is None or not self._take("by"):
                return None
            return Question(self._figure(), (key,), limit=int(count), descending=side == "top")
        key = self._key() if self._take("which|what") else None
        if key is None or not self._take("has|have|had|with"):
            return None
        if side := self._take("most|fewest|least"):
            return Question(Figure("count"), (key,), limit=1, descending=side == "most") if self._take(_ROWS) else None
        side = self._take("highest|largest|lowest|smallest")
        return Question(self._figure(), (key,), limit=1, descending=side in ("highest", "largest")) if side else None

    def _clauses(self, question: Question) -> Question:
        keys, conditions = list(question.keys), list(question.conditions)
        while not self._ended():
            start = self.at
            self._take(",")
            if self._take(self.file):
                continue
            if not question.limit and question.figure.operation not in ("values", "correlation") and self._take(_PER):
                keys += self._list(self._key, ",|and|per|by")
            elif self._take(_WHERE):
                conditions += self._list(self._condition, "and")
            elif condition := self._try(self._since) or self._try(self._within):
                conditions.append(condition)
            else:
                self.at = start
                break
        if len({(key.column, key.grain) for key in keys}) < len(keys):
            raise InvalidInputError("The question groups by the same column twice.")
        return replace(question, keys=tuple(keys), conditions=tuple(conditions))

    # -- figures -------------------------------------------------------------------------------------------------------------

    def _figure(self) -> Figure:
        named = self._column_here()
        operation = next((operation for operation, words in _FIGURES.items() if self._take(words)), "")
        if named and named[0] > self.at:  # `Total cost` is a column's name, too
            self._say_figure(named[1][0])
        if operation == "count":
            return self._counted()
        if operation == "correlation":
            return Figure(operation, (self._number(), self._number("and")))
        if not operation:
            self._fail()
        self._take("of")
        first = self._column() or self._fail()
        sign = next((sign for sign, words in _SIGNS.items() if self._take(words)), "")
        if not sign and operation in ("min", "max") and first.dates is not None:
            return Figure(operation, (first,))
        columns = (self._numeric(first), self._number()) if sign else (self._numeric(first),)
        return self._checked(Figure(operation, columns, sign))

    def _counted(self) -> Figure:
        counted = Figure("distinct", (self._column() or self._fail(),)) if self._take("distinct|different|unique") else None
        if counted is None and not self._take(_ROWS):
            if column := self._peek_column():
                self._say_figure(column)
            self._fail("Rows are counted by 'how many rows', values by 'number of distinct COLUMN'.")
        self._take("are there|there are|are")
        return counted or Figure("count")

    def _say_figure(self, column: Column) -> NoReturn:
        figures = ["average", "maximum", "number of distinct"]
        if column in self.table.amounts:
            figures.insert(0, "total")
        raise InvalidInputError(
            f"It is not said in {self.text!r} what to compute of {column}.",
            hint=f"Say '{figures[0]} {column}', {', '.join(figures[1:])} or 'how many rows'. {self._sentence()}",
        )

    def _number(self, joint: str = "") -> Column:
        if joint and not self._take(joint):
            self._fail()
        return self._numeric(self._column() or self._fail())

    def _numeric(self, column: Column) -> Column:
        if column.numbers is None:
            found = ", ".join(map(str, self.table.those(lambda one: one.numbers is not None))) or "none"
            example = next(iter(column.cells.dropna().astype(str)), "")
            raise InvalidInputError(
                f"{column} holds no numbers, but cells such as {example!r}.", hint=f"Columns of numbers: {found}."
            )
        return column

    def _checked(self, figure: Figure) -> Figure:
        """Refuse the sum of rates: a rate times an amount is an amount, an amount over one is a rate, as units are."""
        reasons, what = [column.why_rate for column in figure.columns], f" {figure.sign} ".join(map(str, figure.columns))
        if figure.sign in ("*", "/") and any(column.is_per_cent for column in figure.columns):
            raise InvalidInputError(f"A column is in per cent, so that {what} would be a hundred times too much.")
        is_rate = all(reasons) if figure.sign == "*" else any(reasons) or figure.sign == "/"
        if figure.operation == "sum" and is_rate:
            why = next(filter(None, reasons), "since it is a ratio")
            amount = next((one for one in self.table.amounts if not figure.sign and not figure.columns[0].is_per_cent), None)
            raise InvalidInputError(
                f"{what} is taken for a rate or a price of one unit, {why}; rates are not added up.",
                hint=f"Say 'average {what}'" + (f", or 'total of {amount} times {what}'." if amount else "."),
            )
        return figure

    # -- keys and conditions -------------------------------------------------------------------------------------------------

    def _key(self) -> Key | None:
        if column := self._column():
            return Key(column)
        grain = self._take(f"(?:{_GRAINS})s?").rstrip("s")
        if not grain:
            return None
        column = (self._column() or self._fail()) if self._take("of") else self._the_date()
        if column.dates is None:
            raise InvalidInputError(f"{column} holds no dates.", hint=_DATES)
        return Key(column, grain)

    def _the_date(self) -> Column:
        columns = self.table.date_columns
        if len(columns) == 1:
            return columns[0]
        for column in self.table.columns:
            _ = column.dates  # one that can be read in two ways says so
        said = f"several columns of dates: {', '.join(map(str, columns))}" if columns else "no column of dates"
        hint = f"Say 'per month of {columns[0]}' or 'where {columns[0]} is 2024-03'." if columns else ""
        raise InvalidInputError(f"{self.table.name} has {said}.", hint=hint)

    def _since(self) -> Condition | None:
        """Read `since 2024-01-15` or `between 2024-01 and 2024-03`: of the only column of dates."""
        if first := self._try(lambda: self._date() if self._take("between|from") else None):
            if self._take("and|to|until"):
                return Condition(self._the_date(), "between", (first, self._date() or self._fail()))
            return Condition(self._the_date(), ">=", (first,))
        sign = next(
            (sign for sign, words in ((">=", "since"), (">", "after"), ("<", "before"), ("<=", "until")) if self._take(words)), ""
        )
        span = self._date() if sign else None
        return Condition(self._the_date(), sign, (span,)) if span else None

    def _within(self) -> Condition | None:
        """Read `in VALUE`, `excluding VALUE` or `in 2024-03`: of the only column that holds it."""
        sign = "!=" if self._take(_EXCEPT) else "=" if self._take(_IN) else ""
        if not sign:
            return None
        if sign == "=" and (condition := self._try(self._condition)):
            return condition
        start, ends, found = self.at, 0, list[Condition]()
        for column in self.table.columns:
            self.at = start
            if values := self._value(column):
                found = [
                    *(found if self.at == ends else () if self.at > ends else found),
                    Condition(column, sign, values=tuple(values)),
                ]
                ends = max(ends, self.at)
        self.at = start
        if (span := self._date()) and self.at >= ends:
            dated = self.table.date_columns if found and self.at == ends else [self._the_date()]
            found, ends = [*(found if self.at == ends else ()), *(Condition(column, sign, (span,)) for column in dated)], self.at
        if not found:
            self._fail()
        self.at = ends
        if len(found) > 1:
            names = [str(one.column) for one in found]
            raise InvalidInputError(
                f"{self.text[start:ends].strip()!r} stands in several columns of {self.table.name}: {', '.join(names)}.",
                hint=f"Say which is meant, as in 'where {str(found[0]).replace('is not', 'is')}'.",
            )
        condition = self._or_values(found[0]) if found[0].values else found[0]
        self._try(lambda: self._column() if self._peek_column() is condition.column else None)  # `in the North region`
        return condition

    def _condition(self) -> Condition | None:
        column = self._column()
        if column is None:
            return None
        verb, here = self._take("is|are|was|were|of"), self.at
        if re.match(r"\s*(?:not|missing|empty)\b", self.text[here:]) and (literal := self._value(column)):
            raise InvalidInputError(
                f"{self.text[here : self.at].strip()!r} is a value of {column}, and words of the language.",
                hint=f"Put it in quotes: 'where {column} is \"{literal[0]}\"'.",
            )
        negated = bool(self._take("not"))
        if (verb or negated) and self._take("missing|empty"):
            return Condition(column, "is not missing" if negated else "is missing")
        if not negated and self._take("between"):
            first = self._span(column) or self._fail()
            return Condition(column, "between", (first, (self._span(column) if self._take("and") else None) or self._fail()))
        sign = "=" if negated else next((sign for sign, words in _COMPARISONS.items() if self._take(words)), "=")
        if span := self._span(column):
            return Condition(column, "!=" if negated else sign, (span,))
        if sign not in ("=", "!="):
            self._fail()
        values = self._value(column) or self._unknown_value(column)
        return self._or_values(Condition(column, "!=" if negated else sign, values=tuple(values)))

    def _or_values(self, condition: Condition) -> Condition:
        while more := self._try(lambda: self._value(condition.column) if self._take(r", or|,|or") else None):
            condition = replace(condition, values=(*condition.values, *more))
        return condition

    def _span(self, column: Column) -> Span | None:
        if column.dates is not None:
            return self._date()
        start = self.at
        number = self._take(_NUMBER).replace(",", "") if column.numbers is not None else ""
        if not number or (self._take("%|per cent|percent") and not column.is_per_cent):
            self.at = start
            return None
        return Span(f"{float(number):g}" if abs(float(number)) < 1e6 else number, float(number), float(number))

    def _date(self) -> Span | None:
        text = self._take(_DATE)
        if not text:
            return None
        try:
            start = pd.Timestamp(text)
        except ValueError:
            raise InvalidInputError(f"{text} is not a date.", hint=_DATES) from None
        step = {4: pd.DateOffset(years=1), 7: pd.DateOffset(months=1)}.get(len(text), pd.DateOffset(days=1))
        return Span(text, start, start + step - pd.Timedelta(1, "ns"))

    def _value(self, column: Column) -> list[object] | None:
        """Read a quotation, or the next words, the most first, as a value of a column."""
        start = self.at
        self._try(lambda: self._take(r"(?:the )?(?=[\"“”'‘`])"))
        if quoted := re.compile(r"\s*[\"“”'‘`]([^\"“”'’`]+)[\"“”'’`]").match(self.text, self.at):
            candidates = [(quoted[1], quoted.end())]
        else:
            ends = [match.end() for match in re.compile(r"[^\W_]+").finditer(self.text, self.at)][:10]
            candidates = [(self.text[self.at : end], end) for end in reversed(ends)]
        for written, end in candidates:
            words = " ".join(re.sub(r"[\W_]+", " ", written).split())
            for one in (words, words.removeprefix("the "), words.removesuffix("s"), words.removeprefix("the ").removesuffix("s")):
                if one in column.values:
                    self.at, self.far = end, max(self.far, end)
                    return column.values[one]
        self.at = start
        return None

    # -- words ---------------------------------------------------------------------------------------------------------------

    def _take(self, words: str) -> str:
        """Take one of these words if it stands here, and the filler before it."""
        # a word ends where it ends: `mean` does not stand in `meaning`, while `>` stands before any figure
        match = re.compile(rf"\s*(?:(?:{_FILLER})\s+)*({words})(?:(?<!\w)|(?!\w))").match(self.text, self.at)
        if match is None or not match[1]:
            return ""
        self.at = match.end()
        self.far = max(self.far, self.at)
        return match[1]

    def _column_here(self) -> tuple[int, list[Column]] | None:
        """The longest name of a column that stands here, and the columns that have it."""
        start = self._after(r"[\s\"“”'`]*", self.at)
        found = [
            (match.end(), column)
            for column in self.table.columns
            for name in column.patterns
            if (match := name.match(self.text, start))
        ]
        end = max((end for end, _ in found), default=0)
        columns = list(dict.fromkeys(column for one, column in found if one == end))
        exact = [column for column in columns if fold(column.name) == self.text[start:end]]
        return (self._after(r"[\"“”'`]*", end), exact if len(exact) == 1 else columns) if found else None

    def _after(self, pattern: str, at: int) -> int:
        match = re.compile(pattern).match(self.text, at)
        return match.end() if match else at

    def _column(self) -> Column | None:
        before = self.at
        here = self._column_here()
        if here is None:
            self.at = self._after(rf"\s*(?:(?:{_FILLER})\b\s*)*", self.at)
            here = self._column_here()
        if here is None:
            self.at = before
            return None
        self.at, columns = here
        self.far = max(self.far, self.at)
        if len(columns) > 1:
            places = " and ".join(f"'{column}' (column {self.table.columns.index(column) + 1})" for column in columns)
            raise InvalidInputError(
                f"{len(columns)} columns of {self.table.name} go by that name: {places}.",
                hint="Say the whole name, or give them different names in the file.",
            )
        return columns[0]

    def _peek_column(self) -> Column | None:
        before = self.at
        column = self._column()
        self.at = before
        return column

    def _list(self, read: Callable[[], T | None], joint: str) -> list[T]:
        found = [read() or self._fail()]
        while (more := self._try(lambda: read() if self._take(joint) else None)) is not None:
            found.append(more)
        return found

    def _try(self, read: Callable[[], T | None]) -> T | None:
        before = self.at
        found = read()
        if not found:
            self.at = before
        return found

    # -- refusals ------------------------------------------------------------------------------------------------------------

    def _unknown_value(self, column: Column) -> NoReturn:
        rest, known = self.text[self.at :].strip(" ?.!"), list(column.values)[:5_000]
        near = get_close_matches(rest, known, 1) or get_close_matches(rest.partition(" ")[0], known, 1)
        some = ", ".join(str(column.values[one][0]) for one in known[:8])
        raise InvalidInputError(
            f"{column} has no value {' '.join(rest.split()[:4])!r}.{f' Did you mean {column.values[near[0]][0]}?' if near else ''}",
            hint=f"Its values: {some}{', …' if len(known) > 8 else ''}.",
        )

    def _fail(self, hint: str = "") -> NoReturn:
        understood, rest = self.text[: self.far].strip(), self.text[self.far :].strip(" ?.!,;")
        if rest:
            said = f"{rest.split()[0]!r} is not understood here (understood: {understood!r}; not: {' '.join(rest.split()[:9])!r})."
        else:
            said = f"Something is missing at the end of {understood!r}."
        columns = f"The columns of {self.table.name} are: {', '.join(map(str, self.table.columns))}."
        dates = _DATES if self.table.date_columns else ""
        raise InvalidInputError(said, hint=" ".join(filter(None, (hint, columns, dates, self._sentence()))))

    def _sentence(self) -> str:
        """A sentence of the language, of this table's own names."""

        def first(columns: Sequence[Column]) -> Column | None:
            said = [one for one in columns if any(name.search(self.text) for name in one.patterns)]
            return next(iter([*said, *columns]), None)

        amount, key = first(self.table.amounts), first(self.table.text_columns)
        return f"Ask for example: '{f'total {amount}' if amount else 'how many rows'}{f' per {key}' if key else ''}'."
