"""Collect the evidence of a system: logs, results and records, for `tests.rig.log_checker`."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

import nats.errors
from nats.aio.client import Client

from ioa.adapters.nats.streams.stream import Stream, StreamMessage
from ioa.adapters.nats.streams.topology import LOG, MEMBERS, RESULTS, TIMERS, stream_of, subject_of
from ioa.errors import InvalidInputError, IoaError, UnavailableError
from ioa.group.events import Entry
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.goals import decode_result
from ioa.protocol.ids import AgentId, CommId, GoalId, MessageId
from ioa.protocol.model import Model
from tests.rig.deadline import eventually
from tests.rig.log_checker import Absence, Acceptance, Evidence, TaskRun

M = TypeVar("M", bound=Model)

_PAGE = 256


async def wait_for_rest(
    client: Client, goals: Sequence[GoalId], *, within: timedelta, members: Collection[AgentId] | None = None
) -> None:
    """Wait until every goal has a result, and every member knows how each of its groups has ended.

    Args:
        members: Whose memberships count; None counts all.

    Raises:
        AssertionError: It does not come to that; the message names a few goals, and the members that lag.
    """
    await eventually(lambda: without_result(client, goals), lambda left: not left, within=within)
    await eventually(lambda: _memberships(client, members), lambda left: not left, within=within)


async def collect(
    client: Client,
    goals: Sequence[GoalId],
    notes: Sequence[Path],
    forgetful: frozenset[AgentId],
    *,
    answers: Mapping[GoalId, str] | None = None,
    absences: Sequence[Absence] | None = None,
    lost: frozenset[GoalId] = frozenset(),
) -> Evidence:
    """Read the streams and the agents' notes. `answers`, `absences` and `lost` are as known; see `Evidence`."""
    logs: dict[CommId, list[StoredEntry]] = defaultdict(list)
    for message in await _stored(client, LOG, subjects.ANY_LOG):
        entry, comm_id = _readable(partial(decode, Entry), message), _comm_of(message.subject)
        if entry is not None and comm_id is not None:
            logs[comm_id].append(StoredEntry(message.seq, entry))
        await asyncio.sleep(0)
    found = [_readable(decode_result, message) for message in await _stored(client, RESULTS, f"{subjects.ROOT}.result.>")]
    results = [result for result in found if result is not None]
    noted = [line for path in notes for line in await asyncio.to_thread(_lines, path)]
    return Evidence(
        goals=goals,
        results=results,
        logs=dict(logs),
        timers=await _armed(client),
        accepted=[
            Acceptance(CommId(str(line["comm_id"])), MessageId(str(line["message_id"])), int(str(line["seq"])))
            for line in noted
            if line["note"] == "accepted"
        ],
        runs=[
            TaskRun(AgentId(str(line["agent_id"])), str(line["task"]), int(str(line["attempt"])), line["note"] == "returned")
            for line in noted
            if line["note"] != "accepted"
        ]
        if notes
        else None,
        forgetful=forgetful,
        answers=answers or {},
        absences=absences,
        lost=lost,
    )


async def without_result(client: Client, goals: Sequence[GoalId]) -> list[GoalId]:
    """Return which of these goals have not ended yet; all of them while NATS does not answer."""
    try:
        info = await client.jetstream().stream_info(RESULTS, subjects_filter=f"{subjects.ROOT}.result.>")
    except (nats.errors.Error, TimeoutError):
        return list(goals)
    known = {subject.rpartition(".")[2] for subject in info.state.subjects or {}}
    return [goal_id for goal_id in goals if goal_id not in known]


async def _memberships(client: Client, members: Collection[AgentId] | None) -> list[str]:
    prefix = subject_of(MEMBERS, "")
    try:
        messages = await _stored(client, stream_of(MEMBERS), f"{prefix}>")
    except UnavailableError as error:
        return [error.message]
    keys = [message.subject.removeprefix(prefix) for message in messages]
    return [key for key in keys if members is None or key.partition(".")[0] in members]


def _readable(decoder: Callable[[bytes], M], message: StreamMessage) -> M | None:
    """What a message holds; None for garbage, which others may have put there. What is missing then is found by the checks."""
    try:
        return decoder(message.data)
    except IoaError:
        return None


async def _armed(client: Client) -> frozenset[CommId]:
    info = await client.jetstream().stream_info(TIMERS, subjects_filter=">")
    return frozenset(comm_id for subject in info.state.subjects or {} if (comm_id := _comm_of(subject)) is not None)


def _comm_of(subject: str) -> CommId | None:
    try:
        return subjects.parse_comm(subject)
    except InvalidInputError:
        return None


async def _stored(client: Client, stream: str, pattern: str) -> list[StreamMessage]:
    """Every message that a stream holds now, in order."""
    return [message async for message in Stream(client, stream).messages(pattern, batch=_PAGE)]


def _lines(path: Path) -> list[dict[str, object]]:
    return list(_parsed(path.read_bytes())) if path.exists() else []


def _parsed(data: bytes) -> Iterator[dict[str, object]]:
    for line in data.splitlines():
        yield json.loads(line)
