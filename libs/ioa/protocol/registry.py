"""Requests to the registry and their answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, model_validator

from ioa.protocol.cards import AgentCard, AgentStatus, ModelReport, with_pool
from ioa.protocol.ids import AgentIdField, PoolId, PoolIdField, SessionIdField
from ioa.protocol.load import IDLE, Load
from ioa.protocol.model import Instruction, Model, Time
from ioa.protocol.usage import MAX_COUNT


class Session(Model):
    """One process's hold on an agent's id: which process it is, where, and since when.

    Attributes:
        session: Drawn anew by each process that starts the agent.
        host: The machine's name.
    """

    session: SessionIdField
    host: Annotated[str, Field(max_length=255)]
    pid: Annotated[int, Field(ge=0, le=MAX_COUNT)]
    since: Time

    @property
    def whereabouts(self) -> str:
        """Name the process for people: which, where, since when."""
        return f"process {self.pid} on {self.host} (since {self.since:%Y-%m-%d %H:%M:%S} UTC)"


class Register(Model):
    """Store or update a card and take a lease.

    Attributes:
        session: Who takes it; None from a client that knows no sessions.
        previous: The session that last used the agent's memory. Who holds that memory, which is locked, succeeds it at once.
        proof: Shows whose memory it is: drawn with it, kept in it, and told to the registry alone. Groups are told of sessions, and
            others may learn of them. None from a version without.
    """

    card: AgentCard
    session: Session | None = None
    previous: SessionIdField | None = None
    proof: Annotated[str | None, Field(repr=False, max_length=64)] = None


class Renew(Model):
    """Keep the lease, and tell how busy the agent is, and how its model answers if it has one.

    `pool` is that of the agent's card: its own name unless another is given. `session` is the process that asks; None knows no
    sessions.
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
    """The answer to both: how long the lease lasts, and by what the agent sees that it has missed something.

    Attributes:
        joined: Number of the agent's newest membership; if it changes, the agent lists its memberships. 0 if it is unknown.
        inbox: Where the process is pushed to: the last token of the subject, told when it registers. Who registers without a
            session is not pushed to, and asks.
    """

    duration: timedelta
    renew_every: timedelta
    joined: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    warnings: tuple[str, ...] = ()
    inbox: Annotated[str, Field(repr=False, max_length=64)] = ""


class Deregister(Instruction):
    """Give the lease back. The card stays: the agent is offline, not forgotten. `session` gives back only its own.

    `proof` is that of the registration.
    """

    agent_id: AgentIdField
    session: SessionIdField | None = None
    proof: Annotated[str | None, Field(repr=False, max_length=64)] = None


class RemoveAgent(Instruction):
    """Forget an agent: its card, its lease, its session, and its pool's queue if nobody else is of the pool and nothing waits.

    One that is online is refused unless `force` is set; it registers again with its next renewal if its process goes on.
    """

    agent_id: AgentIdField
    force: bool = False


class GetAgents(Model):
    """Look up agents by id; ids nobody has registered are left out of the answer."""

    agent_ids: Annotated[tuple[AgentIdField, ...], Field(min_length=1, max_length=1_000)]


class ListAgents(Model):
    """List agents, by pool if one is named, in the order of their ids; `after` continues a list."""

    online_only: bool = False
    pool: PoolIdField | None = None
    after: AgentIdField | None = None
    limit: Annotated[int, Field(ge=1, le=1_000)] = 200


class Agents(Model):
    """Agents and their liveness, as many as one answer can hold.

    Attributes:
        agents: In the order in which they were asked for.
        more: Whether others follow: ask again, for those behind the last one.
    """

    agents: tuple[AgentStatus, ...]
    more: bool = False


class Acknowledged(Model):
    """It is done."""
