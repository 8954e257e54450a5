"""Read a stream in order by an ordered consumer of JetStream (NATS ADR-17), which is removed when the block ends.

nats-py runs two tasks for each, which must not outlive a reader that is cancelled.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import nats.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig

from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered


@asynccontextmanager
async def ordered(
    client: Client, what: str, stream: str, subject: str, config: ConsumerConfig
) -> AsyncIterator[JetStreamContext.PushSubscription]:
    """Yield a subscription to a subject of a stream, which may contain wildcards; `what` names the stream in errors.

    Raises:
        UnavailableError: JetStream does not answer, or rejects the consumer.
    """
    opened: JetStreamContext.PushSubscription | None = None
    try:
        with unavailable_unless_answered(what):  # a cancelled task is subscribed when this block raises; nats-py changes the config
            opened = await client.jetstream().subscribe(subject, stream=stream, ordered_consumer=True, config=replace(config))
        yield opened
    finally:
        if opened is not None and not client.is_closed:
            with suppress(nats.errors.Error, TimeoutError, OSError):
                await opened.unsubscribe()
