"""Say why a question about a table is refused, and what would be answered instead.

A word that is known is never called unknown: where all are, it is the sentence that is none. What is advised was read and answered
before, and keeps every name, value and number that was said.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from answers import answer
from ioa import DeclinedError, InvalidInputError
from questions import DATES, FILLER, PER, Question, Reader, UnreadError
from request import are_not, two_in_one
from tables import Table

_JOINTS = rf"(?:{PER}|{FILLER}|in|of|for|on|at|from|and|where|with|is|are|was|were|have|has|there)"
"""Words that say how two others belong together, and little else: they may be exchanged."""
_EXCHANGED = {"between": "from", "and": "to"}
_MOST_CHARS, _MOST_EDITS, _MOST_ADVISED = 300, 3, 3


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
    text, words = unread.text.strip(" ?.!,;"), list(unread.reader.words())
    if unread.words:
        advised = [said for word in unread.words if _tried(said := f"{text[: unread.at]}{word} {text[unread.at :]}", table) is True]
        return InvalidInputError(unread.said, hint=_say(advised[:-1] or advised))
    strange = {word: of for word, kind, of in words if kind == "unknown"}
    if not strange and (two := two_in_one(text, lambda one: _tried(one, table) is True)):
        return InvalidInputError(two[0], hint=two[1])
    understood, rest = text[: unread.at].strip(), text[unread.at :].strip()
    values = [f'{of[0]} is "{word}"' for word, kind, of in words if kind == "value"]
    if strange:
        what = f"understood: no word of the language, and no column or value of {table.name} (understood: {understood!r})"
        unknown = [word for word, of in strange.items() if not of]
        parts = [f"{word!r} is only a part of {' and '.join(repr(str(one)) for one in of)}." for word, of in strange.items() if of]
        said = " ".join([*[are_not(unknown, what)] * bool(unknown), *parts])
    elif rest:
        begun = f"{rest!r} does not go on from {understood!r}" if understood else f"none begins with {rest!r}"
        said = f"Each word is known, but this is no form of a question: {begun}."
    else:
        said = f"Something is missing at the end of {understood!r}."
    hints = [_say(_nearest(unread, table, strange)), unread.hint, f"Columns of {table.name}: {', '.join(map(str, table.columns))}."]
    hints += [DATES if table.holding("dates") else "", f"Rows are chosen as in 'where {(*values, 'COLUMN is VALUE')[0]}'."]
    speaks_of_it = unread.at > unread.reader.begins or any(of for *_, of in words)
    refusal = InvalidInputError if speaks_of_it else DeclinedError
    return refusal(said, hint=" ".join(filter(None, [*hints, "All forms of a question: docs/questions.md."])))


def _say(questions: list[str]) -> str:
    return f"Say {' or '.join(map(repr, questions[:_MOST_ADVISED]))}." if questions else ""


def _tried(text: str, table: Table) -> bool | UnreadError:
    """Whether a question is answered, or where it cannot be read."""
    try:
        return bool(answer(Reader(text, table).question(), table))
    except InvalidInputError:
        return False
    except UnreadError as unread:
        return unread


def _nearest(unread: UnreadError, table: Table, strange: Collection[str]) -> list[str]:
    """The questions that are reached by the fewest changes, each of which lets more of the text be read."""
    begun = [unread] if len(unread.text) < _MOST_CHARS else []
    for _ in range(_MOST_EDITS):
        texts = dict.fromkeys(text.strip(" ?.!") for one in begun for text in _edits(one, table, strange))
        found = [(text, _tried(text, table)) for text in texts]
        if reached := [text for text, is_answered in found if is_answered is True]:
            return reached
        most = max((one.left for one in begun), default=0)
        begun = sorted((one for _, one in found if isinstance(one, UnreadError) and one.left < most), key=lambda one: one.left)[:4]
    return []


def _edits(unread: UnreadError, table: Table, strange: Collection[str]) -> Iterator[str]:
    """Change a text where it cannot be read: put in what forms have there, exchange a word that joins, or turn two around."""
    head, rest = unread.text[: unread.at].strip(), re.sub(rf"^\s*(?:(?:{FILLER})\s+)*", "", unread.text[unread.at :]).split()
    word, others = (rest or [""])[0], rest[1:]
    uncounted = re.sub(r"(?:how many|number of)$", "", head)
    if word.strip("?.,!") in strange or not word:
        yield from [f"{head} rows {' '.join(others)}"] * (uncounted != head)
        return
    fits = ["where", "and", "in", "per", *(["rows", "distinct"] if head else ["list", "how many", "number of"])]
    fits += [f"{joint} {one} is" for joint in ("where", "and") for one in table.columns if not one.is_numeric]
    after = others if re.fullmatch(_JOINTS, word) else rest
    for before in dict.fromkeys((head, re.sub(rf"(?:^|\s+)(?:(?:{_JOINTS})\s*)+$", "", head))):
        yield from (" ".join((before, fit, *after)) for fit in fits)
    yield from [" ".join((uncounted, "total", *rest))] * (uncounted != head)
    yield " ".join((head, _EXCHANGED.get(word, word), *others))
    yield from (" ".join((head, *others[:at], word, *others[at:])) for at in range(1, len(rest)))
