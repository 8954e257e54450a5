"""A gateway on a control plane, served by uvicorn in the test's own event loop, and what its streams say."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx

from ioa.protocol.api_keys import Scope
from ioa.protocol.ids import LOCAL
from ioa_gateway.app import create_app
from ioa_gateway.callers import Caller
from ioa_gateway.guard import Guard
from ioa_gateway.reach import Reach
from ioa_gateway.rooms import open_rooms
from ioa_gateway.server import bound, open_server
from ioa_testkit.planes import Plane

ANYBODY = Caller("local", LOCAL, frozenset(Scope))


@dataclass(frozen=True)
class Event:
    """One event of a stream."""

    kind: str
    seq: int
    data: Any


async def anybody(_request: object) -> Caller:
    """Let everybody in."""
    return ANYBODY


@asynccontextmanager
async def open_gateway(plane: Plane, is_there: Callable[[], bool] = lambda: True) -> AsyncIterator[httpx.AsyncClient]:
    """Serve a gateway, and yield who calls it."""
    with bound("127.0.0.1", 0) as listening:
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        async with open_rooms(plane.client, lambda _caller: True) as rooms:
            reach = Reach(rooms, lambda _user: plane.client, is_there)
            app = create_app(reach, anybody, partial(Guard, hosts={host}))
            async with (
                open_server(app, listening),
                httpx.AsyncClient(base_url=f"http://{host}/v1", timeout=20, verify=False) as http,
            ):
                yield http
                rooms.close()


async def followed(http: httpx.AsyncClient, path: str, **headers: str) -> AsyncIterator[Event]:
    """Follow a stream to where the gateway ends it."""
    async with http.stream("GET", path, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        fields: dict[str, str] = {}
        async for line in response.aiter_lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                yield Event(fields["event"], int(fields["id"]), json.loads(fields["data"]))
                fields = {}


async def all_of(events: AsyncIterator[Event]) -> list[Event]:
    """Collect a stream."""
    return [event async for event in events]
