"""Heartbeat of the registry: an agent whose lease expires without a heartbeat of the registry is not counted as lost."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog

from ioa.adapters.nats.stores.records import Records
from ioa.adapters.nats.streams.topology import BEAT
from ioa.concurrency import fail_after
from ioa.errors import UnavailableError
from ioa.protocol.registry import EMPTY_RENEWAL, Renewal

_BEATS_PER_LEASE = 3
"""Minimum number per lease: half a lease without a heartbeat counts as an outage."""
_TIMEOUT_SECONDS = 2.0

_log = structlog.get_logger(__name__)


async def beat(leases: Records[Renewal], *, lease: timedelta, renew_every: timedelta) -> None:
    """Write a heartbeat as often as agents renew their leases, until cancelled."""
    every = min(renew_every, lease / _BEATS_PER_LEASE)
    while True:
        try:
            async with fail_after(_TIMEOUT_SECONDS):
                await leases.put(BEAT, EMPTY_RENEWAL)
        except (TimeoutError, UnavailableError) as error:
            _log.debug("beat_missed", error=str(error))
        await asyncio.sleep(every.total_seconds())
