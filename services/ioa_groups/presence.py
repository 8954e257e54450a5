"""Check that an invited agent is online."""

from __future__ import annotations

from datetime import timedelta

from ioa.errors import NoAgentError, NotYetError
from ioa.ports.registry_view import RegistryView
from ioa.protocol.ids import AgentId

_AWAY = timedelta(minutes=1)
"""Maximum silence of an agent that counts as restarting."""


def check_online(registry: RegistryView, agent_id: AgentId) -> None:
    """Check that an agent is online.

    Raises:
        NotYetError: The agent has been silent for a short time: it restarts, or its heartbeat was lost.
        NoAgentError: The agent is offline.
    """
    if registry.is_online(agent_id):
        return
    silence = registry.silence(agent_id)
    if not registry.is_lost(agent_id) or (silence is not None and silence <= _AWAY):
        raise NotYetError(f"{agent_id} did not renew its lease in time; it may be restarting.", hint="Retry.")
    raise NoAgentError(f"{agent_id} cannot join: it is not online.")
