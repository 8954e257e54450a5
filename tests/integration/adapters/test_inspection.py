"""What the doctor gathers from the replicas of services."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.endpoints import ServiceEndpoint
from ioa.adapters.nats.inspection import open_inspection
from ioa.adapters.nats.service import open_service
from ioa.ports.inspection import (
    CHANGING,
    CHURNED,
    FILLING,
    FILLING_FILES,
    FILLING_QUEUE,
    FILLING_STORE,
    FLOOD,
    HELD,
    KEPT,
    REFUSED,
    RETURNED,
    SlowedCaller,
)

_SOON = timedelta(seconds=10)
_EACH = 30


@pytest.mark.parametrize(
    ("family", "told"),
    [
        *((family, _EACH) for family in (FLOOD, *HELD, CHURNED, CHANGING, RETURNED, REFUSED, FILLING_QUEUE)),
        *((family, 2 * _EACH) for family in (FILLING, FILLING_STORE, FILLING_FILES, KEPT, "say")),
    ],
)
async def test_what_all_replicas_count_is_counted_once(nats_url: str, family: str, told: int) -> None:
    """Of what each replica sees all of, two say the same; of what each sees its own part, both together is what there was."""

    async def answer(_subject: str, data: bytes) -> bytes:
        return data

    async with open_connection(NatsSettings(nats_url, "test")) as client, AsyncExitStack() as replicas:
        for _ in range(2):
            endpoint = ServiceEndpoint("ask", "asked", answer)
            served = open_service(
                client, "ioa-test", "Tells.", "0.1.0", [endpoint], also_slowed=lambda: [SlowedCaller("eve", family, _EACH)]
            )
            await replicas.enter_async_context(served)
        async with open_inspection(NatsSettings(nats_url, "doctor"), patience=_SOON) as inspection:
            assert await inspection.slowed() == [SlowedCaller("eve", family, told)]
