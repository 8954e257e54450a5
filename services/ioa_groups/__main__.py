"""Run one replica of group setup: `python -m ioa_groups`."""

from __future__ import annotations

from ioa.adapters.nats_artifacts import NatsArtifacts
from ioa.adapters.nats_buckets import NatsMemberships, NatsRegistryView
from ioa.adapters.nats_connection import open_connection
from ioa.adapters.nats_delivery import NatsDeadLetters, NatsInboxes, NatsResults, NatsTimers
from ioa.adapters.nats_goals import NatsGoalRecords, NatsWorkQueue
from ioa.adapters.nats_log import NatsGroupLog
from ioa.adapters.nats_queues import Delivery, consume
from ioa.adapters.nats_requests import Endpoint, answer, answer_as, open_service
from ioa.adapters.nats_standing import NatsStandings
from ioa.adapters.nats_topology import GOALS, INTAKE
from ioa.adapters.system_clock import SystemClock
from ioa.group.requests import AbandonGoal, CancelGroup, GetGroup, LaunchGroup, Sync
from ioa.protocol import subjects
from ioa.runtime.census import Census
from ioa.runtime.control_plane import ControlPlaneSettings, ensure_topology
from ioa.runtime.goal_metrics import CountedDeadLetters, CountedResults
from ioa.runtime.ledger import GroupLedger
from ioa.runtime.process import StopSignal, background, run_process
from ioa_groups.intake import Intake
from ioa_groups.membership import MembershipWatch
from ioa_groups.setup import GroupSetup, GroupTimeouts


async def serve(settings: ControlPlaneSettings, stop: StopSignal) -> None:
    """Set up groups and take goals in until `stop` is set."""
    async with open_connection(settings.nats("ioa-groups")) as client:
        js = client.jetstream()
        await ensure_topology(client, settings)
        clock, log, goals, timers = SystemClock(), NatsGroupLog(client), NatsGoalRecords(js), NatsTimers(js)
        registry, memberships = NatsRegistryView(client), NatsMemberships(client)
        ledger = GroupLedger(log, timers, NatsInboxes(client), CountedResults(NatsResults(js), goals), clock)
        timeouts = GroupTimeouts(
            max_depth=settings.max_depth,
            floor_timeout=settings.floor_timeout,
            task_lease=settings.task_lease,
            pause_timeout=settings.pause_timeout,
            conclusion_timeout=settings.conclusion_timeout,
        )
        setup = GroupSetup(ledger, log, goals, registry, memberships, clock, timeouts)
        work, dead, artifacts = NatsWorkQueue(js), CountedDeadLetters(NatsDeadLetters(js)), NatsArtifacts(js)
        intake = Intake(goals, work, timers, artifacts, dead, registry, ledger, clock)
        watch = MembershipWatch(ledger, registry, memberships, clock)
        registry.listen(watch.notice)
        census = [Census(log, NatsStandings(js), memberships.comm_ids).follow()] if settings.metrics_port is not None else []

        async def take(delivery: Delivery) -> None:
            await intake.accept(delivery.subject, delivery.data, delivery.identity)

        endpoints = [
            Endpoint("launch", subjects.ANY_LAUNCH, answer_as(LaunchGroup, setup.launch, lambda asked: asked.owner)),
            Endpoint("abandon", subjects.ANY_ABANDON, answer_as(AbandonGoal, setup.abandon, lambda asked: asked.by)),
            Endpoint("get", subjects.GET_GROUP, answer(GetGroup, setup.get)),
            Endpoint("cancel", subjects.CANCEL, answer(CancelGroup, setup.cancel)),
            Endpoint("sync", subjects.ANY_SYNC, answer_as(Sync, setup.sync, lambda asked: asked.agent_id)),
        ]
        async with background(memberships.follow(), registry.follow_cards(), registry.follow_leases()):
            for view_ready in (memberships.ready, registry.cards_ready, registry.leases_ready):
                await view_ready.wait()
            async with (
                background(watch.follow(), consume(client, GOALS, INTAKE, take, side_by_side=16), *census),
                open_service(client, "ioa-groups", "Opens, ends and shows groups", settings.version, endpoints),
            ):
                await stop.wait()


if __name__ == "__main__":
    run_process(ControlPlaneSettings, serve)
