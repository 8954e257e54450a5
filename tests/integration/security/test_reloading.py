"""Requests of clients while nats-server reloads its configuration."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from ioa.adapters.nats.streams.stream_stats import read_standing
from ioa.adapters.nats.streams.topology import Topology
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.client.client import Client
from ioa.concurrency import beside
from ioa.protocol import subjects
from ioa.protocol.ids import AgentId, CommId
from tests.integration.security.secured import open_intruder, open_secured
from tests.integration.security.town import BOB, SOON, USER
from tests.rig.deadline import eventually
from tests.rig.reads import open_read_service

_RELOADS = 10
_ASKED_BETWEEN = 10


@pytest.mark.nightly
async def test_nobodys_request_fails_while_the_server_reloads(tmp_path: Path) -> None:
    """Status requests, identity requests, log reads and goals succeed while nats-server reloads its configuration."""
    async with AsyncExitStack() as stack:
        secured = await stack.enter_async_context(open_secured(tmp_path, (BOB,)))
        admin = await stack.enter_async_context(open_intruder(secured, "admin"))
        user = await stack.enter_async_context(open_intruder(secured, USER))
        await Topology().ensure(admin.jetstream())
        groups = await stack.enter_async_context(open_intruder(secured, "groups"))
        await stack.enter_async_context(open_read_service(groups))
        system = Client(user)
        asked, done = Counter[str](), asyncio.Event()

        async def publish() -> None:  # to one agent after another: nobody takes them, and so many wait for each at most
            await user.jetstream().publish(subjects.goal_to(USER, AgentId(f"agent-{asked['goal']}")), b"{}")

        async def whose() -> None:
            assert await NatsSystemClient(user).user() == USER

        asks: dict[str, Callable[[], Awaitable[object]]] = {
            "standing": lambda: read_standing(admin),
            "whose": whose,
            "log": lambda: system.group_entries(CommId("room"), limit=10),
            "goal": publish,
        }

        async def ask_on(name: str) -> None:
            while not done.is_set():
                await asks[name]()
                asked[name] += 1

        async with beside(*(ask_on(name) for name in asks), stop=done.set):
            for _ in range(_RELOADS):
                enough = {name: asked[name] + _ASKED_BETWEEN for name in asks}
                os.kill(secured.server.pid, signal.SIGHUP)
                await eventually(lambda: all(asked[name] >= enough[name] for name in enough), within=SOON)  # noqa: B023
