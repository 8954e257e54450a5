"""One agent sends as fast as it can on every subject that its key opens, while an honest one leads goals on the same system."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from operator import le
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic_core import to_json

from ioa.adapters.nats.inspection import open_inspection
from ioa.adapters.nats.sinks import MessageSink
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.topology import ANY_AGENT, DEAD, LOG, WORK
from ioa.adapters.nkey_seeds import read_key
from ioa.beside import beside
from ioa.cli.credentials import AUTHORIZATION
from ioa.cli.examination import Health, quotas_finding
from ioa.errors import NoAgentError, UnavailableError
from ioa.ports.inspection import CHURNED, DROPPED, FLOOD, HELD, SlowedCaller
from ioa.protocol import subjects
from ioa.protocol.ids import AgentId, CommId, GoalId, GoalName, PoolId, UserId
from ioa.protocol.kept_out import Readmit
from ioa.protocol.stream_reads import ReadStream
from ioa.protocol.subjects import inbox_prefix_of
from ioa.quotas import Family
from tests.integration.security.secured import (
    Secured,
    commanding,
    flooding,
    is_refused,
    open_intruder,
    open_once,
    open_processes,
    open_secured,
    told_of,
    until_told,
)
from tests.integration.security.town import BOB, EVE, MALLORY, SLACK_SECONDS, SOON, USER, Town, open_town_on
from tests.rig.deadline import eventually

_AT_ONCE, _READS, _WATCHERS = 1_000, 30, 4
"""So many messages are read by a request, so many requests are made, and so many connections are sent what they read: each of them
less than a holder may read, and together more."""


async def test_asking_everybody_how_it_stands_stops_nobody(town: Town) -> None:
    """A user who asks the services for their statistics as fast as he can delays nobody's goals."""
    usual = await town.lead_some()
    async with flooding(town.secured, EVE, "seed", "$SRV.STATS", bytes(10)):
        took = await town.lead_some()
    assert took <= 3 * usual + SLACK_SECONDS, f"undisturbed they take {usual:.3f} s"


async def test_a_flood_delays_nobody_else_and_is_named(tmp_path: Path) -> None:
    """Whatever one agent asks as fast as it can, another's goals take three times as long at most; the doctor names it."""
    floods = _floods()
    async with (
        open_secured(tmp_path, (BOB, f"{MALLORY}:{len(floods)}")) as secured,
        open_town_on(secured, (BOB,)) as town,
        open_inspection(secured.settings("observer"), patience=SOON) as inspection,
    ):
        await eventually(lambda: inspection.answers("ioa-router"), within=SOON)
        usual = await town.lead_some()
        took = [await _lead_beside(town, *flood) for flood in floods]
        slowed = await told_of(inspection)
    found = quotas_finding(
        [one for one in slowed if one.family != DROPPED]
    )  # bob says of goals that he leads them, and does so later
    slow = {flood: seconds for flood, seconds in zip(floods, took, strict=True) if seconds > 3 * usual + SLACK_SECONDS}
    assert slow == {}, f"undisturbed they take {usual:.3f} s"
    assert (found.health, "mallory" in found.message, "bob" in found.message) == (Health.WARNING, True, False), found.message


async def test_who_floods_the_server_itself_is_disconnected_and_named(town: Town) -> None:
    """Who publishes goals as fast as a connection can is kept out when he comes back, and the doctor says so.

    No service sees that in time: goals go to the server's own stream.
    """
    usual = await town.lead_some()
    async with (
        open_inspection(town.secured.settings("observer"), patience=SOON) as inspection,
        flooding(town.secured, EVE, "seed", subjects.goal_of(EVE), bytes(10)),
    ):
        slowed = await until_told(inspection, lambda found: FLOOD in {one.family for one in found}, within=SOON)
        await eventually(lambda: _leads(town), within=SOON)  # what was sent before is worked off
        took = await town.lead_some()
    assert took <= 3 * usual + SLACK_SECONDS, f"undisturbed they take {usual:.3f} s"
    found = quotas_finding(slowed)
    assert (found.health, "disconnected: eve (" in found.message) == (Health.WARNING, True), found


