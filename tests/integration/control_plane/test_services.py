"""The control plane as it runs: registry, group setup and router as processes in two replicas each, on a real nats-server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.stores.registry_view import NatsCards
from ioa.adapters.nats.streams.topology import DEAD, LOG
from ioa.adapters.nats.system_client import open_system
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.errors import NoAgentError, NotFoundError, PayloadTooLargeError
from ioa.group.requests import CancelGroup
from ioa.protocol import subjects
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, AgentId, GoalId, PoolId, comm_id_of_goal
from ioa.protocol.messages import Discussion
from ioa.protocol.registry import Acknowledged, Agents, Deregister, GetAgents, Lease, ListAgents, Register, Renew
from ioa.protocol.registry_records import CardRecord
from tests.integration.control_plane.conversation import ADA, BOB, EVE, Caller, check, converse
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash
from tests.rig.processes import ServiceProcesses, open_services
from tests.unit.group.scenario import START, card

SERVICES = ("ioa_registry", "ioa_groups", "ioa_router")


@pytest.fixture
def lease() -> int:
    """For how many seconds an agent counts as alive: longer than a busy machine keeps a renewal waiting."""
    return 20


@pytest.fixture
async def services(nats_url: str, tmp_path: Path, lease: int) -> AsyncIterator[ServiceProcesses]:
    """The control plane, ready."""
    env = {"IOA_LEASE": str(lease), "IOA_RENEW_EVERY": "0.5"}
    async with open_services(nats_url, tmp_path / "logs", env) as processes:
        await processes.start(*SERVICES)
        yield processes


@pytest.fixture
async def caller(services: ServiceProcesses, nats_url: str) -> AsyncIterator[Caller]:
    """Somebody outside, with three agents that keep their leases."""
    assert services.running("ioa_router")
    async with open_connection(NatsSettings(nats_url, "caller")) as client:
        caller = Caller(client)
        await caller.register(ADA, BOB, EVE)
        keeper = asyncio.create_task(_renew(caller))
        yield caller
        keeper.cancel()
        await asyncio.wait([keeper])


async def _renew(caller: Caller) -> None:
    while True:
        renewals = [
            caller.ask(subjects.agent(PoolId(agent_id), agent_id, subjects.RENEW), Renew(agent_id=agent_id), Lease)
            for agent_id in (ADA, BOB, EVE)
        ]
        await asyncio.gather(*renewals)
        await asyncio.sleep(0.5)


async def online(caller: Caller) -> list[str]:
    """Who is alive."""
    agents = (await caller.ask(subjects.user(LOCAL, subjects.LIST_AGENTS), ListAgents(online_only=True), Agents)).agents
    return [status.card.agent_id for status in agents]


@pytest.mark.parametrize("lease", [2])
async def test_agents_come_go_and_are_not_forgotten(caller: Caller) -> None:
    """An agent that stops renewing goes offline on every replica, keeps its card, and may come back by renewing."""
    zoe = AgentId("zoe")
    await caller.register(zoe)
    await eventually(lambda: online(caller), lambda ids: ids == ["ada", "bob", "eve", "zoe"])
    for _ in range(8):
        await eventually(lambda: online(caller), lambda ids: ids == ["ada", "bob", "eve"])
    known = await caller.ask(subjects.user(LOCAL, subjects.GET_AGENTS), GetAgents(agent_ids=(zoe,)), Agents)
    assert [(status.card.agent_id, status.online) for status in known.agents] == [("zoe", False)]
    await caller.ask(subjects.agent(PoolId(zoe), zoe, subjects.RENEW), Renew(agent_id=zoe), Lease)
    await eventually(lambda: online(caller), lambda ids: "zoe" in ids)
    await caller.ask(subjects.agent(PoolId(zoe), zoe, subjects.DEREGISTER), Deregister(agent_id=zoe), Acknowledged)
    await eventually(lambda: online(caller), lambda ids: "zoe" not in ids, within=timedelta(seconds=1))
    with pytest.raises(NotFoundError):
        await caller.ask(
            subjects.agent(PoolId("nobody"), AgentId("nobody"), subjects.RENEW), Renew(agent_id=AgentId("nobody")), Lease
        )


async def test_conversations_side_by_side_lose_nothing_when_replicas_die(caller: Caller, services: ServiceProcesses) -> None:
    """While every message is sent twice in a dozen groups, one replica of each service is killed: all logs are whole and legal."""
    goals = [GoalId(f"goal-{number}") for number in range(12)]

    async def entries_in_thirties() -> int:
        return (await caller.client.jetstream().stream_info(LOG)).state.messages // 30

    async with asyncio.TaskGroup() as group:
        talks = [group.create_task(converse(caller, goal_id)) for goal_id in goals]
        for number, module in enumerate(("ioa_router", "ioa_groups", "ioa_registry"), start=1):
            await eventually(entries_in_thirties, number.__le__)
            await services.running(module)[0].kill()
    assert [talk.result() for talk in talks] == [comm_id_of_goal(goal_id) for goal_id in goals]
    for goal_id in goals:
        await check(caller, goal_id)


@pytest.mark.slow
async def test_any_part_may_be_killed_and_started_again(
    caller: Caller, services: ServiceProcesses, nats_server: NatsServer
) -> None:
    """After each part and then everything was killed while idle and started again, goals work and all records are there.

    At last each service ends in good order, whether there is a nats-server or not.
    """
    goals = [GoalId("goal-0")]
    await converse(caller, goals[0])
    for part in (*SERVICES, "nats-server", "everything"):
        killed = SERVICES if part == "everything" else (part,)
        for module in killed:
            for replica in services.running(module):
                await replica.kill()
        if part in ("nats-server", "everything"):
            await crash(nats_server)
        if part == "nats-server":
            await nats_server.start()
        else:
            # Services that start before nats-server wait for it.
            await asyncio.gather(services.start(*killed), nats_server.start())
        goals.append(GoalId(f"after-{part.replace('_', '-')}"))
        await caller.register(ADA, BOB, EVE)
        await converse(caller, goals[-1])
    for goal_id in goals:
        await check(caller, goal_id)
    codes = [await services.running(module)[0].stop() for module in SERVICES]
    await crash(nats_server)
    assert codes + await services.stop_all() == [0] * 6


async def test_deadlines_and_refusals_hold_over_the_wire(caller: Caller, services: ServiceProcesses) -> None:
    """A silent group ends at its deadline, a cancelled one at once; strangers, impostors, the absent and garbage are refused."""
    late, cancelled, nobody = GoalId("late"), GoalId("cancelled"), GoalId("nobody")
    for goal_id, timeout in ((late, 2.0), (cancelled, 60), (nobody, 1.5)):
        await caller.publish_goal(goal_id, timeout=timeout)
    with pytest.raises(NoAgentError):
        await caller.launch(cancelled, ADA, AgentId("absent"))
    comm_id = (await caller.launch(cancelled, ADA, BOB)).state.comm_id
    await caller.launch(late, ADA, BOB)
    with pytest.raises(NotFoundError):
        await caller.entries(comm_id, EVE)
    with pytest.raises(NotFoundError):
        await caller.state(comm_id_of_goal(GoalId("unknown")))
    with pytest.raises(NotFoundError):
        await caller.say(comm_id, EVE, Discussion(content="Hello.", next_speaker=ADA), 1, 1)
    await caller.ask(subjects.user(LOCAL, subjects.CANCEL), CancelGroup(goal_id=cancelled, why="Enough."), Acknowledged)
    await caller.client.jetstream().publish(subjects.goal_of(LOCAL), b'{"goal": "x", "goal_id": 7}')
    ended = [(await caller.result(goal_id)).reason for goal_id in (late, cancelled, nobody)]
    assert ended == [Reason.DEADLINE, Reason.CANCELLED, Reason.DEADLINE]

    async def letters() -> int:
        return (await caller.client.jetstream().stream_info(DEAD)).state.messages

    assert await eventually(letters) == 1
    assert len(services.running("ioa_router")) == 2


async def test_two_hundred_rich_agents_are_listed(caller: Caller, nats_url: str) -> None:
    """Whoever asks for all agents gets all of them, although their cards together are larger than any message."""
    examples = ("e" * 460,) * 12
    rich = [card(f"rich-{number:03}").model_copy(update={"examples": examples}) for number in range(200)]
    for one in rich:
        await NatsCards(caller.client).put(CardRecord(card=one, registered_at=START))

    async with open_system(NatsSettings(nats_url, "lister"), patience=timedelta(seconds=5)) as system:
        listed = await eventually(system.agents, lambda found: len(found) == len(rich) + 3)
    assert [status.card.agent_id for status in listed][3:] == [one.agent_id for one in rich]


async def test_a_card_too_large_is_told_to_who_registers(caller: Caller) -> None:
    """The error names the limit, and what to shorten."""
    large = card("large").model_copy(update={"examples": ("e" * 4_000,) * 5})
    with pytest.raises(PayloadTooLargeError, match="16,000 are allowed"):
        await caller.ask(subjects.agent(large.pool, large.agent_id, subjects.REGISTER), Register(card=large), Lease)
