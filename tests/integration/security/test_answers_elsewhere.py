"""Answers go to whatever subject who asks has named: no permission covers that. Blamed for them is who asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from nats.aio.msg import Msg

from ioa.adapters.nats.accounts import AGENTS
from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.connections import NatsConnections
from ioa.adapters.nats.inspection import open_inspection
from ioa.adapters.nats.permissions import PULLS, TAKEN, WHO_AM_I, of_agent, of_auditor, of_gateway, of_observer, of_user
from ioa.adapters.nats.server import open_nats_server
from ioa.adapters.nats.sinks import MessageSink
from ioa.adapters.nats.topology import AUDIT, DEAD
from ioa.adapters.nkey_seeds import public_key_of, read_key
from ioa.ports.connections import ConnectionId, SentTotals
from ioa.ports.delivery import DeadReason
from ioa.ports.inspection import FLOOD
from ioa.protocol import subjects
from ioa.protocol.ids import GoalId, GoalName, PoolId, TenantId, UserId
from ioa.protocol.stream_reads import ReadStream
from ioa.quotas import Family
from tests.integration.security.secured import open_intruder, open_once, until_told
from tests.integration.security.town import BOB, EVE, MALLORY, SOON, USER, Town
from tests.rig.deadline import eventually

_LETTERS = 1_000
_AT_ONCE = 1_000
"""How many messages somebody may send at once where a registry hears of twice as many pulls at most."""
_MANY = 1_200
"""Pulls, after which a registry subscribes anew: more than half of those that it hears on one subscription."""
_HEARD_BY_ALL = subjects.result_of(GoalName(USER, GoalId("g1")))


@pytest.mark.parametrize("reply", ["nobody.hears", _HEARD_BY_ALL])
async def test_who_asks_is_blamed_and_not_who_is_sent_to(town: Town, reply: str) -> None:
    """Eve reads much, and has it sent to nobody, or to where another user listens: she alone is named, by her key."""
    request = ReadStream(seq=1, next_by_subj=">", batch=_LETTERS).model_dump_json().encode()
    async with open_intruder(town.secured, "admin") as admin:
        js = admin.jetstream()
        await asyncio.gather(*(js.publish(subjects.dead(DeadReason.UNREADABLE), b"{}", stream=DEAD) for _ in range(_LETTERS)))
    seeds = [read_key(str(town.secured.folder / user / "seed")).seed for user in (USER, EVE)]
    async with (
        open_inspection(town.secured.settings("observer"), patience=SOON) as inspection,
        open_once(town.secured.server.url, nkeys_seed_str=seeds[0]) as anna,
        open_once(town.secured.server.url, nkeys_seed_str=seeds[1]) as eve,
    ):
        for _ in range(3):
            await anna.subscribe(_HEARD_BY_ALL, future=MessageSink(lambda _message: None))
        await anna.flush()
        for _ in range(80):
            await eve.publish(subjects.read(DEAD), request, reply=reply)
        slowed = await until_told(inspection, lambda found: Family.READS in {one.family for one in found}, within=SOON)
    assert [one.caller for one in slowed if one.family in (Family.READS, FLOOD)] == [f"IOA_USERS {public_key_of(seeds[1])}"]


@pytest.mark.parametrize(
    ("name", "key", "asked"),
    [
        ("eve", "seed", subjects.LIST_AGENTS),
        ("observer", "seed", subjects.LIST_AGENTS),
        ("auditor", "seed", subjects.read(AUDIT)),
        ("mallory", "mallory", subjects.memberships(MALLORY)),
    ],
)
async def test_no_answer_is_a_request(town: Town, name: str, key: str, asked: str) -> None:
    """Whatever the control plane is asked by anybody outside, and the gateway alone may write, no answer comes out there."""
    roles = (of_gateway(), of_user(USER), of_observer(), of_auditor(), of_agent(BOB, PoolId(BOB)))
    targets = {one.replace("*", BOB) for role in roles for one in role.publish} - {WHO_AM_I}
    heard = list[str]()

    def hear(message: Msg) -> None:
        if "Nats-Service-Error-Code" in (message.headers or {}):
            heard.append(message.subject)

    async with open_intruder(town.secured, "admin") as admin, open_intruder(town.secured, name, key) as intruder:
        for target in targets:
            await admin.subscribe(target, future=MessageSink(hear))
        await admin.flush()
        for target in targets:
            await intruder.publish(asked, b"\xff", reply=target)
            await asyncio.sleep(0.01)  # who asks faster is told to come later, or nothing
        await intruder.request(asked, b"\xff", timeout=SOON.total_seconds())
        await admin.flush()
    assert heard == []


async def test_a_pull_counts_once_however_long_a_registry_has_listened(tmp_path: Path) -> None:
    """What was heard of pulls before multiplies none that comes later."""
    told: list[int] = []
    puller = {"Nats-Request-Info": json.dumps({"acc": AGENTS, "user": "UBOB"})}
    async with (
        open_nats_server(tmp_path, None) as server,
        open_connection(NatsSettings(server.url, "registry")) as client,
        open_connection(NatsSettings(server.url, "bob")) as bob,
    ):
        connections = NatsConnections(client, _AT_ONCE)
        async with connections.hearing(_Pulls(told)):
            for wanted in (_MANY, 2 * _MANY, 3 * _MANY):
                await connections.count()
                await client.flush()
                for _ in range(_MANY):
                    await bob.publish(f"{PULLS}any", b'{"batch":1}', headers=puller)
                await bob.flush()
                await eventually(partial(_is_heard, told, wanted), within=SOON)
                await client.flush()
    assert len(told) == 3 * _MANY


async def test_what_costs_nothing_hides_nothing(tmp_path: Path) -> None:
    """Whatever somebody may send at once is heard, and so is what stands at its end and costs the server much."""
    told: list[int] = []
    puller = {"Nats-Request-Info": json.dumps({"acc": AGENTS, "user": "UBOB"})}
    acknowledgement = TAKEN.replace(">", "any.1.1.1.1.1")
    async with (
        open_nats_server(tmp_path, None) as server,
        open_connection(NatsSettings(server.url, "registry")) as client,
        open_connection(NatsSettings(server.url, "bob")) as bob,
    ):
        connections = NatsConnections(client)
        async with connections.hearing(_Pulls(told)):
            for used in (4_000, 20_000):  # what was heard of before the last count leaves as much to be heard of
                await connections.count()
                await client.flush()
                for _ in range(used):
                    await bob.publish(acknowledgement, b"+WPI", headers=puller)
                await bob.flush()
            await bob.publish(acknowledgement, b"+NXT", headers=puller)
            await bob.flush()
            await eventually(partial(_is_heard, told, 1), within=SOON)


def _is_heard(told: Sequence[int], number: int) -> bool:
    return len(told) >= number


class _Pulls:
    """Hears pulls, and nothing else."""

    def __init__(self, told: list[int]) -> None:
        self._told = told

    def opened(self, sent: SentTotals) -> None:
        """Pass over who has come."""

    def closed(self, sent: SentTotals) -> None:
        """Pass over who has gone."""

    def counted(self, server: str, connections: Sequence[SentTotals]) -> None:
        """Pass over who is there."""

    def pulling(self, key: str, messages: int, told_by: TenantId | None = None) -> None:
        """Keep how many messages somebody may be sent."""
        self._told.append(messages)

    def glanced(self, server: str, connections: Sequence[SentTotals], at_seconds: float) -> None:
        """Nothing is looked at."""

    def refused(self, user: UserId, goals: int, told_by: TenantId | None) -> None:
        """Nothing is refused."""

    def traced(self, connection: ConnectionId, told_by: TenantId | None = None) -> None:
        """Nothing is traced."""

    def uncounted(self, connection: ConnectionId, size: int, told_by: TenantId | None = None) -> None:
        """Nobody tells of any."""

    def searched(self, user: UserId, messages: int, told_by: TenantId | None = None) -> None:
        """Nobody has anything searched."""

    def turned_away(self, host: str) -> None:
        """All are let in."""

    def gave_back(self, key: str) -> None:
        """Nobody gives goals back."""
