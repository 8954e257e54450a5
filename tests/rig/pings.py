"""How many replicas of a service answer (NATS ADR-32)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from nats.aio.client import Client

_PING_FOR = timedelta(milliseconds=250)


async def replicas_answering(client: Client, module: str) -> int:
    """Count the replicas of a service, such as `ioa_router`, that answer within a moment."""
    inbox = client.new_inbox()
    replies: set[bytes] = set()
    subscription = await client.subscribe(inbox)
    try:
        await client.publish(f"$SRV.PING.{module.replace('_', '-')}", reply=inbox)
        async with asyncio.timeout(_PING_FOR.total_seconds()):
            while True:
                replies.add((await anext(subscription.messages)).data)
    except TimeoutError:
        return len([reply for reply in replies if reply])
    finally:
        if not client.is_closed:
            await subscription.unsubscribe()
