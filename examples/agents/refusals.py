"""Say why a question about a table is refused, and what would be answered instead.

A word that is known is never called unknown: where all are, it is the sentence that is none. What is advised was read and answered
before, and keeps every name, value and number that was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from answers import answer
from ioa import DeclinedError, InvalidInputError
from questions import DATES, FILLER, MONTH, PER, Question, Reader, UnreadError, Word
from request import two_in_one
from tables import Table

_JOINTS = rf"(?:{PER}|{FILLER}|in|of|for|on|at|from|and|where|with|is|are|was|were|have|has|there)"
"""Words that say how two others belong together, and little else: they may be exchanged."""
_COUNTED = r"(?:how many|number of)$"
_EXCHANGED = {"between": "from", "and": "to"}
_MOST_READ, _MOST_WORDS, _MOST_EDITS, _MOST_ADVISED = 400, 40, 3, 3
_ALL_FORMS = "All forms of a question: docs/questions.md."


def understand(text: str, table: Table) -> Question:
    """Read a question about a table.

    Raises:
        DeclinedError: No word of it speaks of the table.
        InvalidInputError: A word is not accounted for, or the question can be read in two ways.
    """
    try:
        return Reader(text, table).question()
    except UnreadError as unread:
        refusal, said, hints = _refusal(unread, table)
    raise refusal(said, hint=" ".join(filter(None, hints)))


def _refusal(unread: UnreadError, table: Table) -> tuple[type[InvalidInputError], str, list[str]]:
    reader, text, words = unread.reader, unread.reader.text.strip(" ?.!,;"), list(unread.reader.words())
    if unread.words:
        fits = [said for word in unread.words if _tried(said := f"{text[: unread.at]}{word} {text[unread.at :]}", table) is True]
        return InvalidInputError, unread.said, [_say(fits[:-1] or fits)]
    if len(words) > _MOST_WORDS:
        return InvalidInputError, f"{len(words)} words are too many for one question.", [_ALL_FORMS]
    strange = {reader.text[one.start : one.end]: one.columns for one in words if one.kind == "unknown"}
    if not strange and (two := two_in_one(text, lambda one: _tried(one, table) is True)):
        said = f"These are two questions in one: {two[0]!r} and {two[1]!r}."
        return InvalidInputError, said, ["Ask each in a sentence of its own."]
    hints = [_say(_nearest(unread, table)) or _say_values(words, unread, table), unread.hint]
    names = f"The columns of {table.name} are: {', '.join(map(str, table.columns))}."
    understood, rest = text[: unread.at].strip(), text[unread.at :].strip(" ?.!,;")
    if strange:
        until = f" (understood: {understood!r})" * bool(understood)
        months = [word for word, of in strange.items() if not of and re.fullmatch(MONTH, word)]
        unknown = [repr(word) for word, of in strange.items() if not of and word not in months]
        verb = "is" if len(unknown) == 1 else "are"
        are = f"{', '.join(unknown)} {verb} not understood: no word of the language, and no column or value of {table.name}{until}."
        parts = [f"{word!r} is only a part of {' and '.join(repr(str(one)) for one in of)}." for word, of in strange.items() if of]
        said = " ".join([*[are] * bool(unknown), *parts, *(f"{word!r} is no date without a year." for word in months)])
        hints += [names, DATES if table.holding("dates") else "", "Rows are chosen as in 'where COLUMN is VALUE'."]
    elif rest:
        begun = f"{rest!r} does not go on from {understood!r}" if understood else f"none begins with {rest!r}"
        said = f"Each word is known, but this is no form of a question: {begun}."
    else:
        said, hints = f"Something is missing at the end of {understood!r}.", [*hints, names]
    speaks_of_it = unread.at > reader.begins or any(word.columns for word in words)
    return InvalidInputError if speaks_of_it else DeclinedError, said, [*hints, _ALL_FORMS]


def _say(questions: Sequence[str]) -> str:
    return f"Say {' or '.join(map(repr, questions[:_MOST_ADVISED]))}." if questions else ""


def _say_values(words: Sequence[Word], unread: UnreadError, table: Table) -> str:
    """Say how the values are said that stand where a column should."""
    loose = [(one, unread.reader.text[one.start : one.end]) for one in words if one.kind == "value" and one.start >= unread.at]
    said = [f"where {column} is {value}" for one, value in loose for column in one.columns]
    fits = [one for one in dict.fromkeys(said) if _tried(f"how many rows {one}", table) is True]
    return f"A value is said with its column: {' or '.join(map(repr, fits[:_MOST_ADVISED]))}." if fits else ""


def _tried(text: str, table: Table) -> bool | UnreadError:
    """Whether a question is answered, or where it cannot be read."""
    try:
        answer(Reader(text, table).question(), table)
    except InvalidInputError:
        return False
    except UnreadError as unread:
        return unread
    return True


def _nearest(unread: UnreadError, table: Table) -> list[str]:
    """The questions that are reached by the fewest changes, each of which lets more of the text be read."""
    begun, read = [unread], set[str]()
    for _ in range(_MOST_EDITS):
        further = list[UnreadError]()
        reached = dict[str, None]()
        for one in begun:
            for text in _edits(one):
                if text in read or len(read) > _MOST_READ:
                    continue
                read.add(text)
                found = _tried(text, table)
                if isinstance(found, UnreadError):
                    further += [found] * (len(text) - found.at < len(one.reader.text) - one.at)
                elif found:
                    reached[text.strip(" ?.!")] = None
        if reached:
            return list(reached)
        begun = sorted(further, key=lambda one: len(one.reader.text) - one.at)[:4]
    return []


def _edits(unread: UnreadError) -> Iterator[str]:
    """Change a text where it cannot be read: put in what forms have there, exchange a word that joins, or turn two around."""
    text = unread.reader.text
    words = [word for word in unread.reader.words() if word.start >= unread.at]
    if not words:
        return
    word, *others = words
    written, head, behind = text[word.start : word.end], text[: word.start].rstrip(), text[word.end :]
    counted = re.sub(_COUNTED, "", head)
    if word.kind == "unknown":
        yield from (f"{head} {one}{behind}" for one in (*["rows"] * (counted != head), *map(str, word.columns)))
        return
    joins = re.fullmatch(_JOINTS, written) is not None
    after = others[0] if joins and others else word
    fits = ["where", "and", "in"]
    if after.kind == "value":
        fits += [f"{joint} {one} is" for joint in ("where", "and") for one in after.columns]
    if after.kind == "column" and (not joins or re.fullmatch(PER, written)):
        fits += ["per"] * any(not one.is_numeric for one in after.columns)
    for before in dict.fromkeys((head, re.sub(rf"(?:^|\s+)(?:(?:{_JOINTS})\s*)+$", "", head))):
        yield from (f"{before} {fit} {text[after.start :]}" for fit in fits)
    begun = ("list", "how many", "number of") if not head else (f"{head} rows", f"{head} distinct", f"{counted}total")
    yield from (f"{one} {text[word.start :]}" for one in begun if not head or counted != head)
    if written in _EXCHANGED:
        yield f"{head} {_EXCHANGED[written]}{behind}"
    if others:
        yield f"{head} {text[others[0].start : others[0].end]} {written}{text[others[0].end :]}"
