"""Run one replica of the registry: `python -m ioa_registry`."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from ioa.adapters.nats.audit import NatsAuditSink
from ioa.adapters.nats.authorization import roster_of
from ioa.adapters.nats.buckets import NatsCards, NatsLeases, NatsRegistryView
from ioa.adapters.nats.connection import Connection, at_renewal, open_connection
from ioa.adapters.nats.connections import NatsConnections
from ioa.adapters.nats.endpoints import OF_ANYBODY, ServiceEndpoint, answer, answer_as, answer_member
from ioa.adapters.nats.flood_tellers import NatsPullTeller
from ioa.adapters.nats.goals import NatsWorkQueue
from ioa.adapters.nats.log import NatsGroupLog
from ioa.adapters.nats.open_groups import NatsMemberships
from ioa.adapters.nats.refused_callers import NatsRefusedCallers
from ioa.adapters.nats.retention import NatsAgentRemoval
from ioa.adapters.nats.service import open_service
from ioa.adapters.nats.sessions import NatsSessions
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.distribution import installed_version
from ioa.protocol import subjects
from ioa.protocol.audit import Deed
from ioa.protocol.kept_out import Readmit
from ioa.protocol.registry import Deregister, GetAgents, ListAgents, Register, RemoveAgent, Renew
from ioa.quotas import Family, Rate
from ioa.runtime.audit import AuditLog, audited, open_audit_log
from ioa.runtime.control_plane import ControlPlaneSettings, open_topology
from ioa.runtime.process import StopSignal, background, run_process
from ioa.runtime.watched_file import WatchedFile
from ioa.telemetry.process_metrics import before_scrapes
from ioa_registry.agent_count import count_agents
from ioa_registry.floods import FloodLimits, FloodWatch
from ioa_registry.heartbeat import beat
from ioa_registry.old_agents import refuse_old
from ioa_registry.registry import Registry, RegistryPorts
from ioa_registry.removal import AgentRemover

_MANY_IDS_BYTES = 100_000
"""What a request may have that names a thousand agents."""
_UNCOUNTED_AT_ONCE = 50
"""How many seconds' worth of what no server counts may come at once: five processes of one holder that lose their connections in
the middle of a message of 1 MB have sent as much."""


async def serve(settings: ControlPlaneSettings, stop: StopSignal) -> None:
    """Keep cards and leases until `stop` is set."""
    async with (
        open_connection(settings.nats("ioa-registry")) as client,
        # What ends the connections of who floods waits for nothing else.
        open_connection(settings.nats("ioa-registry-floods")) as watching,
        open_topology(client, settings),
        open_audit_log(NatsAuditSink(client), SystemClock(), "registry") as audit,
    ):
        js = client.jetstream()
        view, leases, sessions = NatsRegistryView(client, settings.lease), NatsLeases(client), NatsSessions(client)
        cards = NatsCards(client)
        remover = AgentRemover(cards, view, NatsAgentRemoval(client), SystemClock())
        ports = RegistryPorts(
            cards=cards,
            leases=leases,
            sessions=sessions,
            view=view,
            memberships=NatsMemberships(client),
            log=NatsGroupLog(client),
            work=NatsWorkQueue(js),
            clock=SystemClock(),
            ids=RandomIds(),
        )
        registry = Registry(ports, settings.lease, settings.renew_every)
        register = answer_member(Register, registry.register, lambda asked: (asked.card.pool, asked.card.agent_id))
        renew = answer_member(Renew, registry.renew, lambda asked: (asked.pool, asked.agent_id))
        by_name = partial(ServiceEndpoint, caller_at=subjects.CALLER_AT)
        endpoints = [
            by_name("register", subjects.ANY_REGISTER, audited(Deed.JOINED, register, audit, target=_pool_of)),
            by_name("renew", subjects.ANY_RENEW, renew, family=Family.RENEW),
            by_name("renew_at_all", subjects.ANY_RENEW_AT_ALL, renew, is_own=True, family=Family.RENEW),
            by_name("old_register", subjects.ANY_OLD_REGISTER, refuse_old),
            by_name("old_renew", subjects.ANY_OLD_RENEW, refuse_old),
            by_name(
                "deregister",
                subjects.ANY_DEREGISTER,
                audited(Deed.LEFT, answer_as(Deregister, registry.deregister, lambda asked: asked.agent_id), audit),
            ),
            ServiceEndpoint(
                "get", subjects.GET_AGENTS, answer(GetAgents, registry.get), at_most=OF_ANYBODY, max_bytes=_MANY_IDS_BYTES
            ),
            ServiceEndpoint(
                *("remove", subjects.REMOVE_AGENT),
                audited(Deed.REMOVED, answer(RemoveAgent, remover.remove), audit, who=subjects.BY_ADMIN),
            ),
            ServiceEndpoint("list", subjects.LIST_AGENTS, answer(ListAgents, registry.list), at_most=OF_ANYBODY),
        ]
        refused = NatsRefusedCallers(time.monotonic)
        floods = await _flood_watch(settings, audit, watching)
        if floods is not None:
            endpoints.append(ServiceEndpoint("readmit", subjects.READMIT, answer(Readmit, floods.readmit), is_own=True))
        beating = beat(leases, lease=settings.lease, renew_every=settings.renew_every)
        removing = remover.follow(settings.keep_agents)
        watching_floods = NatsPullTeller(watching, settings.quota_sent_burst).follow() if floods is None else floods.follow()
        with before_scrapes(lambda: count_agents(view)), at_renewal(client, registry.forget_epoch):
            async with (
                refused.hearing(client),
                background(view.follow_cards(), view.follow_leases(), sessions.follow(), beating, removing, watching_floods),
                open_service(
                    client,
                    "ioa-registry",
                    "Knows who exists and who is alive",
                    installed_version(),
                    endpoints,
                    bounds=settings.bounds,
                    known=sessions.agents,
                    slowed=audit.note_slowed,
                    also_slowed=lambda: (*refused.slowed(), *(() if floods is None else floods.slowed())),
                ),
            ):
                await stop.wait()


async def _flood_watch(settings: ControlPlaneSettings, audit: AuditLog, client: Connection) -> FloodWatch | None:
    """Return what puts off who floods the server; None where nobody told who is behind which key."""
    if settings.authorization is None:
        return None
    hint = "IOA_AUTHORIZATION names what `ioa credentials create` writes, and nats-server includes."
    roster = await asyncio.to_thread(WatchedFile, settings.authorization, roster_of, hint)
    sent_bytes = Rate(settings.quota_sent_bytes, 4 * settings.quota_sent_bytes)
    sent = Rate(settings.quota_sent, settings.quota_sent_burst)
    pause = settings.quota_sent_pause.total_seconds()
    uncounted = Rate(settings.quota_sent_uncounted, _UNCOUNTED_AT_ONCE * settings.quota_sent_uncounted)
    limits = FloodLimits(sent, sent_bytes, pause, settings.quota_connections, settings.quota_subscriptions, uncounted)
    return FloodWatch(NatsConnections(client, settings.quota_sent_burst), limits, roster.said, audit, time.monotonic)


def _pool_of(subject: str, _data: bytes) -> str:
    return subjects.parse_member(subject)[0]


if __name__ == "__main__":
    run_process(ControlPlaneSettings, serve)
