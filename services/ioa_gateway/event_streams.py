"""Server-sent events of groups, of the list of goals, and of open items. Followers of the same feed share one reader.

A reader copies each event into the bounded queues of its followers. A follower whose queue overflows reads on from the log, page
by page at its own pace, and returns to its queue when it has caught up. A client that was disconnected resumes by sequence.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar, cast

import structlog
from prometheus_client import Gauge

from ioa.cancellation import TaskGroup, fail_at
from ioa.client.client import END, Client, Group
from ioa.client.documents import ProgressDocument, told
from ioa.client.history import heads_of_tree
from ioa.client.waiting import open_groups
from ioa.client.watching import patiently, watch
from ioa.errors import IoaError, UnavailableError
from ioa.fair_semaphore import FairSemaphore
from ioa.group.events import Said
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId, GoalName, UserId
from ioa_gateway.caller import Caller
from ioa_gateway.open_items import OpenItem, open_items
from ioa_gateway.pagination import describe_entry, page_of, page_of_goals, transcript_at
from ioa_gateway.problems import problem_of
from ioa_gateway.sse import HEARTBEAT, encode_event

_MAX_QUEUED_BYTES = 1_000_000
"""Maximum size of the events in a follower's queue."""
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

F = TypeVar("F", bound="_Feed")

_log = structlog.get_logger(__name__)


class _Follower:
    """The queue of a follower: events with their sequences, 0 for an event that is not an entry.

    Attributes:
        after: The sequence of the last entry that the follower has received.
        is_behind: Whether events were dropped, so that the follower must catch up.
        news: Set when something has changed.
    """

    def __init__(self, caller: Caller, after: int) -> None:
        self.caller = caller
        self.after = after
        self.is_behind = True
        self.news = asyncio.Event()
        self._events = deque[tuple[int, bytes]]()
        self._bytes = 0

    def put(self, seq: int, event: bytes) -> None:
        """Queue an event, or drop it if the follower must catch up anyway."""
        if not self.is_behind:
            self._events.append((seq, event))
            self._bytes += len(event)
            self.is_behind = self._bytes > _MAX_QUEUED_BYTES
        self.news.set()

    def begin_catching_up(self) -> None:
        """Drop the queue, and collect new events from now on."""
        self._events.clear()
        self._bytes, self.is_behind = 0, False

    def next(self) -> bytes | None:
        """Remove and return the next event, without entries that the follower has received; None if there is none."""
        while self._events:
            seq, event = self._events.popleft()
            self._bytes -= len(event)
            if not 0 < seq <= self.after:
                self.after = max(self.after, seq)
                return event
        return None


@dataclass
class _Feed:
    """What several followers follow.

    Attributes:
        present: Events that a follower that catches up receives.
    """

    followers: set[_Follower] = field(default_factory=set, init=False)
    reader: asyncio.Task[None] = field(init=False)
    present: Mapping[Hashable, bytes] = field(default_factory=dict, init=False)

    def put(self, event: bytes, seq: int = 0) -> None:
        """Queue an event for all followers."""
        for follower in self.followers:
            follower.put(seq, event)

    def wake(self) -> None:
        """Wake all followers."""
        for follower in self.followers:
            follower.news.set()


@dataclass
class _GroupFeed(_Feed):
    """A group and its nested groups.

    Attributes:
        goal: The goal of the group, if it is known. Without entries, the stream ends when the goal has ended.
        last: The sequence of the last entry that was read; None until the reader has begun.
        end: The last event of the stream, when the group has ended or cannot be read.
    """

    comm_id: CommId
    goal: GoalName | None = None
    last: int | None = None
    end: bytes | None = None


@dataclass
class _ListFeed(_Feed):
    """The newest goals with some labels, oldest first. If `user` is set, only goals of this user."""

    labels: frozenset[tuple[str, str]]
    user: UserId | None


