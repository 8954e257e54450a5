"""Understand a question about a table, or say what in it is not understood. Nothing is guessed silently."""

from __future__ import annotations

from itertools import pairwise

from column_names import Names
from ioa.errors import InvalidInputError
from question_filters import read_filters
from question_roles import FIGURES, RANKS, ROW_WORDS, Roles
from question_scan import Item, Scan
from question_words import CHANGES_MEANING, COUNTABLE, GENERIC, INTENSIVE, VERBS
from table_query import Key, Measure, Query
from table_reading import Table
from words import NUMBER_WORDS, name_stems, stem

_HINTS = {
    "cheapest": "price", "expensive": "price", "oldest": "age", "youngest": "age", "longest": "duration", "shortest": "duration",
    "heaviest": "weight", "lightest": "weight", "tallest": "height", "hottest": "temperature", "warmest": "temperature",
    "coldest": "temperature", "coolest": "temperature", "fastest": "speed", "slowest": "speed",
}  # fmt: skip


def understand_all(question: str, table: Table) -> list[Query]:
    """Turn a request of one or several questions into queries, in order.

    Raises:
        InvalidInputError: The request names something the table does not have, or nothing that can be computed.
    """
    items = [item for item in Scan(question, Names(table)).items if item.kind != "stop"]
    starts = [0]
    for index, item in enumerate(items[:-1]):
        left = {one.kind for one in items[:index] if one.start >= starts[-1]}
        if item.kind == "and" and _opens_question(items[index + 1 :], left):
            starts.append(item.end)
    ends = [*starts[1:], len(question)]
    return [understand(question[start:end], table) for start, end in zip(starts, ends, strict=True)]


def _opens_question(right: list[Item], left: set[str]) -> bool:
    if not left & {*FIGURES, "by", "share", "correlation", "growth", "missing", "describe"}:
        return False
    first = right[0].kind
    if first in ("which", "high_n", "low_n", "correlation", "growth", "missing", "describe", "mode", "share"):
        return bool(left & {*FIGURES, "correlation", "growth", "missing", "mode"}) and not (first == "share" and "by" not in left)
    ends = next((index for index, one in enumerate(right) if one.kind == "and" and index), len(right))
    return first in FIGURES and "by" in left and "by" in {one.kind for one in right[: ends + 3]}


def understand(question: str, table: Table) -> Query:
    """Turn a question into a query over the table.

    Raises:
        InvalidInputError: The question names something the table does not have, or nothing that can be computed.
    """
    return _Reader(question, table).read()


