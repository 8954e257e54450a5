"""Telling and hearing whose requests by HTTP gateways refuse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import ValidationError

from ioa.adapters.nats.connection import may_not_publish
from ioa.adapters.nats.sinks import taking
from ioa.ports.inspection import REFUSED, SlowedCaller
from ioa.protocol import subjects
from ioa.protocol.refused_callers import MOST_NAMED, RefusedCallers, RefusedCallersList

_EVERY_SECONDS = 2.0


async def tell_refused(client: Client, by: str, slowed: Callable[[], Sequence[SlowedCaller]]) -> None:
    """Tell, for ever, who is slowed down at a gateway, those first of whom most is refused. What is lost is told again."""
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        most = sorted(slowed(), key=lambda one: -one.refused)[:MOST_NAMED]
        if most and not may_not_publish(client, subjects.REFUSED):
            told = RefusedCallers(by=by, requests={one.caller: one.refused for one in most})
            with suppress(nats.errors.Error, OSError):
                await client.publish(subjects.REFUSED, told.model_dump_json().encode())


class NatsRefusedCallers:
    """Whom gateways refuse now, as they tell it."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._list = RefusedCallersList()
        self._now = now

    @asynccontextmanager
    async def hearing(self, client: Client) -> AsyncIterator[None]:
        """Listen while the block runs. What a gateway of another version says otherwise is passed over."""

        def hear(message: Msg) -> None:
            with suppress(ValidationError):
                self._list.hear(RefusedCallers.model_validate_json(message.data), self._now())

        async with taking(client, subjects.REFUSED, hear):
            yield

    def slowed(self) -> Sequence[SlowedCaller]:
        """Tell who is refused, and how many requests were."""
        return [SlowedCaller(caller, REFUSED, number) for caller, number in self._list.requests(self._now()).items()]
