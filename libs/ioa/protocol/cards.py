"""The agent card: who an agent is and what it can do (paper, section 2.2, agent registration)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from ioa.protocol.ids import AgentIdField, PoolId, PoolIdField
from ioa.protocol.load import IDLE, Load
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
    """A card as the registry holds it, with the agent's liveness, and how busy it said it was when it last renewed its lease."""

    card: AgentCard
    online: bool
    registered_at: Time
    load: Load = IDLE


ENOUGH_EXAMPLES = 3
"""With fewer an agent is found by what it says of itself alone, or by one wording of one request."""
_ENOUGH_WORDS = 4


def advice(card: AgentCard) -> tuple[str, ...]:
    """Say what to add to a card so that its agent is found more often."""
    told: list[str] = []
    if not card.examples:
        told.append(
            "The card has no examples, and discovery goes by them most: add `examples`, six to twelve requests that the agent"
            " serves well, in the words of those who would ask."
        )
    elif len(card.examples) < ENOUGH_EXAMPLES:
        told.append(
            f"The card has only {len(card.examples)} of the six to twelve examples that discovery goes by best: add requests of"
            " other kinds, and the same in other words."
        )
    if len(card.description.split()) < _ENOUGH_WORDS and not card.skills and not card.examples:
        told.append("The description says very little: write in a sentence what the agent does, with what, and what comes of it.")
    return tuple(told)
