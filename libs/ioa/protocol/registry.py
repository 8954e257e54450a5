"""Requests to the registry and their answers."""

from __future__ import annotations

import hashlib
import hmac
from datetime import timedelta
from typing import Annotated

from pydantic import Field, model_validator

from ioa.errors import SupersededError
from ioa.protocol.cards import IDLE, AgentCard, AgentStatus, Load, ModelReport, with_pool
from ioa.protocol.ids import AgentId, AgentIdField, PoolId, PoolIdField, SessionId, SessionIdField
from ioa.protocol.model import Instruction, Model, Time
from ioa.protocol.usage import Count


class Session(Model):
    """A process that uses an agent's id.

    Attributes:
        session: A random id of the process.
        host: The machine's name.
    """

    session: SessionIdField
    host: Annotated[str, Field(max_length=255)]
    pid: Count
    since: Time

    @property
    def whereabouts(self) -> str:
        """Describe the process for people."""
        return f"process {self.pid} on {self.host} (since {self.since:%Y-%m-%d %H:%M:%S} UTC)"


class Register(Model):
    """Store or update a card and take a lease.

    Attributes:
        session: The process that takes it.
        previous: The session that last used the agent's memory. A process that has locked this memory replaces it at once.
        proof: A secret in the agent's memory, known only to the registry, which proves that the process has this memory.
    """

    card: AgentCard
    session: Session | None = None
    previous: SessionIdField | None = None
    proof: Annotated[str | None, Field(repr=False, max_length=64)] = None


class Renew(Model):
    """Renew the lease, with the load of the agent and the state of its model.

    `pool` is the pool of the agent's card, by default its id. `session` is the process.
    """

    agent_id: AgentIdField
    pool: PoolIdField = PoolId("")
    session: SessionIdField | None = None
    load: Load = IDLE
    model: ModelReport | None = None

    @model_validator(mode="before")
    @classmethod
    def _pool_defaults_to_the_agent(cls, data: object) -> object:
        return with_pool(data)


class Lease(Model):
    """The reply to both: when to renew the lease, and the number by which the agent notices new memberships.

    Attributes:
        joined: Number of the agent's newest membership; if it changes, the agent lists its memberships. 0 if it is unknown.
        inbox: Last token of the subject of pushes to the process, sent at its registration. Without a session nothing is pushed.
    """

    renew_every: timedelta
    joined: Count = 0
    warnings: tuple[str, ...] = ()
    inbox: Annotated[str, Field(repr=False, max_length=64)] = ""


class Deregister(Instruction):
    """Return the lease of a session. The card remains, so the agent is offline, not removed.

    `proof` is the proof of the registration.
    """

    agent_id: AgentIdField
    session: SessionIdField | None = None
    proof: Annotated[str | None, Field(repr=False, max_length=64)] = None


class RemoveAgent(Instruction):
    """Remove an agent: its card, lease and session, and its pool's queue if the pool has no other agent and no goal waits.

    An online agent is removed only with `force`, and registers again with its next renewal if its process still runs.
    """

    agent_id: AgentIdField
    force: bool = False


class ListAgents(Model):
    """List agents in the order of their ids; `after` continues a list.

    `name` selects the agent with this id, or if there is none, the agents of this pool, as for the addressee of a goal.
    """

    online_only: bool = False
    name: AgentIdField | None = None
    after: AgentIdField | None = None
    limit: Annotated[int, Field(ge=1, le=1_000)] = 200


class Agents(Model):
    """Agents and their liveness, as many as fit into one reply.

    Attributes:
        agents: The agents, in the requested order.
        more: Whether others follow after the last one.
    """

    agents: tuple[AgentStatus, ...]
    more: bool = False


class Acknowledged(Model):
    """The request was carried out."""


class CardRecord(Model):
    """A stored card."""

    card: AgentCard
    registered_at: Time


class Renewal(Model):
    """The content of an agent's last lease renewal: its load, its process, and the state of its model."""

    load: Load = IDLE
    session: SessionIdField | None = None
    model: ModelReport | None = None


EMPTY_RENEWAL = Renewal()


def proof_digest(proof: str) -> str:
    """Return the digest of the proof that a process's successor must show."""
    return hashlib.sha256(proof.encode()).hexdigest() if proof else ""


class Claim(Model):
    """The process that holds an agent's id.

    Attributes:
        card: Digest of the agent's card without its id.
        inbox: Nonce of the subject of the process's pushes.
        seal: Digest of the proof that a successor must show; empty if it needs none.
    """

    session: Session
    card: str
    inbox: Annotated[str, Field(repr=False)] = ""
    seal: str = ""

    def is_sealed_by(self, proof: str | None) -> bool:
        """Whether a proof matches the seal, or no proof is needed."""
        return not self.seal or (proof is not None and hmac.compare_digest(self.seal, proof_digest(proof)))

    def refuse_others(self, agent_id: AgentId, session: SessionId | None) -> None:
        """Reject a process that does not hold the id.

        Raises:
            SupersededError: Another process holds the id; the message names it.
        """
        if self.session.session != session:
            raise SupersededError(
                f"{agent_id} was taken over by {self.session.whereabouts}.",
                hint="This process has to end; start it under another id if both are wanted.",
            )
