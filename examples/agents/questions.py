"""The language of questions about a table, read strictly: docs/questions.md is its one page.

A question is read from left to right. Its fixed words are those below; every other word is a column's name, or a value that is
in the table. What is neither is refused, with what was understood until there. Nothing is skipped, and nothing is chosen: what
can mean two things is refused with both. A question that is offered instead has been read by the same reader before.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeVar

import pandas as pd

from ioa import InvalidInputError
from tables import Column, Table
from words import fold

_LEAD = r"(?:please )?(?:what(?:'s| is| are| was| were)|compute|calculate|determine|compare|list|show|give|get|tell|find)?(?: me)?"
_FILLER = r"the|an|a|all|please"
_FIGURES = {
    "share": r"(?:what )?(?:share|percentage|percent|proportion) of(?: the)?(?: total)?",
    "count": r"how many|(?:total )?number of|count(?: of)?", "correlation": r"correlation (?:between|of)",
    "sum": r"sum|total", "mean": r"average|mean", "median": r"median", "std": r"standard deviation",
    "min": r"minimum|min|lowest|smallest|earliest", "max": r"maximum|max|highest|largest|latest",
}  # fmt: skip
_SPOKEN = {
    "count": "number of rows", "correlation": "correlation between", "distinct": "number of distinct", "sum": "sum of",
    "mean": "average of", "median": "median of", "std": "standard deviation of", "min": "minimum of", "max": "maximum of",
    "values": "values of", "only": "", "rows": "rows", "share": "share in per cent of",
}  # fmt: skip
NO_PARTS = tuple(_SPOKEN[one] for one in ("mean", "median", "std", "min", "max", "distinct", "correlation"))
"""How figures are called that do not add up, whatever they are of."""
_SIGNS = {"*": r"times|multiplied by|\*|×", "/": r"divided by|/|÷", "+": r"plus|\+", "-": r"minus|-|−"}
_COMPARISONS = {
    ">=": r">=|at least|no less than|since", "<=": r"<=|at most|no more than|up to|until", "!=": r"!=|not equal to",
    ">": r">|above|over|more than|greater than|after", "<": r"<|below|under|less than|fewer than|before",
    "=": r"=|equals|equal to|one of|in",
}  # fmt: skip
_GRAINS = "day|week|month|quarter|year|weekday"
_ROWS = r"rows?|records?"
_PER = r"per|by|grouped by|(?:comes? from|from|of|for|in|is in) each|for every"
_WHERE = r"(?:that |which )?(?:have|has)|where|with|whose|having"
_IN = r"(?:(?:comes?|is|are|was|were) )?(?:from|in)|for|of|on|during"
_EXCEPT = r"excluding|except for|except|not in|not from|not for"
_MONTH = "|".join(filter(None, (*calendar.month_name, *calendar.month_abbr))).lower()
_DATE = (
    rf"(?:\d{{4}}(?:-\d\d(?:-\d\d)?)?|(?:\d\d? )?(?:{_MONTH}) \d{{4}}|(?:{_MONTH}) \d\d?, ?\d{{4}}|q[1-4] \d{{4}})(?![\w.,-]*\d)"
)
_ORDER = r"(?:sorted |ordered |ranked )?(?:in )?(descending|ascending)(?: order)?|(?:from )?(highest to lowest|lowest to highest)"
_DATES = "Dates are written 2024, 2024-03, 2024-03-31, March 2024 or Q1 2024."
_DROPPED = 12
_NUMBER = r"-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w,.]*\d)"

T = TypeVar("T")


@dataclass(frozen=True)
class Figure:
    """What is computed of columns: one, two with a sign between them, or none when rows are counted."""

    operation: str
    columns: tuple[Column, ...] = ()
    sign: str = ""

    def __str__(self) -> str:
        what = (f" {self.sign} " if self.sign else ", ").join(map(str, self.columns))
        return f"{_SPOKEN[self.operation]} {what or 'rows' * (self.operation == 'share')}".strip()


@dataclass(frozen=True)
class Key:
    """What rows are grouped by: a column (grain `date` puts its dates in order), or the day, week, month … of a date."""

    column: Column
    grain: str = ""

    def __str__(self) -> str:
        return f"{self.grain} of {self.column}" if self.grain not in ("", "date") else self.column.name


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
    around: tuple[str, str] = ("", "")
    """What stands before its figure, and behind it, for a question that is offered instead."""


def understand(text: str, tables: Sequence[Table]) -> tuple[Table, list[Question]]:
    """Read one or several questions about one of the tables.

    Raises:
        InvalidInputError: A word is not accounted for, or a question can be read in two ways.
    """
    fitting, errors = [], []
    for table in tables:
        reader = _Reader(text, table)
        try:
            fitting.append((table, reader.questions()))
        except InvalidInputError as error:
            errors.append((reader.far, error))
    if len(fitting) > 1:
        names = " and ".join(table.name for table, _ in fitting)
        raise InvalidInputError(f"The question fits {names}.", hint="Ask for each by itself and say which, as in '… in FILE'.")
    if not fitting:
        _, nearest = max(errors, key=lambda one: one[0])
        if len(tables) == 1:
            raise nearest
        alone = f"A question is about one file alone, and this one fits none of {', '.join(table.name for table in tables)}."
        raise InvalidInputError(f"{alone} {nearest.message}", hint=nearest.hint)
    return fitting[0]


def understand_plot(text: str, table: Table) -> Question:
    """Read `COLUMN`, or `COLUMN against COLUMN`, with conditions: what a histogram or a scatter plot is of.

    Raises:
        InvalidInputError: As for `understand`.
    """
    reader = _Reader(text, table)
    columns = [reader.number()]
    while reader.take(r"against|and|versus|vs\.?|,"):
        columns.append(reader.number())
    question = reader.clauses(Question(Figure("values", tuple(columns))))
    return question if reader.ended else reader.fail()


class _Reader:
    """Reads a text from `at`; what stands before `far` was understood, in one way or another."""

    def __init__(self, text: str, table: Table, offers: bool = True) -> None:
        self.text, self.table, self.at, self.far = fold(" ".join(text.split())), table, 0, 0
        self.offers, self.figure_at = offers, 0
        self.unclear: InvalidInputError | None = None
        has = r"(?: (?:have|has)(?=\W*$|\W*\band\b))?"
        self.file = rf"(?:(?:in|of|from|for|on|using|does) )?(?:the )?(?:file )?{re.escape(fold(table.name))}(?!\.?\w){has}"

    # -- the shape of a question ---------------------------------------------------------------------------------------------

    def questions(self) -> list[Question]:
        found: list[Question] = []
        joint, joint_at = "", 0
        while True:
            if self.take(self.file):
                self.take("[,:]")
            question = self._try(self._rows)
            if question is None:
                self.take(_LEAD)
                asked = self._try(self._ranked) or Question(self._figure())
                around, clauses_at = self._around, self.at
                question = replace(self.clauses(asked), around=around)
            is_bare = found and not (found[-1].keys or found[-1].conditions)
            if is_bare and ("and" in joint or "," in joint) and (question.keys or question.conditions):
                raise InvalidInputError(
                    f"{self.text!r} can be read in two ways: what is said last may hold for the last figure, or for all.",
                    hint=self._offer(f"{self.text[:joint_at]}{self.text[clauses_at : self.at]}{self.text[joint_at:]}")
                    or "Ask one question at a time, or say it for each.",
                )
            found.append(question)
            if self.ended:
                if self.unclear is not None:
                    raise self.unclear
                return found
            joint_at = self.at
            joint = self.take(r"[,;.?!]? ?(?:and then|and also|and|then|also)|[,;.?!]") or self.fail()

    @property
    def ended(self) -> bool:
        return re.fullmatch(r"[\s.?!,;]*", self.text[self.at :]) is not None

    def _rows(self) -> Question | None:
        """Read `list rows where …` or `which COLUMN have …`: the rows themselves."""
        if not self.take("(?:please )?(?:list|show|find|give me|which|what)(?: me)?(?: all)?"):
            return None
        columns = [] if self.take(_ROWS) else self._list(self._column, ",|and") if self._column_stands else None
        if columns is None or self.take("has the|have the|had the"):
            return None
        question = self.clauses(Question(Figure("rows", tuple(columns))))
        return question if question.conditions else None

    def _ranked(self) -> Question | None:
        """Read `top N KEY by FIGURE`, `which KEY has the highest FIGURE`, or `which KEY has the most rows`."""
        if side := self.take("top|bottom"):
            count = self.take(r"\d{1,6}")
            key = self._key() if count else None
            is_ranked = key is not None and bool(self.take("by"))
        else:
            key, count = self._key() if self.take("which|what") else None, "1"
            side = self.take("most|fewest|least|highest|largest|lowest|smallest") if key and self.take("has|have|had|with") else ""
            is_ranked = side != ""
        if key is None or not is_ranked:
            return None
        counts = side in ("most", "fewest", "least")
        figure = (Figure("count") if self.take(_ROWS) else self.fail()) if counts else self._figure()
        if figure.operation == "only":
            self._numeric(figure.columns[0])
        return Question(figure, (key,), limit=int(count), descending=side in ("top", "most", "highest", "largest"))

    def clauses(self, question: Question) -> Question:
        """Read what follows a figure: keys, conditions and the file's name, in any order."""
        keys, conditions, order = list(question.keys), list(question.conditions), ""
        may_group = not question.limit and question.figure.operation not in ("values", "correlation", "rows")
        may_order: Sequence[object] = keys if may_group else question.figure.columns if question.figure.operation == "rows" else ()
        while not self.ended:
            start = self.at
            self.take(",")
            if self.take(self.file):
                continue
            if may_order and not order and (order := self.take(_ORDER)):
                continue
            if may_group and self.take(_PER):
                keys += self._list(self._key, ",|and|per|by")
            elif condition := self._try(self._lacking) or self._try(self._compared):
                conditions.append(condition)
            elif self.take(_WHERE):
                conditions += self._list(self._condition, "and")
            elif condition := self._try(self._since) or self._try(self._within):
                conditions.append(condition)
            else:
                self.at = start
                break
        if len(set(keys)) < len(keys):
            raise InvalidInputError("The question groups by the same column twice.")
        if question.figure.operation == "share" and keys and any(one.column.dates is None for one in conditions):
            raise InvalidInputError(
                "A share per group of some of the rows can be read in two ways: of these rows, or of each group.",
                hint="Ask for the total per group of these rows and that of all rows.",
            )
        limit, descending = (
            (self.table.rows, order.endswith("lowest") or "desc" in order) if order else (question.limit, question.descending)
        )
        return replace(question, keys=tuple(keys), conditions=tuple(conditions), limit=limit, descending=descending)

    # -- figures -------------------------------------------------------------------------------------------------------------

    def _figure(self) -> Figure:
        end, columns = self._named()
        self.figure_at = self.at
        operation = self._one_of(_FIGURES)
        if columns and end > self.at:  # `Total cost` is a column's name, too
            if operation and self._column():
                self._unsaid(columns[0])
            self.at, operation = self.figure_at, ""
        match operation:
            case "count":
                figure = Figure("distinct", (self._column() or self.fail(),)) if self.take("distinct|different|unique") else None
                if figure is None and not self.take(_ROWS):
                    column = self._column() or self.fail()
                    before, behind = self._around
                    self.unclear = self.unclear or InvalidInputError(  # said at the end, since it matters only if all is understood
                        f"How many of {column} are meant can be rows, different ones, or their sum.",
                        hint=self._offer(f"{before}how many rows{behind}", f"{before}number of distinct {column}{behind}"),
                    )
                self.take("are there|there are|are")
                return figure or Figure("count")
            case "correlation":
                first = self.number()
                return Figure(operation, (first, self.number() if self.take("and") else self.fail()), "and")
            case "share" if self.take(_ROWS):
                return Figure(operation)
            case "":
                return self._signed("only", self._column() or self.fail())
        self.take("of")
        first = self._column() or self.fail()
        if operation in ("min", "max") and first.dates is not None:
            return Figure(operation, (first,))
        return self._signed(operation, self._numeric(first))

    def _signed(self, operation: str, first: Column) -> Figure:
        sign = self._one_of(_SIGNS)
        return self._checked(Figure(operation, (first, *((self.number(),) if sign else ())), sign))

    def _unsaid(self, column: Column) -> NoReturn:
        raise unsaid(Figure("only", (column,)), self._around, self.table if self.offers else None)

    @property
    def _around(self) -> tuple[str, str]:
        return self.text[: self.figure_at], self.text[self.at :]

    def number(self) -> Column:
        """Read the name of a column of numbers."""
        return self._numeric(self._column() or self.fail())

    def _numeric(self, column: Column) -> Column:
        if column.numbers is None:
            example = next(iter(column.cells.dropna().astype(str)), "")
            raise InvalidInputError(f"{column} holds no numbers, but cells such as {example!r}.")
        return column

    def _checked(self, figure: Figure) -> Figure:
        """Refuse the sum of rates: a rate times an amount is an amount, an amount over one is a rate, as units are."""
        reasons, what = [column.why_rate for column in figure.columns], f" {figure.sign} ".join(map(str, figure.columns))
        if figure.sign in ("*", "/") and any(column.is_per_cent for column in figure.columns):
            raise InvalidInputError(f"A column is in per cent, so that {what} would be a hundred times too much.")
        if figure.operation in ("sum", "share") and (all(reasons) if figure.sign == "*" else any(reasons) or figure.sign == "/"):
            why = next(filter(None, reasons), "since it is a ratio")
            raise InvalidInputError(
                f"{what} is taken for a rate, a price of one unit, a state such as a temperature, or a code, {why}; "
                "these are not added up.",
                hint=offer_figures(("average", "maximum"), figure, self._around, self.table) if self.offers else "",
            )
        return figure

    # -- keys and conditions -------------------------------------------------------------------------------------------------

    def _key(self) -> Key | None:
        if column := self._column():
            dates = column.dates if column in self.table.date_columns else None
            is_sorted = column.cells.dropna().astype(str).str.match(r"\d{4}-\d\d").all()  # as its texts are
            return Key(column, "" if dates is None or is_sorted or (dates != dates.dt.normalize())[dates.notna()].any() else "date")
        grain = self.take(f"(?:{_GRAINS})s?").rstrip("s")
        if not grain:
            return None
        column = (self._column() or self.fail()) if self.take("of") else self._the_date()
        if column.dates is None:
            raise InvalidInputError(f"{column} holds no dates.", hint=_DATES)
        return Key(column, grain)

    def _the_date(self) -> Column:
        columns = self.table.date_columns
        if len(columns) != 1:
            _ = [column.dates for column in self.table.columns]  # one that can be read in two ways says so
            said = f"several columns of dates: {', '.join(map(str, columns))}" if columns else "no column of dates"
            hint = self._offer(*(f"how many rows per month of {column}" for column in columns))
            raise InvalidInputError(f"{self.table.name} has {said}.", hint=hint)
        return columns[0]

    def _lacking(self) -> Condition | None:
        """Read `without COLUMN` or `have no COLUMN`."""
        column = self._column() if self.take("without(?: any)?|(?:with|have|has) no") else None
        return Condition(column, "is missing") if column else None

    def _compared(self) -> Condition | None:
        """Read `COLUMN above 10` where no `where` stands before it."""
        start = self.at
        signs = "|".join(spoken for sign, spoken in _COMPARISONS.items() if sign != "=")
        if self._column() is None or not self.take(f"(?:is |are |was |were )?(?:{signs}|between)"):
            return None
        self.at = start
        return self._condition()

    def _since(self) -> Condition | None:
        """Read `since 2024-01-15` or `between 2024-01 and 2024-03`: of the only column of dates."""
        sign = self._one_of({">=": "since|from", "between": "between", ">": "after", "<": "before", "<=": "until"})
        first = self._date() if sign else None
        if first is None:
            return None
        last = (self._date() or self.fail()) if sign in (">=", "between") and self.take("and|to|until") else None
        return Condition(self._the_date(), "between", (first, last)) if last else Condition(self._the_date(), sign, (first,))

    def _within(self) -> Condition | None:
        """Read `in VALUE`, `excluding VALUE` or `in 2024-03`: of the only column that holds it."""
        sign = self._one_of({"!=": _EXCEPT, "=": _IN})
        if sign != "!=" and (not sign or (condition := self._try(self._condition))):
            return condition if sign else None
        start, found = self.at, list[tuple[int, Condition]]()
        for column in self.table.columns:
            self.at = start
            if values := self._value(column):
                found.append((self.at, Condition(column, sign, values=values)))
        self.at = start
        if span := self._date():
            dates = self.table.date_columns if found else [self._the_date()]
            found += [(self.at, Condition(column, sign, (span,))) for column in dates]
        self.at = max((end for end, _ in found), default=start)
        longest = [condition for end, condition in found if end == self.at]
        if len(longest) != 1:
            names, said = ", ".join(str(one.column) for one in longest), self.text[start : self.at].strip()
            if not longest:
                self.fail()
            raise InvalidInputError(
                f"{said!r} stands in several columns of {self.table.name}: {names}.",
                hint=self._offer(*(f"how many rows where {one.column} is {said}" for one in longest)),
            )
        condition = self._or_values(longest[0])
        if condition.column in self._named()[1]:  # `in the North region`
            self._column()
        return condition

    def _condition(self) -> Condition | None:
        column = self._column()
        if column is None:
            return None
        self.take("is|are|was|were|of")
        here = self.at
        if re.match(r"\s*(?:not|missing|empty)\b", self.text[here:]) and (literal := self._value(column)):
            raise InvalidInputError(
                f"{self.text[here : self.at].strip()!r} is a value of {column}, and words of the language.",
                hint="Put it in quotes: " + self._offer(f'how many rows where {column} is "{literal[0]}"'),
            )
        negated = bool(self.take("not"))
        if self.take("missing|empty"):
            return Condition(column, "is not missing" if negated else "is missing")
        if not negated and self.take("between"):
            first = self._span(column) or self.fail()
            return Condition(column, "between", (first, (self._span(column) if self.take("and") else None) or self.fail()))
        sign = "!=" if negated else self._one_of(_COMPARISONS) or "="
        if span := self._span(column):
            return Condition(column, sign, (span,))
        if sign not in ("=", "!="):
            self.fail()
        if not (values := self._value(column)):
            some = ", ".join(str(one[0]) for one in list(column.values.values())[:8])
            self.fail(f"Values of {column} are {some}{', …' * (len(column.values) > 8)}.")
        return self._or_values(Condition(column, sign, values=values))

    def _or_values(self, condition: Condition) -> Condition:
        column, values = condition.column, list(condition.values)
        while condition.values and (more := self._try(lambda: self._value(column) if self.take(r", or|,|or") else None)):
            values += more
        return replace(condition, values=tuple(values))

    def _span(self, column: Column) -> Span | None:
        if column.dates is not None:
            return self._date()
        start = self.at
        number = self.take(_NUMBER).replace(",", "") if column.numbers is not None else ""
        if not number or (self.take("%|per cent|percent") and not column.is_per_cent):
            self.at = start
            return None
        return Span(number, float(number), float(number))

    def _date(self) -> Span | None:
        text = self.take(_DATE)
        if not text:
            return None
        try:
            period = pd.Period(re.sub(r"(q\d) (\d+)", r"\2\1", text))
        except ValueError:
            raise InvalidInputError(f"{text} is not a date.", hint=_DATES) from None
        return Span(str(period), period.start_time, period.end_time)

    def _value(self, column: Column) -> tuple[object, ...]:
        """Read a quotation, or the next words, the most first, as a value of a column."""
        start = self._after(r"\s*(?:the )?", self.at)
        if quoted := re.compile(r"[\"“”'‘`]([^\"“”'’`]+)[\"“”'’`]").match(self.text, start):
            candidates = [(quoted[1], quoted.end())]
        else:
            ends = [match.end() for match in re.compile(r"[^\W_]+").finditer(self.text, start)][:10]
            candidates = [(self.text[at:end], end) for end in reversed(ends) for at in (self.at, start)]
        for written, end in candidates:
            words = " ".join(re.sub(r"[\W_]+", " ", written).split())
            for one in (words, words.removesuffix("s")):
                if one in column.values:
                    self.at, self.far = end, max(self.far, end)
                    return tuple(column.values[one])
        return ()

    # -- words ---------------------------------------------------------------------------------------------------------------

    def take(self, words: str) -> str:
        """Take one of these words if it stands here, and the filler before it."""
        # a word ends where it ends: `mean` does not stand in `meaning`, while `>` stands before any figure
        match = re.compile(rf"\s*(?:(?:{_FILLER})\s+)*({words})(?:(?<!\w)|(?!\w))").match(self.text, self.at)
        if match is None or not match[1]:
            return ""
        self.at = match.end()
        self.far = max(self.far, self.at)
        return match[1]

    def _one_of(self, words: dict[str, str]) -> str:
        return next((meaning for meaning, spoken in words.items() if self.take(spoken)), "")

    def _after(self, pattern: str, at: int) -> int:
        match = re.compile(pattern).match(self.text, at)
        return match.end() if match else at

    def _named(self) -> tuple[int, list[Column]]:
        """Where the longest name of a column ends that stands here, and the columns that have it."""
        for before in (r"[\s\"“”'`]*", rf"\s*(?:(?:{_FILLER})\b\s*)*[\"“”'`]*"):
            start = self._after(before, self.at)
            found = [(name.match(self.text, start), column) for column in self.table.columns for name in column.patterns]
            end = max((match.end() for match, _ in found if match), default=0)
            columns = list(dict.fromkeys(column for match, column in found if match and match.end() == end))
            if columns:
                exact = [column for column in columns if fold(column.name) == self.text[start:end]]
                return self._after(r"[\"“”'`]*", end), exact if len(exact) == 1 else columns
        return 0, []

    @property
    def _column_stands(self) -> bool:
        return bool(self._named()[1])

    def _column(self) -> Column | None:
        end, columns = self._named()
        if not columns:
            return None
        self.at, self.far = end, max(self.far, end)
        if len(columns) > 1:
            places = " and ".join(f"'{column}' (column {self.table.columns.index(column) + 1})" for column in columns)
            raise InvalidInputError(
                f"{len(columns)} columns of {self.table.name} go by that name: {places}.",
                hint="Say the whole name, or give them different names in the file.",
            )
        return columns[0]

    def _list(self, read: Callable[[], T | None], joint: str) -> list[T]:
        found = [read() or self.fail()]
        while more := self._try(lambda: read() if self.take(joint) else None):
            found.append(more)
        return found

    def _try(self, read: Callable[[], T | None]) -> T | None:
        before = self.at
        found = read()
        if not found:
            self.at = before
        return found

    def fail(self, hint: str = "") -> NoReturn:
        """Refuse the question where it was understood last."""
        end = self.far if self.text[self.far :].strip(" ?.!,;") else self.at
        understood, rest = self.text[:end].strip(), self.text[end:].strip(" ?.!,;")
        said = f"Something is missing at the end of {understood!r}."
        if rest:
            wrong = next((word for word in rest.split() if not re.fullmatch(_FILLER, word)), rest)
            said = f"{wrong!r} is not understood here (understood: {understood!r}; not: {' '.join(rest.split()[:9])!r})."
        columns = f"The columns of {self.table.name} are: {', '.join(map(str, self.table.columns))}."
        dates = _DATES if self.table.date_columns else ""
        raise InvalidInputError(said, hint=" ".join(filter(None, (hint, columns, self._without(end), dates))))

    def _without(self, end: int) -> str:
        """Offer the question without the words that are not understood: the fewest behind those that are."""
        heads = [self.text[:end].rstrip(" ,")]
        heads.append(heads[0].rpartition(" ")[0])  # `in`, before what is no value
        for word in list(re.finditer(r"\S+", self.text[end:]))[:_DROPPED] if self.offers else ():
            for head in filter(None, heads):
                kept = f"{head} {self.text[end + word.end() :].strip()}".strip(" ?.!,;")
                if _is_read(kept, self.table):
                    return f"Without {self.text[len(head) : end + word.end()].strip(' ?.!,;')!r} it is understood: {kept!r}."
        return ""

    def _offer(self, *texts: str) -> str:
        return offer(self.table, *texts) if self.offers else ""


