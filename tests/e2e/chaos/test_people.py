"""Gateways and routers die while a person takes its turn: each answer is taken once, and none is lost."""

from __future__ import annotations

import asyncio
import random
from itertools import cycle

import httpx
import pytest

from ioa.adapters.nats.stores.api_key_store import NatsApiKeys
from ioa.client.client import Client
from ioa.client.history import conversation
from ioa.group.events import Said
from ioa.protocol.ids import comm_id_of_goal
from ioa.telemetry.health import open_socket
from tests.integration.gateway.serving import BEARER, key
from tests.rig.deadline import eventually
from tests.rig.fleet import GROUPS, ROUTERS, Fleet

pytestmark = [pytest.mark.faults, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

GATEWAYS = ("gateway-0", "gateway-1")
KILLS = 20
TEAM = {
    "team": "desk",
    "leader": "boss",
    "roles": {"clerk": "load", "boss": {"human": "anna"}},
    "nodes": [
        {"name": "ask", "roles": ["clerk"], "opens": {"role": "clerk", "say": "What next?"}, "max": 1, "then": "answer"},
        {"name": "answer", "roles": ["boss"], "max": KILLS},
    ],
}


class _Door:
    """Two gateways; whoever asks goes on to the other one until somebody answers."""

    def __init__(self, fleet: Fleet, ports: list[int]) -> None:
        self._fleet = fleet
        self._ports = dict(zip(GATEWAYS, ports, strict=True))
        self._clients = [httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/v1", headers=BEARER, timeout=3) for port in ports]
        self._next = cycle(self._clients)

    async def start(self, name: str) -> None:
        """Start a gateway."""
        await self._fleet.start(name, env={"IOA_HTTP_PORT": str(self._ports[name])})

    async def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Ask until there is an answer, each time the other one."""
        while True:
            try:
                told = await next(self._next).request(method, path, json=body)
            except httpx.TransportError:
                await asyncio.sleep(0.05)
                continue
            if told.status_code < 500:
                return told
            await asyncio.sleep(0.05)

    async def close(self) -> None:
        """Leave both."""
        for client in self._clients:
            await client.aclose()


async def _turn(door: _Door) -> dict[str, object]:
    """What waits, once something does."""

    async def look() -> list[dict[str, object]]:
        waiting: list[dict[str, object]] = (await door.ask("GET", "/seats/anna")).json()["waiting"]
        return waiting

    return (await eventually(look))[0]


async def test_a_person_is_heard_once_whatever_dies(fleet: Fleet) -> None:
    """Twenty times something is killed in its turn, and the system is renewed while one waits; its words stand there once each."""
    with open_socket("127.0.0.1", 0, "IOA_HTTP_PORT") as one, open_socket("127.0.0.1", 0, "IOA_HTTP_PORT") as other:
        door = _Door(fleet, [one.getsockname()[1], other.getsockname()[1]])
    await NatsApiKeys(fleet.client).put(key())
    for name in GATEWAYS:
        await door.start(name)
    launched = await door.ask("POST", "/goals", {"goal": "Say it all.", "team": TEAM, "timeout": 120})
    goal_id, chance, said = launched.json()["goal_id"], random.Random(7), list[str]()
    await _turn(door)
    for name in (*GROUPS, *ROUTERS, *GATEWAYS):  # as an upgrade does, while the person has not answered yet
        await fleet.stop(name)
        await (door.start(name) if name in GATEWAYS else fleet.start(name))
    for number in range(KILLS):
        waits, words, victim = await _turn(door), f"answer {number}", chance.choice((*GATEWAYS, *ROUTERS))
        order = {"seat": "anna", "turn": waits["turn"], "payload": {"text": words}}
        path = f"/groups/{waits['comm_id']}/messages"
        async with asyncio.TaskGroup() as side:
            sending = side.create_task(door.ask("POST", path, order))
            await asyncio.sleep(chance.random() * 0.02)
            await fleet.kill(victim)
            await (door.start(victim) if victim in GATEWAYS else fleet.start(victim))
        again = await door.ask("POST", path, order)
        said.append(words)
        assert {(one.status_code, one.text) for one in (sending.result(), again)} == {(201, again.text)}, number
    waits = await _turn(door)
    last = {"seat": "anna", "turn": waits["turn"], "payload": {"text": "That is all."}}
    assert (await door.ask("POST", f"/groups/{waits['comm_id']}/messages", last)).status_code == 201
    ended = await eventually(lambda: _result(door, goal_id))
    assert ended["content"] == "That is all."
    log = [one.entry.event for one in await conversation(Client(fleet.client), comm_id_of_goal(goal_id))]
    mine = [one.message.payload for one in log if isinstance(one, Said) and one.message.header.sender == "human-anna"]
    assert [getattr(one, "content", "") for one in mine] == [*said, "That is all."]
    await door.close()


async def _result(door: _Door, goal_id: str) -> dict[str, str]:
    told = await door.ask("GET", f"/goals/{goal_id}/result")
    result: dict[str, str] = told.json() if told.status_code == 200 else {}
    return result
