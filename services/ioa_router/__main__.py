"""Run one replica of the router: `python -m ioa_router`."""

from __future__ import annotations

import secrets
import time
from contextlib import AsyncExitStack
from dataclasses import replace

from ioa.adapters.nats.audit import NatsAuditSink
from ioa.adapters.nats.clock import open_nats_clock
from ioa.adapters.nats.connection import at_renewal, open_connection
from ioa.adapters.nats.delivery import NatsDeadLetters, NatsInboxes, NatsProgress, NatsResults, NatsTimers
from ioa.adapters.nats.endpoints import ServiceEndpoint
from ioa.adapters.nats.goals import NatsGoalRecords
from ioa.adapters.nats.log import NatsGroupLog
from ioa.adapters.nats.open_groups import NatsOpenGroups
from ioa.adapters.nats.queues import Delivery, consume, into_dead_letters
from ioa.adapters.nats.retention import NatsEndedGoals
from ioa.adapters.nats.service import open_service
from ioa.adapters.nats.sessions import NatsSessions
from ioa.adapters.nats.takeover import take_over
from ioa.adapters.nats.topology import ROUTERS, TIMERS
from ioa.distribution import installed_version
from ioa.ports.group_log import UnreadableEntryError
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_PAYLOAD_BYTES
from ioa.quotas import Family
from ioa.runtime.appended import Appended
from ioa.runtime.audit import AuditedResults, open_audit_log
from ioa.runtime.control_plane import ControlPlaneSettings, open_topology
from ioa.runtime.endings import Endings
from ioa.runtime.goal_metrics import CountedDeadLetters, CountedResults
from ioa.runtime.head_reads import HeadReads
from ioa.runtime.ledger import GroupLedger
from ioa.runtime.process import StopSignal, background, run_process
from ioa.runtime.unreadable import UnreadableEntries
from ioa_router.router import Router, RouterPorts
from ioa_router.standstill import Standstill
from ioa_router.sweep import Sweep


async def serve(settings: ControlPlaneSettings, stop: StopSignal) -> None:
    """Route messages until `stop` is set."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_connection(settings.nats("ioa-router")))
        await stack.enter_async_context(open_topology(client, settings))
        js, clock = client.jetstream(), await open_nats_clock(client)
        audit = await stack.enter_async_context(open_audit_log(NatsAuditSink(client), clock, "router"))
        timers, goals, open_groups = NatsTimers(js), NatsGoalRecords(js), NatsOpenGroups(client)
        progress, sessions = NatsProgress(client), NatsSessions(client)
        results = AuditedResults(CountedResults(NatsResults(js), goals), audit)
        endings = Endings(results, NatsEndedGoals(js))
        name = f"router-{secrets.token_hex(8)}"
        dead = CountedDeadLetters(NatsDeadLetters(js))
        log = NatsGroupLog(client, UnreadableEntries(dead).note)
        inboxes = NatsInboxes(client, sessions.inbox_of, name)
        appended = Appended(time.monotonic, settings.append_rate, audit.note_slowed)
        reads = HeadReads(time.monotonic, audit.note_slowed)
        ledger = GroupLedger(
            log=log,
            timers=timers,
            inboxes=inboxes,
            results=results,
            open_groups=open_groups,
            clock=clock,
            quota=settings.group_quota,
            appended=appended,
            reads=reads,
        )
        ports = RouterPorts(
            ledger=ledger,
            goals=goals,
            open_groups=open_groups,
            timers=timers,
            progress=progress,
            endings=endings,
            clock=clock,
            sessions=sessions,
        )
        router = Router(ports)
        sweep = Sweep(open_groups, router.look_at)
        standstill, into_dead = Standstill(log, goals, results, timers, clock), into_dead_letters(dead)

        async def fire(delivery: Delivery) -> None:
            try:
                await router.fire_timer(subjects.parse_comm(delivery.subject), delivery.stored_at, again=delivery.attempt > 1)
            except UnreadableEntryError as error:
                await standstill.end_goal(error, delivery.stored_at)

        async def set_aside(delivery: Delivery, error: Exception) -> None:
            await standstill.keep_timer(delivery.subject)
            await into_dead(delivery, error)

        async def keep_sweeping() -> None:
            await take_over(client, clock)
            await sweep.keep()

        said = ServiceEndpoint(
            "say",
            subjects.ANY_SAY,
            router.say,
            lane=subjects.group_of_say,
            caller_at=subjects.CALLER_OF_SAY_AT,
            family=Family.SAY,
            max_bytes=MAX_PAYLOAD_BYTES,
        )
        endpoints = [said, replace(said, name="say_to_me", subject=subjects.any_say_to(name), is_own=True)]
        with at_renewal(client, ledger.forget), at_renewal(client, sweep.begin_again):
            async with background(sessions.follow()):
                await sessions.whole()
                async with (
                    background(
                        consume(client, TIMERS, ROUTERS, fire, set_aside=set_aside, max_concurrent=16),
                        progress.follow(router.hear, router.listen_anew, subjects.ANY_PROGRESS),
                        clock.follow(),
                        keep_sweeping(),
                    ),
                    open_service(
                        client,
                        "ioa-router",
                        "Decides about the messages of every group",
                        installed_version(),
                        endpoints,
                        bounds=settings.bounds,
                        known=sessions.agents,
                        slowed=audit.note_slowed,
                        also_slowed=lambda: (*appended.slowed(), *reads.slowed()),
                    ),
                ):
                    await stop.wait()


if __name__ == "__main__":
    run_process(ControlPlaneSettings, serve)
