"""Lists of goals and groups, and single goals, as group setup reads them for users: a page at a time, newest first.

A page is read from the end of the stream of goal records, which are in the order of acceptance. Each row takes one or two reads
more, which run concurrently: the result of a goal that has ended, otherwise also the last entry of its log.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import structlog
from nats.aio.client import Client

from ioa.adapters.nats.stores.goal_records import NatsGoalRecords
from ioa.adapters.nats.stores.group_owners import GroupOwners
from ioa.adapters.nats.streams.compare_and_set import last_message, next_message, stream_of, subject_of
from ioa.adapters.nats.streams.group_log import NatsGroupLog
from ioa.adapters.nats.streams.retention import ListedPage, ListedRecord, NatsEndedGoals, NatsGoalPages, listed
from ioa.adapters.nats.streams.stream_reader import StreamMessage, first_messages, latest_messages, previous_messages
from ioa.adapters.nats.streams.topology import GOAL_RECORDS, LOG, OPEN, RESULTS
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import IoaError, NotFoundError
from ioa.group.events import Entry, GroupLaunched
from ioa.group.goal_lists import MOST_LOOKED_AT, PAGE_BYTES, GoalFilter, GoalPhase, GoalStatus, listed_group
from ioa.group.requests import GroupSnapshot, fitting, no_group
from ioa.group.state import Charter, GroupState
from ioa.protocol import subjects
from ioa.protocol.codec import decode, encode
from ioa.protocol.goals import ending_of
from ioa.protocol.ids import LOCAL, CommId, GoalId, GoalName, UserId, complete_goal, complete_id, is_token
from ioa.protocol.open_groups import OpenGroup
from ioa.protocol.reads import (
    MAX_PAGE_BYTES,
    GetGoal,
    GoalFound,
    GoalPart,
    GoalReader,
    GoalSizes,
    GroupPage,
    ListedGoals,
    ListGoals,
    ListGroups,
)
from ioa.protocol.results import decode_result

_NEWEST_GOALS, _NEWEST_TREES = 1_000, 100
"""Goals among which the beginning of an id is found, and goals whose nested groups are searched for it."""
_EXAMINED_AT_ONCE, _READ_BYTES = 250, 2_000_000
"""Goals that are examined at once for a filtered page, and maximum bytes of their records."""
_MAX_CONCURRENT = 16
"""Goals or groups whose results and logs are read concurrently: each may have a megabyte."""
_MAX_TREE_BYTES = 450_000
"""Maximum bytes of the listed groups of a goal: about 60 groups."""

R = TypeVar("R")
S = TypeVar("S")

_log = structlog.get_logger(__name__)


@dataclass
class _Tree:
    """A group and the groups nested in it, encoded."""

    groups: list[tuple[GroupState, bytes]] = field(default_factory=list)
    size_bytes: int = 0


@dataclass
class _Row:
    """A goal of a list, and its documents as they are stored."""

    status: GoalStatus
    record: bytes
    snapshot: bytes
    result: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.record) + len(self.snapshot) + len(self.result)


class GoalListing:
    """Answers `goals.list`, `goals.get` and `groups.list`.

    A goal that the reader may not read is handled as a goal that does not exist.

    Args:
        client: The connection.
        owners: Finds the user of each group.
    """

    def __init__(self, client: Client, owners: GroupOwners) -> None:
        self._client = client
        self._owners = owners
        self._js = client.jetstream()
        self._pages = NatsGoalPages(client)
        self._records, self._ended = NatsGoalRecords(self._js), NatsEndedGoals(self._js)
        self._log = NatsGroupLog(client)

    async def goals(self, reader: GoalReader, request: ListGoals) -> ListedGoals:
        """List goals; at most `MOST_LOOKED_AT` goals are examined.

        Raises:
            UnavailableError: The streams cannot be read now.
        """
        owner = reader.owner or request.owner
        if request.owner not in (None, owner):
            return ListedGoals(goals=(), before=None, examined=0, data=b"")
        only = GoalFilter(request.open_only, request.labels, _phase(request.phase))
        is_filtered = only.leaves_out or owner is not None
        rows, size, examined, before = list[_Row](), 0, 0, request.before
        last: ListedRecord | None = None
        while True:
            width = min(_EXAMINED_AT_ONCE, MOST_LOOKED_AT - examined) if is_filtered else request.limit
            page = await self._page(width, before, open_only=only.is_of_open_ones, labels=only.labels, owner=owner)
            before = page.before
            async with aclosing(self._rows([one for one in page.records if only.takes(one.record)])) as found:
                async for one, row in found:
                    if not only.wants(row.status):
                        continue
                    if last is not None and size + row.size_bytes > MAX_PAGE_BYTES:
                        return _goal_page(rows, last.number, examined + last.place)
                    rows.append(row)
                    size, last = size + row.size_bytes, one
                    is_full = len(rows) == request.limit or size >= PAGE_BYTES
                    if is_full and (one is not page.records[-1] or before is not None):
                        return _goal_page(rows, one.number, examined + one.place)
            examined += page.looked_at
            if before is None or not is_filtered or examined >= MOST_LOOKED_AT:
                return _goal_page(rows, before, examined)

    async def _rows(self, records: Sequence[ListedRecord]) -> AsyncGenerator[tuple[ListedRecord, _Row]]:
        """Yield the row of each goal."""
        for some in _in_parts(records):
            results = await latest_messages(self._client, RESULTS, {subjects.result_of(one.record.goal.name) for one in some})
            unended = [one for one in some if subjects.result_of(one.record.goal.name) not in results]
            heads = await latest_messages(self._client, LOG, {subjects.log(one.record.goal.comm_id) for one in unended})
            for one in some:
                await asyncio.sleep(0)  # other requests are handled between the rows
                goal = one.record.goal
                message, log = results.get(subjects.result_of(goal.name)), subjects.log(goal.comm_id)
                result = _read(decode_result, message)
                head = heads.get(log)
                if message is not None and result is None:  # the result cannot be read, the group may be
                    head = (await latest_messages(self._client, LOG, [log])).get(log)
                snapshot = _snapshot(head)
                yield (
                    one,
                    _Row(
                        GoalStatus(one.record, snapshot, result),
                        one.stored,
                        b"" if snapshot is None else encode(snapshot),
                        b"" if message is None or result is None else message.data,
                    ),
                )

    async def goal(self, reader: GoalReader, request: GetGoal) -> GoalFound:
        """Read documents of a goal.

        Raises:
            NotFoundError: No goal's id begins as requested, or the goal is another user's.
            InvalidInputError: Several ids do.
            UnavailableError: The streams cannot be read now.
        """
        if request.user is not None and request.goal_id is not None:
            name = GoalName(request.user, request.goal_id)
        else:
            name = await self._find_goal(reader, request.start)
        if reader.owner not in (None, name.owner):
            raise NotFoundError(f"There is no goal {name}.", hint="`ioa goals` lists them.")
        found, left_out, size = dict[GoalPart, bytes](), list[GoalPart](), 0
        for part in request.parts:
            data = await self._part(name, part)
            if found and size + len(data) > MAX_PAGE_BYTES:
                left_out.append(part)
                continue
            found[part] = data
            size += len(data)
        is_missing = not found.get("record", b"-") or not found.get("result", b"-")
        ending = ending_of(await self._ended.find(name)) if is_missing else None
        return GoalFound(
            user=name.user,
            goal_id=name.goal_id,
            parts=tuple(found),
            sizes=tuple(map(len, found.values())),
            left_out=tuple(left_out),
            removed="" if ending is None else str(ending),
            data=b"".join(found.values()),
        )

    async def _part(self, name: GoalName, part: GoalPart) -> bytes:
        """Read a document from its stream's leader; empty if there is none."""
        match part:
            case "record":
                return await self._records.stored(name.comm_id) or b""
            case "snapshot":
                head = await self._log.last(name.comm_id)
                return b"" if head is None else encode(GroupSnapshot(seq=head.seq, state=head.entry.state, charter=None))
            case "launch":
                with unavailable_unless_answered("The stream of logs"):
                    message = await next_message(self._js, LOG, subjects.log(name.comm_id), after=0)
            case "result":
                with unavailable_unless_answered("The stream of results"):
                    message = await last_message(self._js, RESULTS, subjects.result_of(name))
        return b"" if message is None else message.data or b""

    async def groups(self, reader: GoalReader, request: ListGroups) -> GroupPage:
        """List the groups of a page of goals, or find one group.

        A nested group is found by the state of its parent; if that no longer names it, it is not listed.

        Raises:
            NotFoundError: There is no such group.
            InvalidInputError: Several ids begin as requested.
            UnavailableError: The streams cannot be read now.
        """
        if request.comm_id is not None:
            return await self._group(reader, request.comm_id)
        if request.start:
            return await self._group(reader, await self._find_group(reader, request.start))
        owner = reader.owner or request.owner
        if request.owner not in (None, owner):
            return GroupPage(groups=(), data=b"")
        groups, before = await self._groups(request.limit, request.before, open_only=request.open_only, owner=owner)
        return _group_page([data for _, data in groups], before)

    async def _group(self, reader: GoalReader, comm_id: CommId) -> GroupPage:
        head = await self._log.last(comm_id) if await self._owners.may_read(reader.owner, comm_id) else None
        if head is None:
            raise no_group(comm_id)
        first = await self._log.read(comm_id, after=0, limit=1)
        launch = first[0].entry.event if first else None
        charter = launch.charter if isinstance(launch, GroupLaunched) else None
        return _group_page([encode(fitting(GroupSnapshot(seq=head.seq, state=head.entry.state, charter=charter)))], None)

    async def _groups(
        self, limit: int, before: int | None, *, open_only: bool, owner: UserId | None
    ) -> tuple[list[tuple[GroupState, bytes]], int | None]:
        page = await self._page(limit, before, open_only=open_only, owner=owner)
        found, size, last = list[tuple[GroupState, bytes]](), 0, page.before
        async with aclosing(self._trees([one.record.goal.comm_id for one in page.records])) as trees:
            for one in page.records:
                tree = await anext(trees)
                if found and size + tree.size_bytes > PAGE_BYTES:
                    return found, last
                found += [group for group in tree.groups if not (open_only and group[0].phase.is_terminal)]
                size, last = size + tree.size_bytes, one.number
        return found, page.before

    async def _trees(self, comm_ids: Sequence[CommId]) -> AsyncGenerator[_Tree]:
        """Yield each group with the groups nested in it, up to `_MAX_TREE_BYTES`."""
        for some in _in_parts(comm_ids):
            heads = await latest_messages(self._client, LOG, map(subjects.log, some))
            launches = await first_messages(self._client, LOG, heads)
            for comm_id in some:
                await asyncio.sleep(0)
                head, launch = heads.get(subjects.log(comm_id)), launches.get(subjects.log(comm_id))
                snapshot = _snapshot(head)
                tree = _Tree()
                if snapshot is not None:
                    group = listed_group(snapshot.model_copy(update={"charter": _read(_decode_charter, launch)}))
                    data = encode(fitting(group))
                    tree.groups.append((group.state, data))
                    tree.size_bytes += len(data)
                    async with aclosing(self._trees(snapshot.nested)) as below:
                        async for nested in below:
                            if tree.size_bytes + nested.size_bytes > _MAX_TREE_BYTES:
                                _log.warning("nested_groups_not_listed", comm_id=comm_id)
                                break
                            tree.groups += nested.groups
                            tree.size_bytes += nested.size_bytes
                yield tree

    async def _find_goal(self, reader: GoalReader, start: str) -> GoalName:
        """Complete the id of a goal: a whole id among all goals, or the beginning of an id among the newest."""
        user, _, start_of_id = start.rpartition("/")
        if is_token(start_of_id):
            users = (UserId(user),) if user else (reader.user, LOCAL)
            for name in (GoalName(one, GoalId(start_of_id)) for one in dict.fromkeys(users) if reader.owner in (None, one)):
                record = await self._records.find(name.comm_id)
                found = record.goal if record is not None else await self._ended.find(name)
                if found is not None:
                    return found.name
        names, are_all = await self._newest(reader.owner)
        return complete_goal(start, reader.user, names, complete=are_all)

    async def _find_group(self, reader: GoalReader, start: str) -> CommId:
        """Complete the id of a group: a whole id, or the beginning of an id among the newest groups."""
        if is_token(start) and await self._log.last(CommId(start)) is not None:
            return CommId(start)
        names, are_all = await self._newest(reader.owner)
        trees, before = await self._groups(_NEWEST_TREES, None, open_only=False, owner=reader.owner)
        known = dict.fromkeys([*(name.comm_id for name in names), *(state.comm_id for state, _ in trees)])
        return CommId(complete_id("group", start, [*known], complete=are_all and before is None))

    async def _newest(self, owner: UserId | None) -> tuple[Sequence[GoalName], bool]:
        """Return the newest goals, and whether there are no others."""
        names, examined, before = list[GoalName](), 0, None
        while True:
            page = await self._page(_NEWEST_GOALS - examined, before, open_only=False, owner=owner)
            names += [one.record.goal.name for one in page.records]
            before, examined = page.before, examined + page.looked_at
            if before is None or examined >= _NEWEST_GOALS:
                return names, before is None

    async def _page(
        self,
        limit: int,
        before: int | None,
        *,
        open_only: bool,
        labels: Mapping[str, str] | None = None,
        owner: UserId | None = None,
    ) -> ListedPage:
        """Read a page of records: with `owner` only this user's records, with `labels` only records with these labels."""
        if not open_only:
            return await self._pages.newest(before=before, limit=limit, max_bytes=_READ_BYTES, labels=labels, owner=owner)
        notes = await previous_messages(self._client, stream_of(OPEN), before=before, limit=limit)
        found, size, looked_at = list[ListedRecord](), 0, 0
        for some in _in_parts(notes.messages):
            named = ((message, message.subject.removeprefix(subject_of(OPEN, ""))) for message in some)
            numbers = {
                subject_of(GOAL_RECORDS, key): message.seq
                for message, key in named
                if owner is None or _may_belong_to(owner, key, message.data)
            }
            # A nested group has no record, and is listed with its parent; nor has a note of the index's own.
            messages = await latest_messages(self._client, stream_of(GOAL_RECORDS), numbers)
            places = {seq: looked_at + place for place, seq in enumerate((one.seq for one in some), 1)}
            for message in [messages[key] for key in numbers if key in messages]:
                size += len(message.data)
                number = numbers[message.subject]
                record = _read(partial(listed, number, place=places[number]), message)
                if record is not None and owner in (None, record.record.goal.name.owner):
                    found.append(record)
            looked_at += len(some)
            if size >= _READ_BYTES and looked_at < len(notes.messages):
                return ListedPage(found, some[-1].seq, looked_at)
        return ListedPage(found, notes.before, looked_at)


