"""Writes to streams: each has its own acknowledgement and timeout, and waits for the connection."""

from __future__ import annotations

import asyncio

import nats.errors
import pytest
from nats.aio.client import Client

from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.protocol import subjects
from ioa.protocol.ids import CommId
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash

LOG, ELSEWHERE, NOWHERE = subjects.log(CommId("room")), "test.unacknowledged", "test.unheard"
SHORT = 0.05


async def test_concurrent_writes_get_their_own_sequences(client: Client) -> None:
    """A hundred concurrent writes are all stored, each under the sequence of its acknowledgement."""
    js = client.jetstream()
    acks = await asyncio.gather(*(js.publish(LOG, str(number).encode()) for number in range(100)))
    stored = [(await js.get_msg("IOA_LOG", ack.seq)).data for ack in acks]
    assert stored == [str(number).encode() for number in range(100)]


async def test_unacknowledged_write_times_out(client: Client) -> None:
    """Each write waits for its own timeout, and the next one is stored."""
    await client.subscribe(ELSEWHERE)
    js = client.jetstream()
    for _ in range(2):
        lost = await asyncio.gather(*(js.publish(ELSEWHERE, b"", timeout=SHORT) for _ in range(3)), return_exceptions=True)
        assert [type(error) for error in lost] == [nats.errors.TimeoutError] * 3
    assert (await js.publish(LOG, b"")).seq > 0


async def test_write_that_timed_out_while_disconnected_is_not_stored_later(nats_server: NatsServer, client: Client) -> None:
    """A write that is repeated until there is a server is stored once."""
    js = client.jetstream()
    await crash(nats_server)
    await eventually(lambda: not client.is_connected)
    for _ in range(3):
        with pytest.raises(nats.errors.TimeoutError):
            await js.publish(LOG, b"given up", timeout=SHORT)
    patient = asyncio.create_task(js.publish(LOG, b"patient", timeout=20))
    await asyncio.sleep(0)
    await nats_server.start()
    assert (await patient).seq == 1


async def test_write_without_a_stream_fails_at_once(client: Client) -> None:
    """A missing stream is reported long before the timeout."""
    async with asyncio.timeout(5):
        with pytest.raises(nats.errors.Error, match="no response from stream"):
            await client.jetstream().publish(NOWHERE, b"", timeout=60)
