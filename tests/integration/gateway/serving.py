"""A gateway on a control plane, served by uvicorn in the test's own event loop, and what its streams say."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import httpx
from nats.aio.client import Client

from ioa.adapters.nats.stores.api_key_store import NatsApiKeys
from ioa.adapters.nats.stores.webhook_store import NatsWebhooks
from ioa.adapters.nats.streams.topology import HOOKS
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.concurrency import beside
from ioa.protocol.codec import decode
from ioa.protocol.ids import LOCAL
from ioa.protocol.operation.api_keys import ApiKey, KeyId, Scope, digest_of_secret, written_key
from ioa.protocol.operation.webhooks import Notice
from ioa.telemetry.health import open_socket
from ioa.testing.manual_clock import NEW_YEAR, ManualClock
from ioa_gateway.app import create_app, describe_api
from ioa_gateway.auth import Keyring
from ioa_gateway.context import Gateway
from ioa_gateway.event_streams import open_event_streams
from ioa_gateway.key_limits import CallerLimits
from ioa_gateway.server import open_server
from ioa_gateway.webhooks.http_post import HttpPost
from ioa_testkit.planes import Plane

SECRET = "told to nobody else"
BEARER = {"Authorization": f"Bearer {written_key(KeyId('web'), SECRET)}"}


def key(key_id: str = "web", *scopes: str, expires_at: datetime | None = None) -> ApiKey:
    """Return a key of the user `local` with the secret `SECRET`; by default with all scopes."""
    return ApiKey(
        key_id=KeyId(key_id),
        name=key_id,
        user=LOCAL,
        scopes=scopes or tuple(Scope),
        digest=digest_of_secret(SECRET),
        created_at=NEW_YEAR,
        expires_at=expires_at,
    )


class Route(NamedTuple):
    """A route of the API, by its description."""

    method: str
    path: str
    needs_key: bool
    has_body: bool


ROUTES = [
    Route(method.upper(), path, "security" in operation, "requestBody" in operation)
    for path, operations in describe_api()["paths"].items()
    for method, operation in operations.items()
]


@dataclass(frozen=True)
class Event:
    """One event of a stream."""

    kind: str
    seq: int
    data: Any


class Door:
    """The part of a gateway that a test changes while it runs.

    Attributes:
        keys: Accepted API keys.
        clock: Clock by which keys expire.
        is_there: Whether the gateway is connected to its system.
        hooks: Webhooks.
        limits: Limits of each key.
    """

    def __init__(self, client: Client) -> None:
        self.keys, self.hooks = NatsApiKeys(client), NatsWebhooks(client)
        self.clock = ManualClock()
        self.is_there = True
        self.limits = CallerLimits(lambda: self.clock.now().timestamp())
        self._js = client.jetstream()

    async def notices(self) -> list[Notice]:
        """Return the notices that wait in the queue of webhooks."""
        state = (await self._js.stream_info(HOOKS)).state
        numbers = range(max(1, state.first_seq), state.last_seq + 1)
        return [decode(Notice, (await self._js.get_msg(HOOKS, number)).data or b"") for number in numbers]


@asynccontextmanager
async def open_door(plane: Plane) -> AsyncIterator[Door]:
    """Open the stores of a gateway."""
    async with open_connection(NatsSettings(plane.url, "door")) as client:
        yield Door(client)


@asynccontextmanager
async def open_gateway(plane: Plane, door: Door, run: str = "") -> AsyncIterator[httpx.AsyncClient]:
    """Serve a gateway with the key `web`, and yield a client with this key."""
    await door.keys.put(key())
    keyring = Keyring(door.keys, door.clock.now, timedelta(milliseconds=20), run)
    await keyring.read()
    with open_socket("127.0.0.1", 0, "IOA_HTTP_PORT") as listening:
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        async with open_event_streams(plane.client, door.limits.pages) as streams:
            gateway = Gateway(
                streams=streams,
                keyring=keyring,
                limits=door.limits,
                hooks=door.hooks,
                http_post=HttpPost(httpx.AsyncHTTPTransport(), inside=False),
                open_seat=lambda _me: nullcontext(plane.network),
                draw=secrets.token_bytes,
                system_of=lambda _user: plane.client,
                is_there=lambda: door.is_there,
            )
            async with (
                beside(keyring.follow()),
                open_server(create_app(gateway, {host: "http"}), listening),
                httpx.AsyncClient(base_url=f"http://{host}/v1", timeout=20, verify=False, headers=BEARER) as http,
            ):
                yield http
                streams.close()


async def sign_in(http: httpx.AsyncClient, key_id: str = "web") -> str:
    """Begin a session as a page does; return its cookie."""
    begun = await http.post("/session", json={"key": written_key(KeyId(key_id), SECRET)})
    return begun.cookies["ioa_session"]


def root(http: httpx.AsyncClient) -> str:
    """Where a gateway is."""
    return str(http.base_url).removesuffix("/v1/")


async def followed(http: httpx.AsyncClient, path: str, **headers: str) -> AsyncGenerator[Event, None]:
    """Yield the events of a stream until the gateway ends it; none after the end of a goal."""
    async with http.stream("GET", path, headers=headers) as response:
        if response.status_code == 204:
            return
        assert response.status_code == 200, await response.aread()
        fields: dict[str, str] = {}
        async for line in response.aiter_lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                yield Event(fields["event"], int(fields.get("id", 0)), json.loads(fields["data"]))
                fields = {}


async def all_of(events: AsyncIterator[Event]) -> list[Event]:
    """Collect a stream."""
    return [event async for event in events]
