"""Lists of goals and groups, a page at a time, newest first, whatever their number.

A page is read off the end of the stream of goals on record, whose order is that of acceptance. Beside its record a row costs one or
two reads, those of all rows side by side: an ended goal its result, an open one the head of its log too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import structlog
from nats.aio.client import Client

from ioa.adapters.nats.direct_gets import StreamMessage
from ioa.adapters.nats.goals import NatsGoalRecords
from ioa.adapters.nats.keys import stream_of, subject_of
from ioa.adapters.nats.log import NatsGroupLog
from ioa.adapters.nats.reading import DirectReads, first_of, last_of, previous_messages
from ioa.adapters.nats.retention import ListedPage, ListedRecord, NatsEndedGoals, NatsGoalPages, listed
from ioa.adapters.nats.topology import GOAL_RECORDS, LOG, OPEN, RESULTS
from ioa.errors import IoaError
from ioa.group.events import Entry, GroupLaunched
from ioa.group.requests import GroupSnapshot
from ioa.group.state import Charter, GroupState
from ioa.ports.goal_client import ALL_GOALS, MOST_LOOKED_AT, PAGE_BYTES, PAGE_GOALS, GoalFilter, GoalList, GoalStatus
from ioa.ports.group_client import GroupList, listed_bytes, listed_group
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.ids import LOCAL, CommId, GoalId, GoalName, UserId, complete_goal, complete_id, is_token
from ioa.protocol.open_groups import OpenGroup
from ioa.protocol.results import decode_result

_NEWEST_GOALS, _NEWEST_TREES = 1_000, 100
"""Among how many goals, and how many goals' nested teams, the beginning of an id is looked for."""

_LOOKED_AT_ONCE, _READ_BYTES = 250, 2_000_000
"""How many goals are looked at at once for a page of those that are wanted, and how many bytes of their records are read for it."""
_AT_ONCE = 16
"""Of how many goals or groups results and logs are read side by side: each may have a megabyte."""
_MOST_TREE_BYTES = 2_000_000
"""How many bytes the groups of one goal may have that are listed. As agents form teams, 256 of them have as much."""

R = TypeVar("R")
S = TypeVar("S")

_log = structlog.get_logger(__name__)


@dataclass
class _Tree:
    """A group and the teams nested in it, and as how much they are stored."""

    groups: list[GroupSnapshot] = field(default_factory=list)
    size_bytes: int = 0


@dataclass(frozen=True)
class _Newest:
    """The newest goals, and whether there are no others."""

    names: Sequence[GoalName]
    are_all: bool


