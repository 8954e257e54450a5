"""Groups as those see them who follow them by HTTP: each is read once, however many follow it.

A room keeps the last entries of a group and its nested teams, encoded. A follower takes them at its own pace and has no queue: one
that is behind what the room keeps reads the log by itself until it has caught up.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import structlog
from prometheus_client import Gauge

from ioa.client.documents import EntryDocument, told
from ioa.client.watching import watch
from ioa.errors import IoaError
from ioa.ports.group_client import GroupClient
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId
from ioa_gateway.callers import Caller
from ioa_gateway.limits import CallerLimits
from ioa_gateway.problems import problem_of

_KEPT, _KEPT_BYTES = 1_000, 2_000_000
_AT_ONCE = 64
SILENCE = timedelta(seconds=15)
"""After how long without news a follower hears that the stream stands."""
HEARTBEAT = b":\n\n"
_RETRY = b"retry: 1000\n\n"

streams = Gauge("ioa_gateway_streams", "Clients that follow a goal or a group by HTTP")

_log = structlog.get_logger(__name__)


def encoded(stored: StoredEntry) -> bytes:
    """Write an entry as an event."""
    return _event("entry", told(EntryDocument.of(stored)), stored.seq)


def _event(kind: str, data: object, seq: int) -> bytes:
    return f"event: {kind}\nid: {seq}\ndata: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


@dataclass
class _Room:
    """The last entries of a group and its nested teams.

    Attributes:
        floor: The sequence behind which everything is kept.
        end: The last event, when nothing comes behind what is kept.
    """

    comm_id: CommId
    reader: asyncio.Task[None] = field(init=False)
    floor: int = 0
    followers: int = 0
    end: bytes | None = None
    _seqs: list[int] = field(default_factory=list)
    _events: list[bytes] = field(default_factory=list)
    _bytes: int = 0
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, stored: StoredEntry) -> None:
        """Keep an entry, and let go of the oldest if there are too many."""
        event = encoded(stored)
        self._seqs.append(stored.seq)
        self._events.append(event)
        self._bytes += len(event)
        if len(self._seqs) > _KEPT or self._bytes > _KEPT_BYTES:
            gone = len(self._seqs) // 4 + 1
            self.floor = self._seqs[gone - 1]
            self._bytes -= sum(map(len, self._events[:gone]))
            del self._seqs[:gone], self._events[:gone]
        self.wake()

    def wake(self) -> None:
        """Have everybody look."""
        self._news.set()
        self._news = asyncio.Event()

    def has_more(self, seq: int) -> bool:
        """Whether anything that is kept, or was, lies behind a sequence."""
        return seq < self.floor or bool(self._seqs and self._seqs[-1] > seq)

    def behind(self, seq: int) -> tuple[int, bytes]:
        """Return the last sequence of what is kept behind a sequence, or of a part of it if that is much, and the events."""
        first = bisect_right(self._seqs, seq)
        events = self._events[first : first + _AT_ONCE]
        return (self._seqs[first + len(events) - 1] if events else seq), b"".join(events)

    async def is_heard(self) -> bool:
        """Wait until there is something to look at; False after a silence."""
        try:
            async with asyncio.timeout(SILENCE.total_seconds()):
                await self._news.wait()
        except TimeoutError:
            return False
        return True


class Rooms:
    """All groups that are followed. Made by `open_rooms`."""

    def __init__(
        self, groups: GroupClient, readers: asyncio.TaskGroup, limits: CallerLimits, stands: Callable[[Caller], bool]
    ) -> None:
        self._groups = groups
        self._readers = readers
        self._limits = limits
        self._stands = stands
        self._rooms: dict[CommId, _Room] = {}
        self._is_closing = False

    def close(self) -> None:
        """End all streams; who follows goes on at another gateway."""
        self._is_closing = True
        self.look()

    def look(self) -> None:
        """Have every stream look whether it still may go on."""
        for room in self._rooms.values():
            room.wake()

    def is_followed(self, comm_id: CommId) -> bool:
        """Whether anybody follows a group now, so that there is one."""
        return comm_id in self._rooms

    def is_over(self, comm_id: CommId, after: int) -> bool:
        """Whether a group that is followed has ended, and nothing lies behind a sequence."""
        room = self._rooms[comm_id]
        return room.end is not None and not room.has_more(after)

    async def follow(self, comm_id: CommId, after: int, caller: Caller) -> AsyncIterator[bytes]:
        """Yield the events of a group and its nested teams behind a sequence, until its end, or until the stream has to end."""
        with self._in_room(comm_id) as room, self._limits.stream(caller.key_id), streams.track_inprogress():
            yield _RETRY
            while self._may_go_on(caller):
                if after < room.floor:
                    async with aclosing(self._caught_up(room, after, caller)) as events:
                        async for seq, event in events:
                            after = seq
                            yield event
                    continue
                after, found = room.behind(after)
                if found:
                    yield found
                elif room.end is not None:
                    yield room.end
                    return
                elif not await room.is_heard():
                    yield HEARTBEAT

    async def _caught_up(self, room: _Room, after: int, caller: Caller) -> AsyncGenerator[tuple[int, bytes], None]:
        """Read the log from a sequence on until the room keeps all that comes behind."""
        async with watch(self._groups, room.comm_id, after=after) as coming:
            async for one in coming:
                if isinstance(one, StoredEntry):
                    yield one.seq, encoded(one)
                    if one.seq >= room.floor or not self._may_go_on(caller):
                        return

    def _may_go_on(self, caller: Caller) -> bool:
        return not self._is_closing and self._stands(caller)

    @contextmanager
    def _in_room(self, comm_id: CommId) -> Iterator[_Room]:
        room = self._rooms.get(comm_id)
        if room is None:
            room = self._rooms[comm_id] = _Room(comm_id)
            room.reader = self._readers.create_task(self._read(room))
        room.followers += 1
        try:
            yield room
        finally:
            room.followers -= 1
            if not room.followers:
                del self._rooms[comm_id]
                room.reader.cancel()

    async def _read(self, room: _Room) -> None:
        seq = 0
        try:
            async with watch(self._groups, room.comm_id) as coming:
                async for one in coming:
                    if isinstance(one, StoredEntry):
                        room.add(one)
                        seq, phase = one.seq, one.entry.state.phase
            room.end = _event("end", {"seq": seq, "phase": str(phase)}, seq)
        except IoaError as error:
            _log.warning("group_unreadable", comm_id=room.comm_id, error=error.message)
            room.end = _event("end", {"seq": seq, "problem": problem_of(error).model_dump(mode="json", exclude_none=True)}, seq)
        room.wake()


@asynccontextmanager
async def open_rooms(groups: GroupClient, limits: CallerLimits, stands: Callable[[Caller], bool]) -> AsyncIterator[Rooms]:
    """Read what is followed for as long as the block.

    Args:
        groups: Where it is read.
        limits: What a key may use up.
        stands: Whether a caller's key still lets in.
    """
    async with asyncio.TaskGroup() as readers:
        rooms = Rooms(groups, readers, limits, stands)
        yield rooms
        rooms.close()
