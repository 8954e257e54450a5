"""The rejected callers that the doctor reads from the statistics of services."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from ioa.adapters.nats.inspection import RejectedCaller, open_inspection
from ioa.adapters.nats.requests.rate_limit import RateLimit
from ioa.adapters.nats.requests.request import NatsRequester
from ioa.adapters.nats.requests.service import ServiceEndpoint, ServiceLimits, open_service
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.errors import RateLimitedError
from ioa.protocol.registry import Acknowledged

_SOON, _NOW = timedelta(seconds=10), timedelta(milliseconds=200)


async def _answer(_subject: str, data: bytes) -> bytes:
    return data


async def test_rejections_of_all_replicas_are_added(nats_url: str) -> None:
    """A caller that two replicas reject is listed once, with both counts."""
    async with open_connection(NatsSettings(nats_url, "test")) as client, AsyncExitStack() as replicas:
        for number in range(2):
            endpoint = ServiceEndpoint("ask", f"ioa.v1.user.*.test{number}.ask", _answer)
            served = open_service(client, "ioa-test", "Tests", "0.1.0", [endpoint], limits=ServiceLimits(RateLimit(0.1, 1)))
            await replicas.enter_async_context(served)
            subject = f"ioa.v1.user.eve.test{number}.ask"
            await NatsRequester(client).request(subject, Acknowledged(), Acknowledged)
            with pytest.raises(RateLimitedError):
                await NatsRequester(client).request(subject, Acknowledged(), Acknowledged, timeout=_NOW)
        async with open_inspection(NatsSettings(nats_url, "doctor"), patience=_SOON) as inspection:
            assert await inspection.rejected_callers() == [RejectedCaller("eve", "rate", 2)]
