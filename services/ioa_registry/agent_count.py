"""Metric of registered agents. Not in `__main__`, which forked processes import twice."""

from __future__ import annotations

from prometheus_client import Gauge

from ioa.ports.registry_view import RegistryView

agents = Gauge("ioa_agents", "Registered agents, online or offline", ["state"])


def count_agents(view: RegistryView) -> None:
    """Set the gauge."""
    online = [view.is_online(record.card.agent_id) for record in view.cards()]
    agents.labels("online").set(online.count(True))
    agents.labels("offline").set(online.count(False))