class Lists:
    """Read lists, and complete ids."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pages = NatsGoalPages(client)
        js = DirectReads(client)
        self._records, self._ended = NatsGoalRecords(js), NatsEndedGoals(js)
        self._log = NatsGroupLog(client, js=js)

    async def goals(self, *, limit: int = PAGE_GOALS, before: int | None = None, only: GoalFilter = ALL_GOALS) -> GoalList:
        """Read a page of goals; see the port. Of those that are not wanted no more is held than of few at a time, and no team.

        Args:
            limit: How many at the most. If some are left out there may be fewer although there is more.
            before: What the page before said; the newest goals if None.
            only: Which ones.
        """
        rows: list[GoalStatus] = []
        size = looked_at = 0
        while True:
            width = min(_LOOKED_AT_ONCE, MOST_LOOKED_AT - looked_at) if only.leaves_out else limit
            page = await self._page(width, before, open_only=only.is_of_open_ones, labels=only.labels)
            before = page.before
            async with aclosing(self._rows([one for one in page.records if only.takes(one.record)])) as found:
                async for one, row, row_bytes in found:
                    if not only.wants(row):
                        continue
                    rows.append(replace(row, record=one.whole()))
                    size += row_bytes
                    is_full = len(rows) == limit or size >= PAGE_BYTES
                    if is_full and (one is not page.records[-1] or before is not None):
                        return GoalList(rows, one.number, looked_at + one.place)
            looked_at += page.looked_at
            if before is None or not only.leaves_out or looked_at >= MOST_LOOKED_AT:
                return GoalList(rows, before, looked_at)

    async def _rows(self, records: Sequence[ListedRecord]) -> AsyncGenerator[tuple[ListedRecord, GoalStatus, int]]:
        """Yield of each goal what came of it, and how many bytes are stored of it."""
        for some in _in_parts(records):
            results = await last_of(self._client, RESULTS, {subjects.result_of(one.record.goal.name) for one in some})
            unended = [one for one in some if subjects.result_of(one.record.goal.name) not in results]
            heads = await last_of(self._client, LOG, {subjects.log(one.record.goal.comm_id) for one in unended})
            for one in some:
                await asyncio.sleep(0)  # to decode all at once holds up the event loop
                goal = one.record.goal
                message, log = results.get(subjects.result_of(goal.name)), subjects.log(goal.comm_id)
                result = _read(decode_result, message)
                head = heads.get(log)
                if message is not None and result is None:  # it cannot be read, so that the group tells what it can
                    head = (await last_of(self._client, LOG, [log])).get(log)
                size = len(one.stored) + sum(len(found.data) for found in (message, head) if found is not None)
                yield one, GoalStatus(one.record, _standing(head), result), size

    async def groups(
        self, *, limit: int = PAGE_GOALS, before: int | None = None, open_only: bool = False, owner: UserId | None = None
    ) -> GroupList:
        """Read the groups of a page of goals. A nested team is found by its parent's state, or if that names it no more, not."""
        page = await self._page(limit, before, open_only=open_only, owner=owner)
        found, size, last = list[GroupSnapshot](), 0, page.records[-1] if page.records else None
        async with aclosing(self._trees([one.record.goal.comm_id for one in page.records])) as trees:
            for one in page.records:
                tree = await anext(trees)
                found += [group for group in tree.groups if not (open_only and group.state.phase.is_terminal)]
                size += tree.size_bytes
                if size >= PAGE_BYTES and (one is not last or page.before is not None):
                    return GroupList(found, one.number)
        return GroupList(found, page.before)

    async def _trees(self, comm_ids: Sequence[CommId]) -> AsyncGenerator[_Tree]:
        """Yield of each group it and the teams nested in it, as many of these as may have so many bytes together."""
        for some in _in_parts(comm_ids):
            heads = await last_of(self._client, LOG, map(subjects.log, some))
            launches = await first_of(self._client, LOG, heads)
            for comm_id in some:
                await asyncio.sleep(0)
                head, launch = heads.get(subjects.log(comm_id)), launches.get(subjects.log(comm_id))
                standing = _standing(head)
                tree = _Tree()
                if standing is not None:
                    group = listed_group(standing.model_copy(update={"charter": _read(_charter_of, launch)}))
                    tree.groups.append(group)
                    tree.size_bytes += listed_bytes(group)
                    async with aclosing(self._trees(standing.nested)) as below:
                        async for nested in below:
                            tree.groups += nested.groups
                            tree.size_bytes += nested.size_bytes
                            if tree.size_bytes >= _MOST_TREE_BYTES:
                                _log.warning("nested_teams_not_listed", comm_id=comm_id)
                                break
                yield tree

    async def find_goal(self, start: str, user: UserId | None) -> GoalName:
        """Complete the id of a goal: a whole one of any goal there ever was, or the beginning of one of the newest.

        Args:
            start: The id, or `user/id`.
            user: Who asks. His own goals come first, then those of versions that knew no users.

        Raises:
            NotFoundError: No goal's id begins so.
            InvalidInputError: Several do.
        """
        whose, _, start_of_id = start.rpartition("/")
        if is_token(start_of_id):
            users = (UserId(whose),) if whose else (user or LOCAL, LOCAL)
            for name in (GoalName(one, GoalId(start_of_id)) for one in dict.fromkeys(users)):
                record = await self._records.find(name.comm_id)
                found = record.goal if record is not None else await self._ended.find(name)
                if found is not None:
                    return found.name
        newest = await self._newest()
        return complete_goal(start, user, newest.names, complete=newest.are_all)

    async def find_group(self, start: str) -> CommId:
        """Complete the id of a group: a whole one, or the beginning of one of the newest.

        Raises:
            NotFoundError: No group's id begins so.
            InvalidInputError: Several do.
        """
        if is_token(start) and await self._log.last(CommId(start)) is not None:
            return CommId(start)
        newest = await self._newest()
        known = [subjects.log(name.comm_id) for name in newest.names if name.comm_id.startswith(start)]
        with_log = [subjects.parse_comm(log) for some in _in_parts(known) for log in await last_of(self._client, LOG, some)]
        trees = await self.groups(limit=_NEWEST_TREES)
        nested = [one.state.comm_id for one in trees.groups]
        complete = newest.are_all and trees.before is None
        return CommId(complete_id("group", start, [*dict.fromkeys([*with_log, *nested])], complete=complete))

    async def _newest(self) -> _Newest:
        names: list[GoalName] = []
        before: int | None = None
        while True:
            page = await self._page(_NEWEST_GOALS - len(names), before, open_only=False)
            names += [one.record.goal.name for one in page.records]
            before = page.before
            if before is None or len(names) >= _NEWEST_GOALS:
                return _Newest(names, before is None)

    async def _page(
        self,
        limit: int,
        before: int | None,
        *,
        open_only: bool,
        labels: Mapping[str, str] | None = None,
        owner: UserId | None = None,
    ) -> ListedPage:
        """Read a page of records; those without the labels may be left out, and of open ones those of other users are."""
        if not open_only:
            return await self._pages.newest(before=before, limit=limit, max_bytes=_READ_BYTES, labels=labels)
        notes = await previous_messages(self._client, stream_of(OPEN), before=before, limit=limit)
        found, size, looked_at = list[ListedRecord](), 0, 0
        for some in _in_parts(notes.messages):
            named = ((message, message.subject.removeprefix(subject_of(OPEN, ""))) for message in some)
            numbers = {
                subject_of(GOAL_RECORDS, key): message.seq
                for message, key in named
                if owner is None or _may_be_of(owner, key, message.data)
            }
            # A nested team has no record, and is shown with its parent; nor has a note of the index's own.
            messages = await last_of(self._client, stream_of(GOAL_RECORDS), numbers)
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


