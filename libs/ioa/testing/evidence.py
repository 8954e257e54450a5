"""Collecting what a system has left behind, for `ioa.testing.log_checker` to judge."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import msgpack
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import NoKeysError

from ioa.adapters.nats_topology import LOG, MEMBERS, RESULTS, TIMERS
from ioa.group.events import Entry
from ioa.group.requests import SequencedEntry
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import AgentId, CommId, GoalId, MessageId
from ioa.testing.deadline import eventually
from ioa.testing.log_checker import Acceptance, Evidence, Run

_NEXT_SECONDS = 5.0

Known = dict[int, tuple[dict[str, object], Entry]]
"""Entries by sequence, as they were written and as they were read."""


async def wait_for_rest(client: Client, goals: Sequence[GoalId], *, within: timedelta) -> None:
    """Wait until every goal has a result, and every member knows how each of its groups has ended.

    Raises:
        AssertionError: It does not come to that; the message names a few goals, and the members that lag.
    """
    await eventually(lambda: _without_result(client, goals), lambda left: not left, within=within)
    await eventually(lambda: _memberships(client), lambda left: not left, within=within)


async def collect(
    client: Client, goals: Sequence[GoalId], memories: Mapping[AgentId, Path], notes: Sequence[Path], forgetful: frozenset[AgentId]
) -> Evidence:
    """Read everything: streams, the agents' files, and what they wrote down."""
    logs: dict[CommId, list[StoredEntry]] = defaultdict(list)
    known: Known = {}
    for message in await _stored(client, LOG, subjects.ANY_LOG):
        stored = StoredEntry(message.metadata.sequence.stream, decode(Entry, message.data))
        logs[subjects.parse_comm(message.subject)].append(stored)
        known[stored.seq] = (msgpack.unpackb(message.data), stored.entry)
        await asyncio.sleep(0)
    results = [decode(GoalResult, message.data) for message in await _stored(client, RESULTS, subjects.ANY_RESULT)]
    records = {}
    for agent_id, path in memories.items():
        records[agent_id] = await asyncio.to_thread(read_memory, path, known)
    noted = [line for path in notes for line in await asyncio.to_thread(_lines, path)]
    return Evidence(
        goals=goals,
        results=results,
        logs=dict(logs),
        records=records,
        timers=await _armed(client),
        accepted=[
            Acceptance(CommId(str(line["comm_id"])), MessageId(str(line["message_id"])), int(str(line["seq"])))
            for line in noted
            if line["note"] == "accepted"
        ],
        runs=[
            Run(AgentId(str(line["agent_id"])), str(line["task"]), int(str(line["attempt"])), line["note"] == "returned")
            for line in noted
            if line["note"] != "accepted"
        ],
        forgetful=forgetful,
    )


def read_memory(path: Path, known: Known) -> dict[CommId, list[SequencedEntry]]:
    """Read what an agent's file holds of each group; the agent may be running, and makes the file when it needs it.

    Args:
        known: The entries of the log, by sequence. One that is the same is not decoded again, which takes most of the time.
    """
    if not path.exists():
        return {}
    record: dict[CommId, list[SequencedEntry]] = defaultdict(list)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        for comm_id, data in connection.execute("SELECT comm_id, data FROM entries ORDER BY comm_id, seq"):
            record[CommId(comm_id)].append(_sequenced(data, known))
    return dict(record)


def _sequenced(data: bytes, known: Known) -> SequencedEntry:
    raw = msgpack.unpackb(data)
    found = known.get(raw["seq"])
    if found is None or found[0] != raw["entry"]:
        return decode(SequencedEntry, data)
    return SequencedEntry.model_construct(seq=raw["seq"], previous_seq=raw["previous_seq"], entry=found[1])


async def _without_result(client: Client, goals: Sequence[GoalId]) -> list[GoalId]:
    try:
        info = await client.jetstream().stream_info(RESULTS, subjects_filter=subjects.ANY_RESULT)
    except (nats.errors.Error, TimeoutError):
        return list(goals)
    known = info.state.subjects or {}
    return [goal_id for goal_id in goals if subjects.result_of(goal_id) not in known]


async def _memberships(client: Client) -> list[str]:
    try:
        return await (await client.jetstream().key_value(MEMBERS)).keys()
    except NoKeysError:
        return []
    except (nats.errors.Error, TimeoutError) as error:
        return [type(error).__name__]


async def _armed(client: Client) -> frozenset[CommId]:
    info = await client.jetstream().stream_info(TIMERS, subjects_filter=">")
    return frozenset(subjects.parse_comm(subject) for subject in info.state.subjects or {})


async def _stored(client: Client, stream: str, pattern: str) -> list[Msg]:
    """Every message that a stream holds now, in order."""
    js = client.jetstream()
    if (await js.stream_info(stream)).state.messages == 0:
        return []
    subscription = await js.subscribe(pattern, stream=stream, ordered_consumer=True)
    messages: list[Msg] = []
    try:
        while not messages or messages[-1].metadata.num_pending:
            messages.append(await subscription.next_msg(timeout=_NEXT_SECONDS))
    finally:
        await subscription.unsubscribe()
    return messages


def _lines(path: Path) -> list[dict[str, object]]:
    return list(_parsed(path.read_bytes())) if path.exists() else []


def _parsed(data: bytes) -> Iterator[dict[str, object]]:
    for line in data.splitlines():
        yield json.loads(line)
