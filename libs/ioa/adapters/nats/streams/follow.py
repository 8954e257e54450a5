"""Follow a stream across outages: by a plain subscription, which signals news to read, or by an ordered consumer.

Users follow by signals: the server delivers to any subject that the creator of a consumer names, so users may not create consumers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig

from ioa.adapters.nats.delivery.delivery import read_progress
from ioa.adapters.nats.wire.connection import at_renewal
from ioa.adapters.nats.wire.renewal import looking_now_and_then
from ioa.adapters.nats.wire.sinks import taking
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.attention import Attention
from ioa.ports.group_log import GroupListener


@asynccontextmanager
async def open_attention(client: Client, subject: str) -> AsyncIterator[Attention]:
    """Yield an `Attention` that wakes after each message on the subject, after a reconnect, and periodically."""
    attention = Attention()
    async with taking(client, subject, lambda _: attention.hint()):
        with at_renewal(client, attention.look), looking_now_and_then(client, attention.look):
            yield attention


@asynccontextmanager
async def listening(client: Client, subject: str, listener: GroupListener) -> AsyncIterator[None]:
    """Report each appended entry and each progress report on a `live` subject, and when either may have been lost."""

    def receive(message: Msg) -> None:
        if not message.data:
            listener.hint()
        elif (report := read_progress(message)) is not None:
            listener.report(report)

    async with taking(client, subject, receive):
        with at_renewal(client, listener.look), looking_now_and_then(client, listener.look):
            listener.look()
            yield


@asynccontextmanager
async def ordered(
    client: Client, what: str, stream: str, subject: str, config: ConsumerConfig
) -> AsyncIterator[JetStreamContext.PushSubscription]:
    """Yield a subscription of an ordered consumer (NATS ADR-17), whose two tasks end with the block; `what` names it in errors.

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
