"""Lists of goals and groups, and single goals, as group setup reads them for users: a page at a time, newest first.

A page is read from the end of the stream of goal records, which are in the order of acceptance. Only records of
the requested user are read. Each row takes one or two more reads, which run concurrently: the result of an ended goal, or the last
entry of the log of an open goal.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import structlog

from ioa.adapters.nats.stores.goal_records import NatsEndedGoals, NatsGoalRecords, record_key
from ioa.adapters.nats.streams.nats_group_log import NatsGroupLog
from ioa.adapters.nats.streams.stream import ALL, PageBack, Stream, StreamMessage
from ioa.adapters.nats.streams.topology import GOAL_RECORDS, LOG, OPEN, RESULTS, stream_of, subject_of
from ioa.adapters.nats.wire.connection import Connection
from ioa.concurrency import together
from ioa.errors import InvalidInputError, IoaError, NotFoundError
from ioa.group.events import Entry, GroupLaunched
from ioa.group.requests import (
    MOST_LOOKED_AT,
    PAGE_BYTES,
    GoalFound,
    GoalList,
    GoalStatus,
    GroupList,
    GroupSnapshot,
    fitting,
    listed_group,
    no_group,
)
from ioa.protocol import subjects
from ioa.protocol.codec import decode, encode, read_field
from ioa.protocol.goals import GoalRecord, GoalResult, bears, decode_result
from ioa.protocol.ids import LOCAL, CommId, GoalId, GoalName, UserId, complete_goal, is_token
from ioa.protocol.messages import Phase
from ioa.protocol.model import Model
from ioa.protocol.setup.reads import MAX_PAGE_BYTES, GetGoal, GoalPart, GoalReader, ListGoals, ListGroups

_NEWEST_GOALS = 1_000
"""Goals among which the beginning of an id is found."""
_EXAMINED_AT_ONCE = 250
"""Records that are read at once for a filtered page."""
_MAX_CONCURRENT = 16
"""Goals or groups whose results and logs are read concurrently. Each may have a megabyte."""
_OPEN = subject_of(OPEN, "")
_ENDED_PHASES = (Phase.CONCLUDED, Phase.FAILED, Phase.CANCELLED)
_MAX_TREE_BYTES = 450_000
"""Maximum bytes of the listed groups of a goal: about 60 groups."""

R = TypeVar("R")
T = TypeVar("T")
ReadRows = Callable[[StreamMessage], Coroutine[Any, Any, tuple[Sequence[R], int]]]
"""Returns the rows of a goal, and their size."""

_log = structlog.get_logger(__name__)


class GroupOwners:
    """Finds the user of a group: the user of its goal's record or, of a nested group, of the first entry of its log."""

    def __init__(self, client: Connection) -> None:
        self._records, self._logs = Stream(client, stream_of(GOAL_RECORDS)), Stream(client, LOG)

    async def may_read(self, reader: UserId | None, comm_id: CommId) -> bool:
        """Return whether a reader may read a group; None reads the groups of all users."""
        return reader is None or await self.owner(comm_id) == reader

    async def owner(self, comm_id: CommId) -> UserId | None:
        """Return the user of a group; None if there is no such group yet, or its first entry cannot be read."""
        goal = await self._records.latest(subject_of(GOAL_RECORDS, record_key(comm_id)))
        if goal is not None:
            return UserId(goal.subject.split(".")[-2])
        launch = await self._logs.first(subjects.log(comm_id))
        try:
            return None if launch is None else UserId(read_field(launch.data, "state").get("user", LOCAL))
        except (AttributeError, InvalidInputError):
            return None


