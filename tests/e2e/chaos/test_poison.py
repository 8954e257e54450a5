"""Garbage in every stream, bucket and queue of a running system: nobody dies of it, new goals conclude, and it can be looked at."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import msgpack
import pytest
from nats.aio.client import Client

from ioa.adapters.nats.delivery.delivery import NatsResults
from ioa.adapters.nats.streams.group_log import NatsGroupLog
from ioa.adapters.nats.streams.topology import (
    CARDS,
    DEAD,
    ENDED,
    FILES,
    GOAL_RECORDS,
    LEASES,
    MEMBERS,
    OPEN,
    SESSIONS,
    WORK,
)
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.errors import UnavailableError
from ioa.protocol import subjects
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, GoalName, PoolId, comm_id_of_goal
from ioa.protocol.operation.dead_letters import DeadReason
from tests.e2e.chaos.conftest import QUICK
from tests.rig.deadline import eventually
from tests.rig.fleet import CONTROL_PLANE, DISCOVERY, ROSTER, WORKERS, Fleet, open_fleet
from tests.rig.nats_server import crash

pytestmark = [pytest.mark.faults, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

EVERYBODY = (*CONTROL_PLANE, *WORKERS, DISCOVERY)
GARBAGE = (b"", b"\xc1garbage", b"\x80", b"[" * 10_000, msgpack.packb({"version": 2}), msgpack.packb([[]] * 1_000))
SPOILED, REFUSED = GoalId("spoiled"), GoalId("refused")
REASONS = {DeadReason.UNREADABLE, DeadReason.TOO_LARGE, DeadReason.UNDELIVERABLE, DeadReason.UNREADABLE_ENTRY}
_LONG_DEADLINE = timedelta(seconds=25)  # the garbage has to be there before


@pytest.fixture
async def town(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Fleet]:
    """The whole control plane, discovery too, and six agents."""
    async with open_fleet(nats_server.url, tmp_path / "fleet", {**QUICK, "IOA_LOAD_SEARCHES": "true"}) as fleet:
        await fleet.start(*EVERYBODY)
        await fleet.until_online()
        yield fleet


async def poison_queues(client: Client) -> None:
    """Put what is no goal among the goals, what is no work among the work, and timers of nobody among the timers."""
    js = client.jetstream()
    for data in GARBAGE:
        await js.publish(subjects.WORK, data)
        await js.publish(subjects.work_of(PoolId("load")), data)
        await js.publish("ioa.v1.comm.a$b=c.timer", data)
        await js.publish(subjects.timer(CommId("nobody")), data)
        await js.publish(subjects.goal_of(LOCAL), data + b"\xff")
    for name in ("C:\\data\\sales.csv", "reports/", "\ud800", "a\0b", "x" * 600):
        await js.publish(subjects.goal_of(LOCAL), json.dumps({"goal": "load chat odd", "inputs": [name]}).encode())
    await js.publish(subjects.goal_of(LOCAL), json.dumps({"goal": "x", "goal_id": REFUSED, "inputs": ["\ud800"]}).encode())
    await js.publish("ioa.v1.goal.local.a$b", b"Count.")
    await js.publish(subjects.goal_of(LOCAL), b"x" * 500_000)


async def poison_stores(client: Client, spoiled: CommId) -> None:
    """Put garbage under every kind of key of every bucket, and behind every kind of subject of every store."""
    js = client.jetstream()
    for number, data in enumerate(GARBAGE):
        for bucket in (CARDS, LEASES, MEMBERS, GOAL_RECORDS, SESSIONS, OPEN, ENDED):
            store = await js.key_value(bucket)
            for key in (f"garbage-{number}", f"odd.{number}.key", f"_=/{number}", f"{ROSTER[0]}.garbage-{number}", "x" * 200):
                await store.put(key, data)
        await js.publish(subjects.log(CommId(f"garbage-{number}")), data)
        await js.publish("ioa.v1.comm.a$b=c.log", data)
        await js.publish(subjects.log(spoiled), data)
        await js.publish(subjects.result_of(GoalName(LOCAL, GoalId(f"garbage-{number}"))), data)
        await js.publish(subjects.outcome(PoolId("load")), data)
        await js.publish("ioa.v1.outcome.a$b", data)
        encoded = base64.urlsafe_b64encode(f"garbage-{number}".encode()).decode()
        await js.publish(f"$O.{FILES}.M.{encoded}", data)


async def poison_requests(client: Client) -> None:
    """Ask every service for nothing that makes sense."""
    agent_id = AgentId("garbage")
    pool = PoolId(agent_id)
    asked = [subjects.agent(pool, agent_id, subjects.REGISTER), subjects.agent(pool, agent_id, subjects.RENEW)]
    asked += [
        subjects.agent(PoolId(agent_id), agent_id, subjects.DEREGISTER),
        subjects.agent(PoolId(agent_id), agent_id, subjects.LAUNCH),
        subjects.agent(PoolId(agent_id), agent_id, subjects.INVITE),
    ]
    asked += [
        subjects.agent(PoolId(agent_id), agent_id, subjects.ABANDON),
        subjects.agent(PoolId(agent_id), agent_id, subjects.SYNC),
        subjects.agent(PoolId(agent_id), agent_id, subjects.REPORT),
    ]
    asked += [
        subjects.user(LOCAL, subjects.GET_AGENTS),
        subjects.user(LOCAL, subjects.LIST_AGENTS),
        subjects.agent(PoolId(agent_id), agent_id, subjects.SEARCH),
        subjects.user(LOCAL, subjects.INDEX_STATUS),
        *(subjects.user(LOCAL, request) for request in subjects.READ_REQUESTS),
        subjects.user(LOCAL, subjects.CANCEL),
    ]
    asked += [
        subjects.say(PoolId(agent_id), agent_id, CommId("garbage")),
        "ioa.v1.agent.a$b.a$b.say.a$b",
        subjects.inbox(ROSTER[0], "n1"),
    ]
    for subject in asked:
        for data in GARBAGE:
            await client.publish(subject, data, reply="nobody.listens")
    await client.flush()


async def dead_letters(client: Client) -> dict[str, int]:
    """How many there are of each reason."""
    state = (await client.jetstream().stream_info(DEAD, subjects_filter=subjects.ANY_DEAD)).state
    return {subject.rpartition(".")[2]: count for subject, count in (state.subjects or {}).items()}


async def left(client: Client) -> int:
    """How much waits in the queue of goals for agents."""
    return (await client.jetstream().stream_info(WORK)).state.messages


async def result_of(client: Client, goal_id: GoalId) -> GoalResult | None:
    """A goal's result, once it can be read."""
    try:
        return await NatsResults(client).get(GoalName(LOCAL, goal_id))
    except UnavailableError:
        return None


