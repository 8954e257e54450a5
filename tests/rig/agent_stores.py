"""Agents' stores that a test can make unusable or look into."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TypeVar

from ioa.adapters.sqlite_store import SqliteStore, open_sqlite_store
from ioa.errors import UnavailableError

T = TypeVar("T")


class UnreliableStore(SqliteStore):
    """A store that a test can make unusable.

    Attributes:
        usable: Whether calls succeed.
        refusals: Number of failed calls.
        well: The value of `is_well`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.usable, self.refusals, self.well = True, 0, True

    @property
    def is_well(self) -> bool:
        """Whether the store answers."""
        return self.well

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        with closing(sqlite3.connect(self._path)) as db:
            [(number,)] = db.execute(f"SELECT count(*) FROM {table}")
        return int(number)

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if not self.usable:
            self.refusals += 1
            raise UnavailableError("The store is out of order.")
        return await super()._run(work)


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
