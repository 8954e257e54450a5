"""What the doctor gathers from the replicas of services."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from nats.aio.msg import Msg

from ioa.adapters.nats import inspection as nats_inspection
from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.endpoints import ServiceEndpoint
from ioa.adapters.nats.inspection import open_inspection
from ioa.adapters.nats.service import open_service
from ioa.adapters.nats.slowed_callers import slowed_answer
from ioa.ports.inspection import (
    CHANGING,
    FILLING,
    FILLING_FILES,
    FILLING_QUEUE,
    FILLING_STORE,
    KEPT,
    SlowedCaller,
)
from ioa.protocol import subjects

_SOON = timedelta(seconds=10)
_EACH = 30


@pytest.mark.parametrize(
    ("family", "told"),
    [
        *((family, _EACH) for family in (CHANGING, FILLING_QUEUE)),
        *((family, 2 * _EACH) for family in (FILLING, FILLING_STORE, FILLING_FILES, KEPT, "say")),
    ],
)
async def test_what_all_replicas_count_is_counted_once(nats_url: str, family: str, told: int) -> None:
    """Of what each replica sees all of, two say the same; of what each sees its own part, both together is what there was."""
    async with open_connection(NatsSettings(nats_url, "test")) as client, AsyncExitStack() as replicas:
        for _ in range(2):
            endpoint = ServiceEndpoint("ask", "asked", _answer)
            served = open_service(
                client, "ioa-test", "Tells.", "0.1.0", [endpoint], also_slowed=lambda: [SlowedCaller("eve", family, _EACH)]
            )
            await replicas.enter_async_context(served)
        async with open_inspection(NatsSettings(nats_url, "doctor"), patience=_SOON) as inspection:
            assert (await inspection.slowed()).callers == [SlowedCaller("eve", family, told)]


async def test_who_is_busy_is_waited_for_and_who_does_not_answer_is_told(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a flood a service answers late, and may not hear the first request: whom it names is told, and counted once."""
    late, asked = 1.2, list[str]()

    async with open_connection(NatsSettings(nats_url, "test")) as client, AsyncExitStack() as replicas:
        endpoint = ServiceEndpoint("ask", "asked", _answer)
        bob = SlowedCaller("bob", "say", 2)
        served = open_service(client, "ioa-quick", "Tells.", "0.1.0", [endpoint], also_slowed=lambda: [bob])
        await replicas.enter_async_context(served)

        async def tell_late(message: Msg) -> None:
            asked.append(message.reply)
            if len(asked) > 1:  # the first is lost
                await asyncio.sleep(late)
                await client.publish(message.reply, slowed_answer("ioa-busy", [SlowedCaller("eve", "say", 30_000)]))

        await client.subscribe(subjects.ANY_SLOWED, cb=tell_late)
        await client.flush()
        async with open_inspection(NatsSettings(nats_url, "doctor"), patience=_SOON) as inspection:
            found = await inspection.slowed(("ioa-quick", "ioa-busy"))
            assert (found.callers, found.unheard) == ([SlowedCaller("eve", "say", 30_000), bob], [])
            monkeypatch.setattr(nats_inspection, "_TELLING_SECONDS", 0.5)
            assert (await inspection.slowed(("ioa-quick", "ioa-away"))).unheard == ["ioa-away"]


async def _answer(_subject: str, data: bytes) -> bytes:
    return data
