"""How many agents there are, for operators. Beside `__main__`, which is imported twice where processes are forks of one."""

from __future__ import annotations

from prometheus_client import Gauge

from ioa.ports.registry_store import RegistryView

agents = Gauge("ioa_agents", "Agents that have registered, by whether their lease stands", ["state"])


def count_agents(view: RegistryView) -> None:
    """Set the gauge."""
    online = [view.is_online(record.card.agent_id) for record in view.cards()]
    agents.labels("online").set(online.count(True))
    agents.labels("offline").set(online.count(False))
