"""Errors that the server reports end no connection."""

from __future__ import annotations

import asyncio

import nats.errors
import pytest

from ioa.adapters.nats.wire.connection import NatsSettings, _LastingClient, _Shown


async def test_a_refusal_while_requests_end_by_another_ends_no_connection() -> None:
    """Of two concurrent requests, the second error may arrive while both end by the first."""
    client = _LastingClient(NatsSettings("", "tried"), _Shown())
    refusal = 'permissions violation for publish to "ioa.v1.say"'

    async def ask() -> None:
        async with client._until_not_permitted("ioa.v1.say"):
            await asyncio.wait_for(asyncio.Event().wait(), 3_600)

    asking = [asyncio.create_task(ask()) for _ in range(2)]
    await asyncio.sleep(0)
    while not all(one.done() for one in asking):
        await client._process_err(refusal)  # an exception would end nats-py's reading
        await asyncio.sleep(0)
    for one in asking:
        with pytest.raises(nats.errors.TimeoutError):
            await one


async def test_too_many_subscriptions_end_no_connection() -> None:
    """The error is reported, and the connection stays open."""
    client, reported = _LastingClient(NatsSettings("", "tried"), _Shown()), list[str]()

    async def report(error: Exception) -> None:
        reported.append(str(error))

    client._error_cb = report
    await client._process_err("'maximum subscriptions exceeded'")
    assert (len(reported), client.is_closed) == (1, False)