@pytest.mark.slow
async def test_who_comes_back_at_once_is_kept_out(tmp_path: Path) -> None:
    """Where nats-server has a gate, who floods it is refused until an admin readmits him; nobody else loses his connection."""
    async with (
        open_secured(tmp_path, (BOB,), gate=True) as secured,
        open_processes(secured, [secured.gate()]),
        open_town_on(secured, (BOB,)) as town,
        open_intruder(secured, "admin") as admin,
    ):
        usual, client = await town.lead_some(), town.agents[BOB].client
        renewed = client.stats["reconnects"]
        async with flooding(secured, EVE, "seed", subjects.goal_of(EVE), bytes(10), again_after=0):
            await eventually(lambda: is_refused(secured, EVE), within=SOON)
            await eventually(lambda: _leads(town), within=SOON)  # what was sent before is worked off
            took = await town.lead_some()
        assert (took <= 3 * usual + SLACK_SECONDS, client.stats["reconnects"]) == (True, renewed), (
            f"{took:.3f} s, undisturbed {usual:.3f} s"
        )
        await NatsSystemClient(admin).readmit(Readmit(name=EVE))
        await eventually(lambda: is_refused(secured, EVE), lambda refused: not refused, within=SOON)


async def test_who_has_the_server_send_without_end_is_kept_out(town: Town) -> None:
    """A few pulls with a heartbeat of a millisecond have the server send tens of thousands of messages; the doctor names who."""
    key = read_key(str(town.secured.folder / MALLORY / MALLORY))
    pull = json.dumps({"batch": 1, "expires": 60_000_000_000, "idle_heartbeat": 1_000_000}).encode()
    async with (
        open_inspection(town.secured.settings("observer"), patience=SOON) as inspection,
        open_once(town.secured.server.url, nkeys_seed_str=key.seed) as mallory,
    ):
        inbox = f"{inbox_prefix_of(key.inbox_owner)}.pulls"
        await mallory.subscribe(inbox, future=MessageSink(lambda _message: None))
        for _ in range(60):
            await mallory.publish(f"$JS.API.CONSUMER.MSG.NEXT.{WORK}.{ANY_AGENT}", pull, reply=inbox)
        slowed = await until_told(inspection, lambda found: FLOOD in {one.family for one in found}, within=SOON)
    assert [one.caller for one in slowed if one.family == FLOOD] == [MALLORY]


@pytest.mark.parametrize(
    "request_",
    [
        ReadStream(seq=1, next_by_subj=">", batch=1_000).model_dump_json().encode(),
        ReadStream(last_by_subj="*.*.*.none").model_dump_json().encode(),
        to_json({"multi_last": ["ioa.v1.comm.*.log"] * 1_000, "up_to_seq": 1}),
    ],
    ids=["much at once", "searches", "what is refused"],
)
async def test_who_reads_without_end_is_slowed_down_and_named(town: Town, request_: bytes) -> None:
    """Whatever he asks group setup for, goals of others go on."""
    usual = await town.lead_some()
    async with (
        open_inspection(town.secured.settings("observer"), patience=SOON) as inspection,
        flooding(town.secured, EVE, "seed", subjects.read(LOG), request_),
    ):
        await until_told(inspection, lambda found: bool({FLOOD, Family.READS} & _families(found)), within=SOON)
        took = await town.lead_some()
    assert took <= 3 * usual + SLACK_SECONDS, f"undisturbed they take {usual:.3f} s"


@pytest.mark.parametrize(("connections", "subscriptions"), [(51, 1), (4, 501)], ids=["connections", "subscriptions"])
async def test_nobody_holds_what_all_need(town: Town, connections: int, subscriptions: int) -> None:
    """A user who opens connections, or subscribes, without end and sends nothing leaves room for others, and is named."""
    async with AsyncExitStack() as stack:
        inspection = await stack.enter_async_context(open_inspection(town.secured.settings("observer"), patience=SOON))
        for _ in range(connections):
            eve = await stack.enter_async_context(open_intruder(town.secured, EVE))
            for _ in range(subscriptions):
                await eve.subscribe(subjects.log(GoalName(EVE, GoalId("mine")).comm_id), future=MessageSink(lambda _message: None))
        slowed = await until_told(inspection, within=SOON)
        await eventually(lambda: eve.stats["reconnects"] > 0, within=SOON)
    assert [(one.caller, one.family in HELD) for one in slowed] == [(EVE, True)]
    found = quotas_finding(slowed)
    assert (found.health, "disconnected: eve (" in found.message) == (Health.WARNING, True), found


