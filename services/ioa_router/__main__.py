"""Run one replica of the router: `python -m ioa_router`."""

from __future__ import annotations

import secrets
from dataclasses import replace

from ioa.adapters.nats.delivery.nats_delivery import NatsProgress
from ioa.adapters.nats.delivery.work_queue import Delivery, consume, into_dead_letters
from ioa.adapters.nats.requests.request import SAY_TIMEOUT
from ioa.adapters.nats.requests.service import ServiceEndpoint, open_service
from ioa.adapters.nats.streams.topology import ROUTERS, TIMERS
from ioa.adapters.nats.wire.subscriptions import at_renewal
from ioa.concurrency import beside
from ioa.distribution import installed_version
from ioa.ports.group_log import UnreadableEntryError
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_PAYLOAD_BYTES
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.runtime.group_stores import open_group_stores
from ioa.runtime.process import StopSignal, run_process
from ioa_router.router import Router
from ioa_router.sweep import Sweep

_TIMERS_AT_ONCE = 16

SETTINGS = ControlPlaneSettings


async def serve(settings: ControlPlaneSettings, stop: StopSignal) -> None:
    """Route messages until `stop` is set."""
    name = f"router-{secrets.token_hex(8)}"
    async with open_group_stores(settings, "router", name) as (client, stores, _):
        progress = NatsProgress(client)
        router = Router(stores, progress)
        sweep, into_dead = Sweep(stores.open_groups, router.fire_timer), into_dead_letters(stores.dead)

        async def fire(delivery: Delivery) -> None:
            try:
                await router.fire_timer(subjects.parse_comm(delivery.subject), delivery.stored_at, again=delivery.attempt > 1)
            except UnreadableEntryError as error:
                await router.end_unreadable(error, delivery.stored_at)

        async def set_aside(delivery: Delivery, error: Exception) -> None:
            await router.check_removable(delivery.subject)
            await into_dead(delivery, error)

        said = ServiceEndpoint(
            "say",
            subjects.ANY_SAY,
            router.say,
            queue_key=subjects.group_of_say,
            max_bytes=MAX_PAYLOAD_BYTES,
            timeout=SAY_TIMEOUT,
        )
        endpoints = [said, replace(said, name="say_to_me", subject=subjects.any_say_to(name), per_replica=True)]
        with at_renewal(client, sweep.request):
            async with (
                beside(
                    consume(client, TIMERS, ROUTERS, fire, set_aside=set_aside, max_concurrent=_TIMERS_AT_ONCE),
                    progress.follow(router.add_report, router.restart_reports),
                    sweep.run(),
                ),
                open_service(
                    client,
                    "ioa-router",
                    "Decides about the messages of every group",
                    installed_version(),
                    endpoints,
                    limits=settings.limits,
                ),
            ):
                await stop.wait()


if __name__ == "__main__":
    run_process(SETTINGS, serve)
