"""Agents' stores that a test can make unusable or look into."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from ioa.adapters.sqlite_store import SqliteStore
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