class _Reader:
    def __init__(self, question: str, table: Table) -> None:
        self.table = table
        self.names = Names(table)
        self.items = [item for item in Scan(question, self.names).items if item.kind != "stop"]
        self.kinds = {item.kind for item in self.items}
        self.query = Query()
        self.roles = Roles(question, self.items, self.names, self.query, self.fail)

    def fail(self, message: str) -> InvalidInputError:
        return InvalidInputError(message, hint=self.names.describe())

    def read(self) -> Query:
        if not self.items:
            raise self.fail("The request says nothing to compute.")
        self._refuse_unknown()
        self.query.filters, labels = read_filters(self.items, self.table, self.fail)
        self.roles.read(labels)
        self._kind()
        if self.query.kind in ("figures", "growth"):
            self._defaults()
        self._ranking()
        self._having()
        self._admit_unused()
        return self.query

    # What is not understood

    def _refuse_unknown(self) -> None:
        own = set(name_stems(self.table.name))
        for index, item in enumerate(self.items):
            if item.kind == "unknown":
                raise self.fail(f"{item.text} is neither a column nor a value of {self.table.name}.")
            if item.kind == "number" and index and self.items[index - 1].kind == "prep":
                raise self.fail(f"{self.table.name} has no date or other column that {item.text} could stand for.")
            if item.kind != "other":
                continue
            if item.text.lower() in CHANGES_MEANING:
                raise self.fail(f"{item.text!r} asks for something that is not computed here.")
            before = self.items[index - 1].kind if index else ""
            after = self.items[index + 1].kind if index + 1 < len(self.items) else ""
            word = stem(item.text.lower())
            if before in ("by", "which") and after not in ("column", "value") and word not in ROW_WORDS:
                if not (before == "which" and word in GENERIC):
                    raise self.fail(f"{self.table.name} has no column for {item.text!r}.")
            if word in GENERIC or word in own:
                continue
            noun = self.items[index + 1].columns if after == "column" else []
            is_about_rows = bool(noun) and not any(column in self.table.numbers for column in noun)
            named = before in ("prep", "not") and (is_about_rows or after not in ("column", "value", "period", "compare"))
            if named or (item.text[:1].isupper() and item.start > 0):
                self._take_as_value(item)

    def _take_as_value(self, item: Item) -> None:
        values = self.names.values_with(item.text)
        if len({column for column, _ in values}) != 1:
            near = self.names.nearest_value(item.text)
            raise self.fail(f"{item.text!r} is neither a column nor a value of {self.table.name}.{near}")
        item.kind, item.values = "value", values

    # What kind of answer is wanted

    def _kind(self) -> None:
        computes = bool(self.query.measures) or bool(self.roles.pending)
        for kind in ("missing", "correlation", "growth"):
            if kind in self.kinds and not (kind == "growth" and self._compares_values()):
                self.query.kind = kind
                return
        if "describe" in self.kinds and not computes and not self.query.keys:
            self.query.kind = "describe"
        elif "rows" in self.kinds and not computes and not self.kinds & {*RANKS, "mode", "share"}:
            is_list = bool(self.query.keys) and not self.query.filters
            self.query.kind = "distinct" if is_list else "rows"
        elif not computes and self.query.filters and "which" in self.kinds and self.query.keys and not self.kinds & set(RANKS):
            self.query.kind = "distinct"
        elif not computes and self.query.filters and not self.kinds & {*RANKS, "mode", "share", "by", "versus", "trend"}:
            self.query.kind = "rows"
        elif not computes and self.query.columns and self.kinds <= {"column", "other", "which", "and", "prep"}:
            strange = [item.text for item in self.items if item.kind == "other" and stem(item.text.lower()) not in GENERIC]
            if strange:
                raise self.fail(f"It is not clear what {', '.join(strange)} means here.")
            self.query.kind = "distinct"

    def _compares_values(self) -> bool:
        """Whether a difference is meant between cell values, as in `difference between North and South`, not over time."""
        is_over_time = self._spans() or any(key.is_time or key.column in self.table.dates for key in self.query.keys)
        return not is_over_time and any(one.sign == "in" and len(one.values) > 1 for one in self.query.filters)

    def _admit_unused(self) -> None:
        """Name the words that had no part in the answer; a bare count with such a word would be a wrong answer."""
        own = {*name_stems(self.table.name), *GENERIC, *ROW_WORDS, *NUMBER_WORDS}
        unused = [
            item.text
            for before, item in zip([None, *self.items], self.items, strict=False)
            if item.kind == "other" and stem(item.text.lower()) not in own and item.text.lower() not in VERBS
            if not (before is not None and before.kind == "count") and item.text.lower() not in _HINTS
        ]
        if (
            unused
            and self.kinds <= {"count", "other", "column", "which", "prep"}
            and "count" in self.kinds
            and not self.query.filters
        ):
            raise self.fail(f"It is not clear what {', '.join(map(repr, unused))} means here.")
        if unused:
            self.query.notes.append(f"not understood and left aside: {', '.join(unused)}")

    def _defaults(self) -> None:
        query = self.query
        query.share = "share" in self.kinds
        self._implied_keys()
        query.keys = self._useful_keys()
        if not query.measures or self.roles.pending:
            query.measures += self._unnamed()
        query.measures = list(dict.fromkeys(self._with_operation(measure) for measure in query.measures))
        self._refuse_ratio()
        if query.kind == "growth" and not query.keys and not self._spans():
            query.keys = [Key(self._date(), "month")]

    def _refuse_ratio(self) -> None:
        """Refuse `revenue per unit`, which is a ratio of two columns and no group."""
        for before, item in pairwise(self.items):
            if before.text.lower() == "per" and item.kind == "column" and item.text.lower() in COUNTABLE and len(item.columns) == 1:
                if item.columns[0] in self.table.numbers:
                    raise self.fail(f"'per {item.text}' asks for a ratio of two columns, which is not computed here.")

    def _implied_keys(self) -> None:
        query = self.query
        if "trend" in self.kinds and not any(key.is_time for key in query.keys):
            query.keys.append(Key(self._date(), "month"))
        for one in query.filters:
            several = one.sign == "in" and len(one.values) > 1 and not one.negated
            if several and not query.keys and not query.share and not self._only_counts():
                query.keys.append(Key(one.column))
            if one.sign == "period" and len(one.periods) > 1 and not query.keys and query.kind == "figures":
                is_year = self.table.is_number(one.column)
                query.keys.append(Key(one.column, "" if is_year else one.periods[0].grain.replace("half", "month")))

    def _only_counts(self) -> bool:
        return bool(self.roles.pending) and not self.query.measures and "versus" not in self.kinds

    def _useful_keys(self) -> list[Key]:
        """Drop a group that every row would form alone when the question ranks nothing, as in `average per order`."""
        if self.roles.has_subject or self.kinds & set(RANKS):
            return self.query.keys
        size = len(self.table.frame)
        kept = []
        for key in self.query.keys:
            is_row = (
                not key.grain
                and self.table.is_identifier(key.column)
                and size > 20
                and self.table.frame[key.column].nunique() == size
            )
            if is_row:
                self.query.notes.append(f"every row has its own {key.column}, so rows were not grouped by it")
            else:
                kept.append(key)
        return kept

    def _date(self) -> str:
        if not self.table.dates:
            raise self.fail(f"{self.table.name} has no dates, so nothing can be said about its course over time.")
        return self.table.dates[0]

    def _spans(self) -> bool:
        return any(len(one.periods) > 1 or any(period.parts for period in one.periods) for one in self.query.filters)

    def _unnamed(self) -> list[Measure]:
        """The figures of operations that no column was named for."""
        wanted = [measure for measure in self.roles.pending if measure.operation not in ("count", "distinct")]
        counts = [Measure("count")] if len(wanted) < len(self.roles.pending) or "mode" in self.kinds else []
        if counts and any(item.text.lower() == "sold" for item in self.items) and (units := self.names.columns_like(("unit",))):
            counts = [Measure("sum", units[0])]
        if self.query.measures and all(not one.operation for one in self.query.measures) and wanted:  # `revenue in total`
            columns = [measure.column for measure in self.query.measures]
            self.query.measures = []
            return [Measure(one.operation, column, one.quantile) for column in columns for one in wanted] + counts
        if self.query.measures or (counts and not wanted):
            return counts
        if (self.query.share or (self.roles.speaks_of_rows and self.kinds & set(RANKS) and self.query.keys)) and not wanted:
            return [Measure("count")]
        return [
            Measure(one.operation, column, one.quantile) for one in wanted or [Measure("")] for column in self._default_columns()
        ] + counts

    def _default_columns(self) -> list[str]:
        for item in self.items:
            if hint := _HINTS.get(item.text.lower()):
                if found := [name for name in self.names.columns_like((hint,)) if name in self.table.numbers]:
                    return found[:1]
        numbers = self.table.numbers
        if len(numbers) == 1:
            return numbers
        if any("selling" in item.text.lower() or item.text.lower() in ("sold", "sells") for item in self.items):
            if units := [name for name in self.names.columns_like(("unit",)) if name in numbers]:
                return units[:1]
        verbs = {item.text.lower() for item in self.items} & VERBS
        if verbs:
            for word in ("sale", "salary"):
                if money := [name for name in self.names.columns_like((word,)) if name in numbers]:
                    return money[:1]
        other = [
            item.text
            for item in self.items
            if item.kind == "other" and stem(item.text.lower()) not in set(name_stems(self.table.name))
        ]
        if (
            not numbers
            or other
            or not (self.roles.pending or self.kinds & {*RANKS, "versus", "trend", "growth"} or self.query.keys)
        ):
            what = (
                f"{self.table.name} has no column for {', '.join(map(repr, other))}"
                if other
                else "The request names no column to compute"
            )
            raise self.fail(f"{what}.")
        if self.kinds & set(RANKS):
            money = [name for name in self.names.columns_like(("sale",)) if name in numbers]
            if len(money) != 1:
                raise self.fail("The request does not say by which column to rank.")
            return money
        return numbers

    def _with_operation(self, measure: Measure) -> Measure:
        if measure.operation:
            return measure
        is_intensive = bool(set(name_stems(measure.column or "")) & INTENSIVE)
        if self.kinds & set(RANKS):
            is_high = bool(self.kinds & {"high", "high_n"})
            if is_intensive or not (self.roles.has_subject or self.kinds & {"high_n", "low_n"}):
                return Measure("max" if is_high else "min", measure.column)
        return Measure("mean" if is_intensive else "sum", measure.column)

    # In which order, and how many

    def _ranking(self) -> None:
        ranks = [item for item in self.items if item.kind in RANKS]
        query = self.query
        if ranks:
            first = ranks[0]
            is_listing = not self.roles.has_subject and not first.numbers
            query.descending = first.kind.startswith("high") if not (is_listing and not query.keys) else None
            number = int(first.numbers[0]) if first.numbers else self._number_of_subjects()
            query.limit = number or (1 if self.roles.has_subject else None)
            if first.numbers and not query.keys and query.kind == "figures":
                query.kind = "top_rows"
        elif "mode" in self.kinds:
            query.descending, query.limit = True, 1
        elif self.kinds & {"sort", "sort_desc"}:
            query.descending = "sort_asc" not in self.kinds
        elif "sort_asc" in self.kinds:
            query.descending = False

    def _number_of_subjects(self) -> int:
        """The number in `the ten days with the highest revenue`."""
        for before, item in pairwise(self.items):
            if item.kind == "column" or item.kind.startswith("grain:"):
                if before.kind == "number":
                    return int(before.numbers[0])
                if before.text.lower() in NUMBER_WORDS:
                    return NUMBER_WORDS[before.text.lower()]
        return 0

    def _having(self) -> None:
        """Move `with total revenue above 1000` from the rows to the groups."""
        for index, _item in enumerate(self.items[:-2]):
            chain = [one.kind for one in self.items[index : index + 3]]
            if (
                self.query.keys
                and chain[0] in FIGURES
                and chain[1:] == ["column", "compare"]
                and index
                and self.items[index - 1].kind == "prep"
            ):
                compare = self.items[index + 2]
                self.query.having.append((compare.sign, compare.numbers))
                self.query.filters = [one for one in self.query.filters if one.values != compare.numbers]
