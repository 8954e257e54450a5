"""Acknowledged writes: each gets its own acknowledgement, and none waits for ever."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import nats.errors
import pytest
from nats.aio.client import Client

from ioa.adapters.nats.wire.acks import AcknowledgedWrites
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.protocol import subjects
from ioa.protocol.ids import CommId
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash

LOG, ELSEWHERE, NOWHERE = subjects.log(CommId("room")), "test.unacknowledged", "test.unheard"
SHORT = timedelta(milliseconds=50)


async def test_writes_side_by_side_get_their_own_sequences(client: Client) -> None:
    """A hundred writes at once are all stored, each under the sequence it was told."""
    writes = AcknowledgedWrites(client)
    seqs = await asyncio.gather(*(writes.publish(LOG, str(number).encode(), {}) for number in range(100)))
    js = client.jetstream()
    stored = [(await js.get_msg("IOA_LOG", seq)).data for seq in seqs]
    assert stored == [str(number).encode() for number in range(100)]


async def test_unacknowledged_write_times_out(client: Client) -> None:
    """Each waits as long as it may, whatever became of those before it, and the next one is stored."""
    await client.subscribe(ELSEWHERE)
    writes = AcknowledgedWrites(client, timeout=SHORT)
    for _ in range(2):
        lost = await asyncio.gather(*(writes.publish(ELSEWHERE, b"", {}) for _ in range(3)), return_exceptions=True)
        assert [type(error) for error in lost] == [TimeoutError] * 3
    assert await writes.publish(LOG, b"", {}) > 0


async def test_a_write_that_was_given_up_without_a_server_is_not_stored_later(nats_server: NatsServer, client: Client) -> None:
    """Whoever has it written again and again, until there is a server, has it written once."""
    writes = AcknowledgedWrites(client, timeout=SHORT)
    await crash(nats_server)
    await eventually(lambda: not client.is_connected)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await writes.publish(LOG, b"given up", {})
    patient = asyncio.create_task(AcknowledgedWrites(client, timeout=timedelta(seconds=20)).publish(LOG, b"patient", {}))
    await asyncio.sleep(0)
    await nats_server.start()
    assert await patient == 1


async def test_write_without_a_stream_fails_at_once(client: Client) -> None:
    """Nobody listens: no need to wait for that."""
    with pytest.raises(nats.errors.NoRespondersError):
        await AcknowledgedWrites(client).publish(NOWHERE, b"", {})
