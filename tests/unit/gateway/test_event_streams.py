"""Readers of streams that fail."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, nullcontext
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from ioa.fair_semaphore import FairSemaphore
from ioa.protocol.ids import LOCAL, GoalId, GoalName
from ioa_gateway.caller import Caller
from ioa_gateway.event_streams import open_event_streams


async def test_a_bug_ends_one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group whose reader has a bug ends with an error; a list has heartbeats and is read again."""
    monkeypatch.setattr("ioa_gateway.event_streams.SILENCE", timedelta(milliseconds=20))
    monkeypatch.setattr("ioa_gateway.event_streams.watching", lambda *_: nullcontext())
    broken: Any = SimpleNamespace(connection=None)
    caller = Caller("web", LOCAL, frozenset())
    async with open_event_streams(broken, FairSemaphore(1)) as streams, asyncio.timeout(20):
        seen = [chunk async for chunk in streams.follow(caller, GoalName(LOCAL, GoalId("broken")))]
        async with aclosing(streams.follow(caller, None, listed={})) as listing:
            await anext(listing)
            assert await anext(listing) == b":\n\n"
    assert b"event: end\n" in seen[-1] and b"urn:ioa:error:crashed" in seen[-1]
