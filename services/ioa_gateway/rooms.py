"""Followed groups and lists of goals. One reader serves all followers of the same group or list.

A room keeps the last entries of a group and its nested groups, encoded; a list keeps the rows of the newest goals. Each follower
reads them at its own pace. A follower whose position is older than the room's entries reads pages of the log until it catches up.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import structlog
from prometheus_client import Gauge

from ioa.cancellation import TaskGroup, fail_at
from ioa.client.client import Client, Group
from ioa.client.documents import EntryDocument, told
from ioa.client.watching import watch
from ioa.errors import IoaError, UnavailableError
from ioa.fair_semaphore import FairSemaphore
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId, UserId
from ioa_gateway.callers import Caller
from ioa_gateway.event_stream import HEARTBEAT, encode_event
from ioa_gateway.goal_pages import page_of_goals
from ioa_gateway.problems import problem_of

_MAX_ENTRIES, _MAX_BYTES = 1_000, 2_000_000
"""Entries that a room keeps, and their size in bytes."""
_CHUNK_ENTRIES, _CHUNK_BYTES = 64, 64_000
"""Entries or rows that are sent to a follower at once, and their size in bytes. A chunk has at least one entry."""
_PAGE_BYTES = 250_000
"""Size of a page of the log that a follower reads to catch up, in bytes. A page has at least one entry."""
SILENCE = timedelta(seconds=15)
"""Interval of heartbeats while there are no events."""
_LOOK = timedelta(seconds=1)
"""Interval between reads of a followed list of goals."""
_READER = "_reader"
"""The key of the gateway's own reads in the semaphore of page reads. No user has this name."""
_RETRY = b"retry: 1000\n\n"

streams = Gauge("ioa_gateway_streams", "Clients that follow a goal or a group by HTTP")

K = TypeVar("K")
F = TypeVar("F", bound="_Followed")

_log = structlog.get_logger(__name__)


def encoded(stored: StoredEntry) -> bytes:
    """Encode an entry as an event."""
    return encode_event(told(EntryDocument.of(stored)), kind="entry", seq=stored.seq)


def _broken(error: Exception, seq: int) -> bytes:
    """Write that a group cannot be followed on, and why."""
    return encode_event({"seq": seq, "problem": problem_of(error).model_dump(mode="json", exclude_none=True)}, kind="end", seq=seq)


@dataclass
class _Followed:
    """A followed group or list. Each follower waits for its own event, which it may share between a group and a list."""

    followers: set[asyncio.Event] = field(default_factory=set)
    reader: asyncio.Task[None] = field(init=False)

    def wake(self) -> None:
        """Wake all followers."""
        for heard in self.followers:
            heard.set()


@dataclass
class _Room(_Followed):
    """The last entries of a group and its nested groups.

    Attributes:
        floor: The sequence after which all entries are kept.
        end: The last event of the stream, when the group has ended or cannot be read.
    """

    floor: int = 0
    end: bytes | None = None
    _seqs: list[int] = field(default_factory=list)
    _events: list[bytes] = field(default_factory=list)
    _bytes: int = 0

    def add(self, stored: StoredEntry) -> None:
        """Add an entry, and remove the oldest entries if there are too many."""
        event = encoded(stored)
        self._seqs.append(stored.seq)
        self._events.append(event)
        self._bytes += len(event)
        while self._seqs and (len(self._seqs) > _MAX_ENTRIES or self._bytes > _MAX_BYTES):
            count = len(self._seqs) // 4 + 1
            self.floor = self._seqs[count - 1]
            self._bytes -= sum(map(len, self._events[:count]))
            del self._seqs[:count], self._events[:count]
        self.wake()

    def has_more(self, seq: int) -> bool:
        """Whether the room has had an entry after a sequence."""
        return seq < self.floor or bool(self._seqs and self._seqs[-1] > seq)

    def behind(self, seq: int) -> tuple[int, bytes]:
        """Return the next chunk of events after a sequence, and the sequence of its last entry."""
        first = bisect_right(self._seqs, seq)
        coming = slice(first, first + _CHUNK_ENTRIES)
        return _piece(zip(self._seqs[coming], self._events[coming], strict=True), seq)


class _Row(NamedTuple):
    """A goal in a list: its place, where newer goals have greater numbers, and the number of the read that found it changed."""

    place: int
    look: int
    event: bytes


@dataclass
class _List(_Followed):
    """The rows of the newest goals."""

    looks: int = 0
    _rows: dict[CommId, _Row] = field(default_factory=dict)
    _places: int = 0

    def take(self, goals: Sequence[Mapping[str, Any]]) -> None:
        """Update the rows from documents of the newest goals, newest first."""
        rows = [self._row(CommId(one["comm_id"]), encode_event(one, kind="goal")) for one in reversed(goals)]
        if (by_place := dict(sorted(rows, key=lambda kept: kept[1].place))) != self._rows:
            self._rows = by_place
            self.looks += 1
            self.wake()

    def behind(self, look: int, place: int) -> tuple[int, bytes]:
        """Return a chunk of rows that changed after a read and stand after a place, and the place of its last row."""
        rows = (row for row in self._rows.values() if row.look > look and row.place > place)
        return _piece(((row.place, row.event) for row in rows), place)

    def _row(self, comm_id: CommId, event: bytes) -> tuple[CommId, _Row]:
        known = self._rows.get(comm_id)
        if known is not None and known.event == event:
            return comm_id, known
        if known is None:
            self._places += 1
        return comm_id, _Row(self._places if known is None else known.place, self.looks + 1, event)


