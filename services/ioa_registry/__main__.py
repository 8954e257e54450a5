"""Run one replica of the registry: `python -m ioa_registry`."""

from __future__ import annotations

from ioa.adapters.nats.requests.service import ServiceEndpoint, answer, answer_agent, open_service
from ioa.adapters.nats.stores.audit_stream import NatsAuditSink
from ioa.adapters.nats.stores.goal_records import NatsWorkQueue
from ioa.adapters.nats.stores.nats_registry_view import NatsRegistryView
from ioa.adapters.nats.stores.open_group_store import NatsMemberships
from ioa.adapters.nats.stores.records import Records
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.adapters.nats.streams.topology import CARDS, LEASES
from ioa.adapters.nats.wire.connection import open_connection
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.concurrency import beside
from ioa.distribution import installed_version
from ioa.protocol import subjects
from ioa.protocol.operation.audit import Deed
from ioa.protocol.registry import CardRecord, Deregister, ListAgents, Register, RemoveAgent, Renew, Renewal
from ioa.runtime.audit_log import audited, open_audit_log
from ioa.runtime.control_plane import ControlPlaneSettings, open_topology
from ioa.runtime.process import StopSignal, run_process
from ioa.telemetry.process_metrics import before_scrapes
from ioa_registry.agent_registry import Registry, RegistryPorts
from ioa_registry.heartbeat import beat
from ioa_registry.removal import AgentRemover

SETTINGS = ControlPlaneSettings


async def serve(settings: ControlPlaneSettings, stop: StopSignal) -> None:
    """Answer requests until `stop` is set."""
    async with (
        open_connection(settings.nats("ioa-registry")) as client,
        open_topology(client, settings),
        open_audit_log(NatsAuditSink(client), SystemClock(), "registry") as audit,
    ):
        view, sessions = NatsRegistryView(client, settings.lease), NatsSessions(client)
        cards, leases = Records(client, CARDS, CardRecord), Records(client, LEASES, Renewal)
        ports = RegistryPorts(
            cards=cards,
            leases=leases,
            sessions=sessions,
            view=view,
            memberships=NatsMemberships(client),
            work=NatsWorkQueue(client),
            clock=SystemClock(),
            ids=RandomIds(),
        )
        registry, remover = Registry(ports, settings.renew_every), AgentRemover(ports)
        register = answer_agent(Register, registry.register, lambda asked: asked.card.agent_id, lambda asked: asked.card.pool)
        renew = answer_agent(Renew, registry.renew, lambda asked: asked.agent_id, lambda asked: asked.pool)
        endpoints = [
            ServiceEndpoint(
                "register", subjects.any_agent(subjects.REGISTER), audited(Deed.JOINED, register, audit, target=_pool_of)
            ),
            ServiceEndpoint("renew", subjects.any_agent(subjects.RENEW), renew),
            ServiceEndpoint("renew_at_all", subjects.any_agent(subjects.RENEW_AT_ALL), renew, per_replica=True),
            ServiceEndpoint(
                "deregister",
                subjects.any_agent(subjects.DEREGISTER),
                audited(Deed.LEFT, answer_agent(Deregister, registry.deregister, lambda asked: asked.agent_id), audit),
            ),
            ServiceEndpoint(
                *("remove", subjects.admin("*", subjects.REMOVE_AGENT)),
                audited(Deed.REMOVED, answer(RemoveAgent, remover.remove), audit),
            ),
            ServiceEndpoint("list", subjects.any_status(subjects.LIST_AGENTS), answer(ListAgents, registry.list)),
        ]
        beating = beat(leases, lease=settings.lease, renew_every=settings.renew_every)
        removing = remover.follow(settings.keep_agents)
        about = "Registers agents and keeps their leases", installed_version()
        with before_scrapes(registry.count_agents):
            async with beside(view.follow_cards(), view.follow_leases(), sessions.follow(), beating, removing):
                await view.whole()
                async with open_service(client, "ioa-registry", *about, endpoints, limits=settings.limits):
                    await stop.wait()


def _pool_of(subject: str, _data: bytes) -> str:
    return subjects.parse_agent(subject)[0]


if __name__ == "__main__":
    run_process(SETTINGS, serve)
