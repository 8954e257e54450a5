"""The agent card: the name and abilities of an agent (paper, section 2.2, agent registration)."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from ioa.errors import PayloadTooLargeError
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode
from ioa.protocol.decisions import Decider
from ioa.protocol.ids import AgentIdField, PoolId, PoolIdField
from ioa.protocol.model import OMITTED_IF_EMPTY, Model, Time
from ioa.protocol.texts import shortened
from ioa.protocol.usage import Count

MAX_LOAD = 10_000
"""Maximum of a count. Larger counts are cut."""
MAX_SLOTS = 64
"""Maximum slots that the ranking counts, because the agent itself states their number."""


def _cut(least: int, most: int) -> BeforeValidator:
    return BeforeValidator(lambda number: max(least, min(number, most)) if isinstance(number, int) else number)


_Number = Annotated[int, Field(ge=0, le=MAX_LOAD), _cut(0, MAX_LOAD)]


class Load(Model):
    """The present work of an agent.

    Attributes:
        tasks: Open tasks of the agent, including tasks that wait for a slot, excluding tasks that wait for an answer.
        groups: Groups it takes part in that have not ended.
        slots: Maximum concurrent tasks, cut to `MAX_SLOTS`.
    """

    tasks: _Number = 0
    groups: _Number = 0
    slots: Annotated[int, Field(ge=1, le=MAX_LOAD), _cut(1, MAX_SLOTS)] = 1

    @property
    def busy(self) -> float:
        """Tasks per slot: 0 is idle; above 1, tasks wait."""
        return self.tasks / self.slots


IDLE = Load()


Text = Annotated[str, Field(min_length=1, max_length=4_000)]
Tag = Annotated[str, Field(min_length=1, max_length=64)]
Patience = Annotated[timedelta, Field(gt=timedelta(0), le=timedelta(days=30))]
"""Maximum time that others wait for a member."""


class Skill(Model):
    """One ability of an agent."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=4_000)] = ""


class AgentCard(Model):
    """The description of an agent by itself. `examples` are requests that it serves well; discovery depends on them most.

    Replicas of an agent differ only in `agent_id`.
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
    """Whether the agent may open a nested group for one of its tasks (paper, section 2.3.2)."""
    leads: bool | None = None
    """Whether the agent leads goals without an addressee: true for coordinators, false for agents that only do tasks."""
    declines: bool | None = None
    """Whether the agent rejects tasks that it does not understand, so that it may be asked if no agent fits well."""
    patience: Patience | None = None
    """Maximum time with the floor, or with a task without a report. Default: the limits of the group."""
    speaks: Decider | None = None
    """What decides the agent's messages; None if it is unknown."""
    uses_model: Annotated[bool, OMITTED_IF_EMPTY] = False
    """Whether a language model does the agent's tasks or speaks for it; otherwise the agent is a program."""
    accepts: Annotated[tuple[PoolIdField, ...] | None, Field(max_length=16, exclude_if=lambda pools: pools is None)] = None
    """Pools whose agents may add this agent to a team, in addition to its own pool. Default: all."""

    @model_validator(mode="before")
    @classmethod
    def _pool_defaults_to_the_agent(cls, data: object) -> object:
        return with_pool(data)


def why_not_drafted(drafter: AgentCard | None, card: AgentCard) -> str:
    """Return why an agent may not add another agent to its teams; empty if it may."""
    pool = None if drafter is None else drafter.pool
    if pool == card.pool or card.accepts is None or pool in card.accepts:
        return ""
    return f"its card accepts no teams of the pool {pool}"


def with_pool(data: object) -> object:
    """Add the default of the pool: the id of the agent."""
    if isinstance(data, dict) and not data.get("pool"):
        return {**data, "pool": PoolId(str(data.get("agent_id", "")))}
    return data


MAX_CARD_BYTES = 16_000
"""Maximum bytes of an encoded card, so that lists, searches and teams of many agents fit into messages."""


def check_card_size(card: AgentCard) -> None:
    """Reject a card that is too large.

    Raises:
        PayloadTooLargeError: It names the agent and both sizes.
    """
    size = card_bytes(card)
    if size > MAX_CARD_BYTES:
        raise PayloadTooLargeError(
            f"The card of {card.agent_id} has {size:,} bytes; {MAX_CARD_BYTES:,} are allowed.",
            hint="Shorten its description, skills or examples: six to twelve examples of a sentence each serve best.",
        )


def card_bytes(card: AgentCard) -> int:
    """Return the bytes of an encoded card."""
    return len(encode(card, max_payload_bytes=MAX_PAYLOAD_BYTES * 4))


def abridged(card: AgentCard, max_bytes: int) -> AgentCard:
    """Shorten a card until it fits: examples, details of skills, skills, tags, and description are removed in this order.

    Names and the beginning of the description remain; they have less than 3 kB.
    """
    names = tuple([Skill(name=skill.name) for skill in card.skills])
    description = shortened(card.description, 400)
    left_out: tuple[dict[str, object], ...] = (
        {"examples": ()},
        {"skills": names},
        {"skills": ()},
        {"tags": ()},
        {"description": description},
    )
    for update in left_out:
        if card_bytes(card) > max_bytes:
            card = card.model_copy(update=update)
    return card


class ModelReport(Model):
    """State of the language model of an agent.

    Attributes:
        name: Name of the model.
        failures: Number of failures since its last answer.
    """

    name: Annotated[str, Field(max_length=200)]
    failures: Count = 0


class AgentStatus(Model):
    """A stored card, with the agent's liveness, and the load and the state of its model at its last renewal."""

    card: AgentCard
    online: bool
    registered_at: Time
    load: Load = IDLE
    model: ModelReport | None = None


ENOUGH_EXAMPLES = 3
"""With fewer examples an agent is found only by its description, or by one wording of a request."""
_ENOUGH_WORDS = 4


def advice(card: AgentCard) -> tuple[str, ...]:
    """Return suggestions for a card, so that its agent is found more often."""
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
