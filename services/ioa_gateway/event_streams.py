"""Server-sent events of groups, of the list of goals, and of open items. Followers of the same feed share one reader.

A reader copies each event into the bounded queues of its followers. A follower whose queue overflows reads on from the log, page
by page at its own pace, and returns to its queue when it has caught up. A client that was disconnected resumes by sequence.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any

import structlog
from prometheus_client import Gauge

from ioa.client.client import END, Client
from ioa.client.documents import GoalRow, ProgressDocument, told
from ioa.client.history import heads_of_tree
from ioa.client.waiting import open_groups
from ioa.client.watching import patiently, watch
from ioa.concurrency import TaskGroup, fail_after
from ioa.errors import IoaError, UnavailableError
from ioa.fair_semaphore import FairSemaphore
from ioa.group.events import Said
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId, GoalName, UserId
from ioa_gateway.caller import Caller
from ioa_gateway.open_items import OpenItem, open_items
from ioa_gateway.pagination import describe_entry, page_of, transcript_at
from ioa_gateway.problems import problem_of
from ioa_gateway.sse import HEARTBEAT, encode_event

_MAX_QUEUED = 100
"""Maximum events in a follower's queue. The queues of all followers share the events."""
_PAGE_ENTRIES, _PAGE_BYTES = 100, 250_000
"""Maximum entries and bytes of a page that a follower reads to catch up. A page has at least one entry."""
SILENCE = timedelta(seconds=15)
"""Interval of heartbeats while there are no events."""
_LOOK, _SOON = timedelta(seconds=1), timedelta(milliseconds=200)
"""Interval between reads of goals while no log changes, and minimum pause between two reads."""
_PAUSE = 3
"""Minimum pause between two reads of goals, in times of the duration of a read."""
_READER = "_reader"
"""The key of the gateway's own reads in the semaphore of page reads. No user has this name."""
_RETRY, _WAITING = b"retry: 1000\n\n", encode_event({}, kind="waiting")

open_streams = Gauge("ioa_gateway_streams", "Clients that follow a goal or a group by HTTP")

_log = structlog.get_logger(__name__)


@dataclass(eq=False)
class _Follower:
    """A follower with its queue: events with their sequences, 0 for an event that is not an entry.

    Attributes:
        after: The sequence of the last entry that the follower has received.
        is_behind: Whether events were dropped, so that the follower must catch up.
    """

    caller: Caller
    after: int
    is_behind: bool = True
    events: deque[tuple[int, bytes]] = field(default_factory=deque)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, seq: int, event: bytes) -> None:
        """Queue an event, or drop it if the queue is full."""
        if len(self.events) >= _MAX_QUEUED:
            self.is_behind = True
        else:
            self.events.append((seq, event))
        self.news.set()

    async def next(self) -> bytes:
        """Wait for an event, or return a heartbeat; empty if the feeds have changed, or the follower has the entry already."""
        if not self.events:
            self.news.clear()
            try:
                async with fail_after(SILENCE.total_seconds()):
                    await self.news.wait()
            except TimeoutError:
                return HEARTBEAT
        seq, event = self.events.popleft() if self.events else (0, b"")
        if 0 < seq <= self.after:
            return b""
        self.after = max(self.after, seq)
        return event


@dataclass
class _Feed:
    """What several followers follow: a goal, the newest goals, or the open items of all callers.

    Attributes:
        present: Events that a follower that catches up receives.
        last: The sequence of the last entry of the goal that was read; None until the reader has begun.
        end: The last event of the goal's stream, when its group has ended or cannot be read.
    """

    present: Mapping[Hashable, bytes]
    followers: set[_Follower] = field(default_factory=set)
    reader: asyncio.Task[None] = field(init=False)
    last: int | None = None
    end: bytes | None = None

    def put(self, event: bytes = b"", seq: int = 0) -> None:
        """Queue an event for all followers; without an event, only wake them."""
        for follower in self.followers:
            follower.put(seq, event)


