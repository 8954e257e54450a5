"""Lists of goals and groups, a page at a time, newest first, whatever their number.

A page is read off the end of the stream of goals on record, whose order is that of acceptance. Beside its record a row costs one or
two reads, those of all rows side by side: an ended goal its result, an open one the head of its log too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import structlog
from nats.aio.client import Client

from ioa.adapters.nats.direct_gets import StreamMessage
from ioa.adapters.nats.goals import NatsGoalRecords
from ioa.adapters.nats.keys import stream_of, subject_of
from ioa.adapters.nats.log import NatsGroupLog
from ioa.adapters.nats.reading import DirectReads, first_of, last_of, previous_messages
from ioa.adapters.nats.retention import NatsEndedGoals, NatsGoalPages
from ioa.adapters.nats.topology import GOAL_RECORDS, LOG, OPEN, RESULTS
from ioa.errors import IoaError
from ioa.group.events import Entry, GroupLaunched
from ioa.group.requests import GroupSnapshot
from ioa.group.state import GroupState
from ioa.little_by_little import little_by_little
from ioa.ports.goal_client import ALL_GOALS, PAGE_GOALS, GoalFilter, GoalList, GoalStatus
from ioa.ports.group_client import GroupList
from ioa.ports.open_groups import OpenGroup
from ioa.ports.retention import NumberedRecord
from ioa.protocol import subjects
from ioa.protocol.codec import M, decode
from ioa.protocol.goals import GoalRecord
from ioa.protocol.ids import LOCAL, CommId, GoalId, GoalName, UserId, complete_goal, complete_id, is_token
from ioa.protocol.results import decode_result

_NEWEST_GOALS, _NEWEST_TREES = 1_000, 100
"""Among how many goals, and how many goals' nested teams, the beginning of an id is looked for."""

