"""Lists of goals and groups, and single goals, as group setup reads them for users: a page at a time, newest first.

A page is read from the end of the stream of goal records, which are in the order of acceptance. Only records of
the requested user are read. Each row takes one or two more reads, which run concurrently: the result of an ended goal, or the last
entry of the log of an open goal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog
from nats.aio.client import Client

from ioa.adapters.nats.stores.goal_records import NatsGoalRecords, record_key
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
from ioa.group.goal_lists import MOST_LOOKED_AT, PAGE_BYTES, GoalFilter, GoalStatus, listed_group
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
_EXAMINED_AT_ONCE = 250
"""Records that are read at once for a filtered page."""
_MAX_CONCURRENT = 16
"""Goals or groups whose results and logs are read concurrently. Each may have a megabyte."""
_MAX_TREE_BYTES = 450_000
"""Maximum bytes of the listed groups of a goal: about 60 groups."""

R = TypeVar("R")

_log = structlog.get_logger(__name__)


@dataclass
class _Row:
    """The documents of a goal, as they are stored."""

    record: bytes
    snapshot: bytes
    result: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.record) + len(self.snapshot) + len(self.result)


Numbered = Sequence[tuple[int, StreamMessage | None]]
"""Records with the numbers by which a list continues; None in place of a record that does not exist."""


class GoalListing:
    """Answers `goals.list`, `goals.get` and `groups.list`.

    A goal that the reader may not read is handled as a goal that does not exist. If the streams cannot be read now, all methods
    raise `UnavailableError`.

    Args:
        client: The connection.
        owners: Finds the user of each group.
    """

    def __init__(self, client: Client, owners: GroupOwners) -> None:
        self._client = client
        self._owners = owners
        self._js = client.jetstream()
        self._records, self._ended = NatsGoalRecords(client), NatsEndedGoals(client)
        self._log = NatsGroupLog(client)

    async def goals(self, reader: GoalReader, request: ListGoals) -> ListedGoals:
        """List goals; at most `MOST_LOOKED_AT` goals are examined."""
        owner = reader.owner or request.owner
        if request.owner not in (None, owner):
            return _goal_page([], None, 0)
        only = GoalFilter(request.open_only, request.labels, request.phase)  # type: ignore[arg-type]  # no goal has another phase
        width = _EXAMINED_AT_ONCE if only.leaves_out else request.limit
        rows, size, examined, before = list[_Row](), 0, 0, request.before
        while examined < MOST_LOOKED_AT:
            limit = min(width, MOST_LOOKED_AT - examined)
            page, end = await self._page(owner, before, limit, open_only=only.is_of_open_ones)
            for part in _in_parts(page):
                found = await self._rows(part, only)
                for number, _ in part:
                    row = found.get(number)
                    if row is not None and rows and size + row.size_bytes > MAX_PAGE_BYTES:
                        return _goal_page(rows, before, examined)
                    examined, before = examined + 1, end if number == page[-1][0] else number
                    if row is not None:
                        rows.append(row)
                        size += row.size_bytes
                    if len(rows) == request.limit or size >= PAGE_BYTES:
                        return _goal_page(rows, before, examined)
            before = end
            if end is None:
                break
        return _goal_page(rows, before, examined)

    async def _page(self, owner: UserId | None, before: int | None, limit: int, *, open_only: bool) -> tuple[Numbered, int | None]:
        """Read a page of records, newest first, and the cursor of the next page. The index of open groups lists open goals."""
        bucket = OPEN if open_only else GOAL_RECORDS
        pattern = ALL if owner is None else subject_of(bucket, f"{owner}.*")
        limit = min(limit, _MAX_CONCURRENT) if open_only else limit
        page = await previous_messages(self._client, stream_of(bucket), pattern, before=before, limit=limit)
        if not open_only:
            return [(one.seq, one) for one in page.messages], page.before
        keys = {one.seq: subject_of(GOAL_RECORDS, one.subject.removeprefix(subject_of(OPEN, ""))) for one in page.messages}
        records = await latest_messages(self._client, stream_of(GOAL_RECORDS), keys.values())
        return [(number, records.get(key)) for number, key in keys.items()], page.before  # a nested group has no record

    async def _rows(self, part: Numbered, only: GoalFilter) -> Mapping[int, _Row]:
        """Return the rows of goals that match the filter, by number."""
        records = {
            number: (message.data, record)
            for number, message in part
            if message is not None and (record := _read(_decode_record, message)) is not None and only.takes(record)
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
            if only.wants(GoalStatus(record, snapshot, ended.get(subject))):
                result_data = results[subject].data if subject in ended else b""
                rows[number] = _Row(stored, b"" if snapshot is None else encode(snapshot), result_data)
        return rows

    async def goal(self, reader: GoalReader, request: GetGoal) -> GoalFound:
        """Read documents of a goal.

        Raises:
            NotFoundError: No goal's id begins as requested, or the goal is another user's.
            InvalidInputError: Several ids do.
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
        log = subjects.log(name.comm_id)
        with unavailable_unless_answered("A stream of goals"):
            match part:
                case "record":
                    record = subject_of(GOAL_RECORDS, record_key(name.comm_id))
                    message = await last_message(self._js, stream_of(GOAL_RECORDS), record)
                case "snapshot":
                    message = await last_message(self._js, LOG, log)
                case "launch":
                    message = await next_message(self._js, LOG, log, after=0)
                case "result":
                    message = await last_message(self._js, RESULTS, subjects.result_of(name))
        data = b"" if message is None else message.data or b""
        if part != "snapshot" or message is None:
            return data
        return encode(GroupSnapshot(seq=message.seq or 0, state=decode(Entry, data).state, charter=None))

    async def groups(self, reader: GoalReader, request: ListGroups) -> GroupPage:
        """List the groups of a page of goals, or find one group.

        A nested group is found by the state of its parent; if that no longer names it, it is not listed.

        Raises:
            NotFoundError: There is no such group.
            InvalidInputError: Several ids begin as requested.
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
            trees = await together(*(self._tree(CommId(one.subject.rpartition(".")[2])) for _, one in part if one is not None))
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
            data = encode(fitting(listed_group(snapshot.model_copy(update={"charter": _read(_decode_charter, launch)}))))
            size += len(data)
            if found and size > _MAX_TREE_BYTES:
                _log.warning("nested_groups_not_listed", comm_id=comm_id)
                break
            found.append((snapshot.state, data))
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
        page, before = await self._page(reader.owner, None, _NEWEST_GOALS, open_only=False)
        records = (_read(_decode_record, message) for _, message in page)
        names = [record.goal.name for record in records if record is not None]
        return complete_goal(start, reader.user, names, complete=before is None)

    async def _find_group(self, reader: GoalReader, start: str) -> CommId:
        """Complete the id of a group: a whole id, or the beginning of an id among the groups of the newest goals."""
        if is_token(start) and await self._log.last(CommId(start)) is not None:
            return CommId(start)
        page, before = await self._page(reader.owner, None, _NEWEST_GOALS, open_only=False)
        roots = [CommId(one.subject.rpartition(".")[2]) for _, one in page if one is not None]
        trees, _ = await self._groups(reader.owner, None, _NEWEST_TREES, open_only=False)
        known = dict.fromkeys([*roots, *(state.comm_id for state, _ in trees)])
        return CommId(complete_id("group", start, [*known], complete=before is None and len(page) <= _NEWEST_TREES))


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


def _in_parts(several: Numbered) -> Iterator[Numbered]:
    return (several[start : start + _MAX_CONCURRENT] for start in range(0, len(several), _MAX_CONCURRENT))


def _decode_record(data: bytes) -> GoalRecord:
    return decode(GoalRecord, data)


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
