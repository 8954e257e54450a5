"""Helpers of the contract suites of the control plane."""

from __future__ import annotations

from datetime import timedelta

from nats.aio.client import Client

from ioa.adapters.nats.delivery.work_queue import Delivery

LEASE = timedelta(seconds=1)


async def heard(client: Client) -> None:
    """Return once the server has taken all that was sent, subscriptions too.

    `Client.flush` is no such barrier: nats-py lets its ping overtake what is buffered. A request keeps its place.
    """
    await client.jetstream().account_info()


async def nothing_is_poison(delivery: Delivery, error: Exception) -> None:
    """For workers whose work must not fail."""
    raise AssertionError(f"{delivery.subject} was to be set aside") from error