class GoalListing:
    """Answers `goals.list`, `goals.get` and `groups.list`.

    A goal that the reader may not read is handled as a goal that does not exist.
    """

    def __init__(self, client: Connection, owners: GroupOwners) -> None:
        self._owners = owners
        self._records, self._ended, self._log = NatsGoalRecords(client), NatsEndedGoals(client), NatsGroupLog(client)
        self._record_stream, self._open_stream = Stream(client, stream_of(GOAL_RECORDS)), Stream(client, stream_of(OPEN))
        self._results, self._logs = Stream(client, RESULTS), Stream(client, LOG)

    async def goals(self, reader: GoalReader, request: ListGoals) -> GoalList:
        """List goals."""
        width = _EXAMINED_AT_ONCE if request.labels or request.phase else request.limit
        read, open_only = partial(self._read_row, request), request.open_only or request.phase not in (None, *_ENDED_PHASES)
        rows, before, examined = await self._fill(reader, request, read, width, open_only=open_only)
        return GoalList(goals=tuple(rows), before=before, looked_at=examined)

    async def _fill(
        self, reader: GoalReader, request: ListGoals | ListGroups, read: ReadRows[R], width: int, *, open_only: bool
    ) -> tuple[list[R], int | None, int]:
        """Read the rows of goals, newest first, until the page is full or `MOST_LOOKED_AT` goals are examined.

        Return them with the cursor of the next page and the number of examined goals. `width` records are read at once.
        """
        found, listed, size, examined, before = list[R](), 0, 0, 0, request.before
        owner = reader.owner or request.owner
        while examined < MOST_LOOKED_AT and request.owner in (None, owner):
            page = await self._page(owner, before, min(width, MOST_LOOKED_AT - examined), open_only=open_only)
            for part in _in_parts(page.messages):
                for message, (rows, row_bytes) in zip(part, await together(*map(read, part)), strict=True):
                    size += row_bytes
                    if found and size > MAX_PAGE_BYTES:
                        return found, before, examined
                    examined, before = examined + 1, page.before if message is page.messages[-1] else message.seq
                    found += rows
                    listed += bool(rows)
                    if listed == request.limit or size >= PAGE_BYTES:
                        return found, before, examined
            before = page.before
            if before is None:
                break
        return found, before, examined

    async def _page(self, owner: UserId | None, before: int | None, limit: int, *, open_only: bool) -> PageBack:
        """Read a page of records, or of the index of open groups, newest first."""
        bucket, stream = (OPEN, self._open_stream) if open_only else (GOAL_RECORDS, self._record_stream)
        return await stream.page_back(ALL if owner is None else subject_of(bucket, f"{owner}.*"), before=before, limit=limit)

    async def _record(self, listed: StreamMessage) -> StreamMessage | None:
        """Return the record of a listed goal; None if an open group is nested, and has no record."""
        if not listed.subject.startswith(_OPEN):
            return listed
        return await self._record_stream.latest(subject_of(GOAL_RECORDS, listed.subject.removeprefix(_OPEN)))

    async def _read_row(self, request: ListGoals, listed: StreamMessage) -> tuple[Sequence[GoalStatus], int]:
        """Read the record, the state of an open goal's group, and the result of a goal that matches the request."""
        message = await self._record(listed)
        record = _read(_decode_record, message)
        if record is None or not bears(record.goal.labels, request.labels):
            return (), 0
        found = await self._results.latest(subjects.result_of(record.goal.name))
        result = _read(_decode_result, found)
        head = await self._logs.latest(subjects.log(record.goal.comm_id)) if result is None else None
        row = GoalStatus(record=record, standing=_read(_decode_standing, head), result=result)
        if (request.open_only and result is not None) or request.phase not in (None, row.phase):
            return (), 0
        size = sum(len(one.data) for one in (message, found, head) if one is not None)
        if size > MAX_PAGE_BYTES:
            row = row.model_copy(update={"result": None, "lacks_result": result is not None})
        return [row], size

    async def goal(self, reader: GoalReader, request: GetGoal) -> GoalFound:
        """Read documents of a goal. Raise `NotFoundError` or `InvalidInputError` if no id, or several, begin as requested."""
        if request.user is not None and request.goal_id is not None:
            name = GoalName(request.user, request.goal_id)
        else:
            name = await self._find_goal(reader, request.start)
        if reader.owner not in (None, name.user):
            raise NotFoundError(f"There is no goal {name}.", hint="`ioa goals` lists them.")
        found, left_out, size = dict[str, Model | None](), list[GoalPart](), 0
        for part in request.parts:
            document, document_bytes = await self._part(name, part)
            if found and size + document_bytes > MAX_PAGE_BYTES:
                left_out.append(part)
            else:
                found[part] = document
                size += document_bytes
        is_missing = any(part in found and found[part] is None for part in ("record", "result"))
        ending = await self._ended.find(name) if is_missing else None
        answer = GoalFound(user=name.user, goal_id=name.goal_id, left_out=tuple(left_out), removed=str(ending or ""))
        return answer.model_copy(update=found)

    async def _part(self, name: GoalName, part: GoalPart) -> tuple[Model | None, int]:
        """Read a document from its stream's leader, with its size."""
        log, read = subjects.log(name.comm_id), _DECODERS[part]
        match part:
            case "standing":
                message = await self._logs.last(log)
            case "record":
                message = await self._record_stream.last(subject_of(GOAL_RECORDS, record_key(name.comm_id)))
            case "launch":
                message = await self._logs.next(log, after=0)
            case "result":
                message = await self._results.last(subjects.result_of(name))
        return (None, 0) if message is None or not message.data else (read(message), len(message.data))

    async def groups(self, reader: GoalReader, request: ListGroups) -> GroupList:
        """List the groups of a page of goals, or find one group; see `goal` for errors.

        A nested group is found by the state of its parent; if that no longer names it, it is not listed.
        """
        if request.comm_id is not None:
            return GroupList(groups=(await self._group(reader, request.comm_id),))

        async def read(listed: StreamMessage) -> tuple[Sequence[GroupSnapshot], int]:
            groups, size = ([], 0) if await self._record(listed) is None else await self._read_tree(_comm_id(listed))
            return [one for one in groups if not (request.open_only and one.state.phase.is_terminal)], size

        groups, before, _ = await self._fill(reader, request, read, request.limit, open_only=request.open_only)
        return GroupList(groups=tuple(groups), before=before)

    async def _group(self, reader: GoalReader, comm_id: CommId) -> GroupSnapshot:
        head = await self._log.last(comm_id) if await self._owners.may_read(reader.owner, comm_id) else None
        if head is None:
            raise no_group(comm_id)
        first = await self._log.read(comm_id, after=0, limit=1)
        return _shown(GroupSnapshot(seq=head.seq, state=head.entry.state, charter=None), first[0].entry if first else None)

    async def _read_tree(self, comm_id: CommId) -> tuple[list[GroupSnapshot], int]:
        """Read a group and the groups nested in it, parents first, up to `_MAX_TREE_BYTES`, with their size."""
        found, size, left = list[GroupSnapshot](), 0, [comm_id]
        while left:
            nested = left.pop(0)
            snapshot = _read(_decode_standing, await self._logs.latest(subjects.log(nested)))
            if snapshot is None:
                continue
            shown = listed_group(_shown(snapshot, _read(_decode_entry, await self._logs.first(subjects.log(nested)))))
            shown_bytes = len(encode(shown))
            if found and size + shown_bytes > _MAX_TREE_BYTES:
                _log.warning("nested_groups_not_listed", comm_id=comm_id)
                break
            found.append(shown)
            size += shown_bytes
            left = [*snapshot.state.nested, *left]
        return found, size

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


