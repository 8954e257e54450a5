"""Say why a question about a table is refused: what of it was read, which words have no meaning here, and what the page offers.

Nothing is guessed: a word that is known is never called unknown, and what is advised says a part of the question, never another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ioa import DeclinedError, InvalidInputError
from questions import DATE, DATES, MONTH, Question, Reader, UnreadError
from request import CHART, TABLES, are_not, not_there, two_in_one
from tables import Column, Table

_BEGINNINGS = (
    "A question begins with a figure, such as 'total COLUMN' or 'how many rows', with 'top 3 KEY by' a figure, 'which KEY has the "
    "highest' figure, or 'list rows'."
)
_DATE_FORMS = "They are said as in 'since DATE' or 'from DATE to DATE'."
_CHARTS = "A chart is asked for in front: 'bar chart of' or 'line chart of' a question with one KEY."


def understand(text: str, table: Table) -> Question:
    """Read a question about a table.

    Raises:
        DeclinedError: No word of it speaks of the table.
        InvalidInputError: A word is not accounted for, or the question can be read in two ways.
    """
    try:
        return Reader(text, table).question()
    except UnreadError as unread:
        refusal = _refusal(unread, table)
    raise refusal


def _refusal(unread: UnreadError, table: Table) -> InvalidInputError:
    reader = unread.reader
    words = list(reader.words())
    strange = {word: list(map(str, of)) or _cells_with(word, table) for word, kind, of in words if kind == "unknown"}
    hints = list(_hints(unread, words, table))
    if strange:
        said = _not_understood(strange, reader.text[: unread.at].strip(), table)
    elif said := two_in_one(reader.text, lambda one: _is_read(one, table)):
        hints = ["Ask each in a sentence of its own."]
    else:
        said = _no_form(reader.text[: unread.at].strip(), reader.text[unread.at :].strip(" ?.!,;"))
    speaks_of_it = unread.at > reader.begins or any(of for *_, of in words)
    refusal = InvalidInputError if speaks_of_it else DeclinedError
    return refusal(said, hint=" ".join([*hints, "All forms of a question: docs/questions.md."]))


def _not_understood(strange: dict[str, list[str]], understood: str, table: Table) -> str:
    """Name the words that have no meaning here; of those that are a part of a name or a cell it is said of which."""
    what = f"understood: no word of the language, and no column or value of {table.name} (understood: {understood!r})"
    unknown = [word for word, of in strange.items() if not of and not word.endswith(TABLES)]
    parts = [f"{word!r} is only a part of {' and '.join(map(repr, of))}." for word, of in strange.items() if of]
    return " ".join(filter(None, (not_there(strange, TABLES), are_not(unknown, what) if unknown else "", *parts)))


def _no_form(understood: str, rest: str) -> str:
    begun = f"{rest!r} does not go on from {understood!r}" if understood else f"none begins with {rest!r}"
    none = f"Each word is known, but this is no form of a question: {begun}."
    return none if rest else f"Something is missing at the end of {understood!r}."


def _hints(unread: UnreadError, words: Sequence[tuple[str, str, list[Column]]], table: Table) -> Iterator[str]:
    """Say what the page offers for that which was not read."""
    rest = unread.reader.text[unread.at :]
    if unread.hint:
        yield unread.hint
    understood_some = unread.at > unread.reader.begins
    if not understood_some:
        yield _BEGINNINGS
    if any(kind == "unknown" for _, kind, _ in words):
        yield f"Columns of {table.name}: {', '.join(map(str, table.columns))}."
    values = [(word, columns) for word, kind, columns in words if kind == "value"]
    for value, columns in values[:1]:
        said = " or ".join(f"'where {column} is \"{value}\"'" for column in columns)
        yield f"Rows are chosen as in {said}; 'is not' leaves them out."
    keys = [of[0] for word, kind, of in words if kind == "column" and word in rest and of[0] not in table.holding("numbers")]
    if understood_some and keys and not values:
        yield f"Groups are made as in 'per {keys[0]}'."
    if re.search(rf"\b(?:{DATE}|{MONTH})\b", rest) and table.holding("dates"):
        yield f"{DATES} {_DATE_FORMS}"
    if re.search(CHART, unread.reader.text):
        yield _CHARTS


def _is_read(text: str, table: Table) -> bool:
    try:
        return bool(Reader(text, table).question())
    except (UnreadError, InvalidInputError):
        return False


def _cells_with(word: str, table: Table) -> list[str]:
    """Of each column of words the first cell that has this word among others."""
    return list(filter(None, (column.cell_with(word) for column in table.columns if not column.is_numeric)))
