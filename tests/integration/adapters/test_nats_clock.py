"""Services go by nats-server's clock, whatever their own machine's says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from ioa.adapters.nats.delivery.server_clock import NatsClock, open_nats_clock
from ioa.adapters.nats.streams.topology import Topology
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.errors import UnavailableError

_NEAR = timedelta(seconds=1)


@dataclass
class _Elapsed:
    """A count of seconds that a test moves."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


async def test_a_service_has_the_servers_time(nats_url: str) -> None:
    """Read once, it goes on."""
    async with open_connection(NatsSettings(nats_url, "test")) as client:
        await Topology().ensure(client.jetstream())
        clock = await open_nats_clock(client)
        first = clock.now()
        assert abs(first - datetime.now(UTC)) < _NEAR
        assert clock.now() > first


async def test_what_was_missed_is_made_good(nats_url: str) -> None:
    """A machine that counted too little, or too much, has the right time again after the next look."""
    elapsed = _Elapsed()
    async with open_connection(NatsSettings(nats_url, "test")) as client:
        await Topology().ensure(client.jetstream())
        clock = NatsClock(client, elapsed)
        await clock.read()
        for missed in (timedelta(hours=1), -timedelta(hours=2)):
            elapsed.seconds += missed.total_seconds()
            assert abs(clock.now() - datetime.now(UTC)) > timedelta(minutes=59)
            await clock.read()
            assert abs(clock.now() - datetime.now(UTC)) < _NEAR


async def test_without_streams_there_is_no_time(nats_url: str) -> None:
    """Who asks too early is told to ask again."""
    async with open_connection(NatsSettings(nats_url, "test")) as client:
        with pytest.raises(UnavailableError):
            await NatsClock(client).read()
