"""Usage of JetStream's storage, and closing of the stream of goals, on a real server."""

from __future__ import annotations

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.streams.topology import GOALS, LOG, Topology
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.errors import StoreFullError
from ioa.protocol import subjects
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import CommId
from ioa.runtime.store_share import StoreShare


async def test_full_log_stream_fills_the_store(client: Client) -> None:
    """The larger of both parts counts: of the account, and of the log stream."""
    js = client.jetstream()
    shares = await Topology(store_bytes=10_000_000).ensure(js)
    assert shares is not None
    storage = StoreShare(client, shares, 1)
    before = await storage.used()
    for _ in range(8):
        await js.publish(subjects.log(CommId("room")), bytes(480_000))
    full = await storage.used()
    await js.purge_stream(LOG)
    assert (before < 0.1, full > 0.9, await storage.used() < 0.1) == (True, True, True)
    assert await StoreShare(client, None, 1).used() == 0.0


async def test_closed_stream_rejects_goals_and_keeps_stored_ones(client: Client) -> None:
    """A launch raises `StoreFullError` while the stream is closed, and is accepted again when it is open."""
    js, system = client.jetstream(), NatsSystemClient(client)
    storage = StoreShare(client, await Topology(store_bytes=10_000_000).ensure(js), 1)
    for number in range(3):
        await system.submit(GoalOrder(goal=f"Count to {number}."))
    for _ in range(2):
        await storage.accept_goals(False)
    with pytest.raises(StoreFullError):
        await system.submit(GoalOrder(goal="Count to four."))
    closed = (await js.stream_info(GOALS)).state.messages
    await storage.accept_goals(True)
    await system.submit(GoalOrder(goal="Count to five."))
    assert (closed, (await js.stream_info(GOALS)).state.messages) == (3, 4)
