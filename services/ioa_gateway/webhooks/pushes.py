"""Push notifications of A2A: webhooks, each for a task, with the messages of A2A."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module

from ioa.client.client import Client
from ioa.errors import MissingExtraError, NotFoundError
from ioa.fair_semaphore import FairSemaphore
from ioa.protocol.webhooks import Notice, PushTarget
from ioa_gateway.caller import Caller

_AT_ONCE, _OF_USER = 8, 1
"""Maximum concurrent reads of logs for push notifications, in total and per user."""


class Pushes:
    """Writes push notifications. The library of A2A is imported by the first one.

    Args:
        client: Reads goals.
        holder: Returns the holder of a valid key.
    """

    def __init__(self, client: Client, holder: Callable[[str], Caller | None]) -> None:
        self._client = client
        self._holder = holder
        self._turns = FairSemaphore(_AT_ONCE, _OF_USER)

    async def body(self, push: PushTarget, notice: Notice, key_id: str) -> bytes | None:
        """Write a notification, or raise `IoaError`; None if there is nothing to send."""
        caller = self._holder(key_id)
        if caller is None:
            return None
        try:
            pushing = await asyncio.to_thread(import_module, "ioa_gateway.a2a.pushes")
        except ModuleNotFoundError as error:
            raise MissingExtraError.of("Pushing by A2A", "a2a") from error
        try:
            found: bytes | None = await pushing.notification(self._client, push, notice, caller, self._turns)
        except NotFoundError:
            return None
        return found


def headers_of(push: PushTarget) -> dict[str, str]:
    """Return the headers that authenticate a notification to its receiver."""
    token = {"X-A2A-Notification-Token": push.token} if push.token else {}
    return {**token, **({"Authorization": push.authorization} if push.authorization else {})}
