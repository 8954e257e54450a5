"""Publishing on the path of every message: what nats-py publishes, and nothing else."""

from __future__ import annotations

import asyncio

import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.adapters.nats.wire.publishing import publish_to_each
from ioa.protocol import subjects
from ioa.protocol.ids import CommId
from tests.contract.control_plane.conftest import heard
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash

_HEADERS = {"Ioa-A": "1", "Ioa-B": "two words"}


@pytest.mark.parametrize("headers", [None, _HEADERS])
@pytest.mark.parametrize("reply", ["", "test.reply"])
async def test_each_gets_what_nats_py_would_publish(client: Client, headers: dict[str, str] | None, reply: str) -> None:
    """Byte for byte, and it is counted alike."""
    got = list[Msg]()

    async def take(message: Msg) -> None:
        got.append(message)

    await client.subscribe("test.to.*", cb=take)
    before = dict(client.stats)
    await publish_to_each(client, ["test.to.a", "test.to.b"], b"\r\nPING\r\n", reply=reply, headers=headers)
    for subject in ("test.to.a", "test.to.b"):
        await client.publish(subject, b"\r\nPING\r\n", reply=reply, headers=headers)
    await eventually(lambda: len(got), lambda number: number == 4)
    told = [(one.subject, one.reply, one.data, one.headers) for one in got]
    assert told[:2] == told[2:]
    assert {name: client.stats[name] - before[name] for name in ("out_msgs", "out_bytes")} == {"out_msgs": 4, "out_bytes": 32}


async def test_what_is_published_keeps_its_order_however_much_it_is(client: Client) -> None:
    """More than the server takes up at once waits, in whichever way it was published."""
    got, data = list[int](), b"x" * 100_000

    async def take(message: Msg) -> None:
        got.append(int(message.subject.rpartition(".")[2]))

    await client.subscribe("test.many.*", cb=take, pending_bytes_limit=0)
    for number in range(0, 200, 2):
        await publish_to_each(client, [f"test.many.{number}"], data)
        await client.publish(f"test.many.{number + 1}", data)
    await eventually(lambda: len(got), lambda number: number == 200)
    assert got == list(range(200))


async def test_what_is_published_without_a_server_comes_with_it(nats_server: NatsServer, client: Client) -> None:
    """It waits as what nats-py publishes does, and as long as there is room."""
    got = list[bytes]()

    async def take(message: Msg) -> None:
        got.append(message.data)

    await client.subscribe("test.later", cb=take)
    await heard(client)
    await crash(nats_server)
    await eventually(lambda: not client.is_connected)
    await publish_to_each(client, ["test.later"], b"kept")
    client._max_pending_size = 10_000
    with pytest.raises(nats.errors.OutboundBufferLimitError):
        await publish_to_each(client, ["test.later"], b"x" * 10_000)
    await nats_server.start()
    await eventually(lambda: got)
    assert got == [b"kept"]


async def test_what_can_never_be_published_is_refused(client: Client) -> None:
    """What the server would end the connection for, and what comes after its end."""
    with pytest.raises(nats.errors.MaxPayloadError):
        await publish_to_each(client, ["test.large"], b"x" * (client.max_payload + 1))
    await client.close()
    await asyncio.sleep(0)
    with pytest.raises(nats.errors.ConnectionClosedError):
        await publish_to_each(client, ["test.late"], b"")


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
