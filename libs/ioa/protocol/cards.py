"""The agent card: who an agent is and what it can do (paper, section 2.2, agent registration)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from ioa.protocol.ids import AgentIdField, PoolId, PoolIdField
from ioa.protocol.model import Model, Time

Text = Annotated[str, Field(min_length=1, max_length=4_000)]
Tag = Annotated[str, Field(min_length=1, max_length=64)]


class Skill(Model):
    """One thing an agent can do."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=4_000)] = ""


class AgentCard(Model):
    """What an agent says of itself. `examples` are requests it serves well: they are worth more to discovery than any model.

    Replicas of one agent share `pool` and everything else, and differ in `agent_id`.
    """

    agent_id: AgentIdField
    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Text
    skills: Annotated[tuple[Skill, ...], Field(max_length=50)] = ()
    examples: Annotated[tuple[Text, ...], Field(max_length=50)] = ()
    tags: Annotated[tuple[Tag, ...], Field(max_length=50)] = ()
    pool: PoolIdField
    version: Annotated[str, Field(max_length=64)] = "1"
    may_team_up: bool = True
    """Whether the agent may open a nested team for a task of its own (paper, section 2.3.2)."""

    @model_validator(mode="before")
    @classmethod
    def _pool_defaults_to_the_agent(cls, data: object) -> object:
        if isinstance(data, dict) and not data.get("pool"):
            return {**data, "pool": PoolId(str(data.get("agent_id", "")))}
        return data


class AgentStatus(Model):
    """A card as the registry holds it, with the agent's liveness."""

    card: AgentCard
    online: bool
    registered_at: Time
