"""Agents' stores that a test can crash, make unusable or look into."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from ioa.adapters.sqlite_file import READ_WITHIN
from ioa.adapters.sqlite_store import SqliteStore, open_sqlite_store
from ioa.errors import UnavailableError

T = TypeVar("T")


class CrashingStore(SqliteStore):
    """A store whose process a test can kill. It closes its file after each call.

    Attributes:
        usable: Whether calls succeed.
        refusals: Number of failed calls.
        well: The value of `is_well`.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(path)
        self.usable, self.refusals, self.well = True, 0, True

    @property
    def is_well(self) -> bool:
        """Whether the store answers."""
        return self.well

    def crash(self) -> None:
        """Forget what is not in the file, as a killed process does."""
        self._unwritten.clear()
        self._cursors.clear()
        self._places.clear()

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        with closing(sqlite3.connect(self._path)) as db:
            [(number,)] = db.execute(f"SELECT count(*) FROM {table}")
        return int(number)

    async def _transaction(self, work: Callable[[sqlite3.Connection], T], **options: Any) -> T:
        self._check()
        return await super()._transaction(work, **{**options, "stay_open": False})

    async def _read_beside(self, read: Callable[[sqlite3.Connection], T], within: timedelta = READ_WITHIN) -> T:
        self._check()
        return await super()._read_beside(read, within)

    def _check(self) -> None:
        if not self.usable:
            self.refusals += 1
            raise UnavailableError("The store is out of order.")


class OpenedStores:
    """Opens stores in place of `open_sqlite_store`, and remembers them in order."""

    def __init__(self) -> None:
        self.stores: list[SqliteStore] = []

    @asynccontextmanager
    async def open(self, path: Path) -> AsyncIterator[SqliteStore]:
        """Open a store."""
        async with open_sqlite_store(path) as store:
            self.stores.append(store)
            yield store

    def texts(self) -> list[str]:
        """Return the texts of all passages, after the stores were closed."""
        found: list[str] = []
        for store in self.stores:
            if store._path.exists():
                with closing(sqlite3.connect(store._path)) as db:
                    found += [text for (text,) in db.execute("SELECT text FROM passages")]
        return found
