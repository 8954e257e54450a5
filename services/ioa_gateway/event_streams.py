"""Followed groups and lists of goals. One reader serves all followers of the same group or list.

A room keeps the last entries of a group and its nested groups, encoded; a list keeps the rows of the newest goals. Each follower
reads them at its own pace. A follower whose next entry the room has removed reads pages of the log until it catches up.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

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
from ioa_gateway.caller import Caller
from ioa_gateway.pagination import page_of_goals
from ioa_gateway.problems import problem_of
from ioa_gateway.sse import HEARTBEAT, encode_event

_MAX_ENTRIES, _MAX_BYTES = 1_000, 2_000_000
"""Entries that a room keeps, and their size in bytes."""
_PAGE_BYTES = 250_000
"""Size of a page of the log that a follower reads to catch up, in bytes. A page has at least one entry."""
SILENCE = timedelta(seconds=15)
"""Interval of heartbeats while there are no events."""
_LOOK = timedelta(seconds=1)
"""Interval between reads of a followed list of goals, and pause after a failed read of the log."""
_READER = "_reader"
"""The key of the gateway's own reads in the semaphore of page reads. No user has this name."""
_RETRY = b"retry: 1000\n\n"

open_streams = Gauge("ioa_gateway_streams", "Clients that follow a goal or a group by HTTP")

K = TypeVar("K")
F = TypeVar("F", bound="_Followed")

_log = structlog.get_logger(__name__)


def encoded(stored: StoredEntry) -> bytes:
    """Encode an entry as an event."""
    return encode_event(told(EntryDocument.of(stored)), kind="entry", seq=stored.seq)


@dataclass
class _Followed:
    """A followed group or list."""

    followers: set[asyncio.Event] = field(default_factory=set, init=False)
    reader: asyncio.Task[None] = field(init=False)

    def wake(self) -> None:
        """Wake all followers."""
        for news in self.followers:
            news.set()


@dataclass
class _Room(_Followed):
    """The last entries of a group and its nested groups.

    Attributes:
        floor: The sequence after which all entries are kept.
        last: The sequence of the last entry.
        end: The last event of the stream, when the group has ended or cannot be read.
    """

    comm_id: CommId
    floor: int = 0
    last: int = 0
    end: bytes | None = None
    _entries: list[tuple[int, bytes]] = field(default_factory=list)
    _bytes: int = 0

    def add(self, stored: StoredEntry) -> None:
        """Add an entry, and remove the oldest entries if there are too many."""
        event = encoded(stored)
        self._entries.append((stored.seq, event))
        self._bytes += len(event)
        while len(self._entries) > _MAX_ENTRIES or self._bytes > _MAX_BYTES:
            self.floor, removed = self._entries.pop(0)
            self._bytes -= len(removed)
        self.last = stored.seq
        self.wake()

    def next(self, seq: int) -> tuple[int, bytes]:
        """Return the first entry after a sequence with its own sequence; without one, the same sequence and no bytes."""
        index = bisect_right(self._entries, seq, key=itemgetter(0))
        return self._entries[index] if index < len(self._entries) else (seq, b"")


@dataclass
class _List(_Followed):
    """The encoded rows of the newest goals with some labels, oldest first. If `user` is set, only goals of this user."""

    labels: frozenset[tuple[str, str]]
    user: UserId | None
    rows: Mapping[CommId, bytes] = field(default_factory=dict)

    def next(self, sent: dict[CommId, bytes]) -> bytes:
        """Return a row that differs from the row in `sent`, and put it there; empty if there is none."""
        for comm_id, row in self.rows.items():
            if sent.get(comm_id) != row:
                sent[comm_id] = row
                return row
        for gone in sent.keys() - self.rows.keys():
            del sent[gone]
        return b""


