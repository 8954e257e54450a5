"""What each column in a question is for: a figure to compute, a group to form, or a word for the rows themselves."""

from __future__ import annotations

import re

from column_names import Names
from question_filters import Fail
from question_scan import Item
from question_words import COUNTABLE
from table_query import Filter, Key, Measure, Query
from words import name_stems, stem

FIGURES = (
    "sum",
    "mean",
    "median",
    "min",
    "max",
    "std",
    "var",
    "range",
    "quantile",
    "count",
    "distinct",
    "high",
    "low",
    "high_n",
    "low_n",
)
RANKS = ("high", "low", "high_n", "low_n")
ROW_WORDS = {
    "row",
    "record",
    "entry",
    "order",
    "transaction",
    "sale",
    "line",
    "item",
    "person",
    "people",
    "capita",
    "observation",
    "purchase",
}


class Roles:
    """Reads the items from left to right and writes keys and measures into the query; `pending` operations still want a column."""

    def __init__(self, question: str, items: list[Item], names: Names, query: Query, fail: Fail) -> None:
        self.question = question
        self.items = items
        self.kinds = {item.kind for item in items}
        self.names = names
        self.table = names.table
        self.query = query
        self.fail = fail
        self.pending: list[Measure] = []
        self.current: list[Measure] = []
        self.counted_from = 0
        self.has_subject = False
        self.speaks_of_rows = any(one.kind == "other" and stem(one.text.lower()) in ROW_WORDS for one in items)

    def read(self, labels: set[int]) -> None:
        """Give every item that is not in `labels` its part."""
        mode = "measure"
        for index, item in enumerate(self.items):
            before = self.items[index - 1] if index else None
            if item.kind in FIGURES or item.kind in ("mode", "share", "correlation", "growth", "versus", "trend"):
                mode = "subject" if item.kind in (*RANKS, "mode") else "measure"
                self._operation(item, index)
            elif item.kind in ("by", "which", "sort"):
                mode = item.kind
            elif item.kind == "prep":
                mode = "filter"
            elif item.kind.startswith("grain:"):
                mode = self._grain(item, mode, before)
            elif item.kind == "column" and index not in labels and not self._is_modifier(index):
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
        is_number_of = item.kind == "count" and bool(self.pending) and self.items[index - 1].kind == self.pending[-1].operation
        if item.kind in FIGURES and item.kind not in RANKS and not is_number_of:
            self.pending.append(Measure(item.kind, quantile=item.numbers[0] / 100 if item.numbers else 0.0))

    def _grain(self, item: Item, mode: str, before: Item | None) -> str:
        if before is not None and before.text.lower() in ("last", "latest", "past", "previous", "this", "next"):
            raise self.fail(f"'{before.text} {item.text}' depends on today; name the period instead, as in 'in March 2024'.")
        if not self.table.dates:
            raise self.fail(f"{self.table.name} has no dates, so nothing can be grouped by {item.text}.")
        key = Key(self.table.dates[0], item.kind.split(":")[1])
        if self._counts() and mode == "measure":
            self.query.measures.append(Measure("distinct", key.column, grain=key.grain))
            self.pending.pop()
            return mode
        is_adjective = item.text.lower().endswith(("ly", "annual"))
        if is_adjective and self.pending and before is not None and before.kind == self.pending[-1].operation:
            self.query.over_groups = self.pending.pop()  # `average monthly revenue`: the average of the months' sums
            self.pending.append(Measure(""))
        self._key(key, mode)
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
        is_date = column in self.table.dates
        if is_date and self.kinds & {"high", "low"} and mode == "subject":
            is_first = "low" in self.kinds or any(one.text.lower() == "oldest" for one in self.items)
            self.query.measures.append(Measure("min" if is_first else "max", column))
            return "measure"
        negated = item.sign == "not" or (before is not None and before.kind == "not")
        if mode in ("measure", "filter") and (truths := self.names.truths(column)):
            self.query.filters.append(Filter(column, "in", tuple(truths), negated))
            return mode
        if mode in ("measure", "filter") and self.pending and self.pending[-1].operation in ("count", "distinct"):
            self.query.measures.append(Measure("distinct", column))
            self.pending.pop()
            return "measure"
        if mode == "filter" and self._is_noun(item):
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

    def _is_noun(self, item: Item) -> bool:
        """Whether `of customers` only says what the rows are; `of all customers` and a comparison speak of each of them."""
        is_part = "share" in self.kinds and bool(self.query.filters or any(self._is_flag(one) for one in self.items))
        if self.kinds & {"versus", "growth", *RANKS} or not (self.query.measures or self.pending or is_part):
            return False
        if "share" in self.kinds and not is_part:
            return False
        return not re.search(
            r"(?:all|different|various|individual|single)\s+(?:the\s+)?$", self.question[: item.start], re.IGNORECASE
        )

    def _is_flag(self, item: Item) -> bool:
        return any(self.names.truths(column) for column in item.columns)

    def _counts(self) -> bool:
        return bool(self.pending) and self.pending[-1].operation in ("count", "distinct")

    def _ranks_by(self, column: str) -> bool:
        if self.kinds & {*RANKS, "sort", "sort_asc", "sort_desc"} and self.query.keys:
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
            found = (
                self._counted(column, item)
                if measure.operation == "count"
                else Measure(measure.operation, column, measure.quantile)
            )
            if found not in self.query.measures:
                self.query.measures.append(found)

    def _counted(self, column: str, item: Item) -> Measure:
        stems = name_stems(item.text)
        if any(one.kind == "other" for one in self.items[self.counted_from : self.items.index(item)]):
            return Measure("count")  # `how many rows have a price …`: the noun that was counted is not this column
        words = name_stems(column)
        if words[-1] in COUNTABLE or (words[0] in COUNTABLE and words[-1] in ("sold", "ordered", "made", "produced")):
            return Measure("sum", column)
        return Measure("count", column if stems == words else None)

    def _one(self, columns: list[str], item: Item) -> str:
        if len(columns) == 1:
            return columns[0]
        lengths = sorted((len(name_stems(column)), column) for column in columns)
        if lengths[0][0] < lengths[1][0]:
            return lengths[0][1]
        identifiers = [column for column in columns if self.table.is_identifier(column)]
        if len(identifiers) == 1:  # `invoices` of `invoice_id` and `invoice_date` are the rows
            return identifiers[0]
        raise self.fail(f"{item.text!r} could mean {' or '.join(columns)}. Name the column in full.")