def _in_parts(several: Sequence[S]) -> Iterator[Sequence[S]]:
    return (several[start : start + _AT_ONCE] for start in range(0, len(several), _AT_ONCE))


def _standing(head: StreamMessage | None) -> GroupSnapshot | None:
    """Read where a group stands, and no more: its head may be a launch, whose policy takes megabytes when it is decoded."""
    state = _read(_state_of, head)
    return None if head is None or state is None else GroupSnapshot(seq=head.seq, state=state, charter=None)


def _state_of(head: bytes) -> GroupState:
    return decode(Entry, head).state


def _charter_of(launch: bytes) -> Charter | None:
    event = decode(Entry, launch).event
    return event.charter if isinstance(event, GroupLaunched) else None


def _may_be_of(owner: UserId, key: str, noted: bytes) -> bool:
    """Whether what is noted as open may be a goal of a user: its group is called after both. Of others' no record is read."""
    try:
        return GoalName(owner, decode(OpenGroup, noted).goal_id).comm_id == key
    except IoaError:  # its record tells
        return True


def _read(decoder: Callable[[bytes], R], message: StreamMessage | None) -> R | None:
    """Decode what can be read; a row is shown without the rest."""
    if message is None:
        return None
    try:
        return decoder(message.data)
    except IoaError as error:
        _log.warning("not_listed", subject=message.subject, seq=message.seq, error=error.message)
        return None
