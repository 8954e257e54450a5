"""What was concluded stays concluded: with real processes, whatever is purged by hand, pruned, or published again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.delivery.delivery import NatsResults
from ioa.adapters.nats.stores.goal_records import NatsGoalRecords
from ioa.adapters.nats.streams.group_log import NatsGroupLog
from ioa.adapters.nats.streams.retention import NatsEndedGoals
from ioa.adapters.nats.streams.topology import DEAD, GOAL_RECORDS, LOG, RESULTS
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.system_clock import SystemClock
from ioa.errors import ConflictError, NotFoundError
from ioa.protocol import subjects
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName, comm_id_of_goal
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, Payload
from ioa.protocol.retention import Prune, Pruned
from tests.integration.control_plane.conversation import ADA, BOB, Caller
from tests.rig.deadline import eventually
from tests.rig.processes import ServiceProcesses, open_services

SERVICES = ("ioa_registry", "ioa_groups", "ioa_router")
GOAL = GoalId("goal-1")
ROOM = comm_id_of_goal(GOAL)


@pytest.fixture
async def services(nats_url: str, tmp_path: Path) -> AsyncIterator[ServiceProcesses]:
    """The control plane, ready; agents keep their leases for as long as a test takes."""
    async with open_services(nats_url, tmp_path / "logs", {"IOA_LEASE": "60"}) as processes:
        await processes.start(*SERVICES, replicas=1)
        yield processes


@pytest.fixture
async def caller(services: ServiceProcesses, nats_url: str) -> AsyncIterator[Caller]:
    """Somebody outside, with two agents."""
    assert services.running("ioa_router")
    async with open_connection(NatsSettings(nats_url, "caller")) as client:
        caller = Caller(client)
        await caller.register(ADA, BOB)
        yield caller


async def conclude(caller: Caller, goal_id: GoalId, timeout: float) -> GoalResult:
    """Have a goal concluded."""
    await caller.publish_goal(goal_id, timeout=timeout)
    comm_id = (await caller.launch(goal_id, ADA, BOB)).state.comm_id
    payloads: tuple[Payload, ...] = (ConcludeGroupDiscussion(), Conclusion(content="Ten."))
    for number, payload in enumerate(payloads):
        await caller.say(comm_id, ADA, payload, (await caller.state(comm_id)).turn, number)
    return await caller.result(goal_id)


async def restart_router(services: ServiceProcesses) -> None:
    """Kill the router and start another one."""
    for replica in services.running("ioa_router"):
        await replica.kill()
    await services.start("ioa_router", replicas=1)


async def timers_came_back(caller: Caller, goal_id: GoalId) -> None:
    """Return when the routers have acted on all that was due by now: a goal that nobody takes ends by the last timer."""
    await caller.publish_goal(goal_id, timeout=0.5)
    assert (await caller.result(goal_id)).reason is Reason.DEADLINE


def _now() -> datetime:
    return SystemClock().now()


async def kept(caller: Caller) -> tuple[bool, GoalResult | None]:
    """Whether the goal has a log, and its result."""
    log, results = NatsGroupLog(caller.client), NatsResults(caller.client.jetstream())
    return await log.last(ROOM) is not None, await results.get(GoalName(LOCAL, GOAL))


async def test_a_success_never_becomes_a_failure(caller: Caller, services: ServiceProcesses) -> None:
    """After its deadline, with its log purged by hand or everything removed, a restarted router writes neither entry nor result."""
    js = caller.client.jetstream()
    result = await conclude(caller, GOAL, timeout=2.0)
    await timers_came_back(caller, GoalId("probe-0"))
    await eventually(lambda: NatsGoalRecords(js).find(ROOM), lambda found: found is not None and found.deadline < _now())
    await js.purge_stream(LOG, subject=subjects.log(ROOM))
    await restart_router(services)
    await timers_came_back(caller, GoalId("probe-1"))
    assert await kept(caller) == (False, result)
    with pytest.raises(ConflictError, match="has ended"):
        await caller.launch(GOAL, ADA, BOB)
    pruned = await caller.ask(subjects.admin(LOCAL, subjects.PRUNE), Prune(older_than=timedelta(0)), Pruned)
    assert (pruned.goals, pruned.failed, pruned.after) == ({"concluded": 1, "deadline": 2}, 0, None)
    await restart_router(services)
    await timers_came_back(caller, GoalId("probe-2"))
    assert await kept(caller) == (False, None)
    ended = await NatsEndedGoals(js).find(GoalName(LOCAL, GOAL))
    assert ended is not None
    assert (ended.reason, ended.ended_at) == (Reason.CONCLUDED, result.finished_at)


async def test_a_removed_goal_published_again_is_told_that_it_ended(caller: Caller) -> None:
    """It is a dead letter that says when and how; nothing of it is kept, and whoever asks for the goal is told the same."""
    js, system = caller.client.jetstream(), NatsSystemClient(caller.client)
    await conclude(caller, GOAL, timeout=60.0)
    await system.prune(Prune(older_than=timedelta(0)))
    for text in ("Count to ten.", "Count to eleven."):
        await js.publish(subjects.goal_of(LOCAL), json.dumps({"goal": text, "goal_id": GOAL}).encode())

    async def letters() -> list[str]:
        info = await js.stream_info(DEAD, subjects_filter=">")
        return sorted(subject.rpartition(".")[2] for subject in info.state.subjects or {})

    assert await eventually(letters, lambda found: len(found) == 2) == ["conflict", "ended"]
    letter = await js.get_last_msg(DEAD, subjects.dead("ended"))
    assert "concluded" in (letter.headers or {})["Ioa-Reason"]
    for asking in (system.goal(GOAL), system.wait_for_result(GOAL)):
        with pytest.raises(NotFoundError, match="has ended \\(concluded"):
            await asking
    streams = [await js.stream_info(name) for name in (LOG, RESULTS, f"KV_{GOAL_RECORDS}")]
    assert [info.state.messages for info in streams] == [0, 0, 0]


async def test_group_setup_removes_by_itself(nats_url: str, tmp_path: Path) -> None:
    """With a short time to keep, a goal is gone some time after its end without anybody asking."""
    env = {"IOA_LEASE": "60", "IOA_KEEP": "1"}
    async with (
        open_services(nats_url, tmp_path / "logs", env) as services,
        open_connection(NatsSettings(nats_url, "caller")) as client,
    ):
        await services.start("ioa_registry", "ioa_router", "ioa_groups", replicas=1)
        caller, records = Caller(client), NatsGoalRecords(client.jetstream())
        await caller.register(ADA, BOB)
        ended_at = (await conclude(caller, GOAL, timeout=60.0)).finished_at
        for replica in services.running("ioa_groups"):
            await replica.kill()
        await eventually(_now, lambda now: now > ended_at + timedelta(seconds=1))
        await services.start("ioa_groups", replicas=1)
        await eventually(lambda: records.find(ROOM), lambda found: found is None)
        ended = await NatsEndedGoals(client.jetstream()).find(GoalName(LOCAL, GOAL))
    assert ended is not None and ended.reason is Reason.CONCLUDED
