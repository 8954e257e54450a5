"""A file that may change while a process runs, such as the authorization of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import structlog

from ioa.errors import InvalidInputError, IoaError

_log = structlog.get_logger(__name__)

T = TypeVar("T")


class WatchedFile(Generic[T]):
    """What a file says, read anew when the file has changed.

    Args:
        path: The file.
        parse: Reads it off the file's text.
        hint: What to do where it cannot be read.

    Raises:
        InvalidInputError: It cannot be read now. When it cannot be read later, what was read last holds.
    """

    def __init__(self, path: Path, parse: Callable[[str], T], hint: str = "") -> None:
        self._path = path
        self._parse = parse
        self._hint = hint
        self._seen = self._stamp()
        self._said = parse(read_text(path, hint))

    @property
    def last(self) -> T:
        """What was read last."""
        return self._said

    async def said(self) -> T:
        """Return what stands there now."""
        return await asyncio.to_thread(self._current)

    def _current(self) -> T:
        stamp = self._stamp()
        if stamp != self._seen:
            try:
                self._said, self._seen = self._parse(read_text(self._path, self._hint)), stamp
            except IoaError as error:
                _log.error("file_unreadable", path=str(self._path), error=error.message)
        return self._said

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino


def read_text(path: Path, hint: str) -> str:
    """Read a file.

    Raises:
        InvalidInputError: It cannot be read, or is no text; `hint` says what to do then.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise InvalidInputError(f"{path} cannot be read: {why}.", hint=hint) from None


def is_line(text: str) -> bool:
    """Whether a text is found as a whole among `lines`."""
    return lines(text) == {text}


def lines(text: str) -> frozenset[str]:
    """Return the lines that say something."""
    return frozenset(line.strip() for line in text.splitlines() if line.strip())