class EventStreams:
    """All streams of a gateway. Made by `open_event_streams`.

    Attributes:
        is_closing: Whether all streams end, because the gateway stops.
    """

    def __init__(self, system: Client, readers: asyncio.TaskGroup, pages: FairSemaphore) -> None:
        self._system = system
        self._pages = pages
        self._readers = readers
        self._feeds: dict[Hashable, _Feed] = {}
        self.is_closing = False

    def close(self) -> None:
        """End all streams. Followers resume at another gateway."""
        self.is_closing = True
        for feed in self._feeds.values():
            feed.put()

    async def follow(
        self,
        caller: Caller,
        goal: GoalName | None,
        after: int = 0,
        listed: Mapping[str, str] | None = None,
        *,
        waiting: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """Yield events until the goal has ended, or with a list or `waiting` until the stream has to end.

        Args:
            caller: The follower.
            goal: The goal; None: none. Its events are `entry`, `progress` and `end`, also of nested groups.
            after: The sequence of the last entry that the caller has.
            listed: Labels of goals whose rows are also sent, and sent again when they change (`goal`); None: no rows.
            waiting: Whether an event `waiting` is sent when the caller's open turns and questions may have changed.
        """
        follower = _Follower(caller, after)
        with ExitStack() as stack:
            join, others = partial(self._join, stack, follower), list[_Feed]()
            group = None if goal is None else join(goal, partial(self._read_group, goal=goal))
            if listed is not None:
                key = frozenset(listed.items()), caller.owner
                others.append(join(key, partial(self._read_goals, labels=listed, user=caller.owner)))
            if waiting:
                others.append(join("waiting", self._read_waiting, {"waiting": _WAITING}))
            stack.enter_context(open_streams.track_inprogress())
            yield _RETRY
            while not self.is_closing:
                if follower.is_behind and (group is None or group.last is not None):
                    async for event in self._catch_up(follower, goal, group, others):
                        yield event
                elif group is not None and group.end is not None and not follower.events:
                    yield group.end
                    group = None
                elif group is None and not others:
                    return
                elif event := await follower.next():
                    yield event

    async def documents(self, caller: Caller, goal: GoalName, after: int) -> AsyncGenerator[dict[str, Any] | None, None]:
        """Yield a goal's entries and progress reports, which have no `seq`, as documents; None instead of a heartbeat.

        Each follower decodes the events again: documents in queues would take five times as much memory.
        """
        async with aclosing(self.follow(caller, goal, after)) as events:
            async for event in events:
                if event == HEARTBEAT:
                    yield None
                elif event.startswith((b"event: entry\n", b"event: progress\n")):
                    yield json.loads(event.partition(b"\ndata: ")[2])

    async def _catch_up(
        self, follower: _Follower, goal: GoalName | None, group: _Feed | None, others: Sequence[_Feed]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the present events, and one page of the log. The follower must continue catching up if the log has more pages."""
        follower.events.clear()
        follower.is_behind = False
        for event in [event for feed in others for event in feed.present.values()]:
            yield event
        if goal is None or group is None or follower.after >= (group.last or 0):
            return
        try:
            async with self._pages.slot(follower.caller.user):
                page = await page_of(self._system, goal, after=follower.after, limit=_PAGE_ENTRIES, max_bytes=_PAGE_BYTES)
        except UnavailableError as error:
            _log.warning("log_out_of_reach", error=error.message)
            follower.is_behind = True
            await asyncio.sleep(_LOOK.total_seconds())
            return
        follower.is_behind |= page.next is not None
        for document in page.documents:
            follower.after = document["seq"]
            yield _encode_entry(document)

    def _join(
        self,
        stack: ExitStack,
        follower: _Follower,
        key: Hashable,
        read: Callable[[_Feed], Coroutine[Any, Any, None]],
        present: Mapping[Hashable, bytes] = MappingProxyType({}),
    ) -> _Feed:
        """Follow a feed until the stack is closed. A feed is read from its first follower to its last."""
        if key not in self._feeds:
            self._feeds[key] = _Feed(present)
            self._feeds[key].reader = self._readers.create_task(read(self._feeds[key]))
        feed = self._feeds[key]
        feed.followers.add(follower)

        def leave() -> None:
            feed.followers.remove(follower)
            if not feed.followers:
                del self._feeds[key]
                feed.reader.cancel()

        stack.callback(leave)
        return feed

    async def _read_group(self, feed: _Feed, goal: GoalName) -> None:
        ending: Mapping[str, Any] = {}
        try:
            heads = await patiently(partial(heads_of_tree, self._system, [goal.comm_id], END))
            last = max(head.seq if head else 0 for head in heads.values())
            transcript = await patiently(partial(transcript_at, self._system, goal, last))
            until = partial(self._system.wait_for_result, goal)  # without entries, the stream ends when the goal has ended
            async with watch(self._system, goal.comm_id, after=last, until=until) as news:
                feed.last = last
                feed.put()
                async for one in news:
                    if isinstance(one, StoredEntry):
                        feed.last = one.seq
                        feed.put(_encode_entry(describe_entry(one, transcript)), one.seq)
                    else:
                        feed.put(encode_event(told(ProgressDocument.of(one)), kind="progress"))
            if state := transcript.states.get(goal.comm_id):
                ending = {"phase": str(state.phase)}
        except Exception as error:  # noqa: BLE001 - one group's bug must not end all streams
            _log.error("group_unreadable", comm_id=goal.comm_id, exc_info=error)
            ending = {"problem": problem_of(error).model_dump(mode="json", exclude_none=True)}
        feed.last = feed.last or 0
        feed.end = encode_event({"seq": feed.last, **ending}, kind="end", seq=feed.last)
        feed.put()

    async def _read_goals(self, feed: _Feed, labels: Mapping[str, str], user: UserId | None) -> None:
        async def read() -> None:
            async with self._pages.slot(_READER):
                page = await self._system.goals(labels=labels, user=user)
            rows = [GoalRow.of(goal) for goal in reversed(page.goals)]
            before, feed.present = feed.present, {row.comm_id: encode_event(told(row), kind="goal") for row in rows}
            for comm_id, row in feed.present.items():
                if before.get(comm_id) != row:
                    feed.put(row)

        await self._read_often(read)

    async def _read_waiting(self, feed: _Feed) -> None:
        known = frozenset[OpenItem]()

        async def read() -> None:
            nonlocal known
            async with self._pages.slot(_READER):
                items = frozenset([item async for group in open_groups(self._system) for item in open_items(group.state)])
            changed, known = items ^ known, items
            for follower in feed.followers:
                if any(_is_for(follower.caller, item) for item in changed):
                    follower.put(0, _WAITING)

        await self._read_often(read)

    async def _read_often(self, read: Callable[[], Awaitable[None]]) -> None:
        """Call `read` after each change of a log, and each second, until cancelled. It takes at most a quarter of the time."""
        changed, now = _LogChange(), asyncio.get_running_loop().time
        async with self._system.listen(CommId("*"), changed):
            while True:
                changed.clear()
                began = now()
                try:
                    await read()
                except IoaError as error:
                    _log.warning("goals_unreadable", error=error.message)
                except Exception:  # noqa: BLE001 - one list's bug must not end all streams
                    _log.exception("goals_unreadable")
                await asyncio.sleep(max(_SOON.total_seconds(), _PAUSE * (now() - began)))
                with suppress(TimeoutError):
                    async with fail_after(_LOOK.total_seconds()):
                        await changed.wait()


class _LogChange(asyncio.Event):
    """Set when an entry was appended to a log of any goal."""

    def hint(self) -> None:
        """Note an entry."""
        self.set()

    def look(self) -> None:
        """Do nothing: the caller reads periodically."""

    def report(self, said: Said) -> None:
        """Do nothing: a progress report changes no goal."""


def _is_for(caller: Caller, item: OpenItem) -> bool:
    """Whether a caller may answer an item."""
    return caller.answers_for(item.person) if item.person else item.user == caller.user


def _encode_entry(document: Mapping[str, Any]) -> bytes:
    return encode_event(document, kind="entry", seq=document["seq"])


@asynccontextmanager
async def open_event_streams(system: Client, pages: FairSemaphore) -> AsyncIterator[EventStreams]:
    """Read followed groups and lists while the block runs.

    Args:
        system: The system to read.
        pages: Limits concurrent reads of pages.
    """
    async with TaskGroup() as readers:
        streams = EventStreams(system, readers, pages)
        yield streams
        streams.close()
