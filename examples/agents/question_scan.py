"""Cut a question about a table into items: columns, cell values, periods, comparisons, operations and small words."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field

from column_names import Names
from periods import Period, find_periods
from question_words import BETWEEN, COMPARISONS, NUMBER, OPERATIONS, OR_MORE, STOP, parse_number
from words import NUMBER_WORDS, fold, name_stems, stem

_WORD = re.compile(r"[^\W_]+(?:['’]s\b)?")
_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|«([^»]+)»|(?<!\w)\'([^\']+)\'(?!\w)|`([^`]+)`')
_LONGEST = 6
_BLANK = "\x00"


@dataclass
class Item:
    """One meaningful piece of the question. `columns` are the candidates of a column; `values` those of a cell value."""

    kind: str
    start: int
    end: int
    text: str
    columns: list[str] = field(default_factory=list)
    values: list[tuple[str, object]] = field(default_factory=list)
    sign: str = ""
    numbers: tuple[float, ...] = ()
    period: Period | None = None


class Scan:
    """The items of one question over one table, in order. What is claimed first is blanked, so that nothing is read twice."""

    def __init__(self, question: str, names: Names) -> None:
        self.names = names
        self.text = question
        self.items: list[Item] = []
        self._quoted()
        self._phrases()
        self._periods()
        self._comparisons()
        self._operations()
        self._words()
        self.items.sort(key=lambda item: item.start)

    def _claim(self, item: Item) -> None:
        self.items.append(item)
        self.text = self.text[: item.start] + _BLANK * (item.end - item.start) + self.text[item.end :]

    def _quoted(self) -> None:
        for match in list(_QUOTED.finditer(self.text)):
            text = next(group for group in match.groups() if group)
            stems = name_stems(text)
            item = Item("other", match.start(), match.end(), match[0])
            if columns := self.names.whole_column(stems):
                item.kind, item.columns = "column", columns
            elif values := self.names.values_like(stems):
                item.kind, item.values = "value", values
            else:
                item.kind = "unknown"
            self._claim(item)

    def _phrases(self) -> None:
        """Claim names of two and more words, before any word of them is taken for something else."""
        for size in range(_LONGEST, 1, -1):
            for run in self._runs(size):
                stems = tuple(part for match in run for part in name_stems(match[0]))
                start, end = run[0].start(), run[-1].end()
                if columns := self.names.whole_column(stems):
                    self._claim(Item("column", start, end, self.text[start:end], columns=columns))
                elif values := self.names.values_like(stems):
                    self._claim(Item("value", start, end, self.text[start:end], values=values))

    def _runs(self, size: int) -> list[list[re.Match[str]]]:
        words = list(_WORD.finditer(self.text))
        runs, taken = [], -1
        for index in range(len(words) - size + 1):
            run = words[index : index + size]
            gaps = "".join(self.text[left.end() : right.start()] for left, right in itertools.pairwise(run))
            if run[0].start() <= taken or _BLANK in gaps or "," in gaps or len(gaps) > 2 * size:
                continue
            stems = tuple(part for match in run for part in name_stems(match[0]))
            if self.names.whole_column(stems) or self.names.values_like(stems):
                runs.append(run)
                taken = run[-1].end() - 1
        return runs

    def _periods(self) -> None:
        table = self.names.table
        years = sorted(
            {int(year) for column in table.dates for year in table.frame[column].dropna().dt.year.unique()}
            | {int(year) for column in table.frame.columns if table.is_year(column) for year in table.frame[column].dropna()}
        )
        if not years:
            return
        words = sorted({word for column in table.numbers for word in name_stems(column)}, key=len, reverse=True)
        numeric = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words)) or _BLANK})s?\s+(?:is\s+)?$", re.IGNORECASE)
        for start, end, period in find_periods(self.text, years, numeric):
            name = self.text[start:end].split()[-1]
            if table.dates or not self.names.values_like(name_stems(name)):
                self._claim(Item("period", start, end, self.text[start:end], period=period))

    def _comparisons(self) -> None:
        for match in list(BETWEEN.finditer(self.text)):
            numbers = (parse_number(match[1]), parse_number(match[2]))
            self._claim(Item("compare", match.start(), match.end(), match[0], sign="between", numbers=numbers))
        for match in list(OR_MORE.finditer(self.text)):
            sign = ">=" if match[2].lower() in ("more", "above") else "<="
            self._claim(Item("compare", match.start(), match.end(), match[0], sign=sign, numbers=(parse_number(match[1]),)))
        for sign, pattern in COMPARISONS:
            for match in list(pattern.finditer(self.text)):
                number = parse_number(match[1])
                self._claim(Item("compare", match.start(), match.end(), match[0], sign=sign, numbers=(number,)))

    def _operations(self) -> None:
        for kind, pattern in OPERATIONS:
            for match in list(pattern.finditer(self.text)):
                if self._is_name(kind, match):
                    continue
                groups = [group for group in match.groupdict().values() if group]
                number = (float(NUMBER_WORDS.get(groups[0].lower(), 0) or groups[0]),) if groups else ()
                self._claim(Item(kind, match.start(), match.end(), match[0], numbers=number))

    def _is_name(self, kind: str, match: re.Match[str]) -> bool:
        """Whether a word that could be an operation is a column's or a value's own name here."""
        if kind in ("and", "prep", "by", "which", "not", "count") or " " in match[0].strip():
            return False
        stems = name_stems(match[0])
        if kind.startswith("grain:") and self.names.whole_column(stems):
            return True
        if self.names.whole_column(stems):  # a column `total` is meant if another operation stands before the word
            return any(item.kind in ("mean", "median", "sum", "max", "min", "std", "by") for item in self.items) or (
                bool(
                    re.search(
                        r"(?:average|mean|median|sum of|maximum|minimum|per|by)\s+(?:the\s+)?$",
                        self.text[: match.start()],
                        re.IGNORECASE,
                    )
                )
            )
        return match[0][0].isupper() and match.start() > 0 and bool(self.names.values_like(stems))

    def _words(self) -> None:
        for match in list(_WORD.finditer(self.text)):
            self._claim(self._word(match))
        for match in re.finditer(NUMBER, self.text):  # numbers that are no words, such as `3.5`
            self._claim(Item("number", match.start(), match.end(), match[0], numbers=(parse_number(match[0]),)))

    def _word(self, match: re.Match[str]) -> Item:
        text = re.sub(r"['’]s$", "", match[0])
        stems = name_stems(text)
        item = Item("other", match.start(), match.end(), text)
        folded = fold(text)
        is_small = folded in STOP or (len(folded) < 2 and not folded.isdigit())
        if whole := self.names.whole_column(stems) if folded not in STOP else []:
            item.kind, item.columns = "column", whole
        elif (values := self.names.values_like(stems)) and not (is_small and not self._is_exact(text, values)):
            item.kind, item.values = "value", values
        elif is_small or stem(folded) in STOP:
            item.kind = "stop"
        elif re.fullmatch(r"\d+", text):
            item.kind, item.numbers = "number", (float(text),)
        elif columns := self.names.columns_like(stems):
            item.kind, item.columns = "column", columns
        elif flags := self.names.negated_flags(folded):
            item.kind, item.columns, item.sign = "column", flags, "not"
        elif values := self.names.values_nearly(text):
            item.kind, item.values = "value", values
        return item

    @staticmethod
    def _is_exact(text: str, values: list[tuple[str, object]]) -> bool:
        """Whether a word as common as `it` or `a` stands exactly as in a cell, and is not written in lower case there."""
        return any(text == str(value) and not str(value).islower() for _, value in values)
