"""Follow a subject across outages: a plain subscription signals news, which is then read from the stream.

No consumer: the server delivers to any subject that the creator of a consumer names, so users may not create consumers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats.delivery.delivery import read_progress
from ioa.adapters.nats.wire.connection import at_renewal
from ioa.adapters.nats.wire.renewal import looking_now_and_then
from ioa.adapters.nats.wire.sinks import taking
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
