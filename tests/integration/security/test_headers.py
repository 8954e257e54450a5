"""Headers that a stranger wrote byte by byte: nats-server hands them on as they came."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.client import Client

from ioa.beside import beside
from ioa.cancellation import heeding_cancellation
from ioa.protocol import subjects
from ioa.protocol.ids import CommId, PoolId
from tests.integration.security.secured import open_intruder
from tests.integration.security.town import MALLORY, SLACK_SECONDS, Town

DEAF = (b"NATS/1.0 \xff\xff\xff\r\n\r\n", b"NATS/1.0 404 \xff\xfe\r\nA: b\r\n\r\n", b"NATS/1.0", b"ABCD")
"""At the first two nats-py ends its reading, and its connection stays open."""
MANY = b"NATS/1.0\r\n" + b"a:b\r\n" * 150_000 + b"\r\n"
_EVERY_SECONDS = 0.02
_SUBJECTS = (
    subjects.agent(PoolId(MALLORY), MALLORY, subjects.SYNC),
    subjects.say(PoolId(MALLORY), MALLORY, CommId("x")),
    subjects.agent(PoolId(MALLORY), MALLORY, subjects.RENEW),
)


@pytest.mark.parametrize("headers", [*DEAF, MANY], ids=["status", "described", "version", "none", "many"])
async def test_no_header_makes_services_deaf(town: Town, headers: bytes) -> None:
    """Registry, group setup and routers go on answering, each time: goals beside them take what they take."""
    usual = await town.lead_one()
    async with open_intruder(town.secured, MALLORY, MALLORY) as client:
        for subject in _SUBJECTS:
            await _send(client, subject, headers)
        await client.flush()
        took = await town.lead_one()
    assert took <= 3 * usual + SLACK_SECONDS, f"undisturbed it takes {usual:.3f} s"


@pytest.mark.parametrize("who", ["eve", MALLORY])
async def test_no_subject_makes_services_deaf(town: Town, who: str) -> None:
    """Of what a user or an agent may publish on, one part may be of any bytes; a goal is given out again until it is taken."""
    usual = await town.lead_one()
    mine = (b"ioa.v1.goal.eve.\xff", b"$SRV.PING.\xff") if who == "eve" else (b"ioa.v1.agent.mallory.mallory.say.\xff",)
    async with open_intruder(town.secured, who, "seed" if who == "eve" else who) as client:
        for subject in mine:
            await client._send_command(b'PUB %s 11\r\n{"goal":""}\r\n' % subject, priority=False)
        await client.flush()
        took = await town.lead_one()
    assert took <= 3 * usual + SLACK_SECONDS, f"undisturbed it takes {usual:.3f} s"


@pytest.mark.parametrize("written", [b"a\x0bb", b"a\x0c7"], ids=["vertical tab", "form feed"])
@pytest.mark.parametrize("who", ["eve", MALLORY])
async def test_no_white_space_within_a_subject_ends_a_connection(town: Town, who: str, written: bytes) -> None:
    """nats-server takes it for a part of a subject, nats-py for its end: goals beside it take what they take."""
    usual = await town.lead_one()
    mine = b"ioa.v1.goal.eve.%b" if who == "eve" else b"ioa.v1.agent.mallory.mallory.say.%b"
    commands = b"PUB %b 2\r\n{}\r\nPUB %b %b 2\r\n{}\r\n" % (mine % written, mine % b"plain", written)

    async def again_and_again(client: Client) -> None:
        while True:
            await client._send_command(commands, priority=False)
            with heeding_cancellation():
                await client.flush()
            await asyncio.sleep(_EVERY_SECONDS)

    async with open_intruder(town.secured, who, "seed" if who == "eve" else who) as client, beside(again_and_again(client)):
        await asyncio.sleep(_EVERY_SECONDS)
        took = await town.lead_one()
    assert took <= 3 * usual + SLACK_SECONDS, f"undisturbed it takes {usual:.3f} s"


async def _send(client: Client, subject: str, headers: bytes) -> None:
    reply = client.new_inbox()
    size = len(headers)
    await client._send_command(f"HPUB {subject} {reply} {size} {size + 1}\r\n".encode() + headers + b"\x80\r\n", priority=False)
