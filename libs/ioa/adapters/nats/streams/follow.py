"""Follow a subject across outages: a plain subscription signals news, which is then read from the stream.

No consumer: the server delivers to any subject that the creator of a consumer names, so users may not create consumers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from ioa.adapters.nats.delivery.delivery import read_progress
from ioa.adapters.nats.wire.connection import at_renewal
from ioa.adapters.nats.wire.renewal import looking_now_and_then
from ioa.attention import Attention
from ioa.ports.group_log import GroupListener


@asynccontextmanager
async def open_attention(client: Client, subject: str) -> AsyncIterator[Attention]:
    """Yield when to read again: after each message on the subject, after a reconnect, and now and then."""
    attention = Attention()
    async with _subscribed(client, subject, attention.hint):
        with at_renewal(client, attention.look), looking_now_and_then(client, attention.look):
            yield attention


@asynccontextmanager
async def listening(client: Client, subject: str, listener: GroupListener) -> AsyncIterator[None]:
    """Report each appended entry and each progress report on a `live` subject, and when either may have been lost."""

    async def receive(message: Msg) -> None:
        if not message.data:
            listener.hint()
        elif (said := read_progress(message)) is not None:
            listener.report(said)

    subscription = await client.subscribe(subject, cb=receive)
    try:
        with at_renewal(client, listener.look), looking_now_and_then(client, listener.look):
            listener.look()
            yield
    finally:
        if not client.is_closed:
            await subscription.unsubscribe()


class _Shared:
    def __init__(self) -> None:
        self.hints = list[Callable[[], None]]()
        self.subscribing = asyncio.Lock()
        self.subscription: Subscription | None = None

    async def receive(self, _message: Msg) -> None:
        for hint in self.hints:
            hint()


_shared: WeakKeyDictionary[Client, dict[str, _Shared]] = WeakKeyDictionary()


@asynccontextmanager
async def _subscribed(client: Client, subject: str, hint: Callable[[], None]) -> AsyncIterator[None]:
    """Call `hint` for each message. All callers of a connection share one subscription: a message may be large."""
    of_client = _shared.setdefault(client, {})
    shared = of_client.setdefault(subject, _Shared())
    shared.hints.append(hint)
    try:
        async with shared.subscribing:
            if shared.subscription is None:
                shared.subscription = await client.subscribe(subject, cb=shared.receive)
        yield
    finally:
        shared.hints.remove(hint)
        if not shared.hints:
            del of_client[subject]
            if shared.subscription is not None and not client.is_closed:
                await shared.subscription.unsubscribe()