class EventStreams:
    """All followed groups and lists. Made by `open_event_streams`."""

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
        return room.end is not None and after >= room.last

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
        news, now = asyncio.Event(), asyncio.get_running_loop().time
        room, goals, page, sent = None, None, deque[tuple[int, bytes]](), dict[CommId, bytes]()
        with ExitStack() as stack:
            if comm_id is not None:
                room = stack.enter_context(self._following(self._rooms, comm_id, partial(_Room, comm_id), self._read_group, news))
            if listed is not None:
                key = frozenset(listed.items()), caller.owner
                goals = stack.enter_context(self._following(self._lists, key, partial(_List, *key), self._read_goals, news))
            stack.enter_context(open_streams.track_inprogress())
            yield _RETRY
            heartbeat_at = now() + SILENCE.total_seconds()
            while self.may_go_on(caller):
                news.clear()
                after, event = (after, b"") if room is None else await self._entry(room, after, page, caller)
                event += b"" if goals is None else goals.next(sent)
                if event:
                    yield event
                elif room is not None and room.end is not None and after >= room.last:
                    yield room.end
                    room = None
                elif room is None and goals is None:
                    return
                elif await _is_set(news, heartbeat_at):
                    continue
                else:
                    yield HEARTBEAT
                heartbeat_at = now() + SILENCE.total_seconds()

    async def documents(self, caller: Caller, comm_id: CommId, after: int) -> AsyncGenerator[dict[str, Any] | None, None]:
        """Yield the entries of a group as documents, for other protocols than SSE; None instead of a heartbeat.

        Each follower decodes the events again. Storing documents in the room would take five times as much memory.
        """
        async with aclosing(self.follow(caller, comm_id, after)) as events:
            async for event in events:
                if event == HEARTBEAT:
                    yield None
                elif event.startswith(b"event: entry\n"):
                    yield json.loads(event.partition(b"\ndata: ")[2])

    async def _entry(self, room: _Room, after: int, page: deque[tuple[int, bytes]], caller: Caller) -> tuple[int, bytes]:
        """Return the first entry after a sequence with its own sequence; if there is none now, the same sequence and no bytes.

        Args:
            room: The group.
            after: The sequence.
            page: The rest of the last page of the log. Filled if it is empty and the room has removed the entry.
            caller: The follower.
        """
        if not page and after < room.floor:
            page += await self._page(room.comm_id, after, caller)
        if page:
            return page.popleft()
        return room.next(after) if after >= room.floor else (after, b"")

    async def _page(self, comm_id: CommId, after: int, caller: Caller) -> Sequence[tuple[int, bytes]]:
        """Read the next page of the log as encoded events; if the log becomes unavailable, return the part that was read."""
        found, size = list[tuple[int, bytes]](), 0
        try:
            async with self._pages.slot(caller.user), aclosing(self._system.read(Group(comm_id), after=after)) as entries:
                async for stored in entries:
                    event = encoded(stored)
                    size += len(event)
                    if found and size > _PAGE_BYTES:
                        break
                    found.append((stored.seq, event))
                    await asyncio.sleep(0)  # encoding an entry can take milliseconds
        except UnavailableError as error:
            _log.warning("log_out_of_reach", error=error.message)
        if not found:
            await asyncio.sleep(_LOOK.total_seconds())
        return found

    @contextmanager
    def _following(
        self, kept: dict[K, F], key: K, make: Callable[[], F], read: Callable[[F], Coroutine[Any, Any, None]], news: asyncio.Event
    ) -> Iterator[F]:
        """Follow a group or list while the block runs. It is read from its first follower to its last."""
        if key not in kept:
            kept[key] = make()
            kept[key].reader = self._readers.create_task(read(kept[key]))
        followed = kept[key]
        followed.followers.add(news)
        try:
            yield followed
        finally:
            followed.followers.remove(news)
            if not followed.followers:
                del kept[key]
                followed.reader.cancel()

    async def _read_goals(self, followed: _List) -> None:
        while True:
            try:
                async with self._pages.slot(_READER):
                    goals, _ = await page_of_goals(self._system, labels=dict(followed.labels), user=followed.user)
                rows = {CommId(goal["comm_id"]): encode_event(goal, kind="goal") for goal in reversed(goals)}
                if rows != followed.rows:
                    followed.rows = rows
                    followed.wake()
            except IoaError as error:
                _log.warning("goals_unreadable", error=error.message)
            except Exception:  # noqa: BLE001 - one list's bug must not end all streams
                _log.exception("goals_unreadable")
            await asyncio.sleep(_LOOK.total_seconds())

    async def _read_group(self, room: _Room) -> None:
        ending: Mapping[str, Any] = {}
        try:
            async with watch(self._system, room.comm_id) as entries:
                async for stored in entries:
                    if isinstance(stored, StoredEntry):
                        room.add(stored)
                        ending = {"phase": str(stored.entry.state.phase)}
        except Exception as error:  # noqa: BLE001 - one group's bug must not end all streams
            _log.error("group_unreadable", comm_id=room.comm_id, exc_info=error)
            ending = {"problem": problem_of(error).model_dump(mode="json", exclude_none=True)}
        room.end = encode_event({"seq": room.last, **ending}, kind="end", seq=room.last)
        room.wake()


async def _is_set(event: asyncio.Event, until: float) -> bool:
    """Wait for an event; return False if it is not set before the time `until`."""
    try:
        async with fail_at(until):
            await event.wait()
    except TimeoutError:
        return False
    return True


@asynccontextmanager
async def open_event_streams(system: Client, stands: Callable[[Caller], bool], pages: FairSemaphore) -> AsyncIterator[EventStreams]:
    """Read followed groups and lists while the block runs.

    Args:
        system: The system to read.
        stands: Returns whether a caller's key is still valid.
        pages: Limits concurrent reads of pages.
    """
    async with TaskGroup() as readers:
        streams = EventStreams(system, readers, stands, pages)
        yield streams
        streams.close()
