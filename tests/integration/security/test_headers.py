"""Headers and subjects that a client wrote byte by byte: nats-server delivers them unchanged."""

from __future__ import annotations

from itertools import product

from nats.aio.client import Client

from ioa.protocol import subjects
from ioa.protocol.ids import CommId, PoolId
from tests.integration.security.secured import open_intruder
from tests.integration.security.town import MALLORY, Town

_MANY = b"NATS/1.0\r\n" + b"a:b\r\n" * 150_000 + b"\r\n"
_HEADERS = (b"NATS/1.0 \xff\xff\xff\r\n\r\n", b"NATS/1.0 404 \xff\xfe\r\nA: b\r\n\r\n", b"NATS/1.0", b"ABCD", _MANY)
_SAY = subjects.say(PoolId(MALLORY), MALLORY, CommId("x"))
_REQUESTS = (_SAY, *(subjects.agent(PoolId(MALLORY), MALLORY, one) for one in (subjects.SYNC, subjects.RENEW)))
# nats-server takes a vertical tab and a form feed for a part of a subject, nats-py for its end.
_TOKENS = (b"\xff", b"a\x0bb", b"a\x0c7")


async def test_malformed_headers_and_subjects_leave_services_connected(town: Town) -> None:
    """Registry, group setup and router continue to answer; the subjects and reply subjects belong to a user and to an agent."""
    prefixes = {"eve": (b"ioa.v1.goal.eve.", b"$SRV.PING."), MALLORY: (_SAY.encode().removesuffix(b"x"),)}
    for name in prefixes:
        async with open_intruder(town.secured, name, "seed" if name == "eve" else name) as client:
            for headers, subject in product(_HEADERS, _REQUESTS if name == MALLORY else ()):
                await _send(client, b"HPUB %b r %d %d\r\n%b\x80\r\n" % (subject.encode(), len(headers), len(headers) + 1, headers))
                await client.flush()
            await town.lead_one()
            for token, prefix in product(_TOKENS, prefixes[name]):
                await _send(client, b"PUB %b%b 2\r\n{}\r\nPUB %bplain %b 2\r\n{}\r\n" % (prefix, token, prefix, token))
                await client.flush()
            await town.lead_one()
    lost = [log.name for log in town.secured.logs.glob("*.log") if "nats_disconnected" in log.read_text(encoding="utf-8")]
    assert lost == []


async def _send(client: Client, commands: bytes) -> None:
    await client._send_command(commands, priority=False)
