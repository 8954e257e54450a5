"""Groups and lists of goals that clients follow by HTTP: each is read once for all followers, in turns of the first one's user.

A room holds the last entries of a group and its nested groups, encoded, and a list the rows of the newest goals. A follower takes
them at its own pace and has no queue. A follower that needs older entries reads pages of the log until it has caught up.
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
from ioa.ports.system_client import SystemClient
from ioa.protocol.ids import CommId, UserId
from ioa_gateway.callers import Caller
from ioa_gateway.event_stream import HEARTBEAT, encode_event
from ioa_gateway.goal_pages import page_of_goals
from ioa_gateway.problems import problem_of
from ioa_gateway.reading import reads_for

_KEPT, _KEPT_BYTES, _ALL_KEPT_BYTES = 1_000, 2_000_000, 48_000_000
"""How many entries a room keeps, and how many bytes of them, and all rooms together, each as much as another: a key follows 50."""
_AT_ONCE, _AT_ONCE_BYTES = 64, 64_000
"""How many entries that a room keeps, or rows, a follower takes at a time; one however large it is."""
_PAGE_BYTES = 250_000
"""Bytes of entries that a follower reads from the log at once, or one entry."""
SILENCE = timedelta(seconds=15)
"""After how long without news a follower hears that the stream stands."""
_LOOK = timedelta(seconds=1)
"""How often the list of goals is read while somebody follows it."""
_RETRY = b"retry: 1000\n\n"

streams = Gauge("ioa_gateway_streams", "Clients that follow a goal or a group by HTTP")

K = TypeVar("K")
F = TypeVar("F", bound="_Followed")
T = TypeVar("T")

_log = structlog.get_logger(__name__)


def encoded(stored: StoredEntry) -> bytes:
    """Write an entry as an event."""
    return encode_event(told(EntryDocument.of(stored)), kind="entry", seq=stored.seq)


def _broken(error: Exception, seq: int) -> bytes:
    """Write that a group cannot be followed on, and why."""
    return encode_event({"seq": seq, "problem": problem_of(error).model_dump(mode="json", exclude_none=True)}, kind="end", seq=seq)


@dataclass
class _Followed:
    """What several follow. Each of them waits for an event of its own, which may be that of something else, too.

    Attributes:
        user: The first follower's user, in whose turns it is read.
    """

    user: UserId
    followers: set[asyncio.Event] = field(default_factory=set)
    reader: asyncio.Task[None] = field(init=False)

    def wake(self) -> None:
        """Have everybody look."""
        for heard in self.followers:
            heard.set()


@dataclass
class _Room(_Followed):
    """The last entries of a group and its nested teams.

    Attributes:
        most_bytes: Tells how many bytes of them it may keep now.
        floor: The sequence behind which everything is kept.
        end: The last event, when nothing comes behind what is kept.
    """

    most_bytes: Callable[[], int] = lambda: _KEPT_BYTES
    floor: int = 0
    end: bytes | None = None
    _seqs: list[int] = field(default_factory=list)
    _events: list[bytes] = field(default_factory=list)
    _bytes: int = 0

    def add(self, stored: StoredEntry) -> None:
        """Keep an entry, and let go of the oldest if there are too many."""
        event = encoded(stored)
        self._seqs.append(stored.seq)
        self._events.append(event)
        self._bytes += len(event)
        self.make_room()
        self.wake()

    def make_room(self) -> None:
        """Let go of the oldest entries while there are too many."""
        while self._seqs and (len(self._seqs) > _KEPT or self._bytes > self.most_bytes()):
            gone = len(self._seqs) // 4 + 1
            self.floor = self._seqs[gone - 1]
            self._bytes -= sum(map(len, self._events[:gone]))
            del self._seqs[:gone], self._events[:gone]

    def has_more(self, seq: int) -> bool:
        """Whether anything that is kept, or was, lies behind a sequence."""
        return seq < self.floor or bool(self._seqs and self._seqs[-1] > seq)

    def behind(self, seq: int) -> tuple[int, bytes]:
        """Return the last sequence of what is kept behind a sequence, or of a part of it if that is much, and the events."""
        first = bisect_right(self._seqs, seq)
        coming = slice(first, first + _AT_ONCE)
        return _piece(zip(self._seqs[coming], self._events[coming], strict=True), seq)


class _Row(NamedTuple):
    """A goal as it is told in a list: its place there, newer goals behind older ones, and in which look it was found changed."""

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
        """Take the newest goals as they are told, newest first."""
        rows = [self._row(CommId(one["comm_id"]), encode_event(one, kind="goal")) for one in reversed(goals)]
        if (by_place := dict(sorted(rows, key=lambda kept: kept[1].place))) != self._rows:
            self._rows = by_place
            self.looks += 1
            self.wake()

    def behind(self, look: int, place: int) -> tuple[int, bytes]:
        """Return what was found changed since a look, behind a place, or a part of it if that is much, and its last row's place."""
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
    """Where a follower of a group is."""

    comm_id: CommId
    room: _Room
    after: int
    is_over: bool = False

    @property
    def is_behind(self) -> bool:
        """Whether the room has let go of what comes next."""
        return self.after < self.room.floor

    def take(self) -> bytes:
        """Return what comes next, and at the end that it is one."""
        self.after, found = self.room.behind(self.after)
        if not found and not self.is_over and self.room.end is not None:
            self.is_over = True
            return self.room.end
        return found


