"""One way to read a stream in order: an ordered consumer of JetStream (NATS ADR-17), which is always given back.

nats-py runs two tasks for each. They must not outlive a reader that is cancelled the moment it has been answered.
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
    """Read a subject of a stream until the block ends.

    Args:
        client: The connection.
        what: What is read, as the subject of a sentence.
        stream: The stream.
        subject: The subject; it may hold wildcards.
        config: Where to begin. nats-py writes into what it is given where it went on after a gap, so it is given a copy.

    Raises:
        UnavailableError: JetStream does not answer, or refuses.
    """
    opened: JetStreamContext.PushSubscription | None = None
    try:
        with unavailable_unless_answered(what):
            opened = await client.jetstream().subscribe(subject, stream=stream, ordered_consumer=True, config=replace(config))
        yield opened
    finally:
        if opened is not None and not client.is_closed:
            with suppress(nats.errors.Error, TimeoutError, OSError):
                await opened.unsubscribe()