def _decode_record(message: StreamMessage) -> GoalRecord:
    return decode(GoalRecord, message.data)


def _decode_standing(head: StreamMessage) -> GroupSnapshot:
    """Return the state in the last entry of a log, without the charter."""
    return GroupSnapshot(seq=head.seq, state=_decode_entry(head).state, charter=None)


def _decode_entry(message: StreamMessage) -> Entry:
    return decode(Entry, message.data)


def _decode_result(message: StreamMessage) -> GoalResult:
    return decode_result(message.data)


_DECODERS: Mapping[GoalPart, Callable[[StreamMessage], Model]] = {
    "record": _decode_record,
    "standing": _decode_standing,
    "launch": _decode_entry,
    "result": _decode_result,
}


def _shown(snapshot: GroupSnapshot, launch: Entry | None) -> GroupSnapshot:
    """Add the charter of a group's first entry to a snapshot, as far as it fits."""
    charter = launch.event.charter if launch is not None and isinstance(launch.event, GroupLaunched) else None
    return fitting(snapshot.model_copy(update={"charter": charter}))


def _in_parts(several: Sequence[T]) -> Iterator[Sequence[T]]:
    return (several[start : start + _MAX_CONCURRENT] for start in range(0, len(several), _MAX_CONCURRENT))


def _comm_id(record: StreamMessage) -> CommId:
    return CommId(record.subject.rpartition(".")[2])


def _read(decoder: Callable[[StreamMessage], R], message: StreamMessage | None) -> R | None:
    """Decode a document; None if there is none or it cannot be read."""
    if message is None:
        return None
    try:
        return decoder(message)
    except IoaError as error:
        _log.warning("not_listed", subject=message.subject, seq=message.seq, error=error.message)
        return None