@dataclass
class _InList:
    """Where a follower of a list is: he is told of each row as it is by then, and anew of what changed meanwhile.

    Attributes:
        seen: The look of which he has been told everything.
        begun: The last look when he began to be told of the first row behind that.
        place: That of the row that he was told of last.
    """

    rows: _List
    seen: int = 0
    begun: int = 0
    place: int = 0
    is_over = False

    def take(self) -> bytes:
        """Return what has changed, a piece at a time."""
        while True:
            if not self.place:
                self.begun = self.rows.looks
            self.place, found = self.rows.behind(self.seen, self.place)
            if found or not self.place:
                return found
            self.seen, self.place = self.begun, 0


class Rooms:
    """All that is followed. Made by `open_rooms`."""

    def __init__(
        self,
        system: SystemClient,
        readers: asyncio.TaskGroup,
        stands: Callable[[Caller], bool],
        pages: FairSemaphore,
        lists: FairSemaphore,
    ) -> None:
        self._system = system
        self._pages, self._page_lists = pages, lists
        self._readers = readers
        self._stands = stands
        self._rooms: dict[CommId, _Room] = {}
        self._lists: dict[frozenset[tuple[str, str]], _List] = {}
        self._is_closing = False

    def close(self) -> None:
        """End all streams; who follows goes on at another gateway."""
        self._is_closing = True
        self.look()

    def look(self) -> None:
        """Have every stream look whether it still may go on."""
        for followed in (*self._rooms.values(), *self._lists.values()):
            followed.wake()

    def may_go_on(self, caller: Caller) -> bool:
        """Whether somebody may be told more by a stream."""
        return not self._is_closing and self._stands(caller)

    def is_followed(self, comm_id: CommId) -> bool:
        """Whether anybody follows a group now, so that there is one."""
        return comm_id in self._rooms

    def is_over(self, comm_id: CommId, after: int) -> bool:
        """Whether a group that is followed has ended, and nothing lies behind a sequence."""
        room = self._rooms[comm_id]
        return room.end is not None and not room.has_more(after)

    async def follow(
        self, caller: Caller, comm_id: CommId | None, after: int = 0, listed: Mapping[str, str] | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield events until the group has ended, or with a list until the stream has to end.

        Args:
            caller: Who follows.
            comm_id: The group that is followed with its nested teams, if any.
            after: The sequence behind which to begin there.
            listed: Besides, the rows of the newest goals that bear these labels, and each that changes; none if None.
        """
        heard, now = asyncio.Event(), asyncio.get_running_loop().time
        room, places = None, deque[_InRoom | _InList]()
        with ExitStack() as stack:
            if comm_id is not None:
                found = stack.enter_context(_following(self._rooms, comm_id, lambda: self._begin_room(comm_id, caller.user), heard))
                room = _InRoom(comm_id, found, after)
                places.append(room)
            if listed is not None:
                of = frozenset(listed.items())
                rows = stack.enter_context(_following(self._lists, of, lambda: self._begin_list(listed, caller.user), heard))
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
        """Yield the entries of a group as documents, for who tells of them by another protocol; None after silence.

        They are decoded again for each follower: that takes 12 µs, an eighth of encoding one, where a room that kept documents
        besides would hold five times as much.
        """
        async with aclosing(self.follow(caller, comm_id, after)) as chunks:
            async for chunk in chunks:
                if chunk == HEARTBEAT:  # and not while he waits for his turn: then there is something
                    yield None
                for event in chunk.split(b"\n\n"):
                    if event.startswith(b"event: entry\n"):
                        yield json.loads(event.partition(b"\ndata: ")[2])

    async def _caught_up(self, place: _InRoom, caller: Caller) -> AsyncGenerator[bytes, None]:
        """Read pages of the log until the room has the next entry. An outage is waited out."""
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
        """Read what comes next in the log, and keep no more of it than events; up to where it is out of reach."""
        found, size = list[tuple[int, bytes]](), 0
        reading = Client(self._system).read(Group(place.comm_id), after=place.after)
        try:
            async with self._pages.slot(caller.user), aclosing(reading) as entries:
                async for stored in entries:
                    event = encoded(stored)
                    size += len(event)
                    if found and size > _PAGE_BYTES:
                        break
                    found.append((stored.seq, event))
                    await asyncio.sleep(0)  # one may take milliseconds to write
        except UnavailableError as error:
            _log.warning("log_out_of_reach", error=error.message)
        return found

    def _begin_room(self, comm_id: CommId, user: UserId) -> _Room:
        room = _Room(user, most_bytes=self._share)
        room.reader = self._readers.create_task(self._read(comm_id, room))
        for other in self._rooms.values():  # of which nothing may come any more
            other.make_room()
        return room

    def _share(self) -> int:
        """Return how many bytes each room may keep, one that is about to begin counted in."""
        return min(_KEPT_BYTES, _ALL_KEPT_BYTES // (len(self._rooms) + 1))

    def _begin_list(self, labels: Mapping[str, str], user: UserId) -> _List:
        rows = _List(user)
        rows.reader = self._readers.create_task(self._look(labels, rows))
        return rows

    async def _look(self, labels: Mapping[str, str], rows: _List) -> None:
        reads_for.set(rows.user)
        while True:
            try:
                async with self._page_lists.slot(rows.user):
                    goals, _ = await page_of_goals(Client(self._system), labels=labels)
                rows.take(goals)
            except IoaError as error:
                _log.warning("goals_unreadable", error=error.message)
            except Exception:  # noqa: BLE001 - one list's bug must not end all streams
                _log.exception("goals_unreadable")
            await asyncio.sleep(_LOOK.total_seconds())

    async def _read(self, comm_id: CommId, room: _Room) -> None:
        reads_for.set(room.user)
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
    """Join the first of some events, each of which has a number, and return the last one's, too; `after` if there is none."""
    taken, size = list[bytes](), 0
    for number, event in islice(events, _AT_ONCE):
        size += len(event)
        if taken and size > _AT_ONCE_BYTES:
            break
        taken.append(event)
        after = number
    return after, b"".join(taken)


def _next(places: deque[_InRoom | _InList]) -> bytes:
    """Return what comes next in one of several places, which take turns; of what they have together nothing is joined."""
    for _ in range(len(places)):
        places.rotate(-1)
        if found := places[-1].take():
            return found
    return b""


@contextmanager
def _following(kept: dict[K, F], key: K, begin: Callable[[], F], heard: asyncio.Event) -> Iterator[F]:
    """Follow something for as long as the block; it is kept while anybody does."""
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
    """Wait until there is something to look at; False if there is nothing until then."""
    try:
        async with fail_at(until):
            await heard.wait()
    except TimeoutError:
        return False
    return True


@asynccontextmanager
async def open_rooms(
    system: SystemClient, stands: Callable[[Caller], bool], pages: FairSemaphore, lists: FairSemaphore
) -> AsyncIterator[Rooms]:
    """Read what is followed for as long as the block.

    Args:
        system: Where it is read.
        stands: Whether a caller's key still lets in.
        pages: The turns at reading what a room does not keep any more.
        lists: The turns at reading goals, of who follows a list.
    """
    async with TaskGroup() as readers:
        rooms = Rooms(system, readers, stands, pages, lists)
        yield rooms
        rooms.close()
