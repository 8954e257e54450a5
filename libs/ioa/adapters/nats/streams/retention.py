"""Reading goals on record page by page, and removing what belongs to goals and agents, over JetStream.

What is removed leaves no marker behind, but for agents' cards, leases and sessions, which others follow: their markers run out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgpack
import structlog
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from ioa.adapters.nats.stores.goal_files import NatsFileStore
from ioa.adapters.nats.streams.compare_and_set import erase, last_message, publish_onto, stream_of, subject_of
from ioa.adapters.nats.streams.stream_reader import StreamMessage, next_messages, pages, previous_messages
from ioa.adapters.nats.streams.topology import (
    CARDS,
    ENDED,
    GOAL_RECORDS,
    LEASES,
    LOG,
    MEMBERS,
    OPEN,
    RESULTS,
    SESSIONS,
    TIMERS,
    WORK,
    pool_consumer,
)
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import IoaError
from ioa.protocol import subjects
from ioa.protocol.codec import decode, encode, read_field
from ioa.protocol.goals import EndedGoal, GoalRecord
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalName, PoolId, TaskId, UserId, comm_id_of_task, is_token
from ioa.protocol.labels import bears

_ENDED = stream_of(ENDED)
_MARKER_TTL = timedelta(hours=1)
"""How long those who follow cards, leases and sessions have to hear of a removal. Who was away for longer reads all anew."""

_PAGE_ENTRIES = 32
"""An entry may have a megabyte, and a page comes at once."""

R = TypeVar("R")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class NumberedRecord:
    """A goal on record and its number. Numbers rise in the order of acceptance, with gaps."""

    number: int
    record: GoalRecord


@dataclass(frozen=True)
class ListedRecord(NumberedRecord):
    """A goal on record without its team, for lists. A decoded team takes up to thirty times its stored size.

    Attributes:
        stored: The encoded record.
        place: Position in its page, from 1; records that cannot be read count.
    """

    stored: bytes
    place: int


def listed(number: int, stored: bytes, place: int) -> ListedRecord:
    """Decode a record without its team.

    Raises:
        InvalidInputError: The bytes are not a record.
    """
    return ListedRecord(number, decode(GoalRecord, stored), stored, place)


@dataclass(frozen=True)
class GoalPage:
    """A page of records, and the number to continue from; None at the end."""

    records: Sequence[NumberedRecord]
    next: int | None


@dataclass(frozen=True)
class ListedPage:
    """A page of records without their teams, newest first.

    Attributes:
        records: The records that can be read.
        before: The number to continue from; None at the end.
        looked_at: Number of records in the page, including unreadable ones.
    """

    records: Sequence[ListedRecord]
    before: int | None
    looked_at: int


@dataclass(frozen=True)
class Belongings:
    """The nested groups and the names of file objects that a group's log contains."""

    nested: tuple[CommId, ...] = ()
    files: frozenset[str] = frozenset()


class NatsGoalPages:
    """The stream of the bucket `IOA_GOAL_RECORDS`: records never change, so their sequences are in the order of acceptance."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def oldest(self, *, after: int, limit: int) -> GoalPage:
        """Read on."""
        page = await next_messages(self._client, stream_of(GOAL_RECORDS), ">", after=after, limit=limit)
        return GoalPage(_records(page.messages, _numbered), None if page.complete else page.messages[-1].seq)

    async def newest(
        self,
        *,
        before: int | None,
        limit: int,
        max_bytes: int,
        labels: Mapping[str, str] | None = None,
        owner: UserId | None = None,
    ) -> ListedPage:
        """Read back. Records of other users than `owner`, and records without the labels, are left out and not decoded."""
        page = await previous_messages(self._client, stream_of(GOAL_RECORDS), before=before, limit=limit, max_bytes=max_bytes)

        places = {message.seq: place for place, message in enumerate(page.messages, 1)}

        def read(one: StreamMessage) -> ListedRecord | None:
            is_wanted = (not labels and owner is None) or _is_wanted(one.data, labels or {}, owner)
            return listed(one.seq, one.data, places[one.seq]) if is_wanted else None

        records = [one for one in _records(page.messages, read) if one is not None]
        return ListedPage(records, page.before, len(page.messages))


def _records(messages: Iterable[StreamMessage], read: Callable[[StreamMessage], R]) -> Sequence[R]:
    records = list[R]()
    for message in messages:
        try:
            records.append(read(message))
        except IoaError as error:
            _log.warning("record_unreadable", subject=message.subject, seq=message.seq, error=error.message)
    return records


def _numbered(one: StreamMessage) -> NumberedRecord:
    return NumberedRecord(one.seq, decode(GoalRecord, one.data))


def _is_wanted(record: bytes, labels: Mapping[str, str], owner: UserId | None) -> bool:
    goal = read_field(record, "goal")
    if not isinstance(goal, dict) or owner not in (None, goal.get("user", LOCAL)):
        return False
    given = goal.get("labels") or {}
    return isinstance(given, dict) and bears(given, labels)


class NatsEndedGoals:
    """The bucket `IOA_ENDED`, keyed by the goal's root group."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def put(self, ended: EndedGoal) -> None:
        """Keep the first word about a goal."""
        with unavailable_unless_answered("What stays of ended goals"):
            await publish_onto(self._js, _ENDED, _ended(ended.name), encode(ended))

    async def find(self, goal: GoalName) -> EndedGoal | None:
        """Read from the leader."""
        with unavailable_unless_answered("What stays of ended goals"):
            message = await last_message(self._js, _ENDED, _ended(goal))
        return None if message is None else decode(EndedGoal, message.data or b"")


