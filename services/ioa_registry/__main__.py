"""Run one replica of the registry: `python -m ioa_registry`."""

from __future__ import annotations

from ioa.adapters.nats_buckets import NatsCards, NatsLeases, NatsMemberships, NatsRegistryView
from ioa.adapters.nats_connection import open_connection
from ioa.adapters.nats_goals import NatsWorkQueue
from ioa.adapters.nats_log import NatsGroupLog
from ioa.adapters.nats_requests import Endpoint, answer, answer_as, open_service
from ioa.adapters.system_clock import SystemClock
from ioa.protocol import subjects
from ioa.protocol.registry import Deregister, GetAgents, ListAgents, Register, Renew
from ioa.runtime.control_plane import ControlPlaneSettings, ensure_topology
from ioa.runtime.process import StopSignal, background, run_process
from ioa.runtime.process_metrics import before_scrapes
from ioa_registry.headcount import count_agents
from ioa_registry.registry import Registry


async def serve(settings: ControlPlaneSettings, stop: StopSignal) -> None:
    """Keep cards and leases until `stop` is set."""
    async with open_connection(settings.nats("ioa-registry")) as client:
        js = client.jetstream()
        await ensure_topology(client, settings)
        view, memberships = NatsRegistryView(client), NatsMemberships(client)
        registry = Registry(
            cards=NatsCards(client),
            leases=NatsLeases(client),
            view=view,
            open_groups=memberships,
            memberships=memberships,
            log=NatsGroupLog(client),
            work=NatsWorkQueue(js),
            clock=SystemClock(),
            lease=settings.lease,
            renew_every=settings.renew_every,
        )
        endpoints = [
            Endpoint("register", subjects.ANY_REGISTER, answer_as(Register, registry.register, lambda asked: asked.card.agent_id)),
            Endpoint("renew", subjects.ANY_RENEW, answer_as(Renew, registry.renew, lambda asked: asked.agent_id)),
            Endpoint(
                "deregister", subjects.ANY_DEREGISTER, answer_as(Deregister, registry.deregister, lambda asked: asked.agent_id)
            ),
            Endpoint("get", subjects.GET_AGENTS, answer(GetAgents, registry.get)),
            Endpoint("list", subjects.LIST_AGENTS, answer(ListAgents, registry.list)),
        ]
        async with background(memberships.follow(), view.follow_cards(), view.follow_leases()):
            for view_ready in (memberships.ready, view.cards_ready, view.leases_ready):
                await view_ready.wait()
            with before_scrapes(lambda: count_agents(view)):
                async with open_service(client, "ioa-registry", "Knows who exists and who is alive", settings.version, endpoints):
                    await stop.wait()


if __name__ == "__main__":
    run_process(ControlPlaneSettings, serve)
