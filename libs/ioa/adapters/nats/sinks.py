"""Taking the messages of a subscription as they are read off the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nats.aio.msg import Msg


class MessageSink(asyncio.Future[Msg]):
    """Give every message of a subscription to a function: `client.subscribe(subject, future=MessageSink(take))`.

    nats-py hands messages to a future at once, to a callback by way of a queue and a task. What waits for the CPU in front of every
    message is worth leaving out; all else uses callbacks. The function must not block, and nothing bounds how much it is given.
    """

    def __init__(self, take: Callable[[Msg], None]) -> None:
        super().__init__()
        self._take = take

    def set_result(self, message: Msg) -> None:
        """Pass a message on."""
        self._take(message)
