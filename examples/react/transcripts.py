"""Tools over stored transcripts: find lines by their words, and read a passage by its time marks.

Each method of `Transcripts` is a tool of its own: typed, described by its docstring, answering in text for a model. It searches
what was written down; it transcribes nothing.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ioa import InvalidInputError, NotFoundError

MAX_LINES = 200
_WORD = re.compile(r"\w+")
_TIME = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{2})")
_SCHEMA = "CREATE VIRTUAL TABLE lines USING fts5(text, speaker, id UNINDEXED, at UNINDEXED, tokenize = 'porter unicode61')"

At = Annotated[str, Field(description="a time mark, H:MM:SS or M:SS", pattern=_TIME.pattern)]


@dataclass(frozen=True)
class Line:
    """A line of a speaker; `at` is in seconds from the beginning."""

    id: str
    at: int
    speaker: str
    text: str

    def __str__(self) -> str:
        return f"{self.id} {_mark(self.at)} {self.speaker}: {self.text}"


def store(path: Path, lines: Iterable[Line]) -> None:
    """Write transcripts into a new database.

    Raises:
        sqlite3.OperationalError: There is one already.
    """
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(_SCHEMA)
        rows = ((line.text, line.speaker, line.id, line.at) for line in lines)
        database.executemany("INSERT INTO lines (text, speaker, id, at) VALUES (?, ?, ?, ?)", rows)


@dataclass(frozen=True)
class Transcripts:
    """The tools of a database. Each call opens the database, so any thread can call them."""

    path: Path

    def find(self, words: str, limit: Annotated[int, Field(ge=1, le=50)] = 10) -> str:
        """Find lines of all transcripts with these words or speakers; the best come first.

        Args:
            words: Words to look for, in any form and order. A line need not hold all of them.
            limit: How many lines to show.
        """
        terms = _WORD.findall(words)
        if not terms:
            raise InvalidInputError(f"{words!r} holds no word.", hint="Say what to look for.")
        # In quotes a word is a word, whatever it means to FTS5.
        wanted = " OR ".join(f'"{term}"' for term in terms)
        with self._lines("WHERE lines MATCH ? ORDER BY rank, id, at LIMIT ?", wanted, limit) as found:
            return "\n".join(map(str, found)) or "Nobody says any of these words."

    def read(self, transcript: str, start: At = "0:00", end: At = "99:59:59") -> str:
        """Read a passage of a transcript, including both time marks.

        Args:
            transcript: Its id, as `find` shows it.
            start: The first moment, H:MM:SS or M:SS.
            end: The last moment.
        """
        first, last = _seconds(start), _seconds(end)
        with self._lines(
            "WHERE id = ? AND at BETWEEN ? AND ? ORDER BY at LIMIT ?", transcript, first, last, MAX_LINES + 1
        ) as found:
            lines = list(found)
        if len(lines) > MAX_LINES:
            return "\n".join([*map(str, lines[:MAX_LINES]), f"… more from {_mark(lines[MAX_LINES].at)} on."])
        if lines:
            return "\n".join(map(str, lines))
        with self._lines("WHERE id = ? ORDER BY at DESC LIMIT 1", transcript) as found:
            if (last_line := next(found, None)) is None:
                raise NotFoundError(f"There is no transcript {transcript!r}.", hint="Take an id that find shows.")
        return f"Nothing is said between {_mark(first)} and {_mark(last)}; the last line is at {_mark(last_line.at)}."

    @contextmanager
    def _lines(self, where: str, *values: str | int) -> Iterator[Iterator[Line]]:
        with closing(sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute(f"SELECT id, at, speaker, text FROM lines {where}", values)  # noqa: S608 - no value is in it
            yield (Line(*row) for row in rows)


def _seconds(mark: str) -> int:
    found = _TIME.fullmatch(mark)
    if found is None:
        raise InvalidInputError(f"{mark!r} is no time mark.", hint="Write H:MM:SS or M:SS, such as 0:12:30.")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds


def _mark(seconds: int) -> str:
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
