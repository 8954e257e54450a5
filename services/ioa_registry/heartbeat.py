"""Showing that the registry is up, so that who is silent meanwhile can be told from who could not be heard."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog

from ioa.errors import UnavailableError
from ioa.ports.registry_store import LeaseStore

_BEATS_PER_LEASE = 3
"""At least so many, since half a lease without any counts as an outage."""

_log = structlog.get_logger(__name__)


async def beat(leases: LeaseStore, *, lease: timedelta, renew_every: timedelta) -> None:
    """Leave a heartbeat among the leases as often as agents renew theirs, for ever."""
    every = min(renew_every, lease / _BEATS_PER_LEASE)
    while True:
        try:
            await leases.beat()
        except UnavailableError as error:
            _log.debug("beat_missed", error=error.message)
        await asyncio.sleep(every.total_seconds())
