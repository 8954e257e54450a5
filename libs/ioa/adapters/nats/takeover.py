"""Taking over what a system left that had no index of what is open, once.

Its open groups stand in `IOA_MEMBERS`, its goals that wait among those on record. It left a marker in `IOA_MEMBERS` for each
membership that was removed; they go. All of it may be done twice, so a note that it is done comes last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from nats.aio.client import Client

from ioa.adapters.nats.goals import NatsGoalRecords
from ioa.adapters.nats.handles import BucketHandle
from ioa.adapters.nats.keys import erase, stream_of, subject_of
from ioa.adapters.nats.log import NatsGroupLog
from ioa.adapters.nats.open_groups import NatsOpenGroups
from ioa.adapters.nats.streams import next_messages, pages, subjects_of
from ioa.adapters.nats.topology import GOAL_RECORDS, MEMBERS, OPEN, RESULTS
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.errors import IoaError, UnavailableError
from ioa.ports.clock import Clock
from ioa.ports.open_groups import OpenGroup
from ioa.protocol import subjects
from ioa.protocol.ids import CommId, GoalId, GoalName
from ioa.retry import until_available

_DONE = "noted.taken_over"
_PAGE = 1_000
_RESULTS_WERE_KEPT = timedelta(days=30)
"""An older version dropped results after this time. A goal whose deadline lies that far back had one."""

_log = structlog.get_logger(__name__)


async def take_over(client: Client, clock: Clock) -> None:
    """Bring the index of what is open about, unless it was, waiting for JetStream as long as it takes."""

    async def unless_done() -> None:
        if not await _is_done(client):
            await _take_over(client, clock.now())

    await until_available(unless_done, lambda error: _log.warning("taking_over_put_off", error=error.message))


async def _is_done(client: Client) -> bool:
    noted = await next_messages(client, stream_of(OPEN), subject_of(OPEN, _DONE), after=0, limit=1)
    return bool(noted.messages)


async def _take_over(client: Client, now: datetime) -> None:
    markers, groups = await _read_memberships(client)
    goals = await _note_goals(client, now)
    for comm_id in groups - goals:
        await _note_group(client, comm_id)
    js = client.jetstream()
    for key in markers:
        with unavailable_unless_answered("The record of memberships"):
            await erase(js, MEMBERS, key)
    with unavailable_unless_answered("The index of open groups"):
        await (await BucketHandle(js, OPEN).open()).put(_DONE, b"")
    if markers or groups or goals:
        _log.info("taken_over", groups=len(groups), goals=len(goals), markers=len(markers))


async def _read_memberships(client: Client) -> tuple[list[str], set[CommId]]:
    """Read the keys that were removed, and the groups of the others."""
    prefix = subject_of(MEMBERS, "")
    markers: list[str] = []
    groups: set[CommId] = set()
    async for page in pages(client, stream_of(MEMBERS), f"{prefix}*.*", limit=_PAGE):
        for message in page.messages:
            key = message.subject.removeprefix(prefix)
            if message.is_marker:
                markers.append(key)
            else:
                groups.add(CommId(key.partition(".")[2]))
    return markers, groups


async def _note_goals(client: Client, now: datetime) -> set[CommId]:
    """Note the goals that have no result; return them."""
    ended: set[CommId] = set()
    async for results in subjects_of(client, RESULTS, subjects.ANY_OLD_RESULT):
        ended |= await asyncio.to_thread(_groups_of, results)
    prefix, records, open_groups = subject_of(GOAL_RECORDS, ""), NatsGoalRecords(client.jetstream()), NatsOpenGroups(client)
    noted: set[CommId] = set()
    async for keys in subjects_of(client, stream_of(GOAL_RECORDS), f"{prefix}*"):
        for comm_id in {CommId(key.removeprefix(prefix)) for key in keys} - ended:
            try:
                record = await records.find(comm_id)
            except UnavailableError:
                raise
            except IoaError as error:
                _log.error("record_unreadable", comm_id=comm_id, error=error.message)
                continue
            if record is not None and now < record.deadline + _RESULTS_WERE_KEPT:
                await open_groups.put(comm_id, OpenGroup(goal_id=record.goal.goal_id, deadline=record.deadline))
                noted.add(comm_id)
    return noted


def _groups_of(results: Sequence[str]) -> set[CommId]:
    return {GoalName(None, GoalId(subject.rpartition(".")[2])).comm_id for subject in results}


async def _note_group(client: Client, comm_id: CommId) -> None:
    """Note a group of which somebody has not seen the end, unless it ended; what it may still owe, its timer looks after."""
    try:
        head = await NatsGroupLog(client).last(comm_id)
    except UnavailableError:
        raise
    except IoaError as error:
        _log.error("group_unreadable", comm_id=comm_id, error=error.message)
        return
    if head is not None and not head.entry.state.phase.is_terminal:
        state = head.entry.state
        await NatsOpenGroups(client).put(comm_id, OpenGroup(goal_id=state.goal_id, deadline=state.limits.deadline))
