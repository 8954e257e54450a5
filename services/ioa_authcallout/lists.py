"""What stands in files beside the callout and may change while it runs: revoked subjects, names that keys have, and tenants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import structlog

from ioa.errors import IoaError
from ioa_authcallout.settings import read

_log = structlog.get_logger(__name__)


class ListFile:
    """A set of words that a file holds, read anew when the file has changed.

    Args:
        path: The file.
        parse: Reads the words off its text.

    Raises:
        InvalidInputError: It cannot be read now. When it cannot be read later, what was read last holds.
    """

    def __init__(self, path: Path, parse: Callable[[str], frozenset[str]]) -> None:
        self._path = path
        self._parse = parse
        self._seen = self._stamp()
        self._words = parse(read(path))

    async def words(self) -> frozenset[str]:
        """Return what stands there now."""
        return await asyncio.to_thread(self._current)

    def _current(self) -> frozenset[str]:
        stamp = self._stamp()
        if stamp != self._seen:
            try:
                self._words, self._seen = self._parse(read(self._path)), stamp
            except IoaError as error:
                _log.error("list_unreadable", path=str(self._path), error=error.message)
        return self._words

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino


def lines(text: str) -> frozenset[str]:
    """Return the lines that say something."""
    return frozenset(line.strip() for line in text.splitlines() if line.strip())
