"""Find a table's columns and cell values in the words of a request, spelled loosely."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from difflib import get_close_matches

from table_reading import Table
from words import alike, fold, name_stems

_UNITS = set("eur usd gbp chf dollar euro percent pct kg g mg km m cm mm mile hour hr minute min second sec day".split())
_SYNONYMS = [
    set(group.split())
    for group in (
        "sale revenue turnover income amount earning proceeds",
        "unit quantity qty piece volume",
        "cost expense spending spend expenditure",
        "price fee rate tariff",
        "salary wage pay compensation",
        "customer client buyer shopper",
        "product item article good",
        "country nation",
        "city town location",
        "shop store branch outlet",
        "employee staff worker",
        "department dept division",
        "category type kind class group",
        "region area territory",
        "rating score star grade mark",
        "date day time timestamp when",
        "profit margin gain",
        "temperature temp",
        "weight mass",
        "age year",
        "name title",
        "expensive price cost",
        "old age",
    )
]
_MAX_VALUES = 20_000
_GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})


@dataclass
class Names:
    """A table's column names and text values, indexed by their comparable form."""

    table: Table
    columns: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    stems: dict[str, tuple[str, ...]] = field(default_factory=dict)
    values: dict[str, list[tuple[str, object]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for column in self.table.frame.columns:
            stems = name_stems(column)
            self.stems[column] = stems
            for form in {"".join(stems), "".join(stem for stem in stems if stem not in _UNITS)} - {""}:
                self.columns[form].append(column)
        for column in self.table.texts:
            for value in self.table.frame[column].dropna().unique()[:_MAX_VALUES]:
                for form in {"".join(name_stems(text)) for text in (str(value), str(value).translate(_GERMAN))}:
                    self.values[form].append((column, value))

    def columns_like(self, stems: tuple[str, ...]) -> list[str]:
        """Columns meant by these words: the whole name, else part of it, else a slip of the pen, else a synonym."""
        whole = self.columns.get("".join(stems))
        if whole:
            exact = [column for column in whole if self.stems[column] == stems]
            return exact or list(whole)
        part = [column for column, have in self.stems.items() if _contains(have, stems)]
        if part or len(stems) > 1:
            return part
        word = stems[0]
        return (
            [column for column, have in self.stems.items() if any(alike(word, one) for one in have)]
            or [column for column, have in self.stems.items() if _same_meaning(word, have)]
        )  # fmt: skip

    def whole_column(self, stems: tuple[str, ...]) -> list[str]:
        """Columns whose whole name these words are."""
        return list(self.columns.get("".join(stems), ()))

    def values_like(self, stems: tuple[str, ...]) -> list[tuple[str, object]]:
        """Cell values that these words spell, each with its column."""
        return list(self.values.get("".join(stems), ()))

    def values_nearly(self, text: str) -> list[tuple[str, object]]:
        """Cell values that differ from a word by a slip of the pen."""
        joined = "".join(name_stems(text))
        return [hit for form, hits in self.values.items() if alike(joined, form) for hit in hits]

    def values_with(self, text: str) -> list[tuple[str, object]]:
        """Cell values that one word is a part of, as `Müller` is of `Müller GmbH`."""
        word = name_stems(text)
        return [
            hit
            for hits in self.values.values()
            for hit in hits
            if len(text) > 2 and any(_contains(name_stems(form), word) for form in (str(hit[1]), str(hit[1]).translate(_GERMAN)))
        ]

    def nearest_value(self, text: str) -> str:
        """Suggest the cell value that looks most like a word that was not understood."""
        near = get_close_matches("".join(name_stems(text)), list(self.values), n=1, cutoff=0.7)
        return f" Did you mean {self.values[near[0]][0][1]}?" if near else ""

    def negated_flags(self, word: str) -> list[str]:
        """The yes-or-no columns whose opposite a word names, as `unpaid` does of `paid`."""
        bare = re.sub(r"^(?:un|in|non)", "", word)
        return [name for name in self.columns_like((bare,)) if self.truths(name)] if bare != word and len(bare) > 2 else []

    def truths(self, column: str) -> list[object]:
        """The values that mean yes, when a column holds only yes and no."""
        cells = set(self.table.frame[column].dropna().unique())
        words = {fold(str(cell)) for cell in cells}
        is_flag = bool(words) and (words <= {"yes", "no"} or words <= {"true", "false"} or words <= {"y", "n"})
        return [cell for cell in cells if fold(str(cell)) in ("yes", "true", "y")] if is_flag else []

    def describe(self) -> str:
        """List the columns for an error message."""
        return f"The columns of {self.table.name} are: {', '.join(map(str, self.table.frame.columns))}."


def _contains(have: tuple[str, ...], stems: tuple[str, ...]) -> bool:
    if len("".join(stems)) < 3:
        return False
    return any(have[start : start + len(stems)] == stems for start in range(len(have) - len(stems) + 1))


def _same_meaning(word: str, have: tuple[str, ...]) -> bool:
    return any(fold(word) in group and any(one in group for one in have) for group in _SYNONYMS)
