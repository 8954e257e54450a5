"""Heartbeat of the registry: an agent whose lease expires without a heartbeat of the registry is not counted as lost."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog

from ioa.adapters.nats.stores.registry_view import NatsLeases
from ioa.errors import UnavailableError

_BEATS_PER_LEASE = 3
"""Minimum number per lease: half a lease without a heartbeat counts as an outage."""

_log = structlog.get_logger(__name__)


async def beat(leases: NatsLeases, *, lease: timedelta, renew_every: timedelta) -> None:
    """Write a heartbeat as often as agents renew their leases, until cancelled."""
    every = min(renew_every, lease / _BEATS_PER_LEASE)
    while True:
        try:
            await leases.beat()
        except UnavailableError as error:
            _log.debug("beat_missed", error=error.message)
        await asyncio.sleep(every.total_seconds())
