"""What timers promise: each instant that was armed comes back once, whatever dies in between, and never early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.delivery.nats_delivery import NatsTimers
from ioa.adapters.nats.delivery.work_queue import Delivery, consume
from ioa.adapters.nats.streams.topology import ROUTERS, TIMERS
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.adapters.system_clock import SystemClock
from ioa.concurrency import beside
from ioa.protocol.ids import CommId
from ioa.protocol.subjects import parse_comm
from tests.contract.control_plane.conftest import nothing_is_poison
from tests.rig.nats_server import crash

A, B = CommId("a"), CommId("b")


class Rig:
    """Timers, and the router that receives them."""

    def __init__(self, client: Client) -> None:
        self.clock = SystemClock()
        self.timers = NatsTimers(client)
        self._arrived: asyncio.Queue[tuple[CommId, datetime]] = asyncio.Queue()

    async def take(self, delivery: Delivery) -> None:
        """Take what fires, as a router does."""
        self._arrived.put_nowait((parse_comm(delivery.subject), self.clock.now()))

    async def fired(self) -> tuple[CommId, datetime]:
        """Wait for the next timer."""
        return await asyncio.wait_for(self._arrived.get(), 15)


@pytest.fixture
async def rig(client: Client) -> AsyncIterator[Rig]:
    """Timers with nothing armed."""
    rig = Rig(client)
    async with beside(consume(client, TIMERS, ROUTERS, rig.take, set_aside=nothing_is_poison)):
        yield rig


async def arm(rig: Rig, *timers: tuple[CommId, int]) -> datetime:
    """Arm timers, each given in ms from now; return what now is."""
    now = rig.clock.now()
    for comm_id, after_ms in timers:
        await rig.timers.schedule(comm_id, now + timedelta(milliseconds=after_ms))
    return now


async def test_a_timer_comes_back_to_its_group_and_not_early(rig: Rig) -> None:
    """A timer names its group and does not come before its instant."""
    now = await arm(rig, (A, 300))
    comm_id, at = await rig.fired()
    assert (comm_id, at >= now + timedelta(milliseconds=300)) == (A, True)


async def test_timers_fire_once_each_in_the_order_of_their_instants(rig: Rig) -> None:
    """A time armed twice is a single timer; a past time fires at once; a time in a month does not fire now."""
    await arm(rig, (A, 30 * 86_400_000), (A, 900), (B, 300), (B, 300), (A, -3_600_000), (B, 1_800))
    assert [(await rig.fired())[0] for _ in range(4)] == [A, B, A, B]


async def test_a_timer_may_be_armed_again_after_it_fired(rig: Rig) -> None:
    """The instant of a timer that fired can be armed anew."""
    at = await arm(rig, (A, 100))
    await rig.fired()
    await rig.timers.schedule(A, at + timedelta(milliseconds=100))
    assert (await rig.fired())[0] == A


async def test_timers_outlive_the_server(client: Client, nats_server: NatsServer) -> None:
    """A timer that was armed before a crash fires after it: the one that is due yet, and the one that fell due meanwhile, once."""
    rig = Rig(client)
    await arm(rig, (A, 10), (B, 2_500))
    await crash(nats_server)
    await nats_server.start()
    async with beside(consume(client, TIMERS, ROUTERS, rig.take, set_aside=nothing_is_poison)):
        assert [(await rig.fired())[0] for _ in range(2)] == [A, B]