_LOOKED_AT_ONCE, _MOST_LOOKED_AT = 250, 1_000
"""How many goals are looked at for a page of those that are wanted."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Records:
    records: Sequence[NumberedRecord]
    before: int | None


class Lists:
    """Read lists, and complete ids."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pages = NatsGoalPages(client)
        js = DirectReads(client)
        self._records, self._ended = NatsGoalRecords(js), NatsEndedGoals(js)
        self._log = NatsGroupLog(client, js=js)

    async def goals(self, *, limit: int = PAGE_GOALS, before: int | None = None, only: GoalFilter = ALL_GOALS) -> GoalList:
        """Read a page of goals.

        Args:
            limit: How many at the most. If some are left out there may be fewer although there is more.
            before: What the page before said; the newest goals if None.
            only: Which ones.
        """
        rows: list[GoalStatus] = []
        looked_at = 0
        while True:
            width = min(_LOOKED_AT_ONCE, _MOST_LOOKED_AT - looked_at) if only.leaves_out else limit
            page = await self._page(width, before, open_only=only.is_of_open_ones, labels=only.labels)
            looked_at, before = looked_at + width, page.before
            likely = [one for one in page.records if only.takes(one.record)]
            for place, row in enumerate(await self._rows([one.record for one in likely])):
                if only.wants(row):
                    rows.append(row)
                    if len(rows) == limit and (likely[place] is not page.records[-1] or before is not None):
                        return GoalList(rows, likely[place].number)
            if before is None or not only.leaves_out or looked_at >= _MOST_LOOKED_AT:
                return GoalList(rows, before)

    async def _rows(self, records: Sequence[GoalRecord]) -> Sequence[GoalStatus]:
        wanted = {subjects.result_of(record.goal.name) for record in records}
        results = await _decoded(decode_result, await last_of(self._client, RESULTS, wanted))
        unended = [record for record in records if subjects.result_of(record.goal.name) not in results]
        heads = await self._heads([record.goal.comm_id for record in unended])
        return [
            GoalStatus(record, heads.get(record.goal.comm_id), results.get(subjects.result_of(record.goal.name)))
            for record in records
        ]

    async def groups(
        self, *, limit: int = PAGE_GOALS, before: int | None = None, open_only: bool = False, owner: UserId | None = None
    ) -> GroupList:
        """Read the groups of a page of goals. A nested team is found by its parent's state, or if that names it no more, not."""
        page = await self._page(limit, before, open_only=open_only, owner=owner)
        roots = [one.record.goal.comm_id for one in page.records]
        found: dict[CommId, GroupSnapshot] = {}
        level: Sequence[CommId] = roots
        while level:
            heads = await self._heads(level)
            charters = await _decoded(partial(decode, Entry), await first_of(self._client, LOG, map(subjects.log, heads)))
            for comm_id, standing in heads.items():
                first = charters.get(subjects.log(comm_id))
                event = first.event if first is not None else None
                charter = event.charter if isinstance(event, GroupLaunched) else None
                found[comm_id] = standing.model_copy(update={"charter": charter})
            level = [nested for standing in heads.values() for nested in standing.nested if nested not in found]
        ordered = [standing for root in roots for standing in _tree(root, found)]
        return GroupList([one for one in ordered if not (open_only and one.state.phase.is_terminal)], page.before)

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
        return complete_goal(start, user, [one.record.goal.name for one in newest.records], complete=newest.before is None)

    async def find_group(self, start: str) -> CommId:
        """Complete the id of a group: a whole one, or the beginning of one of the newest.

        Raises:
            NotFoundError: No group's id begins so.
            InvalidInputError: Several do.
        """
        if is_token(start) and await self._log.last(CommId(start)) is not None:
            return CommId(start)
        newest = await self._newest()
        known = [one.record.goal.comm_id for one in newest.records]
        with_log = await self._heads([comm_id for comm_id in known if comm_id.startswith(start)])
        trees = await self.groups(limit=_NEWEST_TREES)
        nested = [one.state.comm_id for one in trees.groups]
        complete = newest.before is None and trees.before is None
        return CommId(complete_id("group", start, [*dict.fromkeys([*with_log, *nested])], complete=complete))

    async def _newest(self) -> _Records:
        records: list[NumberedRecord] = []
        before: int | None = None
        while True:
            page = await self._page(_NEWEST_GOALS - len(records), before, open_only=False)
            records += page.records
            before = page.before
            if before is None or len(records) >= _NEWEST_GOALS:
                return _Records(records, before)

    async def _page(
        self,
        limit: int,
        before: int | None,
        *,
        open_only: bool,
        labels: Mapping[str, str] | None = None,
        owner: UserId | None = None,
    ) -> _Records:
        """Read a page of records; those without the labels may be left out, and of open ones those of other users are."""
        if not open_only:
            page = await self._pages.newest(before=before, limit=limit, labels=labels)
            return _Records(page.records, page.next)
        page_back = await previous_messages(self._client, stream_of(OPEN), before=before, limit=limit)
        named = ((message, message.subject.removeprefix(subject_of(OPEN, ""))) for message in page_back.messages)
        keys = {message.seq: key for message, key in named if owner is None or _may_be_of(owner, key, message.data)}
        numbers = {subject_of(GOAL_RECORDS, key): seq for seq, key in keys.items()}
        # A nested team has no record, and is shown with its parent; nor has a note of the index's own.
        records = await _decoded(partial(decode, GoalRecord), await last_of(self._client, stream_of(GOAL_RECORDS), numbers))
        wanted = {key: one for key, one in records.items() if owner in (None, one.goal.name.owner)}
        found = [NumberedRecord(number, wanted[key]) for key, number in numbers.items() if key in wanted]
        return _Records(found, page_back.before)

    async def _heads(self, comm_ids: Sequence[CommId]) -> Mapping[CommId, GroupSnapshot]:
        messages = await last_of(self._client, LOG, map(subjects.log, comm_ids))
        heads = await _decoded(_state_of, messages)
        return {
            subjects.parse_comm(subject): GroupSnapshot(seq=messages[subject].seq, state=state, charter=None)
            for subject, state in heads.items()
        }


def _state_of(head: bytes) -> GroupState:
    """Read where a group stands, and no more: its head may be a launch, whose policy takes megabytes when it is decoded."""
    return decode(Entry, head).state


def _may_be_of(owner: UserId, key: str, noted: bytes) -> bool:
    """Whether what is noted as open may be a goal of a user: its group is called after both. Of others' no record is read."""
    try:
        return GoalName(owner, decode(OpenGroup, noted).goal_id).comm_id == key
    except IoaError:  # its record tells
        return True


async def _decoded(decoder: Callable[[bytes], M], messages: Mapping[str, StreamMessage]) -> dict[str, M]:
    """Decode what can be read; a row is shown without the rest."""
    found: dict[str, M] = {}
    async for message in little_by_little(messages.values()):
        try:
            found[message.subject] = decoder(message.data)
        except IoaError as error:
            _log.warning("not_listed", subject=message.subject, seq=message.seq, error=error.message)
    return found


def _tree(root: CommId, found: Mapping[CommId, GroupSnapshot]) -> Sequence[GroupSnapshot]:
    standing = found.get(root)
    if standing is None:
        return []
    return [standing, *(below for nested in standing.nested for below in _tree(nested, found))]
