"""Server-sent events of goals, of the list of goals, and of open items.

Followers of the same feed share one reader, which wakes them. A follower of a goal then reads on from the log, page by page, after
the last entry that it has received; followers at the same entry share the page. A client that was disconnected resumes likewise.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import structlog
from prometheus_client import Gauge

from ioa.adapters.nats.wire.subscriptions import watching
from ioa.client.client import END, Client
from ioa.client.documents import GoalRow, ProgressDocument, told
from ioa.client.watching import patiently, watch
from ioa.concurrency import TaskGroup, fail_after
from ioa.errors import reason_of
from ioa.fair_semaphore import FairSemaphore
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.ids import CommId, GoalName, UserId
from ioa_gateway.caller import Caller
from ioa_gateway.open_items import OpenItem, read_open_items
from ioa_gateway.pagination import EntryPage, page_of
from ioa_gateway.problems import problem_of
from ioa_gateway.sse_encoding import HEARTBEAT, encode_event

_PAGE_ENTRIES, _PAGE_BYTES, _MAX_REPORTS = 100, 250_000, 100
"""Maximum entries and bytes of a page, and progress reports that wait for a follower; further reports are dropped."""
SILENCE = timedelta(seconds=15)
"""Interval of heartbeats while there are no events."""
_LOOK, _SOON = timedelta(seconds=1), timedelta(milliseconds=200)
"""Interval between reads of a list while no log changes, and minimum pause between two reads."""
_READER = "_reader"
"""The key of the gateway's own reads in the semaphore of page reads. No user has this name."""
_RETRY, _WAITING = b"retry: 1000\n\n", encode_event({}, kind="waiting")

open_streams = Gauge("ioa_gateway_streams", "Clients that follow a goal or a group by HTTP")

_log = structlog.get_logger(__name__)


@dataclass(eq=False)
class _Follower:
    """A follower of feeds.

    Attributes:
        rows: The rows of goals that it has received.
        events: Other events to send: progress reports, and `waiting`.
        news: Set when there may be something to send.
    """

    caller: Caller
    rows: Mapping[CommId, bytes] = field(default_factory=dict)
    events: deque[bytes] = field(default_factory=deque)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, rows: Mapping[CommId, bytes]) -> Iterator[bytes]:
        """Yield the queued events, then the rows that have changed."""
        while self.events:
            yield self.events.popleft()
        before, self.rows = self.rows, rows
        for comm_id, row in rows.items():
            if before.get(comm_id) != row:
                yield row

    async def has_news(self) -> bool:
        """Wait until there may be something to send; return False instead of a heartbeat."""
        with suppress(TimeoutError):
            async with fail_after(SILENCE.total_seconds()):
                await self.news.wait()
        return self.news.is_set()


@dataclass(eq=False)
class _Feed:
    """What several followers follow: a goal, the newest goals, or the open items of all callers.

    Attributes:
        last: The sequence of the last entry of the goal, as far as the reader has read.
        end: The last event of the goal's stream, when its group has ended or cannot be read.
        rows: The events of the newest goals.
    """

    reader: asyncio.Task[None] = field(init=False)
    followers: set[_Follower] = field(default_factory=set)
    last: int = 0
    end: bytes | None = None
    rows: Mapping[CommId, bytes] = field(default_factory=dict)

    def wake(self) -> None:
        """Wake all followers."""
        for follower in self.followers:
            follower.news.set()


