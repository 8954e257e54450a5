"""Outages longer than a lease, with the real processes: agents that were never away are online, in their groups, and found."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.agent_network import NatsAgentNetwork
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.adapters.nats.streams.group_log import NatsGroupLog
from ioa.adapters.nats.streams.topology import SESSIONS, stream_of
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import NatsServer, open_nats_server
from ioa.agent.send import until_answered
from ioa.concurrency import beside, together
from ioa.errors import IoaError, NotFoundError, UnavailableError
from ioa.group.events import MemberLost, MemberReturned
from ioa.protocol import subjects
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, PoolId, SessionId
from ioa.protocol.registry import Agents, ListAgents, Register, Renew
from tests.integration.control_plane.conversation import ADA, BOB, EVE, Caller
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash
from tests.rig.processes import ServiceProcesses, open_services
from tests.rig.standstill import freeze, thaw
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import session

# nats-py drops the socket of an attempt to connect that a frozen server never answers; Python closes it, and says so.
_DROPPED = pytest.mark.filterwarnings("ignore:.*StreamWriter:pytest.PytestUnraisableExceptionWarning")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150), _DROPPED]

LEASE, RENEW_EVERY = timedelta(seconds=6), timedelta(seconds=1)
TEAM = (ADA, BOB, EVE)

Fault = Callable[[ServiceProcesses, NatsServer], Awaitable[None]]


async def _pass(leases: float) -> None:
    """Let as much time pass as the fault is to last: it is the fault."""
    await asyncio.sleep(leases * LEASE.total_seconds())


async def nats_frozen(_services: ServiceProcesses, server: NatsServer) -> None:
    """nats-server stands still, and goes on."""
    freeze(server.pid)
    await _pass(1.5)
    thaw(server.pid)


async def nats_dead(_services: ServiceProcesses, server: NatsServer) -> None:
    """nats-server is killed, and started again."""
    await crash(server)
    await _pass(1.5)
    await server.start()


async def every_registry_dead(services: ServiceProcesses, _server: NatsServer) -> None:
    """All replicas of the registry are killed, and started again."""
    for replica in services.running("ioa_registry"):
        await replica.kill()
    await _pass(1.5)
    await services.start("ioa_registry")


async def one_registry_frozen(services: ServiceProcesses, _server: NatsServer) -> None:
    """One of two registries stands still, and goes on."""
    frozen = services.running("ioa_registry")[0].pid
    freeze(frozen)
    await _pass(2.5)
    thaw(frozen)


async def group_setup_frozen(services: ServiceProcesses, _server: NatsServer) -> None:
    """The only group setup, which tells groups who is lost, stands still, and goes on."""
    frozen = services.running("ioa_groups")[0].pid
    freeze(frozen)
    await _pass(1.5)
    thaw(frozen)


@asynccontextmanager
async def control_plane(server: NatsServer, logs: Path) -> AsyncIterator[ServiceProcesses]:
    """Two registries, one group setup and one router."""
    env = {"IOA_LEASE": str(LEASE.total_seconds()), "IOA_RENEW_EVERY": str(RENEW_EVERY.total_seconds())}
    async with open_services(server.url, logs, env) as processes:
        await processes.start("ioa_registry")
        await processes.start("ioa_groups", "ioa_router", replicas=1)
        yield processes


@pytest.fixture
async def services(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[ServiceProcesses]:
    """The control plane, ready."""
    async with control_plane(nats_server, tmp_path / "logs") as processes:
        yield processes


@asynccontextmanager
async def living(server: NatsServer, *agents: AgentId) -> AsyncIterator[Caller]:
    """Agents that register, and renew as agents do, each over a connection of its own."""

    async def live(agent_id: AgentId) -> None:
        async with open_connection(NatsSettings(server.url, agent_id)) as client:
            network = NatsAgentNetwork(client)
            while True:
                await until_answered(network.renew, Renew(agent_id=agent_id))
                await asyncio.sleep(RENEW_EVERY.total_seconds())

    async with open_connection(NatsSettings(server.url, "caller")) as client:
        caller = Caller(client)
        await caller.register(*agents)
        async with beside(*(live(agent_id) for agent_id in agents)):
            yield caller


async def online(caller: Caller) -> list[str]:
    """Who is alive, as a registry sees it."""
    agents = (await caller.ask(subjects.user(LOCAL, subjects.LIST_AGENTS), ListAgents(online_only=True), Agents)).agents
    return [status.card.agent_id for status in agents]


async def losses(caller: Caller, comm_id: CommId) -> list[AgentId]:
    """Who was said to be lost, or back, in a group."""
    log = NatsGroupLog(caller.client)
    entries = await until_answered(log.read, comm_id, after=0, limit=100)
    return [one.entry.event.agent_id for one in entries if isinstance(one.entry.event, MemberLost | MemberReturned)]


Seen = tuple[list[str], tuple[AgentId, ...], list[AgentId]]
"""Who is online, who is in the group that was opened after the fault, and who was said to be lost, or back, in the one before."""


async def _seen_by(fault: Fault, folder: Path) -> Seen:
    """Have a fault happen to a system of its own."""
    async with (
        open_nats_server(folder / "nats", None) as server,
        control_plane(server, folder / "logs") as services,
        living(server, *TEAM) as caller,
    ):
        await eventually(lambda: online(caller), lambda ids: ids == sorted(TEAM))
        await caller.publish_goal(GoalId("before"))
        comm_id = (await caller.launch(GoalId("before"), *TEAM)).state.comm_id
        await fault(services, server)
        # No NoAgentError: a team can be formed of them as soon as the system answers.
        await caller.publish_goal(GoalId("after"))
        launched = await caller.launch(GoalId("after"), *TEAM)
        await _pass(1.3)
        return await online(caller), launched.state.living(), await losses(caller, comm_id)


@pytest.mark.nightly
async def test_nobody_is_lost_by_an_outage(tmp_path: Path) -> None:
    """A fault that lasts longer than a lease loses no member and no agent, neither at once nor when it is over.

    All faults at once, each of a system of its own, since each is but waited for.
    """
    faults = (nats_frozen, nats_dead, every_registry_dead, one_registry_frozen, group_setup_frozen)
    seen = await together(*(_seen_by(fault, tmp_path / fault.__name__) for fault in faults))
    names = [fault.__name__ for fault in faults]
    assert dict(zip(names, seen, strict=True)) == dict.fromkeys(names, (sorted(TEAM), TEAM, []))


@pytest.mark.nightly
async def test_who_dies_is_lost_although_the_system_had_an_outage(services: ServiceProcesses, nats_server: NatsServer) -> None:
    """An agent that died while nats-server was away is told from those that could not be heard."""
    async with living(nats_server, ADA, BOB) as caller, living(nats_server, EVE) as eve:
        await caller.publish_goal(GoalId("before"))
        comm_id = (await caller.launch(GoalId("before"), *TEAM)).state.comm_id
        await eve.client.close()
        await nats_frozen(services, nats_server)
    async with living(nats_server, ADA, BOB) as caller:
        # A machine that stands still for half a lease is an outage of its own, and is forgiven, too: it may take several leases.
        assert await eventually(lambda: losses(caller, comm_id), bool, within=LEASE * 15) == [EVE]


async def test_lost_session_is_stored_again(services: ServiceProcesses, nats_server: NatsServer) -> None:
    """When the bucket of sessions was deleted, a renewal asks the agent to register, which stores its session again."""
    assert services.running("ioa_registry")
    async with living(nats_server, BOB) as caller:
        held, network = session(SessionId("s1")), NatsAgentNetwork(caller.client)
        register = Register(card=card("ada"), session=held, previous=held.session)
        await network.register(register)
        await caller.client.jetstream().delete_stream(stream_of(SESSIONS))

        async def renewal() -> type[IoaError] | None:
            try:
                await network.renew(Renew(agent_id=ADA, pool=PoolId(ADA), session=held.session))
            except (NotFoundError, UnavailableError) as error:
                return type(error)
            return None

        assert await eventually(renewal, lambda raised: raised is NotFoundError, within=timedelta(seconds=30))
        await network.register(register)
        stored = await NatsSessions(caller.client).read(ADA)
        after = await renewal()
    assert (stored is not None and stored.claim is not None and stored.claim.session, after) == (held, None)
