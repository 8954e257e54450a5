"""Requests to the registry and their answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from ioa.protocol.cards import AgentCard, AgentStatus
from ioa.protocol.ids import AgentIdField, CommIdField, PoolIdField
from ioa.protocol.load import IDLE, Load
from ioa.protocol.model import Model


class Register(Model):
    """Store or update a card and take a lease."""

    card: AgentCard


class Renew(Model):
    """Keep the lease. `cursors` holds the last log sequence the agent has applied in each of its groups, `load` how busy it is."""

    agent_id: AgentIdField
    cursors: dict[CommIdField, int] = Field(default_factory=dict)
    load: Load = IDLE


class Lease(Model):
    """The answer to both: how long the lease lasts, and where the agent's open groups stand.

    An agent whose cursor lies behind a head has missed something and asks `groups.sync` for it.
    """

    duration: timedelta
    renew_every: timedelta
    heads: dict[CommIdField, int] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class Deregister(Model):
    """Give the lease back. The card stays: the agent is offline, not forgotten."""

    agent_id: AgentIdField


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
    """Agents and their liveness."""

    agents: tuple[AgentStatus, ...]


class Acknowledged(Model):
    """It is done."""