class EventStreams:
    """All streams of a gateway. Made by `open_event_streams`; `is_closing`: all streams end, because the gateway stops."""

    def __init__(self, system: Client, readers: asyncio.TaskGroup, pages: FairSemaphore) -> None:
        self._system = system
        self._pages = pages
        self._readers = readers
        self._feeds: dict[Hashable, _Feed] = {}
        self._reads: dict[Hashable, asyncio.Future[Sequence[tuple[int, bytes]]]] = {}
        self.is_closing = False

    def close(self) -> None:
        """End all streams. Followers resume at another gateway."""
        self.is_closing = True
        for feed in self._feeds.values():
            feed.wake()

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
            goal: A goal to follow with its nested groups (`entry`, `progress` and `end`).
            after: The sequence of the last entry that the caller has.
            listed: Labels of goals whose rows are sent, and sent again when they change (`goal`); None: no rows.
            waiting: Whether an event `waiting` is sent when the caller's open turns and questions may have changed.
        """
        follower, user, group, rows = _Follower(caller), caller.owner, None, _Feed()
        with open_streams.track_inprogress(), ExitStack() as stack:
            if goal:
                group = stack.enter_context(self._joined(follower, goal, partial(self._read_goal, goal=goal)))
            if listed is not None:
                key, read = (user, *listed.items()), partial(self._read_rows, labels=listed, user=user)
                rows = stack.enter_context(self._joined(follower, key, read))
            if waiting:
                stack.enter_context(self._joined(follower, "waiting", self._read_items))
                follower.events.append(_WAITING)
            yield _RETRY
            while not self.is_closing and (group or waiting or listed is not None):
                follower.news.clear()
                for event in follower.take(rows.rows):
                    yield event
                if goal and group and after < group.last:
                    for seq, event in await self._page(caller.user, goal, after, group.last):
                        after = seq
                        yield event
                elif group and group.end:
                    yield group.end
                    group = None
                elif not await follower.has_news():
                    yield HEARTBEAT

    async def documents(self, caller: Caller, goal: GoalName, after: int) -> AsyncGenerator[dict[str, Any] | None, None]:
        """Yield a goal's entries and progress reports, which have no `seq`, as documents; None instead of a heartbeat."""
        async with aclosing(self.follow(caller, goal, after)) as events:
            async for event in events:
                if event == HEARTBEAT:
                    yield None
                elif event.startswith((b"event: entry\n", b"event: progress\n")):
                    yield json.loads(event.partition(b"\ndata: ")[2])

    async def _page(self, user: UserId, goal: GoalName, after: int, last: int) -> Sequence[tuple[int, bytes]]:
        """Return the next entries with their sequences. Followers that call it at the same time share one read."""

        async def read() -> EntryPage:
            async with self._pages.slot(user):
                return await page_of(self._system, goal, after=after, limit=_PAGE_ENTRIES, max_bytes=_PAGE_BYTES)

        key = goal, after, last
        if key in self._reads:
            return await asyncio.shield(self._reads[key])
        found = self._reads[key] = asyncio.get_running_loop().create_future()
        events: Sequence[tuple[int, bytes]] = ()
        try:
            page = await patiently(read)
            events = [(one["seq"], encode_event(one, kind="entry", seq=one["seq"])) for one in page.documents]
            if not events:  # a replica of the log may lag
                await asyncio.sleep(_SOON.total_seconds())
        finally:
            del self._reads[key]
            found.set_result(events)  # without events, the next follower reads
        return events

    @contextmanager
    def _joined(self, follower: _Follower, key: Hashable, read: Callable[[_Feed], Coroutine[Any, Any, None]]) -> Iterator[_Feed]:
        """Follow a feed while the block runs. A feed is read from its first follower to its last."""
        if key not in self._feeds:
            self._feeds[key] = _Feed()
            self._feeds[key].reader = self._readers.create_task(read(self._feeds[key]))
        feed = self._feeds[key]
        feed.followers.add(follower)
        try:
            yield feed
        finally:
            feed.followers.remove(follower)
            if not feed.followers:
                del self._feeds[key]
                feed.reader.cancel()

    async def _read_goal(self, feed: _Feed, goal: GoalName) -> None:
        ending: Mapping[str, Any] = {}
        try:
            newest = await patiently(partial(self._system.entries, goal, before=END, limit=1))
            feed.last = newest[-1].seq if newest else 0
            until = partial(self._system.wait_for_result, goal)  # without entries, the stream ends when the goal has ended
            async with watch(self._system, goal.comm_id, after=feed.last, until=until) as news:
                feed.wake()
                async for one in news:
                    if isinstance(one, StoredEntry):
                        feed.last = one.seq
                    else:
                        report = encode_event(told(ProgressDocument.of(one)), kind="progress")
                        for follower in feed.followers:
                            if len(follower.events) < _MAX_REPORTS:
                                follower.events.append(report)
                    feed.wake()
            state = (await patiently(partial(self._system.state, goal))).get(goal.comm_id)
            ending = {} if state is None else {"phase": str(state.phase)}
        except Exception as error:  # noqa: BLE001 - one group's bug must not end all streams
            _log.error("group_unreadable", comm_id=goal.comm_id, exc_info=error)
            ending = {"problem": problem_of(error).model_dump(mode="json", exclude_none=True)}
        feed.end = encode_event({"seq": feed.last, **ending}, kind="end", seq=feed.last)
        feed.wake()

    async def _read_rows(self, feed: _Feed, labels: Mapping[str, str], user: UserId | None) -> None:
        async def read() -> None:
            async with self._pages.slot(_READER):
                page = await self._system.goals(labels=labels, user=user)
            rows = map(GoalRow.of, reversed(page.goals))
            before, feed.rows = feed.rows, {row.comm_id: encode_event(told(row), kind="goal") for row in rows}
            if feed.rows != before:
                feed.wake()

        await self._read_often(read)

    async def _read_items(self, feed: _Feed) -> None:
        known = frozenset[OpenItem]()

        async def read() -> None:
            nonlocal known
            async with self._pages.slot(_READER):
                items = await read_open_items(self._system)
            changed, known = items ^ known, items
            for follower in feed.followers:
                caller = follower.caller
                concerns = [caller.answers_for(one.person) if one.person else one.goal.user == caller.user for one in changed]
                if any(concerns) and _WAITING not in follower.events:
                    follower.events.append(_WAITING)
                    follower.news.set()

        await self._read_often(read)

    async def _read_often(self, read: Callable[[], Awaitable[None]]) -> None:
        """Call `read` after each change of a log, and each second, until cancelled. It takes at most a quarter of the time."""
        changed, now = asyncio.Event(), asyncio.get_running_loop().time
        logs = subjects.any_live(UserId("*"), CommId("*"))
        async with watching(self._system.connection, logs, lambda _: changed.set(), changed.set):
            while True:
                changed.clear()
                began = now()
                try:
                    await read()
                except Exception as error:  # noqa: BLE001 - one list's bug must not end all streams
                    _log.warning("goals_unreadable", error=reason_of(error))
                await asyncio.sleep(max(_SOON.total_seconds(), 3 * (now() - began)))
                with suppress(TimeoutError):
                    async with fail_after(_LOOK.total_seconds()):
                        await changed.wait()


@asynccontextmanager
async def open_event_streams(system: Client, pages: FairSemaphore) -> AsyncIterator[EventStreams]:
    """Read followed goals and lists while the block runs. `pages` limits concurrent reads of pages."""
    async with TaskGroup() as readers:
        streams = EventStreams(system, readers, pages)
        yield streams
        streams.close()
