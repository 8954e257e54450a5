"""Run one replica of the router: `python -m ioa_router`."""

from __future__ import annotations

import asyncio
import secrets

import structlog

from ioa.adapters.nats_buckets import NatsMemberships
from ioa.adapters.nats_connection import open_connection
from ioa.adapters.nats_delivery import NatsInboxes, NatsResults, NatsTimers
from ioa.adapters.nats_goals import NatsGoalRecords
from ioa.adapters.nats_log import NatsGroupLog
from ioa.adapters.nats_queues import Delivery, consume
from ioa.adapters.nats_requests import Endpoint, open_service
from ioa.adapters.nats_topology import ROUTERS, TIMERS
from ioa.adapters.system_clock import SystemClock
from ioa.errors import UnavailableError
from ioa.protocol import subjects
from ioa.runtime.control_plane import ControlPlaneSettings, ensure_topology
from ioa.runtime.goal_metrics import CountedResults
from ioa.runtime.ledger import GroupLedger
from ioa.runtime.process import StopSignal, background, run_process
from ioa_router.router import Router

_SWEEP_AGAIN_SECONDS = 1.0

_log = structlog.get_logger(__name__)


async def serve(settings: ControlPlaneSettings, stop: StopSignal) -> None:
    """Route messages until `stop` is set."""
    async with open_connection(settings.nats("ioa-router")) as client:
        js = client.jetstream()
        await ensure_topology(client, settings)
        timers, goals, clock = NatsTimers(js), NatsGoalRecords(js), SystemClock()
        results = CountedResults(NatsResults(js), goals)
        name = f"router-{secrets.token_hex(8)}"
        ledger = GroupLedger(NatsGroupLog(client), timers, NatsInboxes(client, name), results, clock)
        router = Router(ledger, goals, timers, clock)

        async def fire(delivery: Delivery) -> None:
            await router.fire_timer(subjects.parse_comm(delivery.subject), delivery.stored_at)

        memberships, restored = NatsMemberships(client), asyncio.Event()

        async def sweep() -> None:
            """Sweep at the start and after each time NATS was out of reach."""
            while True:
                await restored.wait()
                restored.clear()
                try:
                    await router.sweep(memberships.comm_ids())
                except UnavailableError as error:
                    _log.warning("sweep_put_off", error=error.message)
                    await asyncio.sleep(_SWEEP_AGAIN_SECONDS)
                    restored.set()

        endpoints = [
            Endpoint("say", subjects.ANY_SAY, router.say),
            Endpoint("say_to_me", subjects.any_say_to(name), router.say, is_own=True),
        ]
        async with (
            background(consume(client, TIMERS, ROUTERS, fire, side_by_side=16), memberships.follow(restored.set), sweep()),
            open_service(client, "ioa-router", "Decides about the messages of every group", settings.version, endpoints),
        ):
            await stop.wait()


if __name__ == "__main__":
    run_process(ControlPlaneSettings, serve)