@dataclass
class _InRoom:
    """The position of a follower in a group."""

    comm_id: CommId
    room: _Room
    after: int
    is_over: bool = False

    @property
    def is_behind(self) -> bool:
        """Whether the room has removed the follower's next entry."""
        return self.after < self.room.floor

    def take(self) -> bytes:
        """Return the next chunk of events; the last one is the end of the stream."""
        self.after, found = self.room.behind(self.after)
        if not found and not self.is_over and self.room.end is not None:
            self.is_over = True
            return self.room.end
        return found


@dataclass
class _InList:
    """The position of a follower in a list. It receives the current state of each row, and rows that change meanwhile again.

    Attributes:
        seen: The number of the read of which the follower has received all rows.
        begun: The number of the last read when the current pass through the rows began.
        place: The place of the last row that was sent in this pass; 0 between passes.
    """

    rows: _List
    seen: int = 0
    begun: int = 0
    place: int = 0
    is_over = False

    def take(self) -> bytes:
        """Return the next chunk of changed rows."""
        while True:
            if not self.place:
                self.begun = self.rows.looks
            self.place, found = self.rows.behind(self.seen, self.place)
            if found or not self.place:
                return found
            self.seen, self.place = self.begun, 0


class Rooms:
    """All followed groups and lists. Made by `open_rooms`."""

    def __init__(
        self,
        system: Client,
        readers: asyncio.TaskGroup,
        stands: Callable[[Caller], bool],
        pages: FairSemaphore,
    ) -> None:
        self._system = system
        self._pages = pages
        self._readers = readers
        self._stands = stands
        self._rooms: dict[CommId, _Room] = {}
        self._lists: dict[tuple[frozenset[tuple[str, str]], UserId | None], _List] = {}
        self._is_closing = False

    def close(self) -> None:
        """End all streams. Followers resume at another gateway."""
        self._is_closing = True
        self.look()

    def look(self) -> None:
        """Make every stream check whether its key is still valid."""
        for followed in (*self._rooms.values(), *self._lists.values()):
            followed.wake()

    def may_go_on(self, caller: Caller) -> bool:
        """Whether a caller's streams may continue."""
        return not self._is_closing and self._stands(caller)

    def is_followed(self, comm_id: CommId) -> bool:
        """Whether a group has a follower, and therefore exists."""
        return comm_id in self._rooms

    def is_over(self, comm_id: CommId, after: int) -> bool:
        """Whether a followed group has ended and has no entry after a sequence."""
        room = self._rooms[comm_id]
        return room.end is not None and not room.has_more(after)

    async def follow(
        self, caller: Caller, comm_id: CommId | None, after: int = 0, listed: Mapping[str, str] | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield events until the group has ended, or with a list until the stream has to end.

        Args:
            caller: The follower.
            comm_id: The followed group, with its nested groups; None: no group.
            after: The sequence of the last entry that the caller has.
            listed: Labels of goals whose rows are also sent, and sent again when they change; None: no rows.
        """
        heard, now = asyncio.Event(), asyncio.get_running_loop().time
        room, places = None, deque[_InRoom | _InList]()
        with ExitStack() as stack:
            if comm_id is not None:
                found = stack.enter_context(_following(self._rooms, comm_id, lambda: self._begin_room(comm_id), heard))
                room = _InRoom(comm_id, found, after)
                places.append(room)
            if listed is not None:
                of = frozenset(listed.items()), caller.owner
                rows = stack.enter_context(_following(self._lists, of, lambda: self._begin_list(listed, caller.owner), heard))
                places.append(_InList(rows))
            stack.enter_context(streams.track_inprogress())
            yield _RETRY
            until = now() + SILENCE.total_seconds()
            while self.may_go_on(caller):
                heard.clear()
                if room is not None and room.is_behind:
                    async with aclosing(self._caught_up(room, caller)) as events:
                        async for event in events:
                            yield event
                    continue
                if news := _next(places):
                    yield news
                elif all(place.is_over for place in places):
                    return
                elif not await _is_heard(heard, until):
                    yield HEARTBEAT
                else:
                    continue
                until = now() + SILENCE.total_seconds()

    async def documents(self, caller: Caller, comm_id: CommId, after: int) -> AsyncGenerator[dict[str, Any] | None, None]:
        """Yield the entries of a group as documents, for other protocols than SSE; None instead of a heartbeat.

        Each follower decodes the events again. Storing documents in the room would take five times as much memory.
        """
        async with aclosing(self.follow(caller, comm_id, after)) as chunks:
            async for chunk in chunks:
                if chunk == HEARTBEAT:
                    yield None
                for event in chunk.split(b"\n\n"):
                    if event.startswith(b"event: entry\n"):
                        yield json.loads(event.partition(b"\ndata: ")[2])

    async def _caught_up(self, place: _InRoom, caller: Caller) -> AsyncGenerator[bytes, None]:
        """Yield events from pages of the log until the room keeps the next entry. If the log cannot be read, retry."""
        while self.may_go_on(caller):
            events = await self._page(place, caller)
            for place.after, event in events:
                if not self.may_go_on(caller):
                    return
                yield event
                if not place.is_behind:
                    return
            if not events:
                await asyncio.sleep(_LOOK.total_seconds())

    async def _page(self, place: _InRoom, caller: Caller) -> Sequence[tuple[int, bytes]]:
        """Read the next page of the log as encoded events; if the log becomes unavailable, the part that was read."""
        found, size = list[tuple[int, bytes]](), 0
        reading = self._system.read(Group(place.comm_id), after=place.after)
        try:
            async with self._pages.slot(caller.user), aclosing(reading) as entries:
                async for stored in entries:
                    event = encoded(stored)
                    size += len(event)
                    if found and size > _PAGE_BYTES:
                        break
                    found.append((stored.seq, event))
                    await asyncio.sleep(0)  # encoding an entry can take milliseconds
        except UnavailableError as error:
            _log.warning("log_out_of_reach", error=error.message)
        return found

    def _begin_room(self, comm_id: CommId) -> _Room:
        room = _Room()
        room.reader = self._readers.create_task(self._read(comm_id, room))
        return room

    def _begin_list(self, labels: Mapping[str, str], user: UserId | None) -> _List:
        rows = _List()
        rows.reader = self._readers.create_task(self._look(labels, user, rows))
        return rows

    async def _look(self, labels: Mapping[str, str], user: UserId | None, rows: _List) -> None:
        while True:
            try:
                async with self._pages.slot(_READER):
                    goals, _ = await page_of_goals(self._system, labels=labels, user=user)
                rows.take(goals)
            except IoaError as error:
                _log.warning("goals_unreadable", error=error.message)
            except Exception:  # noqa: BLE001 - one list's bug must not end all streams
                _log.exception("goals_unreadable")
            await asyncio.sleep(_LOOK.total_seconds())

    async def _read(self, comm_id: CommId, room: _Room) -> None:
        seq = 0
        try:
            async with watch(self._system, comm_id) as coming:
                async for one in coming:
                    if isinstance(one, StoredEntry):
                        room.add(one)
                        seq, phase = one.seq, one.entry.state.phase
            room.end = encode_event({"seq": seq, "phase": str(phase)}, kind="end", seq=seq)
        except IoaError as error:
            _log.warning("group_unreadable", comm_id=comm_id, error=error.message)
            room.end = _broken(error, seq)
        except Exception as error:  # noqa: BLE001 - one group's bug must not end all streams
            _log.exception("group_unreadable", comm_id=comm_id)
            room.end = _broken(error, seq)
        room.wake()


def _piece(events: Iterable[tuple[int, bytes]], after: int) -> tuple[int, bytes]:
    """Join the first events of an iterable into a chunk; return the number of its last event, or `after` if there is none."""
    taken, size = list[bytes](), 0
    for number, event in islice(events, _CHUNK_ENTRIES):
        size += len(event)
        if taken and size > _CHUNK_BYTES:
            break
        taken.append(event)
        after = number
    return after, b"".join(taken)


def _next(places: deque[_InRoom | _InList]) -> bytes:
    """Return the next chunk of one of several positions, which are served round-robin."""
    for _ in range(len(places)):
        places.rotate(-1)
        if found := places[-1].take():
            return found
    return b""


@contextmanager
def _following(kept: dict[K, F], key: K, begin: Callable[[], F], heard: asyncio.Event) -> Iterator[F]:
    """Follow a group or list while the block runs. It is removed with its last follower."""
    if key not in kept:
        kept[key] = begin()
    followed = kept[key]
    followed.followers.add(heard)
    try:
        yield followed
    finally:
        followed.followers.remove(heard)
        if not followed.followers:
            del kept[key]
            followed.reader.cancel()


async def _is_heard(heard: asyncio.Event, until: float) -> bool:
    """Wait for an event; return False if there is none until the time `until`."""
    try:
        async with fail_at(until):
            await heard.wait()
    except TimeoutError:
        return False
    return True


@asynccontextmanager
async def open_rooms(system: Client, stands: Callable[[Caller], bool], pages: FairSemaphore) -> AsyncIterator[Rooms]:
    """Read followed groups and lists while the block runs.

    Args:
        system: The system to read.
        stands: Returns whether a caller's key is still valid.
        pages: Limits concurrent reads of pages.
    """
    async with TaskGroup() as readers:
        rooms = Rooms(system, readers, stands, pages)
        yield rooms
        rooms.close()
