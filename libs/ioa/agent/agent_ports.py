"""The ports of one agent: network, memory, clock, ids, brain and model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioa.adapters.sqlite_store import SqliteStore
from ioa.agent.brain_port import Brain
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.clock import Clock, IdSource

if TYPE_CHECKING:
    from ioa.agent.model.chat import ModelChat


@dataclass(frozen=True)
class AgentPorts:
    """The ports of one agent.

    Attributes:
        brain: Decides its turns, teams, and how to do its tasks.
        chat: The language model that its tasks can ask.
    """

    network: AgentNetwork
    store: SqliteStore
    clock: Clock
    ids: IdSource
    brain: Brain
    chat: ModelChat | None = None