@pytest.mark.slow
async def test_who_subscribes_without_end_is_named(tmp_path: Path) -> None:
    """The server counts none of it: what it takes, cheap or dear, and is told to end again at once, nor what it refuses.

    They do so at once, since it takes half a minute to tell them from who is busy.
    """
    own = subjects.log(GoalName(EVE, GoalId("mine")).comm_id)
    churned = {EVE: own, UserId("ann"): subjects.ANY_LOG, UserId("joe"): "ioa.v1.audit.>"}
    async with (
        open_secured(tmp_path, (BOB,), users=(USER, *churned)) as secured,
        open_town_on(secured, (BOB,)),
        open_inspection(secured.settings("observer"), patience=SOON) as inspection,
        AsyncExitStack() as floods,
    ):
        for who, subject in churned.items():
            command = f"SUB {subject} 7\r\nUNSUB 7\r\n".encode()
            await floods.enter_async_context(commanding(secured, who, "seed", command))
        slowed = await until_told(
            inspection,
            lambda found: churned.keys() <= {one.caller for one in found if one.family == CHURNED},
            within=3 * SOON,
        )
    assert {one.caller for one in slowed if one.family == CHURNED} == churned.keys()
    found = quotas_finding(slowed)
    assert ("subscriptions without end, and disconnected: " in found.message, "eve (seen " in found.message) == (True, True), found


async def test_who_has_an_agent_sent_things_without_end_is_kept_out_in_its_place(town: Town) -> None:
    """He knows the nonce of its inbox, since he held its key before that was replaced. It goes on, and leads goals."""
    bob, pull = town.agents[BOB], json.dumps({"batch": 1, "expires": 30_000_000_000, "idle_heartbeat": 1_000_000}).encode()
    async with (
        open_inspection(town.secured.settings("observer"), patience=SOON) as inspection,
        open_intruder(town.secured, MALLORY, MALLORY) as mallory,
    ):
        for _ in range(60):
            await mallory.publish(f"$JS.API.CONSUMER.MSG.NEXT.{WORK}.{ANY_AGENT}", pull, reply=subjects.inbox(BOB, bob.nonce))
        slowed = await until_told(inspection, lambda found: FLOOD in {one.family for one in found}, within=SOON)
        await eventually(lambda: _leads(town), within=SOON)
        again = await told_of(inspection)
    assert {one.caller for one in (*slowed, *again) if one.family == FLOOD} == {MALLORY}


async def test_nobody_is_kept_out_for_what_another_has_sent_to_him(town: Town) -> None:
    """Who reads no more than he may, and has it sent to whoever watches a room, shuts nobody out of it."""
    room, heard = GoalName(USER, GoalId("watched")).comm_id, Counter[int]()
    batch = ReadStream(seq=1, next_by_subj=">", batch=_AT_ONCE).model_dump_json().encode()

    def hear(watcher: int, _message: Msg) -> None:
        heard[watcher] += 1

    def least() -> int:
        return min(heard[watcher] for watcher in range(_WATCHERS))

    async with AsyncExitStack() as stack:
        inspection = await stack.enter_async_context(open_inspection(town.secured.settings("observer"), patience=SOON))
        admin = await stack.enter_async_context(open_intruder(town.secured, "admin"))
        for _ in range(_AT_ONCE):
            await admin.publish(subjects.dead("any"), b"x")
        watchers = [await stack.enter_async_context(open_intruder(town.secured, USER)) for _ in range(_WATCHERS)]
        for number, watcher in enumerate(watchers):
            await watcher.subscribe(subjects.log(room), future=MessageSink(partial(hear, number)))
            await watcher.flush()
        async with open_intruder(town.secured, EVE) as eve:  # who floods is ended, on any connection
            for number in range(1, _READS + 1):
                await eve.publish(subjects.read(DEAD), batch, reply=subjects.log(room))
                await eventually(least, partial(le, number), within=SOON)
        async with flooding(town.secured, EVE, "seed", subjects.goal_of(EVE), bytes(10)):
            slowed = await until_told(inspection, lambda found: FLOOD in {one.family for one in found}, within=SOON)
    assert [one.caller for one in slowed if one.family == FLOOD] == [EVE]
    assert [watcher.stats["reconnects"] for watcher in watchers] == [0] * _WATCHERS