def _ended(goal: GoalName) -> str:
    return subject_of(ENDED, goal.comm_id)


class NatsGoalRemoval:
    """Purges by subject. They are cheap where the oldest messages of a stream go, as here."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()
        self._files = NatsFileStore(client)

    async def belongings(self, comm_id: CommId) -> Belongings:
        """Read the log as plain data, so that entries of any version tell what they name, and garbage names nothing.

        Some of it is maps whose keys whoever speaks chooses, such as labels and forms. So a nested team is what bears the id that
        follows from the group and from the task beside it: whoever calls another's group one has it go with his own.
        """
        nested: dict[CommId, None] = {}
        files: set[str] = set()
        async for page in pages(self._client, LOG, subjects.log(comm_id), limit=_PAGE_ENTRIES):
            for event in map(_event, (message.data for message in page.messages)):
                for found in _maps(event):
                    files.update(_strings(found, "object_name"))
                    nested.update(dict.fromkeys(_nested_in(comm_id, found)))
        return Belongings(tuple(nested), frozenset(files))

    async def remove_timers(self, comm_id: CommId) -> None:
        """Remove those that wait, and those that fired and were not taken."""
        await self._purge(TIMERS, f"{subjects.timer(comm_id)}.>")
        await self._purge(TIMERS, subjects.timer(comm_id))

    async def remove_file(self, object_name: str) -> None:
        """Remove the bytes, then what says where they lie."""
        await self._files.remove(object_name)

    async def remove_memberships(self, comm_id: CommId) -> None:
        """Remove the keys."""
        await self._erase(MEMBERS, f"*.{comm_id}")

    async def remove_from_open(self, comm_id: CommId) -> None:
        """Remove the key."""
        await self._erase(OPEN, comm_id)

    async def remove_log(self, comm_id: CommId) -> None:
        """Remove the subject."""
        await self._purge(LOG, subjects.log(comm_id))

    async def remove_result(self, goal: GoalName) -> None:
        """Remove the subject."""
        await self._purge(RESULTS, subjects.result_of(goal))

    async def remove_record(self, comm_id: CommId) -> None:
        """Remove the key."""
        await self._erase(GOAL_RECORDS, comm_id)

    async def _erase(self, bucket: str, key: str) -> None:
        with unavailable_unless_answered(f"The bucket {bucket}"):
            await erase(self._js, bucket, key)

    async def _purge(self, stream: str, subject: str) -> None:
        with unavailable_unless_answered(f"The stream {stream}"):
            await self._js.purge_stream(stream, subject=subject)


class NatsAgentRemoval:
    """Removes keys of the registry's buckets, and durable consumers of `IOA_WORK`."""

    def __init__(self, client: Client) -> None:
        self._js = client.jetstream()

    async def last_renewal(self, agent_id: AgentId) -> datetime | None:
        """Read when the last message of the lease was stored."""
        with unavailable_unless_answered("The store of leases"):
            message = await last_message(self._js, stream_of(LEASES), subject_of(LEASES, agent_id))
        return None if message is None else message.time

    async def remove_agent(self, agent_id: AgentId) -> None:
        """Purge the keys, the card last, so that it is there to be found if this is cut short."""
        with unavailable_unless_answered("The store of agents"):
            for bucket in (LEASES, SESSIONS, CARDS):
                await (await self._js.key_value(bucket)).purge(agent_id, msg_ttl=_MARKER_TTL.total_seconds())

    async def remove_queue(self, pool: PoolId) -> bool:
        """Delete the consumer if nothing waits for it. Goals that are queued at this very moment wait for the next one.

        The stream is asked: it counts a goal before its publisher hears that it is kept, and until it is acknowledged; the consumer
        counts it a moment later.
        """
        queue = subjects.work_of(pool)
        with unavailable_unless_answered("The queue of goals"):
            if (await self._js.stream_info(WORK, subjects_filter=queue)).state.subjects:
                return False
            with suppress(NotFoundError):
                await self._js.delete_consumer(WORK, pool_consumer(pool))
        return True


def _event(data: bytes) -> object:
    try:
        entry = msgpack.unpackb(data, strict_map_key=False)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        return None
    return entry.get("event") if isinstance(entry, dict) else None


def _maps(value: object) -> Iterator[Mapping[Any, Any]]:
    """Every map in plain data, at any depth."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as found:
                yield found
                waiting += found.values()
            case list() as several:
                waiting += several


def _nested_in(comm_id: CommId, found: Mapping[Any, Any]) -> Iterator[CommId]:
    """Return the nested team that a map in a group's log names, if it is that of the task which it names."""
    for task_id, subgroup in zip(_tokens(found, "task_id"), _tokens(found, "subgroup"), strict=False):
        if subgroup == comm_id_of_task(comm_id, TaskId(task_id)):
            yield CommId(subgroup)


def _strings(found: Mapping[Any, Any], name: str) -> Iterator[str]:
    value = found.get(name)
    if isinstance(value, str):
        yield value


def _tokens(found: Mapping[Any, Any], name: str) -> Iterator[str]:
    """Return the value under a name if it is an id, which can stand in a subject."""
    for value in _strings(found, name):
        if is_token(value):
            yield value