def offer(table: Table, *texts: str) -> str:
    """Say what to ask instead: of these questions those that are understood."""
    found = [f"'{text}'" for text in texts if _is_read(text, table)]
    return f"Say {' or '.join(filter(None, (', '.join(found[:-1]), found[-1])))}." if found else ""


def offer_figures(words: Sequence[str], figure: Figure, around: tuple[str, str], table: Table) -> str:
    """Offer the question with another figure of the same columns; at least the figure."""
    figures = [f"{word} {Figure('only', figure.columns, figure.sign)}" for word in words]
    return offer(table, *(" ".join(f"{around[0]} {one}{around[1]}".split()) for one in figures)) or offer(table, *figures)


def unsaid(figure: Figure, around: tuple[str, str], table: Table | None) -> InvalidInputError:
    """The refusal of a question that does not say what to compute of the many cells of a column."""
    words = ("total", "average", "maximum") if figure.columns[0].numbers is not None else ("number of distinct",)
    return InvalidInputError(
        f"It is not said what to compute of {figure}.", hint=offer_figures(words, figure, around, table) if table else ""
    )


def _is_read(text: str, table: Table) -> bool:
    """Whether a question is understood and has an answer."""
    from answers import answer

    try:
        return bool([answer(question, table) for question in _Reader(text, table, offers=False).questions()])
    except InvalidInputError:
        return False