async def test_an_authorization_that_was_not_upgraded_is_told_of(tmp_path: Path) -> None:
    """A registry beside it serves all the same, and its log says once for each thing that it may not do what to do about it."""
    async with open_secured(tmp_path, (BOB,)) as secured:
        await asyncio.to_thread(_make_older, secured)
        log = secured.fork_server.log_of(registry := secured.service("registry"))
        async with open_processes(secured, [registry]), open_inspection(secured.settings("observer"), patience=SOON) as inspection:
            await eventually(lambda: inspection.answers("ioa-registry"), within=SOON)
            await eventually(lambda: log.read_text().count("floods_not_watched"), lambda count: count == 2, within=SOON)
            assert await told_of(inspection) == []


def _make_older(secured: Secured) -> None:
    """Let everybody do what he might before anybody was kept out, as an authorization says that was not upgraded."""
    included = secured.folder / AUTHORIZATION / "authorization.conf"
    whole = json.loads(included.read_text())
    newer = ("ioa.v1.server.", "$SYS.", subjects.READMIT)
    for user in [user for account in whole["accounts"].values() for user in account["users"]]:
        for side in user["permissions"].values():
            if "allow" in side:
                side["allow"] = [one for one in side["allow"] if not one.startswith(newer)]
    del whole["accounts"]["$SYS"], whole["accounts"]["IOA"]["imports"]
    included.write_text(json.dumps(whole))
    os.kill(secured.server.pid, signal.SIGHUP)


def _families(slowed: Sequence[SlowedCaller]) -> set[str]:
    return {one.family for one in slowed}


async def _leads(town: Town) -> bool:
    """Try whether goals get through; bob is online for it, however long it was tried before."""
    try:
        await town.agents[BOB].join()
        await town.lead_some()
    except (UnavailableError, NoAgentError):
        return False
    return True


def _floods() -> Sequence[tuple[AgentId, str, int]]:
    """Who floods which subject by messages of how many bytes. Each is another one: who has flooded is kept out."""
    pool = PoolId(MALLORY)
    one, two, three, four, five = (AgentId(f"{MALLORY}-{number}") for number in range(5))
    return (
        (one, subjects.say(CommId("c1"), one), 10),
        (two, subjects.say(CommId("c1"), two), 100_000),
        (three, subjects.renew(pool, three), 10),
        (four, subjects.register(pool, four), 10_000),
        (five, subjects.sync(five), 10),
    )


async def _lead_beside(town: Town, who: AgentId, subject: str, size: int) -> float:
    async with flooding(town.secured, MALLORY, who, subject, bytes(size)):
        return await town.lead_some()


async def test_nobody_keeps_the_doctor_from_naming_who_floods(town: Town) -> None:
    """Eve asks services for their statistics, and pings them, thousands of times a second; the doctor is told all the same."""

    async def ask(eve: Client) -> None:
        while True:
            for subject in ("$SRV.STATS", "$SRV.PING.ioa-router"):
                for _ in range(20):
                    await eve.publish(subject, reply=eve.new_inbox())
            await asyncio.sleep(0.02)

    async with (
        open_inspection(town.secured.settings("observer"), patience=SOON) as inspection,
        open_intruder(town.secured, "eve") as eve,
        open_intruder(town.secured, MALLORY, MALLORY) as mallory,
        beside(ask(eve)),
    ):
        for _ in range(1_000):
            await mallory.publish(subjects.memberships(MALLORY), b"x", reply="nobody.hears")
        told, up = list[bool](), list[bool]()
        for number in range(4):
            await asyncio.sleep(0.1 + 0.1 * number)  # not in step with when services want more
            told.append(MALLORY in {one.caller for one in await told_of(inspection)})
            up.append(await inspection.answers("ioa-router"))
    assert (told, up) == ([True] * 4, [True] * 4)
