"""Lists of goals and groups, and single goals, as group setup reads them for users: a page at a time, newest first.

A page is read from the end of the stream of goal records, which are in the order of acceptance. Only records of
the requested user are read. Each row takes one or two more reads, which run concurrently: the result of an ended goal, or the last
entry of the log of an open goal.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import structlog
from nats.aio.client import Client

from ioa.adapters.nats.stores.goal_records import NatsGoalRecords
from ioa.adapters.nats.stores.group_owners import GroupOwners
from ioa.adapters.nats.streams.compare_and_set import last_message, next_message, stream_of, subject_of
from ioa.adapters.nats.streams.group_log import NatsGroupLog
from ioa.adapters.nats.streams.retention import NatsEndedGoals
from ioa.adapters.nats.streams.stream_reader import ALL, StreamMessage, first_messages, latest_messages, previous_messages
from ioa.adapters.nats.streams.topology import GOAL_RECORDS, LOG, OPEN, RESULTS
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.beside import together
from ioa.errors import IoaError, NotFoundError
from ioa.group.events import Entry, GroupLaunched
from ioa.group.goal_lists import MOST_LOOKED_AT, PAGE_BYTES, GoalFilter, GoalPhase, GoalStatus, listed_group
from ioa.group.requests import GroupSnapshot, fitting, no_group
from ioa.group.state import Charter, GroupState
from ioa.protocol import subjects
from ioa.protocol.codec import decode, encode
from ioa.protocol.goals import GoalRecord, ending_of
from ioa.protocol.ids import LOCAL, CommId, GoalId, GoalName, UserId, complete_goal, complete_id, is_token
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
"""Records that are read at once for a filtered page, and their maximum size in bytes."""
_MAX_CONCURRENT = 16
"""Goals or groups whose results and logs are read concurrently. Each may have a megabyte."""
_MAX_TREE_BYTES = 450_000
"""Maximum bytes of the listed groups of a goal: about 60 groups."""

R = TypeVar("R")
S = TypeVar("S")

_log = structlog.get_logger(__name__)


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


class _Examined(NamedTuple):
    """An examined goal: its row if it matches, the cursor after it (None after the last goal), and the number of goals so far."""

    row: _Row | None
    before: int | None
    examined: int


Numbered = Sequence[tuple[int, StreamMessage | None]]
"""Records with the numbers by which a list continues; None in place of a record that does not exist."""


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
        rows, size, last = list[_Row](), 0, _Examined(None, None, 0)
        async with aclosing(self._examine(owner, only, request.before, request.limit)) as examined:
            async for one in examined:
                if one.row is not None:
                    if rows and size + one.row.size_bytes > MAX_PAGE_BYTES:
                        break
                    rows.append(one.row)
                    size += one.row.size_bytes
                last = one
                if len(rows) == request.limit or size >= PAGE_BYTES:
                    break
        return _goal_page(rows, last.before, last.examined)

    async def _examine(self, owner: UserId | None, only: GoalFilter, before: int | None, limit: int) -> AsyncGenerator[_Examined]:
        """Yield goals, newest first."""
        count, width = 0, _EXAMINED_AT_ONCE if only.leaves_out else limit
        while count < MOST_LOOKED_AT:
            records, end = await self._page(owner, before, min(width, MOST_LOOKED_AT - count), open_only=only.is_of_open_ones)
            for part in _in_parts(records):
                rows = await self._rows(part, only)
                for number, _ in part:
                    count += 1
                    yield _Examined(rows.get(number), end if number == records[-1][0] else number, count)
            if end is None:
                return
            before = end

    async def _page(self, owner: UserId | None, before: int | None, limit: int, *, open_only: bool) -> tuple[Numbered, int | None]:
        """Read a page of records, newest first, and the cursor of the next page. The index of open groups lists open goals."""
        bucket = OPEN if open_only else GOAL_RECORDS
        pattern = ALL if owner is None else subject_of(bucket, f"{owner}.*")
        limit = min(limit, _MAX_CONCURRENT) if open_only else limit
        page = await previous_messages(self._client, stream_of(bucket), pattern, before=before, limit=limit, max_bytes=_READ_BYTES)
        if not open_only:
            return [(one.seq, one) for one in page.messages], page.before
        keys = {one.seq: subject_of(GOAL_RECORDS, one.subject.removeprefix(subject_of(OPEN, ""))) for one in page.messages}
        records = await latest_messages(self._client, stream_of(GOAL_RECORDS), keys.values())
        return [(number, records.get(key)) for number, key in keys.items()], page.before  # a nested group has no record

    async def _rows(self, part: Numbered, only: GoalFilter) -> Mapping[int, _Row]:
        """Return the rows of goals that match the filter, by number."""
        decoded = {number: (message, _read(partial(decode, GoalRecord), message)) for number, message in part}
        records = {
            number: (message.data, record)
            for number, (message, record) in decoded.items()
            if message is not None and record is not None and only.takes(record)
        }
        goals = [record.goal for _, record in records.values()]
        results = await latest_messages(self._client, RESULTS, [subjects.result_of(goal.name) for goal in goals])
        ended = {subject: result for subject, one in results.items() if (result := _read(decode_result, one)) is not None}
        unended = [goal.comm_id for goal in goals if subjects.result_of(goal.name) not in ended]
        heads = await latest_messages(self._client, LOG, map(subjects.log, unended))
        rows = dict[int, _Row]()
        for number, (stored, record) in records.items():
            await asyncio.sleep(0)  # other requests are handled between the rows
            subject = subjects.result_of(record.goal.name)
            snapshot = _snapshot(heads.get(subjects.log(record.goal.comm_id)))
            status = GoalStatus(record, snapshot, ended.get(subject))
            if only.wants(status):
                result_data = results[subject].data if subject in ended else b""
                rows[number] = _Row(status, stored, b"" if snapshot is None else encode(snapshot), result_data)
        return rows

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
        groups, before = await self._groups(owner, request.before, request.limit, open_only=request.open_only)
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
        self, owner: UserId | None, before: int | None, limit: int, *, open_only: bool
    ) -> tuple[list[tuple[GroupState, bytes]], int | None]:
        records, end = await self._page(owner, before, limit, open_only=open_only)
        found, size, last = list[tuple[GroupState, bytes]](), 0, end
        for part in _in_parts([(number, one) for number, one in records if one is not None]):
            trees = await together(*(self._tree(CommId(one.subject.rpartition(".")[2])) for _, one in part))
            for (number, _), tree in zip(part, trees, strict=True):
                tree_bytes = sum(len(data) for _, data in tree)
                if found and size + tree_bytes > PAGE_BYTES:
                    return found, last
                found += [group for group in tree if not (open_only and group[0].phase.is_terminal)]
                size, last = size + tree_bytes, number
        return found, end

    async def _tree(self, comm_id: CommId) -> list[tuple[GroupState, bytes]]:
        """Read a group and the groups nested in it, parents first, up to `_MAX_TREE_BYTES`; each as its state, and encoded."""
        found, size, left = list[tuple[GroupState, bytes]](), 0, [comm_id]
        while left:
            log = subjects.log(left.pop(0))
            snapshot = _snapshot((await latest_messages(self._client, LOG, [log])).get(log))
            if snapshot is None:
                continue
            launch = (await first_messages(self._client, LOG, [log])).get(log)
            group = listed_group(snapshot.model_copy(update={"charter": _read(_decode_charter, launch)}))
            data = encode(fitting(group))
            size += len(data)
            if found and size > _MAX_TREE_BYTES:
                _log.warning("nested_groups_not_listed", comm_id=comm_id)
                break
            found.append((group.state, data))
            left = [*snapshot.nested, *left]
        return found

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
        trees, before = await self._groups(reader.owner, None, _NEWEST_TREES, open_only=False)
        known = dict.fromkeys([*(name.comm_id for name in names), *(state.comm_id for state, _ in trees)])
        return CommId(complete_id("group", start, [*known], complete=are_all and before is None))

    async def _newest(self, owner: UserId | None) -> tuple[Sequence[GoalName], bool]:
        """Return the newest goals, and whether there are no others."""
        names, examined, before = list[GoalName](), 0, None
        while True:
            page, before = await self._page(owner, before, _NEWEST_GOALS - examined, open_only=False)
            records = (_read(partial(decode, GoalRecord), message) for _, message in page)
            names += [record.goal.name for record in records if record is not None]
            examined += len(page)
            if before is None or examined >= _NEWEST_GOALS:
                return names, before is None


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
    entry = _read(partial(decode, Entry), head)
    return None if head is None or entry is None else GroupSnapshot(seq=head.seq, state=entry.state, charter=None)


def _decode_charter(launch: bytes) -> Charter | None:
    event = decode(Entry, launch).event
    return event.charter if isinstance(event, GroupLaunched) else None


def _read(decoder: Callable[[bytes], R], message: StreamMessage | None) -> R | None:
    """Decode a document; None if there is none or it cannot be read."""
    if message is None:
        return None
    try:
        return decoder(message.data)
    except IoaError as error:
        _log.warning("not_listed", subject=message.subject, seq=message.seq, error=error.message)
        return None
