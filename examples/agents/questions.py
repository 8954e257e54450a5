"""The language of questions about a table, read strictly: docs/questions.md is its one page.

A question is read from left to right. Its fixed words are those below; every other word is a column's name, or a value that is
in the table. What is neither is refused, with what was understood until there. Nothing is skipped, and nothing is chosen: what
can mean two things is refused with both.
"""

from __future__ import annotations

import re
from calendar import month_abbr, month_name
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn, TypeVar

import pandas as pd

from ioa import InvalidInputError
from tables import Table
from words import fold, name_words

LEAD = r"(?:please )?(?:what(?:'s| is| are| was| were)|compute|calculate|show|give|tell|find)?(?: me)?"
FILLER = r"the|an|a|all|please"
_OPERATIONS = {
    "sum": r"sum|total", "mean": r"average|mean", "median": r"median", "std": r"standard deviation",
    "min": r"minimum|min|lowest|smallest|earliest", "max": r"maximum|max|highest|largest|latest",
}  # fmt: skip
_SPOKEN = {"sum": "sum", "mean": "average", "median": "median", "std": "standard deviation", "min": "minimum", "max": "maximum"}
_SIGNS = {"*": r"times|multiplied by|\*|×", "/": r"divided by|/|÷", "+": r"plus|\+", "-": r"minus|-|−"}
_COMPARISONS = {
    ">=": r">=|at least|no less than|since", "<=": r"<=|at most|no more than|up to|until", "!=": r"!=|not equal to",
    ">": r">|above|over|more than|greater than|after", "<": r"<|below|under|less than|fewer than|before", "=": r"=|equals|equal to",
}  # fmt: skip
_GRAINS = {"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}
_COUNT = r"how many|(?:total )?number of|count(?: of)?"
_ROWS = r"rows?|records?"
_ROWS_END = r"are there|there are|are"
_PER = r"per|by|grouped by|for each|for every|in each"
_WHERE = r"where|with|whose|having|have|has|that have"
_IN = r"in|for|from|on|during"
_EXCEPT = r"excluding|except for|except|not in|not from|not for"
_DATE = r"\d{4}(?:-\d\d(?:-\d\d)?)?(?![\w.,-]*\d)"
_DATES = "Write dates as 2024, 2024-03 or 2024-03-31."
_MONTHS = frozenset(name.lower() for name in (*month_name, *month_abbr))
_NUMBER = r"-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w,.]*\d)"
_QUOTED = r"[\"“”'‘`]([^\"“”'’`]+)[\"“”'’`]"
_FIXED = frozenset(
    re.findall(
        r"[a-z]+",
        " ".join(
            (
                LEAD, FILLER, *_OPERATIONS.values(), *_SIGNS.values(), *_COMPARISONS.values(), *_GRAINS, _COUNT, _ROWS, _ROWS_END,
                _PER, _WHERE, _IN, _EXCEPT, "of between and or is not missing empty one top bottom which what has had distinct",
                "different unique correlation then also weekday most least fewest does",
            )
        ),
    )
)  # fmt: skip


T = TypeVar("T")


@dataclass(frozen=True)
class Expression:
    """Columns and numbers with signs between them: the columns' positions, and what is written."""

    operands: tuple[int | float, ...]  # a column is an int, a number a float
    signs: tuple[str, ...] = ()

    @property
    def columns(self) -> list[int]:
        """The columns in it."""
        return [one for one in self.operands if isinstance(one, int)]

    def written(self, table: Table) -> str:
        """Write it with the table's names."""
        names = [table.names[one] if isinstance(one, int) else f"{one:g}" for one in self.operands]
        return names[0] + "".join(f" {sign} {name}" for sign, name in zip(self.signs, names[1:], strict=True))


@dataclass(frozen=True)
class Measure:
    """A figure: `operation` of an expression; `count`, `distinct` and `correlation` are operations, too."""

    operation: str
    what: Expression | None = None

    def written(self, table: Table) -> str:
        """Say what it is of."""
        if self.what is None:
            return "number of rows"
        if self.operation == "correlation":
            return "correlation between " + " and ".join(table.names[one] for one in self.what.columns)
        name = {"distinct": "number of distinct"}.get(self.operation) or f"{_SPOKEN[self.operation]} of"
        return f"{name} {self.what.written(table)}"


@dataclass(frozen=True)
class Key:
    """What rows are grouped by: a column, or the day, week, month, quarter, year or weekday of a date."""

    column: int
    grain: str = ""

    def written(self, table: Table) -> str:
        """Say it."""
        return f"{self.grain} of {table.names[self.column]}" if self.grain else table.names[self.column]


@dataclass(frozen=True)
class Condition:
    """Which rows are kept: a sign and what a column is compared with. `kind` is number, date, value or missing."""

    column: int
    kind: str
    sign: str
    operands: tuple[Any, ...] = ()

    def written(self, table: Table) -> str:
        """Say it."""
        name = table.names[self.column]
        if self.kind == "missing":
            return f"{name} is {'not ' * (self.sign == '!=')}missing"
        shown = [
            one.written if isinstance(one, Span) else f"{one:g}" if isinstance(one, float) else str(one) for one in self.operands
        ]
        if self.sign == "between":
            return f"{name} is between {shown[0]} and {shown[1]}"
        return f"{name} {({'=': 'is', '!=': 'is not'}).get(self.sign, self.sign)} {' or '.join(shown)}"


@dataclass(frozen=True)
class Span:
    """A day, a month or a year: from `start` to before `end`."""

    written: str
    start: pd.Timestamp
    end: pd.Timestamp


@dataclass(frozen=True)
class Question:
    """One question, understood."""

    measure: Measure | None
    keys: tuple[Key, ...] = ()
    conditions: tuple[Condition, ...] = ()
    limit: int | None = None
    descending: bool | None = None
    plots: tuple[int, ...] = ()

    @property
    def is_narrowed(self) -> bool:
        """Whether it is of groups or of some rows only."""
        return bool(self.keys or self.conditions)


def understand(text: str, tables: Sequence[Table]) -> list[tuple[Table, Question]]:
    """Read one or several questions, each about one of the tables.

    Raises:
        InvalidInputError: A word is not accounted for, or a question can be read in two ways.
    """
    readers = [_Reader(text, table) for table in tables]
    found: list[tuple[Table, Question]] = []
    at, joined = 0, False
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
        if joined and question.is_narrowed and not found[-1][1].is_narrowed:
            raise InvalidInputError(
                f"{text!r} can be read in two ways: what is said last may hold for the last figure, or for all.",
                hint="Ask one question at a time, or say it for each.",
            )
        found.append((reader.table, question))
        if not more:
            return found
        at, joined = reader.at, "and" in more or "," in more


def understand_plot(text: str, table: Table) -> Question:
    """Read `COLUMN`, or `COLUMN against COLUMN`, with conditions: what a histogram or a scatter plot is of.

    Raises:
        InvalidInputError: As for `understand`.
    """
    return _Reader(text, table).plot()


class _Reader:
    def __init__(self, text: str, table: Table) -> None:
        self.text, self.table, self.at = fold(" ".join(text.split())), table, 0
        self.far = 0
        name = re.escape(fold(table.name))
        self.file = rf"(?:(?:in|of|from|for|on|using) (?:the )?(?:file )?)?{name}(?!\.?\w)"

    # -- the shape of a question ---------------------------------------------------------------------------------------------

    def question(self) -> tuple[Question, str]:
        """Read the question that stands here, and what joins it to the next; empty at the end."""
        question = self._question()
        more = "" if self._ended() else self._take(r"[,;.?!]? ?(?:and then|and also|and|then|also)|[,;.?!]") or self._fail()
        return question, "" if self._ended() else more

    def plot(self) -> Question:
        columns = [self._column() or self._fail()]
        while self._take(r"against|and|versus|,"):
            columns.append(self._column() or self._fail())
        question = self._clauses(Question(None, plots=tuple(columns)))
        return question if self._ended() else self._fail()

    def _ended(self) -> bool:
        return re.fullmatch(r"[\s.?!,;]*", self.text[self.at :]) is not None

    def _question(self) -> Question:
        if self._take(self.file):
            self._take("[,:]")
        self._take(LEAD)
        if ranked := self._try(self._which) or self._try(self._top):
            return self._clauses(ranked)
        return self._clauses(Question(self._measure()))

    def _which(self) -> Question | None:
        if not self._take("which|what"):
            return None
        key = self._key()
        if key is None or not self._take("has|have|had|with"):
            return None
        self._fillers()
        if sign := self._take("most|fewest|least"):
            if not self._take(_ROWS):
                return None
            return Question(Measure("count"), (key,), (), 1, sign == "most")
        sign = self._take("highest|largest|lowest|smallest")
        if not sign:
            return None
        if (column := self._peek_column()) is not None:
            name, by = self.table.names[column], key.written(self.table)
            figures = ["average", "maximum", "minimum"]
            first, *others, last = figures if self.table.why_rate(column) else ["total", *figures]
            raise InvalidInputError(
                f"'{sign} {name}' can be meant of one row or of all rows of a {by}.",
                hint=f"Say 'which {by} has the {sign} {first} {name}', or {', '.join(others)} or {last} instead of {first}.",
            )
        return Question(self._measure(), (key,), (), 1, sign in ("highest", "largest"))

    def _top(self) -> Question | None:
        side = self._take("top|bottom")
        count = side and self._take(r"\d{1,6}")
        if not count:
            return None
        key = self._key()
        if key is None or not self._take("by"):
            return None
        if (column := self._peek_column()) is not None:
            raise InvalidInputError(
                f"Which figure of {self.table.names[column]} counts is not said.",
                hint=f"Say 'by total {self.table.names[column]}', or by average, maximum or minimum.",
            )
        return Question(self._measure(), (key,), (), int(count), side == "top")

    # -- measures ------------------------------------------------------------------------------------------------------------

    def _measure(self) -> Measure:
        if self._take(_COUNT):
            return self._counted()
        if self._take("correlation (?:between|of)"):
            first = self._column()
            second = self._column() if first is not None and self._take("and") else None
            if first is None or second is None:
                self._fail()
            return Measure("correlation", Expression((first, second), ("*",)))
        named = self._peek_end()
        for operation, words in _OPERATIONS.items():
            start = self.at
            if not self._take(words):
                continue
            if named > self.at:  # a column that is called `Total cost`
                self.at = start
                break
            self._take("of")
            what = self._expression()
            if what is None:
                self._fail()
            return Measure(operation, self._checked(operation, what))
        if (column := self._peek_column()) is not None:
            name = self.table.names[column]
            raise InvalidInputError(
                f"It is not said what to compute of {name}.",
                hint=f"Say 'total {name}', 'average {name}', 'number of distinct {name}' or another figure{self._foreign_too()}. "
                f"{self._sentence()}",
            )
        return self._fail()

    def _counted(self) -> Measure:
        if self._take("distinct|different|unique"):
            column = self._column()
            if column is None:
                self._fail()
            self._take(_ROWS_END)
            return Measure("distinct", Expression((column,)))
        if (column := self._peek_column()) is not None:
            name = self.table.names[column]
            raise InvalidInputError(
                f"'How many {name}' can mean rows, distinct values or a sum.",
                hint=f"Say 'how many rows', 'number of distinct {name}'"
                + (f" or 'total {name}'." if column in self.table.number_columns else "."),
            )
        if not self._take(_ROWS):
            self._fail("Rows are counted by 'how many rows', values by 'number of distinct COLUMN'.")
        self._take(_ROWS_END)
        return Measure("count")

    def _expression(self) -> Expression | None:
        first = self._operand()
        if first is None:
            return None
        operands, signs = [first], []
        while sign := next((sign for sign, words in _SIGNS.items() if self._take(words)), ""):
            operand = self._operand()
            if operand is None:
                self._fail()
            signs.append(sign)
            operands.append(operand)
        return Expression(tuple(operands), tuple(signs)) if any(isinstance(one, int) for one in operands) else None

    def _operand(self) -> int | float | None:
        column = self._column()
        if column is not None:
            return column
        number = self._take(_NUMBER)
        return float(number.replace(",", "")) if number else None

    def _checked(self, operation: str, what: Expression) -> Expression:
        table = self.table
        if operation in ("min", "max") and not what.signs and table.dates(what.columns[0]) is not None:
            return what
        for column in what.columns:
            table.numbers(column)
        per_cent = [column for column in what.columns if table.is_per_cent(column)]
        if operation == "sum" and any(
            sign in "+-" and isinstance(operand, float) for sign, operand in zip(("+", *what.signs), what.operands, strict=True)
        ):
            raise InvalidInputError(
                f"In the total of {what.written(table)} the number may be meant once, or once for each row.",
                hint="Ask for the total first, and let the calculator do the rest.",
            )
        if operation == "sum" and (why := self._rate(what)):
            name = what.written(table)
            others = [table.names[one] for one in table.amounts if one not in what.columns]
            scaled = " divided by 100" * bool(per_cent)
            raise InvalidInputError(
                f"{name} is taken for a rate or a price of one unit, {why}; rates are not added up.",
                hint=f"Say 'average {name}'"
                + (
                    f", or multiply it by an amount, as in 'total of {others[0]} times {name}{scaled}'."
                    if others and not what.signs
                    else "."
                ),
            )
        if per_cent and {"*", "/"} & set(what.signs) and 100.0 not in what.operands:
            raise InvalidInputError(
                f"{table.names[per_cent[0]]} is in per cent, so that {what.written(table)} would be a hundred times too much.",
                hint=f"Say '{what.written(table).replace('*', 'times')} divided by 100'.",
            )
        return what

    def _rate(self, what: Expression) -> str:
        """Say why an expression is a rate, as a unit is: a rate times an amount is an amount, an amount over one is a rate."""
        parts: list[list[str]] = [[self._why(what.operands[0])]]
        kinds: list[list[bool]] = [[isinstance(what.operands[0], float)]]
        for sign, operand in zip(what.signs, what.operands[1:], strict=True):
            if sign in "+-":
                parts.append([])
                kinds.append([])
            elif sign == "/" and isinstance(operand, int):
                return "since it is a ratio"
            parts[-1].append(self._why(operand))
            kinds[-1].append(isinstance(operand, float))
        for reasons, plain in zip(parts, kinds, strict=True):
            columns = [why for why, number in zip(reasons, plain, strict=True) if not number]
            if columns and all(columns):
                return columns[0]
        return ""

    def _why(self, operand: int | float) -> str:
        return self.table.why_rate(operand) if isinstance(operand, int) else ""

    # -- what follows the measures -------------------------------------------------------------------------------------------

    def _clauses(self, question: Question) -> Question:
        keys, conditions = list(question.keys), list(question.conditions)
        while not self._ended():
            start = self.at
            self._take(",")
            if self._take(self.file):
                self._take(r"(?:have|has)(?=[\s?.!]*(?:$|[,;]|and\b))")
            elif self._take(rf"does {re.escape(fold(self.table.name))} have"):
                pass
            elif not question.limit and not question.plots and self._take(_PER):
                keys += self._list(self._key, ",|and|per|by")
            elif self._take(_WHERE):
                conditions += self._list(self._condition, "and")
            elif self._take(_EXCEPT):
                conditions.append(self._value_somewhere("!="))
            elif (condition := self._dated()) is not None:
                conditions.append(condition)
            elif self._take(_IN):
                named = self._try(self._condition)
                conditions.append(named or self._value_somewhere("="))
            else:
                self.at = start
                break
        if len({(key.column, key.grain) for key in keys}) < len(keys):
            raise InvalidInputError("The question groups by the same column twice.", hint=self._sentence())
        return Question(
            question.measure, tuple(keys), tuple(conditions), question.limit, question.descending, question.plots
        )  # fmt: skip

    def _list(self, read: Callable[[], T | None], apart: str) -> list[T]:
        first = read()
        if first is None:
            self._fail()
        found = [first]
        while (more := self._try(lambda: read() if self._take(apart) else None)) is not None:
            found.append(more)
        return found

    def _key(self) -> Key | None:
        self._fillers()
        column = self._column()
        if column is not None:
            return Key(column)
        grain = self._take("|".join(f"{grain}s?" for grain in ("weekday", *_GRAINS)))
        if not grain:
            return None
        column = self._column() if self._take("of") else self._the_date()
        if column is None:
            self._fail()
        if self.table.dates(column) is None:
            raise InvalidInputError(f"{self.table.names[column]} holds no dates.", hint=self._dates_hint())
        return Key(column, grain.rstrip("s"))

    def _the_date(self) -> int:
        columns = self.table.date_columns
        if len(columns) != 1:
            for column in range(len(self.table.names)):
                if re.search("date|day|time", fold(self.table.names[column])) and column not in columns:
                    self.table.dates(column)  # says why it cannot be read
            said = f"several columns of dates: {self.table.listed(columns)}" if columns else "no column of dates"
            raise InvalidInputError(f"{self.table.name} has {said}.", hint=self._dates_hint())
        return columns[0]

    def _dates_hint(self) -> str:
        columns = self.table.date_columns
        return (
            f"Say 'per month of {self.table.names[columns[0]]}' or 'where {self.table.names[columns[0]]} is 2024-03'."
            if columns
            else ""
        )

    def _dated(self) -> Condition | None:
        """`in 2024-03`, `since 2024-01-15`, `between 2024-01 and 2024-03`: of the only column of dates."""
        start = self.at
        if self._take("between|from"):
            first = self._date()
            last = self._date() if first and self._take("and|to|until") else None
            if first and last:
                return Condition(self._the_date(), "date", "between", (first, last))
        self.at = start
        for sign, words in (("=", "in|during|on|for"), (">=", "since|from"), (">", "after"), ("<", "before"), ("<=", "until")):
            if self._take(words) and (span := self._date()):
                others = [one for one in range(len(self.table.names)) if one not in self.table.date_columns] if sign == "=" else []
                holders = [one for one in others if span.written in self.table.values_like(one)] if span.written.isdigit() else []
                if holders:
                    named = [*self.table.date_columns, *holders]
                    if len(named) > 1:
                        self._several(span.written, named)
                    return Condition(holders[0], "value", "=", tuple(self.table.values_like(holders[0])[span.written]))
                return Condition(self._the_date(), "date", sign, (span,))
            self.at = start
        return None

    def _date(self) -> Span | None:
        text = self._take(_DATE)
        if not text:
            return None
        try:
            start = pd.Timestamp(text)
        except ValueError:
            raise InvalidInputError(f"{text} is not a date.", hint=_DATES) from None
        step = {4: pd.DateOffset(years=1), 7: pd.DateOffset(months=1)}.get(len(text), pd.DateOffset(days=1))
        return Span(text, start, start + step)

    def _condition(self) -> Condition | None:
        self._fillers()
        column = self._column()
        return None if column is None else self._compared(column)

    def _compared(self, column: int) -> Condition:
        verb = self._take("is|are|was|were|of")
        here = self.at
        literal = self.text[here:].lstrip().startswith(("not ", "missing", "empty")) and self._value(column)
        if literal:  # `status is not paid`, and `not paid` is a value
            raise InvalidInputError(
                f"{self.text[here : self.at].strip()!r} is a value of {self.table.names[column]}, and words of the language.",
                hint=f"Put it in quotes: 'where {self.table.names[column]} is \"{literal[0]}\"'.",
            )
        negated = bool(self._take("not"))
        if (verb or negated) and self._take("missing|empty"):
            return Condition(column, "missing", "!=" if negated else "=")
        if not negated and self._take("between"):
            first = self._operand_of(column)
            if first is None or not self._take("and"):
                self._fail()
            second = self._operand_of(column)
            return Condition(column, first[0], "between", (first[1], second[1])) if second else self._fail()
        sign = next((sign for sign, words in _COMPARISONS.items() if self._take(words)), "")
        if sign in ("", "=", "!=") and not (sign == "!=" and negated):
            sign = "!=" if negated or sign == "!=" else "="
            self._take("one of|in")
            return self._values(column, sign)
        operand = None if negated else self._operand_of(column)
        if operand is None:
            self._fail()
        return Condition(column, operand[0], sign, (operand[1],))

    def _operand_of(self, column: int) -> tuple[str, object] | None:
        if self.table.dates(column) is not None:
            span = self._date()
            return ("date", span) if span else None
        number = self._take(_NUMBER)
        if number:
            self.table.numbers(column)
            if self.table.is_per_cent(column):
                self._take("%|per cent|percent")
            return "number", float(number.replace(",", ""))
        return None

    def _values(self, column: int, sign: str) -> Condition:
        has_figures = self.table.dates(column) is not None or self.table.holds_numbers(column)
        operand = self._try(lambda: self._operand_of(column)) if has_figures else None
        if operand:
            return Condition(column, operand[0], sign, (operand[1],))
        found = self._value(column)
        if found is None:
            self._unknown_value(column)
        values = list(found)
        while (more := self._try(lambda: self._value(column) if self._take(r", or|,|or") else None)) is not None:
            values += more
        return Condition(column, "value", sign, tuple(values))

    def _value(self, column: int) -> list[object] | None:
        known = self.table.values_like(column)
        for _ in ("as it stands", "after `the`"):
            for written, end in self._candidates():
                for one in (written, written.removesuffix("s")):
                    if one in known:
                        self.at = end
                        self.far = max(self.far, end)
                        return known[one]
            if not self._take("the"):
                break
        return None

    def _candidates(self) -> list[tuple[str, int]]:
        """What may be a value here: a quotation, or the next words, the most first."""
        if quoted := re.compile(rf"\s*{_QUOTED}").match(self.text, self.at):
            return [(" ".join(re.sub(r"[\W_]+", " ", quoted[1]).split()), quoted.end())]
        ends = [match.end() for match in re.compile(r"[^\W_]+").finditer(self.text, self.at)][:10]
        return [(" ".join(re.sub(r"[\W_]+", " ", self.text[self.at : end]).split()), end) for end in reversed(ends)]

    def _value_somewhere(self, sign: str) -> Condition:
        """A value without its column: of the only column that holds it."""
        start = self.at
        found: list[tuple[int, list[object], int]] = []
        longest = 0
        for column in range(len(self.table.names)):
            self.at = start
            values = self._value(column)
            if values is not None and self.at >= longest:
                found = [*(one for one in found if one[2] == self.at), (column, values, self.at)]
                longest = self.at
        self.at = start
        if not found:
            self._fail()
        if len(found) > 1:
            self._several(str(found[0][1][0]), [column for column, _, _ in found])
        column, values, self.at = found[0]
        while (more := self._try(lambda: self._value(column) if self._take("or") else None)) is not None:
            values = [*values, *more]
        here = self.at
        if self._column() != column:  # `in the North region`
            self.at = here
        return Condition(column, "value", sign, tuple(values))

    def _several(self, value: str, columns: Sequence[int]) -> NoReturn:
        names = [self.table.names[column] for column in columns]
        raise InvalidInputError(
            f"{value!r} stands in several columns of {self.table.name}: {', '.join(names)}.",
            hint=f"Say which is meant, as in 'where {names[0]} is {value}'.",
        )

    # -- words ---------------------------------------------------------------------------------------------------------------

    def _take(self, words: str) -> str:
        """Take one of these words if it stands here, and the filler before it."""
        # a word ends where it ends: `mean` does not stand in `meaning`, while `>` stands before any figure
        match = re.compile(rf"\s*(?:(?:{FILLER})\s+)*({words})(?:(?<!\w)|(?!\w))").match(self.text, self.at)
        if match is None or not match[1]:
            return ""
        self.at = match.end()
        self.far = max(self.far, self.at)
        return match[1]

    def _fillers(self) -> None:
        if self._column_here() is None:
            match = re.compile(rf"\s*(?:(?:{FILLER})\b\s*)*").match(self.text, self.at)
            self.at = match.end() if match else self.at

    def _column_here(self) -> tuple[int, list[int]] | None:
        """The longest name of a column that stands here, and the columns that have it."""
        place = re.compile(r"[\s\"“”'`]*").match(self.text, self.at)
        start = place.end() if place else self.at
        ends: dict[int, list[int]] = {}
        for pattern, column in self.table.patterns:
            if match := pattern.match(self.text, start):
                ends.setdefault(match.end(), []).append(column)
        if not ends:
            return None
        end = max(ends)
        after = re.compile(r"[\"“”'`]*").match(self.text, end)
        exact = [column for column in ends[end] if fold(self.table.names[column]) == self.text[start:end]]
        columns = list(dict.fromkeys(exact if len(exact) == 1 else ends[end]))
        return (after.end() if after else end), columns

    def _column(self) -> int | None:
        here = self._column_here()
        if here is None:
            before = self.at
            self._fillers()
            here = self._column_here()
            if here is None:
                self.at = before
                return None
        self.at, columns = here
        self.far = max(self.far, self.at)
        if len(columns) > 1:
            places = " and ".join(f"{self.table.names[column]!r} (column {column + 1})" for column in columns)
            raise InvalidInputError(
                f"{len(columns)} columns of {self.table.name} go by that name: {places}.",
                hint="Say the whole name, or give them different names in the file.",
            )
        return columns[0]

    def _peek_end(self) -> int:
        here = self._column_here()
        return here[0] if here else 0

    def _peek_column(self) -> int | None:
        before = self.at
        column = self._column()
        self.at = before
        return column

    def _try(self, read: Callable[[], T | None]) -> T | None:
        before = self.at
        found = read()
        if found is None:
            self.at = before
        return found

    # -- refusals ------------------------------------------------------------------------------------------------------------

    def _unknown_value(self, column: int) -> NoReturn:
        known = self.table.values_like(column)
        rest = self.text[self.at :].strip(" ?.!")
        near = get_close_matches(" ".join(rest.split()[:2]), list(known)[:5_000], 1) or get_close_matches(
            rest.split()[0] if rest else "", list(known)[:5_000], 1
        )
        name = self.table.names[column]
        said = f" Did you mean {known[near[0]][0]}?" if near else ""
        some = ", ".join(str(values[0]) for values in list(known.values())[:8])
        raise InvalidInputError(
            f"{name} has no value {' '.join(rest.split()[:4])!r}.{said}",
            hint=f"Its values: {some}{', …' if len(known) > 8 else ''}.",
        )

    def _fail(self, hint: str = "") -> NoReturn:
        understood = self.text[: self.far].strip()
        rest = self.text[self.far :].strip(" ?.!,;")
        if not rest:
            raise InvalidInputError(
                f"Something is missing at the end of {understood!r}.", hint=f"{hint} {self._sentence()}".strip()
            )
        foreign = self._foreign(rest)
        what = ", ".join(repr(word) for word in foreign[:5]) if foreign else repr(" ".join(rest.split()[:6]))
        dates = _DATES if _MONTHS & set(foreign) else ""
        verb = "are not understood" if len(foreign) > 1 else "is not understood" if foreign else "cannot stand there"
        raise InvalidInputError(
            f"{what} {verb}{f' (understood: {understood!r})' if understood else ''}.",
            hint=f"{hint or dates} The columns of {self.table.name} are: {', '.join(self.table.names)}. {self._sentence()}".strip(),
        )

    def _foreign(self, text: str) -> list[str]:
        """The words that are neither of the language nor of a column's name or a value."""
        named = {word for name in (*self.table.names, self.table.name) for word in name_words(name)}
        named |= {word for column in self.table.text_columns for value in self.table.values_like(column) for word in value.split()}
        return [
            word for word in re.findall(r"[^\W\d_][^\W_]*", text) if word not in _FIXED | named and word.rstrip("s") not in named
        ]

    def _foreign_too(self) -> str:
        foreign = self._foreign(self.text)
        return f", and leave out or say otherwise {', '.join(map(repr, foreign[:5]))}" if foreign else ""

    def _sentence(self) -> str:
        """The nearest sentence of the language, of this table's own names."""
        table = self.table
        here = [column for pattern, column in table.patterns if pattern.search(self.text)]
        figures = [one for one in (*here, *table.amounts) if one in table.amounts]
        keys = [one for one in (*here, *table.text_columns) if one in table.text_columns]
        figure = f"total {table.names[figures[0]]}" if figures else "how many rows"
        return f"Ask for example: '{figure}{f' per {table.names[keys[0]]}' if keys else ''}'."
