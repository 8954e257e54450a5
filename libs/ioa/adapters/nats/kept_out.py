"""Hearing whom registries keep out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import ValidationError

from ioa.adapters.nats.sinks import taking
from ioa.cancellation import fail_after
from ioa.protocol import subjects
from ioa.protocol.kept_out import KeptOut, KeptOutList


class NatsKeptOut:
    """Whom registries keep out now, as they tell it."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._list = KeptOutList()
        self._now = now
        self._heard = asyncio.Event()

    @asynccontextmanager
    async def hearing(self, client: Client) -> AsyncIterator[None]:
        """Listen while the block runs. What a registry of another version says otherwise is passed over."""

        def hear(message: Msg) -> None:
            with suppress(ValidationError):
                self._list.hear(KeptOut.model_validate_json(message.data), self._now())
                self._heard.set()

        async with taking(client, subjects.KEPT_OUT, hear):
            yield

    def names(self) -> frozenset[str]:
        """Return the names of those who are kept out now."""
        return self._list.names(self._now())

    async def heard(self, within: float) -> None:
        """Wait until a registry has told something, or for so many seconds."""
        self._heard.clear()
        with suppress(TimeoutError):
            async with fail_after(within):
                await self._heard.wait()
