"""Whether an agent that is wanted in a group is there."""

from __future__ import annotations

from datetime import timedelta

from ioa.errors import IoaError, NoAgentError, UnavailableError
from ioa.ports.registry_store import LivenessView
from ioa.protocol.ids import AgentId

_AWAY = timedelta(minutes=1)
"""Who was heard within this time may be back in a moment, and is worth waiting for."""


def absence(registry: LivenessView, agent_id: AgentId) -> IoaError:
    """Tell an agent that restarts, or that could not be heard for a moment, from one that is gone."""
    silence = registry.silence(agent_id)
    if not registry.is_lost(agent_id) or (silence is not None and silence <= _AWAY):
        return UnavailableError(f"{agent_id} is away for a moment.", hint="Ask again.")
    return NoAgentError(f"{agent_id} cannot join: it is not online.")