def _phase(written: str | None) -> GoalPhase | None:
    return written  # type: ignore[return-value]  # another word is the phase of no goal


def _goal_page(rows: Iterable[_Row], before: int | None, examined: int) -> ListedGoals:
    sizes, documents = list[GoalSizes](), list[bytes]()
    for row in rows:
        is_whole = row.size_bytes <= MAX_PAGE_BYTES
        result = row.result if is_whole else b""
        sizes.append(
            GoalSizes(record=len(row.record), snapshot=len(row.snapshot), result=len(result), result_left_out=not is_whole)
        )
        documents += [row.record, row.snapshot, result]
    return ListedGoals(goals=tuple(sizes), before=before, examined=examined, data=b"".join(documents))


def _group_page(groups: Sequence[bytes], before: int | None) -> GroupPage:
    return GroupPage(groups=tuple(map(len, groups)), before=before, data=b"".join(groups))


def _in_parts(several: Sequence[S]) -> Iterator[Sequence[S]]:
    return (several[start : start + _MAX_CONCURRENT] for start in range(0, len(several), _MAX_CONCURRENT))


def _snapshot(head: StreamMessage | None) -> GroupSnapshot | None:
    """Return the state in the last entry of a log, without the charter."""
    state = _read(_decode_state, head)
    return None if head is None or state is None else GroupSnapshot(seq=head.seq, state=state, charter=None)


def _decode_state(head: bytes) -> GroupState:
    return decode(Entry, head).state


def _decode_charter(launch: bytes) -> Charter | None:
    event = decode(Entry, launch).event
    return event.charter if isinstance(event, GroupLaunched) else None


def _may_belong_to(owner: UserId, key: str, noted: bytes) -> bool:
    """Return whether a note of the open index may be of a user's goal: the key of its root group contains both."""
    try:
        return GoalName(owner, decode(OpenGroup, noted).goal_id).comm_id == key
    except IoaError:  # the record decides
        return True


def _read(decoder: Callable[[bytes], R], message: StreamMessage | None) -> R | None:
    """Decode a document; None if there is none or it cannot be read."""
    if message is None:
        return None
    try:
        return decoder(message.data)
    except IoaError as error:
        _log.warning("not_listed", subject=message.subject, seq=message.seq, error=error.message)
        return None
