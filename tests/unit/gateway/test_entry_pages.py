"""Pages of entries: what is kept of the log while one is read, and whom that keeps waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ioa.client.client import Group
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId
from ioa_gateway.entry_pages import MOST_BYTES, page_of
from tests.unit.cli.logs import log_of
from tests.unit.group.scenario import launched


@pytest.mark.parametrize("place", [{"after": 0}, {"before": 1_000}])
async def test_a_page_ends_by_what_its_entries_have_in_the_log(place: dict[str, int]) -> None:
    """A state of 33 kB is told in 2 kB, so that a page of 500 kept 180 MB; and others have their turn between any two entries."""
    [entry] = log_of(launched("ada", "bob"))
    turns = 0

    async def read(_group: Group, **_which: object) -> AsyncIterator[StoredEntry]:
        for seq in range(1, 500):
            yield replace(entry, seq=seq, size_bytes=MOST_BYTES // 20)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    client: Any = SimpleNamespace(read=read)
    waiting = asyncio.ensure_future(others())
    page = await page_of(client, Group(CommId("room")), limit=500, **place)
    waiting.cancel()
    assert (len(page.entries), page.next, turns >= 20) == (20, 20, True)
