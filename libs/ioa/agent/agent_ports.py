"""What one agent's client has around it: a system, a memory, a clock, and who decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioa.adapters.sqlite_store import SqliteStore
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.brain import Brain
from ioa.ports.clock import Clock, IdSource

if TYPE_CHECKING:
    from ioa.agent.model.chat import ModelChat


@dataclass(frozen=True)
class AgentPorts:
    """What an agent acts with.

    Attributes:
        network: The system that it takes part in.
        store: Its memory.
        clock: Says when something is over.
        ids: Names its messages.
        brain: Decides in its turns, forms its teams, and says how its tasks are done.
        chat: The language model that its tasks may ask; None: there is none.
    """

    network: AgentNetwork
    store: SqliteStore
    clock: Clock
    ids: IdSource
    brain: Brain
    chat: ModelChat | None = None