async def test_nobody_dies_of_poison(town: Fleet, nats_server: NatsServer) -> None:
    """With garbage everywhere, and after nats-server was killed, all processes go on and goals conclude as ever.

    The goal whose log was spoiled ends at its deadline, the one that could not be accepted at once, each with its reason; what
    waited in queues has become dead letters.
    """
    spoiled = comm_id_of_goal(SPOILED)
    await town.publish(SPOILED, "talk16", timeout=_LONG_DEADLINE)
    town.goals.remove(SPOILED)
    await eventually(lambda: NatsGroupLog(town.client).last(spoiled))
    await poison_stores(town.client, spoiled)
    await poison_queues(town.client)
    await poison_requests(town.client)

    await crash(nats_server)
    await nats_server.start()
    async with open_connection(NatsSettings(nats_server.url, "witness")) as client:
        await town.until_online()
        fresh = await town.publish_mix(10, seed=1)
        ended = [await eventually(lambda one=one: result_of(client, one), within=timedelta(seconds=60)) for one in fresh]  # type: ignore[misc]
        failed = [
            await eventually(lambda one=one: result_of(client, one), within=timedelta(seconds=60))  # type: ignore[misc]
            for one in (SPOILED, REFUSED)
        ]
        await eventually(lambda: left(client), lambda count: count == 0, within=timedelta(seconds=60))
        letters = await eventually(lambda: dead_letters(client), REASONS.issubset, within=timedelta(seconds=60))

    died = [name for name in EVERYBODY if town.has_died(name)]
    assert died == [], town.logs()
    assert {result.reason for result in ended if result} <= {Reason.CONCLUDED, Reason.MAX_TURNS}, ended
    assert [result.reason for result in failed if result] == [Reason.FAILED, Reason.FAILED]
    assert "cannot be read" in failed[0].content  # type: ignore[union-attr]
    assert set(letters) >= REASONS
