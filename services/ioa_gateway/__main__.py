"""Run one replica of the gateway: `python -m ioa_gateway`. It has no state, so any replica can serve any request."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from functools import cache, partial

import structlog

from ioa.adapters.nats.delivery.nats_delivery import NatsDeadLetters
from ioa.adapters.nats.stores.api_key_store import NatsApiKeys
from ioa.adapters.nats.stores.webhook_store import NatsWebhooks, follow_webhooks
from ioa.adapters.nats.wire.connection import open_connection
from ioa.adapters.otlp import export_spans, is_wanted
from ioa.adapters.system_clock import SystemClock
from ioa.client.client import Client
from ioa.concurrency import beside
from ioa.errors import UnavailableError
from ioa.protocol import subjects
from ioa.retry import pauses
from ioa.runtime.process import StopSignal, run_process
from ioa.telemetry import readiness
from ioa.telemetry.health import open_socket
from ioa_gateway.app import create_app
from ioa_gateway.auth import Keyring
from ioa_gateway.context import Gateway
from ioa_gateway.event_streams import open_event_streams
from ioa_gateway.key_limits import CallerLimits
from ioa_gateway.seats import open_seat
from ioa_gateway.server import open_server
from ioa_gateway.settings import GatewaySettings
from ioa_gateway.trace_export import TraceExport
from ioa_gateway.webhooks.http_post import open_http_post
from ioa_gateway.webhooks.webhook_service import WebhookService

_log = structlog.get_logger(__name__)

SETTINGS = GatewaySettings


async def serve(settings: GatewaySettings, stop: StopSignal) -> None:
    """Answer until `stop` is set."""
    settings.hosts(settings.http_port)
    now, is_asked, nats = SystemClock().now, settings.has_own_key, settings.nats("ioa-gateway")
    async with open_connection(nats) as connection:
        keyring, limits = Keyring(NatsApiKeys(connection), now, run=settings.http_run), CallerLimits(time.monotonic)
        await _open(keyring, settings)
        system, hooks, dead = Client(connection, reader=subjects.GATEWAY), NatsWebhooks(connection), NatsDeadLetters(connection)
        traces = TraceExport(system, partial(export_spans, service="ioa-gateway"))
        with (
            open_socket(settings.http_address, settings.http_port, "IOA_HTTP_PORT") as listening,
            readiness.needs("NATS", lambda: connection.is_connected),
        ):
            port = listening.getsockname()[1]
            async with (
                open_event_streams(system, limits.pages) as streams,
                open_http_post(inside=settings.webhooks_inside) as http,
            ):
                ended = traces.ended if is_wanted(os.environ) else lambda _result: None
                webhooks = WebhookService(hooks, system, dead, http, keyring.holder, now, ended)
                gateway = Gateway(
                    streams=streams,
                    keyring=keyring,
                    limits=limits,
                    hooks=hooks,
                    http_post=http,
                    draw=secrets.token_bytes,
                    system_of=cache(lambda user: Client(connection, user, reader=user)),
                    open_seat=partial(open_seat, connection=connection, nats=nats, folder=settings.seats, is_asked=is_asked),
                    is_there=lambda: connection.is_connected,
                )
                consumers = follow_webhooks(connection, dead, webhooks.note_end, webhooks.deliver)
                async with (
                    beside(keyring.follow(), traces.keep(), consumers, webhooks.follow_items()),
                    open_server(create_app(gateway, settings.hosts(port)), listening),
                ):
                    _log.info("http_served", port=port)
                    await stop.wait()
                    streams.close()


async def _open(keyring: Keyring, settings: GatewaySettings) -> None:
    """Wait until the keys can be read, and until there is a key unless the port is local."""
    for pause in pauses(0.1, 2.0):
        try:
            await keyring.read()
        except UnavailableError as error:
            _log.info("keys_not_there_yet", error=error.message)
            await asyncio.sleep(pause)
        else:
            if settings.is_loopback or not keyring.is_empty:
                return
            _log.warning("no_key_yet", why="Nobody could come in.", hint="Make a key with `ioa keys create`.")
            await asyncio.sleep(pause)


if __name__ == "__main__":
    run_process(SETTINGS, serve)