@dataclass
class _WaitingFeed(_Feed):
    """The open turns of people and the open questions to users. An event has no content: callers see different items."""

    items: frozenset[OpenItem] = frozenset()

    def __post_init__(self) -> None:
        self.present = {"waiting": _WAITING}


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
            feed.wake()

    async def follow(
        self,
        caller: Caller,
        target: GoalName | CommId | None,
        after: int = 0,
        listed: Mapping[str, str] | None = None,
        *,
        waiting: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """Yield events until the group has ended, or with a list or `waiting` until the stream has to end.

        Args:
            caller: The follower.
            target: The goal or group, with its nested groups; None: none. Its events are `entry`, `progress` and `end`.
            after: The sequence of the last entry that the caller has.
            listed: Labels of goals whose rows are also sent, and sent again when they change (`goal`); None: no rows.
            waiting: Whether an event `waiting` is sent when the caller's open turns and questions may have changed.
        """
        now, follower = asyncio.get_running_loop().time, _Follower(caller, after)
        with ExitStack() as stack:
            group, others = self._subscribe(stack, follower, target, listed, waiting=waiting)
            stack.enter_context(open_streams.track_inprogress())
            yield _RETRY
            heartbeat_at = now() + SILENCE.total_seconds()
            while not self.is_closing:
                follower.news.clear()
                if follower.is_behind and (group is None or group.last is not None):
                    async for event in self._catch_up(follower, group, others):
                        yield event
                elif queued := follower.next():
                    yield queued
                elif group is not None and group.end is not None:
                    yield group.end
                    group = None
                elif group is None and not others:
                    return
                elif await _is_set(follower.news, heartbeat_at):
                    continue
                else:
                    yield HEARTBEAT
                heartbeat_at = now() + SILENCE.total_seconds()

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
        self, follower: _Follower, group: _GroupFeed | None, others: Sequence[_Feed]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the present events, and one page of the log. The follower must continue catching up if the log has more pages."""
        follower.begin_catching_up()
        for event in [event for feed in others for event in feed.present.values()]:
            yield event
        if group is None or follower.after >= (group.last or 0):
            return
        read = partial(page_of, self._system, Group(group.comm_id), limit=_PAGE_ENTRIES, max_bytes=_PAGE_BYTES)
        try:
            async with self._pages.slot(follower.caller.user):
                page = await read(after=follower.after)
        except UnavailableError as error:
            _log.warning("log_out_of_reach", error=error.message)
            follower.is_behind = True
            await asyncio.sleep(_LOOK.total_seconds())
            return
        follower.is_behind |= page.next is not None
        for document in page.documents:
            follower.after = document["seq"]
            yield _encode_entry(document)

    def _subscribe(
        self,
        stack: ExitStack,
        follower: _Follower,
        target: GoalName | CommId | None,
        listed: Mapping[str, str] | None,
        *,
        waiting: bool,
    ) -> tuple[_GroupFeed | None, Sequence[_Feed]]:
        """Follow a group, if any, and other feeds until the stack is closed. A feed is read from its first follower to its last."""
        follow, owner = partial(self._following, stack, follower), follower.caller.owner
        group = None if target is None else _GroupFeed(*((target.comm_id, target) if isinstance(target, GoalName) else (target,)))
        if group is not None:
            group = follow(group.comm_id, group, self._read_group)
        others = list[_Feed]()
        if listed is not None:
            key = frozenset(listed.items()), owner
            others.append(follow(key, _ListFeed(*key), self._read_goals))
        if waiting:
            others.append(follow(_WaitingFeed, _WaitingFeed(), self._read_waiting))
        return group, others

    def _following(
        self, stack: ExitStack, follower: _Follower, key: Hashable, new: F, read: Callable[[F], Coroutine[Any, Any, None]]
    ) -> F:
        if key not in self._feeds:
            self._feeds[key] = new
            new.reader = self._readers.create_task(read(new))
        feed = cast(F, self._feeds[key])
        feed.followers.add(follower)

        def leave() -> None:
            feed.followers.remove(follower)
            if not feed.followers:
                del self._feeds[key]
                feed.reader.cancel()

        stack.callback(leave)
        return feed

    async def _read_group(self, feed: _GroupFeed) -> None:
        ending: Mapping[str, Any] = {}
        try:
            heads = await patiently(partial(heads_of_tree, self._system, [feed.comm_id], END))
            last = max(head.seq if head else 0 for head in heads.values())
            transcript = await patiently(partial(transcript_at, self._system, Group(feed.comm_id), last))
            until = None if feed.goal is None else partial(self._system.wait_for_result, feed.goal)
            async with watch(self._system, feed.comm_id, after=last, until=until) as news:
                feed.last = last
                feed.wake()
                async for one in news:
                    if isinstance(one, StoredEntry):
                        feed.last = one.seq
                        feed.put(_encode_entry(describe_entry(one, transcript)), one.seq)
                    else:
                        feed.put(encode_event(told(ProgressDocument.of(one)), kind="progress"))
            if state := transcript.states.get(feed.comm_id):
                ending = {"phase": str(state.phase)}
        except Exception as error:  # noqa: BLE001 - one group's bug must not end all streams
            _log.error("group_unreadable", comm_id=feed.comm_id, exc_info=error)
            ending = {"problem": problem_of(error).model_dump(mode="json", exclude_none=True)}
        feed.last = feed.last or 0
        feed.end = encode_event({"seq": feed.last, **ending}, kind="end", seq=feed.last)
        feed.wake()

    async def _read_goals(self, feed: _ListFeed) -> None:
        async def read() -> None:
            async with self._pages.slot(_READER):
                goals, _ = await page_of_goals(self._system, labels=dict(feed.labels), user=feed.user)
            before, feed.present = feed.present, {goal["comm_id"]: encode_event(goal, kind="goal") for goal in reversed(goals)}
            for comm_id, row in feed.present.items():
                if before.get(comm_id) != row:
                    feed.put(row)

        await self._read_often(read)

    async def _read_waiting(self, feed: _WaitingFeed) -> None:
        async def read() -> None:
            async with self._pages.slot(_READER):
                items = frozenset([item async for group in open_groups(self._system) for item in open_items(group.state)])
            changed, feed.items = items ^ feed.items, items
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
                await _is_set(changed, now() + _LOOK.total_seconds())


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


async def _is_set(event: asyncio.Event, until: float) -> bool:
    """Wait for an event; return False if it is not set before the time `until`."""
    try:
        async with fail_at(until):
            await event.wait()
    except TimeoutError:
        return False
    return True


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
