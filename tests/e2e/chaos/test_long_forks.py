"""A goal of 1,501 entries is forked: others' goals go on meanwhile, and group setup may die in the middle of the copy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.agent_network import NatsAgentNetwork
from ioa.adapters.nats.inspection import NatsInspection
from ioa.adapters.nats.server import NatsServer
from ioa.beside import beside
from ioa.client.client import END, Client, Group
from ioa.errors import UnavailableError
from ioa.group.events import Said
from ioa.ports.group_log import StoredEntry
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import GoalId, PoolId, comm_id_of_goal
from ioa.protocol.messages import Discussion, Phase
from ioa.protocol.registry import Register
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, GOAL, ROOM, Members, order
from tests.e2e.chaos.conftest import QUICK
from tests.rig.deadline import eventually
from tests.rig.fleet import CONTROL_PLANE, GROUPS, WORKERS, Fleet, open_fleet

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600), pytest.mark.blocks_loop]  # a busy machine copies for long

_ENTRIES = 1_501
_FORK = GoalId("again")
_COPY = comm_id_of_goal(_FORK)
_MEANWHILE = timedelta(minutes=4)


@pytest.fixture
async def fleet(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Fleet]:
    """The whole system; what is registered stays, since the two who talk renew nothing."""
    async with open_fleet(nats_server.url, tmp_path / "fleet", {**QUICK, "IOA_LEASE": "600", "IOA_FLOOR_TIMEOUT": "300"}) as fleet:
        await fleet.start(*CONTROL_PLANE, *WORKERS)
        await fleet.until_online()
        yield fleet


async def _long_talk(fleet: Fleet, members: Members, client: Client) -> StoredEntry:
    """Have two talk until there are so many entries; return the last one."""
    await client.launch(order(max_turns=10_000, timeout=1_200))
    await members.launch()
    for number in range(_ENTRIES - 1):
        speaker, listener = (ADA, BOB) if number % 2 == 0 else (BOB, ADA)
        await members.say(speaker, Discussion(content=f"{number}", next_speaker=listener))
    [last] = await client.entries(Group(ROOM), before=END, limit=1)
    return last


async def _copied(client: Client) -> int:
    """How many entries the copy has, of which each tells how many are to come."""
    found = await client.entries(Group(_COPY), before=END, limit=1)
    return 0 if not found else _ENTRIES - found[0].entry.state.copying


async def _goes_on(client: Client) -> bool:
    found = await client.entries(Group(_COPY), before=END, limit=1)
    return bool(found) and not found[0].entry.state.copying


async def test_a_long_goal_is_forked_while_others_go_on(fleet: Fleet) -> None:
    """Goals of others end while it is copied; killed in the middle, the copy is finished by whoever comes next, each entry once."""
    inspection = NatsInspection(fleet.client)
    network = NatsAgentNetwork(fleet.client)
    members = Members(Plane(inspection.system, network, inspection))
    client, ended_meanwhile = Client(inspection.system), 0
    async with beside(network.take_goals(ADA, PoolId(ADA), members.given, max_concurrent=1, anybodys=False)):
        for one in (ADA, BOB):
            await network.register(Register(card=AgentCard(agent_id=one, name=one, description="counts", pool=PoolId(one))))
        last = await _long_talk(fleet, members, client)
        forking = asyncio.create_task(client.fork(GOAL, at=last.seq, goal_id=_FORK, accepted_within=_MEANWHILE))
        await eventually(lambda: _copied(client), lambda copied: copied > _ENTRIES // 4, within=_MEANWHILE)
        for name in GROUPS:
            await fleet.kill(name)
        left = await _copied(client)
        await fleet.start(*GROUPS)
        number = 0
        while not await _goes_on(client):
            number += 1
            await fleet.publish(GoalId(f"while-{number}"), "talk")
            await eventually(lambda number=number: client.result(f"while-{number}"), within=_MEANWHILE)  # type: ignore[misc]
            ended_meanwhile += not await _goes_on(client)
        with suppress(UnavailableError):
            await forking
    entries = await inspection.system.entries(_COPY)
    original = await inspection.system.entries(ROOM)
    said = [[one.entry.event.message.payload for one in log if isinstance(one.entry.event, Said)] for log in (original, entries)]
    assert (left < _ENTRIES, len(original), len(entries), said[0] == said[1]) == (True, _ENTRIES, _ENTRIES + 1, True)
    assert entries[-1].entry.state.phase is Phase.DISCUSSING
    assert ended_meanwhile > 0, "nobody's goal ended while it was copied"
