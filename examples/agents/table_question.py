"""Understand a question about a table, or say what in it is not understood. Nothing is guessed silently."""

from __future__ import annotations

from column_names import Names
from question_filters import read_filters
from question_scan import Item, Scan
from question_words import COUNTABLE, GENERIC, INTENSIVE
from table_query import Filter, Key, Measure, Query
from table_reading import Table
from words import name_stems, stem

from ioa.errors import InvalidInputError

_FIGURES = ("sum", "mean", "median", "min", "max", "std", "var", "range", "quantile", "count", "distinct", "high", "low", "high_n", "low_n")
_RANKS = ("high", "low", "high_n", "low_n")
_ROW_WORDS = {"row", "record", "entry", "order", "transaction", "sale", "line", "item", "person", "people", "capita", "observation", "purchase"}
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
    if not left & {*_FIGURES, "by", "share", "correlation", "growth", "missing", "describe"}:
        return False
    first = right[0].kind
    if first in ("which", "high_n", "low_n", "correlation", "growth", "missing", "describe", "mode", "share"):
        return bool(left & {*_FIGURES, "correlation", "growth", "missing", "mode"}) and not (first == "share" and "by" not in left)
    ends = next((index for index, one in enumerate(right) if one.kind == "and" and index), len(right))
    return first in _FIGURES and "by" in left and "by" in {one.kind for one in right[: ends + 3]}


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
        self.pending: list[Measure] = []
        self.current: list[Measure] = []
        self.has_subject = False
        self.counted_from = 0
        self.speaks_of_rows = any(one.kind == "other" and stem(one.text.lower()) in _ROW_WORDS for one in self.items)
        self.labels: set[int] = set()

    def fail(self, message: str) -> InvalidInputError:
        return InvalidInputError(message, hint=self.names.describe())

    def read(self) -> Query:
        if not self.items:
            raise self.fail("The request says nothing to compute.")
        self._refuse_unknown()
        self.query.filters, self.labels = read_filters(self.items, self.table, self.fail)
        self._roles()
        self._kind()
        if self.query.kind in ("figures", "growth"):
            self._defaults()
        self._ranking()
        self._having()
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
            before = self.items[index - 1].kind if index else ""
            after = self.items[index + 1].kind if index + 1 < len(self.items) else ""
            word = stem(item.text.lower())
            if before in ("by", "which") and after not in ("column", "value") and word not in _ROW_WORDS:
                if not (before == "which" and word in GENERIC):
                    raise self.fail(f"{self.table.name} has no column for {item.text!r}.")
            if word in GENERIC or word in own:
                continue
            named = before in ("prep", "not") and after not in ("column", "value", "period", "compare")
            if named or (item.text[:1].isupper() and item.start > 0):
                self._take_as_value(item)

    def _take_as_value(self, item: Item) -> None:
        values = self.names.values_with(item.text)
        if len({column for column, _ in values}) != 1:
            near = self.names.nearest_value(item.text)
            raise self.fail(f"{item.text!r} is neither a column nor a value of {self.table.name}.{near}")
        item.kind, item.values = "value", values

    # What each column is for

    def _roles(self) -> None:
        mode = "measure"
        for index, item in enumerate(self.items):
            before = self.items[index - 1] if index else None
            if item.kind in _FIGURES or item.kind in ("mode", "share", "correlation", "growth", "versus", "trend"):
                mode = "subject" if item.kind in (*_RANKS, "mode") else "measure"
                self._operation(item, index)
            elif item.kind in ("by", "which", "sort"):
                mode = item.kind
            elif item.kind == "prep":
                mode = "filter"
            elif item.kind.startswith("grain:"):
                mode = self._grain(item, mode, before)
            elif item.kind == "column" and index not in self.labels and not self._is_modifier(index):
                mode = self._column(item, mode, before)
            elif item.kind == "other" and mode == "which":
                mode = "measure"

    def _is_modifier(self, index: int) -> bool:
        """Whether a column's name only describes the next one, as in `product category`."""
        if index + 1 >= len(self.items) or self.items[index + 1].kind != "column":
            return False
        if any(self.names.truths(column) for column in self.items[index].columns):
            return False
        return self.items[index + 1].start - self.items[index].end == 1

    def _operation(self, item: Item, index: int) -> None:
        if self._counts() and any(one.kind == "other" for one in self.items[self.counted_from : index]):
            self.query.measures.append(Measure("count"))  # `number of orders and total revenue`: what was counted are the rows
            self.pending.pop()
        self.counted_from = index
        if item.kind in _FIGURES and item.kind not in _RANKS:
            self.pending.append(Measure(item.kind, quantile=item.numbers[0] / 100 if item.numbers else 0.0))

    def _grain(self, item: Item, mode: str, before: Item | None) -> str:
        if before is not None and before.text.lower() in ("last", "latest", "past", "previous", "this", "next"):
            raise self.fail(f"'{before.text} {item.text}' depends on today; name the period instead, as in 'in March 2024'.")
        if not self.table.dates:
            raise self.fail(f"{self.table.name} has no dates, so nothing can be grouped by {item.text}.")
        self._key(Key(self.table.dates[0], item.kind.split(":")[1]), mode)
        return mode if mode == "by" else "measure"

    def _key(self, key: Key, mode: str) -> None:
        self.has_subject |= mode != "by"
        if mode != "by":
            self.query.ranked = key
        # A date column beside its month names which date is meant.
        same = [one for one in self.query.keys if one.column == key.column and not (one.grain and key.grain)]
        if same:
            self.query.keys = [Key(key.column, key.grain or same[0].grain) if one in same else one for one in self.query.keys]
        elif key not in self.query.keys:
            self.query.keys.append(key)

    def _column(self, item: Item, mode: str, before: Item | None) -> str:
        numbers = [name for name in item.columns if name in self.table.numbers]
        others = [name for name in item.columns if name not in numbers]
        wants_number = mode in ("measure", "filter", "subject", "sort") and not self._counts()
        if numbers and (wants_number or not others):
            column = self._one(numbers, item)
            if mode not in ("by", "which") or (mode == "by" and self._ranks_by(column)):
                self._measure(column, item)
                return "measure" if mode != "by" else mode
            if mode == "which":
                self._measure(column, item)
                return "measure"
            self._key(Key(column), mode)
            return mode
        column = self._one(others or numbers, item)
        return self._label(column, mode, item, before)

    def _label(self, column: str, mode: str, item: Item, before: Item | None) -> str:
        if mode in ("measure", "filter") and self.pending and self.pending[-1].operation in ("count", "distinct"):
            self.query.measures.append(Measure("distinct", column))
            self.pending.pop()
            return "measure"
        is_date = column in self.table.dates
        if is_date and self.kinds & {"high", "low"} and mode == "subject":
            is_first = "low" in self.kinds or any(one.text.lower() == "oldest" for one in self.items)
            self.query.measures.append(Measure("min" if is_first else "max", column))
            return "measure"
        if mode in ("measure", "filter") and (truths := self.names.truths(column)):
            self.query.filters.append(Filter(column, "in", tuple(truths), before is not None and before.kind == "not"))
            return mode
        is_id = self.table.is_number(column) and name_stems(item.text) != name_stems(column)
        if is_id and mode in ("measure", "filter"):  # `employees` speaks of the rows when the column is `employee_id`
            self.speaks_of_rows = True
            return mode
        if is_id and mode == "subject" and self.query.keys:
            self.speaks_of_rows = True
            return "measure"
        if is_date and mode in ("measure", "filter"):
            if self.pending and self.pending[-1].operation in ("min", "max"):
                self.query.measures.append(Measure(self.pending.pop().operation, column))
            return mode
        self.query.columns.append(column)
        self._key(Key(column), mode)
        return mode if mode == "by" else "measure"

    def _counts(self) -> bool:
        return bool(self.pending) and self.pending[-1].operation in ("count", "distinct")

    def _ranks_by(self, column: str) -> bool:
        if self.kinds & {*_RANKS, "sort", "sort_asc", "sort_desc"} and self.query.keys:
            return True
        if self.query.measures or self.pending:
            return bool(self.query.keys and self.query.measures)
        return bool(self.query.keys) or self.table.frame[column].nunique() > 12

    def _measure(self, column: str, item: Item) -> None:
        self.query.columns.append(column)
        if any(one.kind == "sort" and one.end <= item.start for one in self.items):
            self.query.sort_column = column
            if any(measure.column == column for measure in self.query.measures):
                return
        if self.pending:
            self.current, self.pending = self.pending, []
        for measure in self.current or [Measure("")]:
            found = self._counted(column, item) if measure.operation == "count" else Measure(measure.operation, column, measure.quantile)
            if found not in self.query.measures:
                self.query.measures.append(found)

    def _counted(self, column: str, item: Item) -> Measure:
        stems = name_stems(item.text)
        if set(stems) & COUNTABLE or set(name_stems(column)) & COUNTABLE and stems == name_stems(column):
            return Measure("sum", column)
        return Measure("count", column if stems == name_stems(column) else None)

    def _one(self, columns: list[str], item: Item) -> str:
        if len(columns) == 1:
            return columns[0]
        lengths = sorted((len(name_stems(column)), column) for column in columns)
        if lengths[0][0] < lengths[1][0]:
            return lengths[0][1]
        raise self.fail(f"{item.text!r} could mean {' or '.join(columns)}. Name the column in full.")

    # What kind of answer is wanted

    def _kind(self) -> None:
        computes = bool(self.query.measures) or bool(self.pending)
        for kind in ("missing", "correlation", "growth"):
            if kind in self.kinds:
                self.query.kind = kind
                return
        if "describe" in self.kinds and not computes and not self.query.keys:
            self.query.kind = "describe"
        elif "rows" in self.kinds and not computes and not self.kinds & {*_RANKS, "mode", "share"}:
            is_list = bool(self.query.keys) and not self.query.filters
            self.query.kind = "distinct" if is_list else "rows"
        elif not computes and self.query.filters and not self.kinds & {*_RANKS, "mode", "share", "by", "versus", "trend"}:
            self.query.kind = "rows"
        elif not computes and self.query.columns and self.kinds <= {"column", "other", "which", "and", "prep"}:
            strange = [item.text for item in self.items if item.kind == "other" and stem(item.text.lower()) not in GENERIC]
            if strange:
                raise self.fail(f"It is not clear what {', '.join(strange)} means here.")
            self.query.kind = "distinct"

    def _defaults(self) -> None:
        query = self.query
        query.share = "share" in self.kinds
        self._implied_keys()
        query.keys = self._useful_keys()
        if not query.measures or self.pending:
            query.measures += self._unnamed()
        query.measures = [self._with_operation(measure) for measure in query.measures]
        if query.kind == "growth" and not query.keys and not self._spans():
            query.keys = [Key(self._date(), "month")]

    def _implied_keys(self) -> None:
        query = self.query
        if "trend" in self.kinds and not any(key.is_time for key in query.keys):
            query.keys.append(Key(self._date(), "month"))
        for one in query.filters:
            several = one.sign == "in" and len(one.values) > 1 and not one.negated
            if several and not query.keys and not query.share and not self.pending_count_only():
                query.keys.append(Key(one.column))
            if one.sign == "period" and len(one.periods) > 1 and not query.keys and query.kind == "figures":
                is_year = self.table.is_number(one.column)
                query.keys.append(Key(one.column, "" if is_year else one.periods[0].grain.replace("half", "month")))

    def pending_count_only(self) -> bool:
        return bool(self.pending) and not self.query.measures and "versus" not in self.kinds

    def _useful_keys(self) -> list[Key]:
        """Drop a group that every row would form alone when the question ranks nothing, as in `average per order`."""
        if self.has_subject or self.kinds & set(_RANKS):
            return self.query.keys
        size = len(self.table.frame)
        kept = []
        for key in self.query.keys:
            is_row = not key.grain and size > 20 and self.table.frame[key.column].nunique() == size
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
        wanted = [measure for measure in self.pending if measure.operation not in ("count", "distinct")]
        counts = [Measure("count")] if len(wanted) < len(self.pending) or "mode" in self.kinds else []
        if counts and any("sold" == item.text.lower() for item in self.items) and (units := self.names.columns_like(("unit",))):
            counts = [Measure("sum", units[0])]
        if self.query.measures and all(not one.operation for one in self.query.measures) and wanted:  # `revenue in total`
            columns = [measure.column for measure in self.query.measures]
            self.query.measures = []
            return [Measure(one.operation, column, one.quantile) for column in columns for one in wanted] + counts
        if self.query.measures or (counts and not wanted):
            return counts
        if (self.query.share or (self.speaks_of_rows and self.kinds & set(_RANKS) and self.query.keys)) and not wanted:
            return [Measure("count")]
        return [Measure(one.operation, column, one.quantile) for one in wanted or [Measure("")] for column in self._default_columns()] + counts

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
        verbs = {item.text.lower() for item in self.items} & {"sell", "sold", "sells", "earn", "earns", "earned", "make", "made"}
        if verbs:
            for word in ("sale", "salary"):
                if money := [name for name in self.names.columns_like((word,)) if name in numbers]:
                    return money[:1]
        other = [item.text for item in self.items if item.kind == "other" and stem(item.text.lower()) not in set(name_stems(self.table.name))]
        if not numbers or other or not (self.pending or self.kinds & {*_RANKS, "versus", "trend", "growth"} or self.query.keys):
            what = f"{self.table.name} has no column for {', '.join(map(repr, other))}" if other else "The request names no column to compute"
            raise self.fail(f"{what}.")
        if self.kinds & set(_RANKS):
            money = [name for name in self.names.columns_like(("sale",)) if name in numbers]
            if len(money) != 1:
                raise self.fail("The request does not say by which column to rank.")
            return money
        return numbers

    def _with_operation(self, measure: Measure) -> Measure:
        if measure.operation:
            return measure
        is_intensive = bool(set(name_stems(measure.column or "")) & INTENSIVE)
        if self.kinds & set(_RANKS):
            is_high = bool(self.kinds & {"high", "high_n"})
            if is_intensive or not (self.has_subject or self.kinds & {"high_n", "low_n"}):
                return Measure("max" if is_high else "min", measure.column)
        return Measure("mean" if is_intensive else "sum", measure.column)

    # In which order, and how many

    def _ranking(self) -> None:
        ranks = [item for item in self.items if item.kind in _RANKS]
        query = self.query
        if ranks:
            first = ranks[0]
            is_listing = not self.has_subject and not first.numbers
            query.descending = first.kind.startswith("high") if not (is_listing and not query.keys) else None
            query.limit = int(first.numbers[0]) if first.numbers else (1 if self.has_subject else None)
            if first.numbers and not query.keys and query.kind == "figures":
                query.kind = "top_rows"
        elif "mode" in self.kinds:
            query.descending, query.limit = True, 1
        elif self.kinds & {"sort", "sort_desc"}:
            query.descending = "sort_asc" not in self.kinds
        elif "sort_asc" in self.kinds:
            query.descending = False

    def _having(self) -> None:
        """Move `with total revenue above 1000` from the rows to the groups."""
        for index, item in enumerate(self.items[:-2]):
            chain = [one.kind for one in self.items[index : index + 3]]
            if self.query.keys and chain[0] in _FIGURES and chain[1:] == ["column", "compare"] and index and self.items[index - 1].kind == "prep":
                compare = self.items[index + 2]
                self.query.having.append((compare.sign, compare.numbers))
                self.query.filters = [one for one in self.query.filters if one.values != compare.numbers]
