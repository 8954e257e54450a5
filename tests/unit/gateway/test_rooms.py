"""What several follow: whose fault it is when nobody can read it, and whose reading it waits for."""

from __future__ import annotations

import asyncio
import gc
import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast
from weakref import ReferenceType, ref

import pytest

from ioa.beside import beside
from ioa.errors import UnavailableError
from ioa.fair_semaphore import FairSemaphore
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import LOCAL, CommId, UserId
from ioa_gateway import rooms as gateway_rooms
from ioa_gateway.callers import Caller
from ioa_gateway.held_places import closes_connection
from ioa_gateway.rooms import Rooms, open_rooms
from ioa_gateway.rounds import AT_ONCE
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


async def test_many_followers_are_told_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those who follow the same few are told in a round of the event loop, and one user's thousand make nobody's come last."""
    monkeypatch.setattr("ioa_gateway.rooms._LOOK", timedelta(milliseconds=10))
    goals, told, rounds = [{"comm_id": "a", "phase": "discussing"}], list[tuple[int, UserId]](), 0
    begun = set[int]()
    loop = asyncio.get_running_loop()

    async def newest(*_: object, **__: object) -> tuple[object, None]:
        return [*goals], None

    def count() -> None:
        nonlocal rounds
        rounds += 1
        loop.call_soon(count)

    async def follow(rooms: Rooms, number: int, caller: Caller) -> None:
        async with aclosing(rooms.follow(caller, None, listed={})) as events:
            async for event in events:
                if b"discussing" in event:
                    begun.add(number)
                if b"concluded" in event:
                    told.append((rounds, caller.user))
                    return

    monkeypatch.setattr("ioa_gateway.rooms.page_of_goals", newest)
    eve, ann = (Caller(name, UserId(name), frozenset()) for name in ("eve", "ann"))
    nothing: Any = SimpleNamespace()
    async with (
        asyncio.timeout(20),
        open_rooms(nothing, lambda _caller: True, FairSemaphore(1, 1), FairSemaphore(1, 1)) as rooms,
        asyncio.TaskGroup() as group,
    ):
        for number, caller in enumerate((*[eve] * 300, ann)):
            group.create_task(follow(rooms, number, caller))
        await eventually(lambda: len(begun), lambda many: many == 301)
        loop.call_soon(count)
        goals[0] = {"comm_id": "a", "phase": "concluded"}
    assert max(Counter(at for at, _ in told).values()) <= AT_ONCE
    assert (len(told), "ann" in [user for _, user in told[: 2 * AT_ONCE]]) == (301, True)


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


async def test_all_rooms_together_keep_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are followed, by who reads nothing; and who has read on is told all of it, off the log."""
    monkeypatch.setattr("ioa_gateway.rooms._ALL_KEPT_BYTES", 8_000)
    _logged(monkeypatch, 1_000)
    caller, nothing = Caller("web", LOCAL, frozenset()), cast(Any, SimpleNamespace())
    async with (
        asyncio.timeout(20),
        open_rooms(nothing, lambda _caller: True, FairSemaphore(1, 1), FairSemaphore(1, 1)) as rooms,
        AsyncExitStack() as stack,
    ):
        following = [
            await stack.enter_async_context(aclosing(rooms.follow(caller, CommId(f"room-{number}")))) for number in range(16)
        ]
        for events in following:
            await anext(events)
            await asyncio.sleep(0.01)
        kept = sum(len(event) for room in rooms._rooms.values() for event in room._events)
        told = b""
        while b'"seq":20}' not in told:
            told += await anext(following[0])
    assert kept <= 8_000
    assert [number for number in range(1, 21) if b'"seq":%d}' % number not in told] == []


async def test_who_is_behind_holds_bytes_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower may read as slowly as he likes: nothing of a page is held but events, by so many of a user beside others.

    Whose turn does not come hears that the stream stands, until one of the first has gone.
    """
    monkeypatch.setattr("ioa_gateway.rooms._KEPT_BYTES", 100)
    monkeypatch.setattr("ioa_gateway.rooms._BEHIND_OF_USER", 2)
    monkeypatch.setattr("ioa_gateway.rooms.SILENCE", timedelta(milliseconds=20))
    pages, room, nothing = _logged(monkeypatch, 1_000), CommId("room"), cast(Any, SimpleNamespace())
    eve, ann = (Caller(name, UserId(name), frozenset()) for name in ("eve", "ann"))
    async with (
        asyncio.timeout(20),
        open_rooms(nothing, lambda _caller: True, FairSemaphore(1, 1), FairSemaphore(1, 1)) as rooms,
        AsyncExitStack() as stack,
    ):
        following = [await stack.enter_async_context(aclosing(rooms.follow(one, room))) for one in (eve, eve, eve, ann)]
        for events in following:
            await anext(events)
        await eventually(lambda: rooms._rooms[room].floor, lambda floor: floor == 20)
        told = [await anext(events) for events in following]
        gc.collect()
        held = [one for page in pages for one in page if one() is not None]
        documents = await stack.enter_async_context(aclosing(rooms.documents(eve, room, 0)))
        with pytest.raises(TimeoutError):  # silence would be taken for a group that will never be
            await asyncio.wait_for(anext(documents), 0.1)
        await following[0].aclose()
        while (later := await anext(following[2])) == gateway_rooms._IN_LINE:
            pass
    assert ([b'"seq":1}' in one for one in told], told[2] == gateway_rooms._IN_LINE) == ([True, True, False, True], True)
    assert (len(pages), held, b'"seq":1}' in later) == (4, [], True)


async def test_what_a_follower_takes_of_a_room_ends_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries are joined for each that follows, and lie in memory until he has read them."""
    _logged(monkeypatch, 30_000)
    caller, room, nothing = Caller("web", LOCAL, frozenset()), CommId("room"), cast(Any, SimpleNamespace())
    async with (
        asyncio.timeout(20),
        open_rooms(nothing, lambda _caller: True, FairSemaphore(1, 1), FairSemaphore(1, 1)) as rooms,
        aclosing(rooms.follow(caller, room)) as events,
    ):
        await anext(events)
        await eventually(lambda: rooms._rooms[room].has_more(19), lambda is_whole: is_whole)
        told = [await anext(events) for _ in range(10)]
    assert [one.count(b"|") for one in told] == [2] * 10


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


