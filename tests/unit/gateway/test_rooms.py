"""What several follow: whose fault it is when nobody can read it, and whose reading it waits for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast
from weakref import ReferenceType, ref

import pytest

from ioa.fair_semaphore import FairSemaphore
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import LOCAL, CommId
from ioa_gateway.callers import Caller
from ioa_gateway.rooms import open_rooms
from tests.rig.deadline import eventually


async def test_a_bug_ends_one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """A room whose reading fails as nobody expected ends with that, and a list stays; the gateway goes on."""
    monkeypatch.setattr("ioa_gateway.rooms.SILENCE", timedelta(milliseconds=20))
    broken: Any = SimpleNamespace()  # has nothing that a system has
    caller = Caller("web", LOCAL, frozenset())
    async with open_rooms(broken, lambda _caller: True, FairSemaphore(1, 1), FairSemaphore(1, 1)) as rooms, asyncio.timeout(20):
        seen = [chunk async for chunk in rooms.follow(caller, CommId("broken"))]
        listing = rooms.follow(caller, None, listed={})
        beats = [await anext(listing), await anext(listing)]
        await listing.aclose()
    assert b"event: end\n" in seen[-1] and b"urn:ioa:error:crashed" in seen[-1]
    assert beats[-1] == b":\n\n", "the list is looked at again, and its follower hears that it stands"


def _logged(monkeypatch: pytest.MonkeyPatch, event_bytes: int) -> list[list[ReferenceType[StoredEntry]]]:
    """Have each group a log of twenty entries, kept as so many bytes each, and return what of it is read back, page by page."""
    monkeypatch.setattr("ioa_gateway.rooms.encoded", lambda stored: b'"seq":%d}|' % stored.seq + b"x" * event_bytes)
    entry: Any = SimpleNamespace(state=SimpleNamespace(phase="discussing"))
    log, pages = [StoredEntry(seq, entry) for seq in range(1, 21)], list[list[ReferenceType[StoredEntry]]]()

    @asynccontextmanager
    async def watch(_system: object, _comm_id: CommId) -> AsyncIterator[AsyncIterator[StoredEntry]]:
        async def coming() -> AsyncIterator[StoredEntry]:
            for stored in log:
                yield stored
            await asyncio.Event().wait()

        yield coming()

    async def read(_client: object, _group: object, *, after: int) -> AsyncIterator[StoredEntry]:
        pages.append([])
        for seq in range(after + 1, 21):
            stored = StoredEntry(seq, entry)
            pages[-1].append(ref(stored))
            yield stored

    monkeypatch.setattr("ioa_gateway.rooms.watch", watch)
    monkeypatch.setattr("ioa_gateway.rooms.Client.read", read)
    return pages


async def test_who_follows_a_list_holds_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are handed on as they lie there, for all who follow: also beside a group, and however far behind somebody is.

    What changed meanwhile is told as it is by then, older goals first.
    """
    monkeypatch.setattr("ioa_gateway.rooms._LOOK", timedelta(milliseconds=10))
    _logged(monkeypatch, 30_000)
    turns, size = 0, 100_000

    async def newest(*_: object, **__: object) -> tuple[object, None]:
        return [{"comm_id": f"c{number}", "goal": "x" * size, "turns": turns} for number in reversed(range(5))], None

    monkeypatch.setattr("ioa_gateway.rooms.page_of_goals", newest)
    caller, room, nothing = Caller("web", LOCAL, frozenset()), CommId("room"), cast(Any, SimpleNamespace())
    told, entries = list[tuple[str, int]](), 0
    async with (
        asyncio.timeout(20),
        open_rooms(nothing, lambda _caller: True, FairSemaphore(1, 1), FairSemaphore(1, 1)) as rooms,
        AsyncExitStack() as stack,
    ):
        following = [await stack.enter_async_context(aclosing(rooms.follow(caller, room, listed={}))) for _ in range(2)]
        for events in following:
            await anext(events)
        [rows] = rooms._lists.values()
        await eventually(lambda: (rooms._rooms[room].has_more(19), rows.looks), lambda now: now == (True, 1))
        held = [[await anext(events) for _ in range(4)] for events in following]
        turns = 1
        await eventually(lambda: rows.looks, lambda looks: looks == 2)
        pieces = [*held[0], *[await anext(following[0]) for _ in range(16)]]
    for piece in pieces:
        entries += piece.count(b"|")
        told += [(one["comm_id"], one["turns"]) for one in map(json.loads, _data_of(piece))]
    assert [len(one) < size * 1.1 for one in pieces] == [True] * 20
    assert [one is other for one, other in zip(*held, strict=True) if b"goal" in one] == [True, True]
    assert (entries, told) == (
        20,
        [*[(f"c{number}", number > 1) for number in range(5)], *[(f"c{number}", 1) for number in range(5)]],
    )


def _data_of(events: bytes) -> list[bytes]:
    return [one.partition(b"data: ")[2] for one in events.split(b"\n\n") if one.startswith(b"event: goal\n")]
