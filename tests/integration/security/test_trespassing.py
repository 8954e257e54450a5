"""Detours around permissions: reply subjects, headers, traces and unknown keys."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from pathlib import Path

import nats.errors
import pytest
from nats.aio.client import Client
from nats.js.api import Header

from ioa.adapters.nats.auth.roles import WHO_AM_I
from ioa.adapters.nats.streams.topology import LOG, WORK, Topology, ensure_pool_consumer
from ioa.adapters.nats.wire.connection import open_connection
from ioa.adapters.secret_stores.nkeys import public_key_of, read_key
from ioa.protocol import subjects as names
from ioa.protocol.codec import encode
from ioa.protocol.ids import PoolId
from ioa.protocol.setup.reads import ListGoals
from tests.integration.security.secured import Secured, open_intruder, open_secured
from tests.rig.deadline import eventually

_SOON = timedelta(seconds=5)


@pytest.fixture
async def secured(tmp_path: Path) -> AsyncIterator[Secured]:
    """A server with all streams, and credentials of the agents ada and bob, a user, an observer and an admin."""
    async with open_secured(tmp_path, ("ada", "bob")) as secured:
        async with open_connection(secured.settings("admin")) as admin:
            await Topology().ensure(admin.jetstream())
            await ensure_pool_consumer(admin.jetstream(), PoolId("bob"))
        yield secured


def _key_of(secured: Secured, name: str) -> str:
    path = secured.folder / name
    return public_key_of(read_key(str(path / ("seed" if (path / "seed").exists() else name))).seed)


async def refusals(secured: Secured, name: str, count: int = 1) -> list[str]:
    """What the server refused to one credential, oldest first, by its subject; waits until it has refused so much."""
    key = _key_of(secured, name)

    def look() -> list[str]:
        lines = [line.partition("Violation - ")[2] for line in secured.log().splitlines() if "Violation" in line and key in line]
        return [line.partition(", SID")[0] for line in lines]

    found: list[str] = await eventually(look, lambda seen: len(seen) >= count, within=_SOON)
    return found


def _subjects(refused: Iterable[str]) -> list[str]:
    return [f'Subject "{subject}"' for subject in refused]


async def test_nobody_else_has_an_answer_sent_into_a_log(secured: Secured) -> None:
    """Permissions do not cover reply subjects, so accounts must: an answer asked to a log never gets there."""
    forged = "ioa.v1.comm.c1.log"
    async with open_connection(secured.settings("admin")) as admin:
        async with open_intruder(secured, "ada", "ada") as ada, open_intruder(secured, "user") as user:
            await ada.publish(f"$JS.API.CONSUMER.MSG.NEXT.{WORK}.any", b'{"batch":1,"no_wait":true}', reply=forged)
            await user.publish("ioa.v1.goal.user", b"Count to ten.", reply=forged)
            await user.publish(names.user("user", names.GOALS_LIST), encode(ListGoals()), reply=forged)
            await _heard(ada, "ioa.v1.agent.ada.ada.groups.file")
            await _heard(user, WHO_AM_I)
        assert (await admin.jetstream().stream_info(LOG)).state.messages == 0


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"Nats-Schedule": "@every 1s", "Nats-Schedule-Target": "ioa.v1.goal.eve"}, "message schedules is disabled"),
        ({"Nats-TTL": "1s"}, "per-message TTL is disabled"),
        ({"Nats-Batch-Id": "b1", "Nats-Batch-Sequence": "1"}, "atomic publish is disabled"),
        ({"Nats-Incr": "+1"}, "message counters is disabled"),
        ({Header.ROLLUP.value: "all"}, "rollup not permitted"),
    ],
)
async def test_no_header_makes_a_stream_write_for_another(secured: Secured, headers: dict[str, str], why: str) -> None:
    """Permissions do not cover headers: a schedule would publish another user's goal, a rollup delete all other messages."""
    async with open_intruder(secured, "user") as client:
        answer = json.loads((await client.request("ioa.v1.goal.user", b"Count to ten.", headers=headers)).data)
        assert answer["error"]["description"] == why


async def test_nobody_traces_a_message_to_another(secured: Secured) -> None:
    """What the server tells of a message's way is published as its sender: where he may not publish it does not go."""
    traced = "ioa.v1.comm.c1.log"
    async with open_intruder(secured, "user") as client:
        await client.publish("ioa.v1.goal.user", b"Count to ten.", headers={"Nats-Trace-Dest": traced})
        assert await refusals(secured, "user", 1) == _subjects([traced])


async def _heard(client: Client, subject: str) -> None:
    """Return once the server has answered a request, and so has taken all that was sent before."""
    for _ in range(2):
        try:
            await client.request(subject, timeout=2)
        except nats.errors.Error:
            await asyncio.sleep(0)