LARGE = "x" * 16_000


def _ending(name: str, *, is_large: bool, read: list[str]) -> Callable[[], Awaitable[list[str]]]:
    async def ending() -> list[str]:
        read.append(name)
        return [name, LARGE if is_large else "end"]

    return ending


async def test_what_is_large_is_held_for_somebody_in_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many of a user have one while it is taken; others hear that they wait, and hold nothing. What is small needs none."""
    monkeypatch.setattr("ioa_gateway.rooms._ENDS_OF_USER", 1)
    monkeypatch.setattr("ioa_gateway.rooms.SILENCE", timedelta(milliseconds=20))
    eve, ann = (Caller(name, UserId(name), frozenset()) for name in ("eve", "ann"))
    read, nothing = list[str](), cast(Any, SimpleNamespace())
    async with (
        asyncio.timeout(20),
        open_rooms(nothing, lambda _caller: True, FairSemaphore(1, 1), FairSemaphore(1, 1)) as rooms,
        AsyncExitStack() as stack,
    ):

        async def taken(caller: Caller, name: str, *, is_large: bool) -> AsyncGenerator[str | None, None]:
            ending = rooms.ending(caller, _ending(name, is_large=is_large, read=read), len)
            return await stack.enter_async_context(aclosing(ending))

        first, second, other = [await taken(who, name, is_large=True) for who, name in ((eve, "1st"), (eve, "2nd"), (ann, "other"))]
        told = [await anext(one) for one in (first, second, other)]
        small = [one async for one in await taken(eve, "small", is_large=False)]
        before = [*read]
        left = [one async for one in first]
        then = [one async for one in second if one is not None]
    assert (told, small, left, then) == (["1st", None, "other"], ["small", "end"], [LARGE, None], ["2nd", LARGE])
    assert before == ["1st", "1st", "2nd", "other", "other", "small"]


async def test_who_reads_slowly_keeps_nobody_s_result_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """While another one waits, who has most places loses the oldest, with his connection; of his own nobody loses any."""
    monkeypatch.setattr("ioa_gateway.rooms._ENDS", 3)
    monkeypatch.setattr("ioa_gateway.rooms._ENDS_OF_USER", 2)
    monkeypatch.setattr("ioa_gateway.held_places.LONGEST", timedelta(0))
    monkeypatch.setattr("ioa_gateway.held_places._LOOK", timedelta(milliseconds=5))
    nothing, closed, told = cast(Any, SimpleNamespace()), list[str](), list[str]()
    eve, ann, bob = (Caller(name, UserId(name), frozenset()) for name in ("eve", "ann", "bob"))

    async def slow(rooms: Rooms, caller: Caller, name: str) -> None:
        is_closed = asyncio.Event()

        def close() -> None:
            closed.append(name)
            is_closed.set()

        closes_connection.set(close)
        try:
            async with aclosing(rooms.ending(caller, _ending(name, is_large=True, read=[]), len)) as events:
                async for _event in events:
                    await is_closed.wait()
        except UnavailableError as error:
            told.append(error.message)

    async with (
        asyncio.timeout(20),
        open_rooms(nothing, lambda _caller: True, FairSemaphore(1, 1), FairSemaphore(1, 1)) as rooms,
        AsyncExitStack() as stack,
    ):
        for who, name in ((ann, "ann"), (eve, "1st"), (eve, "2nd")):
            await stack.enter_async_context(beside(slow(rooms, who, name)))
        await eventually(lambda: rooms._ends.taken == 3)
        async with beside(slow(rooms, eve, "3rd")):
            await eventually(lambda: rooms._ends.waiting.total() == 1)
            rooms._ends._make_room()
            before = [*closed]
        async with aclosing(rooms.ending(bob, _ending("bob", is_large=True, read=[]), len)) as events:
            got = [one async for one in events]
    assert (before, closed, got) == ([], ["1st"], ["bob", LARGE, None])
    assert told == ["This was read too slowly while others waited for theirs."]
