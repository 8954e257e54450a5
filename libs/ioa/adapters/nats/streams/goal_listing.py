"""Lists of goals and groups, and single goals, as group setup reads them for users: a page at a time, newest first.

A page is read from the end of the stream of goal records, which are in the order of acceptance. Only records of
the requested user are read. Each row takes one or two more reads, which run concurrently: the result of an ended goal, or the last
entry of the log of an open goal.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import structlog
from nats.aio.client import Client

from ioa.adapters.nats.stores.goal_records import NatsGoalRecords, record_key
from ioa.adapters.nats.streams.compare_and_set import last_message, next_message, stream_of, subject_of
from ioa.adapters.nats.streams.group_log import NatsGroupLog
from ioa.adapters.nats.streams.log_reader import GroupOwners
from ioa.adapters.nats.streams.retention import NatsEndedGoals
from ioa.adapters.nats.streams.stream_reader import ALL, PageBack, StreamMessage, first_message, latest_message, previous_messages
from ioa.adapters.nats.streams.topology import GOAL_RECORDS, LOG, OPEN, RESULTS
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.beside import together
from ioa.errors import IoaError, NotFoundError
from ioa.group.events import Entry, GroupLaunched
from ioa.group.goal_lists import MOST_LOOKED_AT, PAGE_BYTES, GoalFilter, GoalStatus, listed_group
from ioa.group.requests import GroupSnapshot, fitting, no_group
from ioa.group.state import GroupState
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
_OPEN = subject_of(OPEN, "")
_MAX_TREE_BYTES = 450_000
"""Maximum bytes of the listed groups of a goal: about 60 groups."""

R = TypeVar("R")
T = TypeVar("T")

_log = structlog.get_logger(__name__)

_decode_record, _decode_entry = partial(decode, GoalRecord), partial(decode, Entry)


Documents = Sequence[bytes]
"""Encoded documents of a goal; empty for a goal that is not listed."""


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
        """List goals."""
        only = GoalFilter(request.open_only, request.labels, request.phase)  # type: ignore[arg-type]  # no goal has another phase
        width = _EXAMINED_AT_ONCE if only.leaves_out else request.limit

        async def read(record: StreamMessage) -> Documents:
            return await self._read_goal(record, only)

        rows, before, examined = await self._fill(reader, request, read, width, open_only=only.is_of_open_ones)
        sizes = [_goal_sizes(*row) for row in rows]
        data = [document for row, size in zip(rows, sizes, strict=True) for document in row[: 2 if size.result_left_out else 3]]
        return ListedGoals(goals=tuple(sizes), before=before, examined=examined, data=b"".join(data))

    async def _fill(
        self,
        reader: GoalReader,
        request: ListGoals | ListGroups,
        read: Callable[[StreamMessage], Coroutine[Any, Any, Documents]],
        width: int,
        *,
        open_only: bool,
    ) -> tuple[Sequence[Documents], int | None, int]:
        """Read the documents of goals, newest first, until the page is full or `MOST_LOOKED_AT` goals are examined.

        Return them with the cursor of the next page and the number of examined goals. `width` records are read at once.
        """
        found, size, examined, before = list[Documents](), 0, 0, request.before
        owner = reader.owner or request.owner
        while examined < MOST_LOOKED_AT and request.owner in (None, owner):
            page = await self._page(owner, before, min(width, MOST_LOOKED_AT - examined), open_only=open_only)
            for part in _in_parts(page.messages):
                for message, documents in zip(part, await together(*map(read, part)), strict=True):
                    size += sum(map(len, documents))
                    if found and size > MAX_PAGE_BYTES:
                        return found, before, examined
                    examined, before = examined + 1, page.before if message is page.messages[-1] else message.seq
                    if documents:
                        found.append(documents)
                    if len(found) == request.limit or size >= PAGE_BYTES:
                        return found, before, examined
            before = page.before
            if before is None:
                break
        return found, before, examined

    async def _page(self, owner: UserId | None, before: int | None, limit: int, *, open_only: bool) -> PageBack:
        """Read a page of records, or of the index of open groups, newest first."""
        bucket = OPEN if open_only else GOAL_RECORDS
        pattern = ALL if owner is None else subject_of(bucket, f"{owner}.*")
        return await previous_messages(self._client, stream_of(bucket), pattern, before=before, limit=limit)

    async def _record(self, listed: StreamMessage) -> StreamMessage | None:
        """Return the record of a listed goal; None if an open group is nested, and has no record."""
        if not listed.subject.startswith(_OPEN):
            return listed
        return await latest_message(
            self._client, stream_of(GOAL_RECORDS), subject_of(GOAL_RECORDS, listed.subject.removeprefix(_OPEN))
        )

    async def _read_goal(self, listed: StreamMessage, only: GoalFilter) -> Documents:
        """Read the record, the snapshot of an open goal's group, and the result of a goal that matches the filter."""
        message = await self._record(listed)
        record = _read(_decode_record, message)
        if message is None or record is None or not only.takes(record):
            return ()
        result = await latest_message(self._client, RESULTS, subjects.result_of(record.goal.name))
        ended = _read(decode_result, result)
        snapshot = await self._read_snapshot(record.goal.comm_id) if ended is None else None
        if not only.wants(GoalStatus(record, snapshot, ended)):
            return ()
        return (
            message.data,
            b"" if snapshot is None else encode(snapshot),
            b"" if result is None or ended is None else result.data,
        )

    async def _read_snapshot(self, comm_id: CommId) -> GroupSnapshot | None:
        """Read the state in the last entry of a log, without the charter."""
        head = await latest_message(self._client, LOG, subjects.log(comm_id))
        entry = _read(_decode_entry, head)
        return None if head is None or entry is None else GroupSnapshot(seq=head.seq, state=entry.state, charter=None)

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
        with unavailable_unless_answered("A stream of goals"):
            match part:
                case "snapshot":
                    head = await self._log.last(name.comm_id)
                    return b"" if head is None else encode(GroupSnapshot(seq=head.seq, state=head.entry.state, charter=None))
                case "record":
                    record = subject_of(GOAL_RECORDS, record_key(name.comm_id))
                    message = await last_message(self._js, stream_of(GOAL_RECORDS), record)
                case "launch":
                    message = await next_message(self._js, LOG, subjects.log(name.comm_id), after=0)
                case "result":
                    message = await last_message(self._js, RESULTS, subjects.result_of(name))
        return b"" if message is None else message.data or b""

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

        async def read(listed: StreamMessage) -> Documents:
            tree = [] if await self._record(listed) is None else await self._read_tree(_comm_id(listed))
            return [data for state, data in tree if not (request.open_only and state.phase.is_terminal)]

        goals, before, _ = await self._fill(reader, request, read, request.limit, open_only=request.open_only)
        return _group_page([group for groups in goals for group in groups], before)

    async def _group(self, reader: GoalReader, comm_id: CommId) -> GroupPage:
        head = await self._log.last(comm_id) if await self._owners.may_read(reader.owner, comm_id) else None
        if head is None:
            raise no_group(comm_id)
        first = await self._log.read(comm_id, after=0, limit=1)
        launch = first[0].entry.event if first else None
        charter = launch.charter if isinstance(launch, GroupLaunched) else None
        return _group_page([encode(fitting(GroupSnapshot(seq=head.seq, state=head.entry.state, charter=charter)))], None)

    async def _read_tree(self, comm_id: CommId) -> list[tuple[GroupState, bytes]]:
        """Read a group and the groups nested in it, parents first, up to `_MAX_TREE_BYTES`; each as its state, and encoded."""
        found, size, left = list[tuple[GroupState, bytes]](), 0, [comm_id]
        while left:
            nested = left.pop(0)
            snapshot = await self._read_snapshot(nested)
            if snapshot is None:
                continue
            launch = _read(_decode_entry, await first_message(self._client, LOG, subjects.log(nested)))
            charter = launch.event.charter if launch is not None and isinstance(launch.event, GroupLaunched) else None
            data = encode(fitting(listed_group(snapshot.model_copy(update={"charter": charter}))))
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
        page = await self._page(reader.owner, None, _NEWEST_GOALS, open_only=False)
        names = [record.goal.name for one in page.messages if (record := _read(_decode_record, one)) is not None]
        return complete_goal(start, reader.user, names, complete=page.before is None)

    async def _find_group(self, reader: GoalReader, start: str) -> CommId:
        """Complete the id of a group: a whole id, or the beginning of an id among the groups of the newest goals."""
        if is_token(start) and await self._log.last(CommId(start)) is not None:
            return CommId(start)
        page = await self._page(reader.owner, None, _NEWEST_GOALS, open_only=False)
        roots = [*map(_comm_id, page.messages)]
        known = dict.fromkeys(roots)
        for part in _in_parts(roots[:_NEWEST_TREES]):
            trees = await together(*map(self._read_tree, part))
            known |= dict.fromkeys(state.comm_id for tree in trees for state, _ in tree)
        return CommId(complete_id("group", start, [*known], complete=page.before is None and len(roots) <= _NEWEST_TREES))


def _goal_sizes(record: bytes, snapshot: bytes, result: bytes) -> GoalSizes:
    if len(record) + len(snapshot) + len(result) > MAX_PAGE_BYTES:
        return GoalSizes(record=len(record), snapshot=len(snapshot), result_left_out=True)
    return GoalSizes(record=len(record), snapshot=len(snapshot), result=len(result))


def _group_page(groups: Sequence[bytes], before: int | None) -> GroupPage:
    return GroupPage(groups=tuple(map(len, groups)), before=before, data=b"".join(groups))


def _in_parts(several: Sequence[T]) -> Iterator[Sequence[T]]:
    return (several[start : start + _MAX_CONCURRENT] for start in range(0, len(several), _MAX_CONCURRENT))


def _comm_id(record: StreamMessage) -> CommId:
    return CommId(record.subject.rpartition(".")[2])


def _read(decoder: Callable[[bytes], R], message: StreamMessage | None) -> R | None:
    """Decode a document; None if there is none or it cannot be read."""
    if message is None:
        return None
    try:
        return decoder(message.data)
    except IoaError as error:
        _log.warning("not_listed", subject=message.subject, seq=message.seq, error=error.message)
        return None
