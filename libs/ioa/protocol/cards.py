"""The agent card: who an agent is and what it can do (paper, section 2.2, agent registration)."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, model_validator

from ioa.errors import PayloadTooLargeError
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode, encode_value
from ioa.protocol.decisions import Decider
from ioa.protocol.ids import AgentIdField, PoolId, PoolIdField
from ioa.protocol.load import IDLE, Load
from ioa.protocol.model import OMITTED_IF_EMPTY, Model, Time
from ioa.protocol.texts import shortened
from ioa.protocol.usage import Count

Text = Annotated[str, Field(min_length=1, max_length=4_000)]
Tag = Annotated[str, Field(min_length=1, max_length=64)]
Patience = Annotated[timedelta, Field(gt=timedelta(0), le=timedelta(days=30))]
"""How long others wait for a member at a time."""


class Skill(Model):
    """One thing an agent can do."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=4_000)] = ""


def _is_none(value: object) -> bool:
    return value is None


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
    leads: bool | None = None
    """Whether the agent is one to lead goals that address nobody: true for coordinators, false for who only serves tasks."""
    declines: bool | None = None
    """Whether the agent refuses what it does not understand, so that it may be asked where nobody is sure to fit."""
    patience: Patience | None = None
    """How long the agent may have the floor, or a task without a report, before others go on; None: as its group says."""
    speaks: Decider | None = None
    """What decides what the agent says, as its client knows; None is not told."""
    uses_model: Annotated[bool, OMITTED_IF_EMPTY] = False
    """Whether a language model does the agent's tasks, or speaks by its author's instructions; otherwise the agent is a program."""
    accepts: Annotated[tuple[PoolIdField, ...] | None, Field(max_length=16, exclude_if=_is_none)] = None
    """Pools whose agents may draft this one into a team, besides its own; None: all may."""

    @model_validator(mode="before")
    @classmethod
    def _pool_defaults_to_the_agent(cls, data: object) -> object:
        return with_pool(data)


def may_draft(drafter: AgentCard | None, card: AgentCard) -> bool:
    """Whether an agent, or with None who is none, may have another one in its teams."""
    return not why_not_drafted(drafter, card)


def why_not_drafted(drafter: AgentCard | None, card: AgentCard) -> str:
    """Say why an agent may not have another one in its teams; empty if it may."""
    pool = None if drafter is None else drafter.pool
    if pool == card.pool:
        return ""
    if card.accepts is not None and pool not in card.accepts:
        return f"its card accepts no teams of the pool {pool}"
    return ""


def with_pool(data: object) -> object:
    """Complete the fields of a model that names no pool: an agent alone is a pool of its own name."""
    if isinstance(data, dict) and not data.get("pool"):
        return {**data, "pool": PoolId(str(data.get("agent_id", "")))}
    return data


MAX_CARD_BYTES = 16_000
"""What a card as a whole may hold, encoded, so that lists, searches and teams of many agents fit into messages."""


def check_card_size(card: AgentCard) -> None:
    """Refuse a card that is too large.

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
    """How large a card is when it travels."""
    return len(encode(card, max_payload_bytes=MAX_PAYLOAD_BYTES * 4))


_LEAST_DESCRIPTION_BYTES = 400


def abridged(card: AgentCard, max_bytes: int) -> AgentCard:
    """Leave out of a card what its fellows can do without, until it fits: examples, details of skills, skills, tags, description.

    Names and the beginning of the description always stay, which are less than 3 kB in the worst of scripts.
    """
    while (over := card_bytes(card) - max_bytes) > 0:
        if card.examples:
            card = card.model_copy(update={"examples": _without_last(card.examples, over)})
        elif any(skill.description for skill in card.skills):
            card = card.model_copy(update={"skills": tuple(Skill(name=skill.name) for skill in card.skills)})
        elif card.skills:
            card = card.model_copy(update={"skills": card.skills[:-1]})
        elif card.tags:
            card = card.model_copy(update={"tags": ()})
        elif len(card.description.encode()) > _LEAST_DESCRIPTION_BYTES:
            least = max(_LEAST_DESCRIPTION_BYTES, len(card.description.encode()) - over)
            return card.model_copy(update={"description": shortened(card.description, least)})
        else:
            return card
    return card


def _without_last(texts: tuple[str, ...], over: int) -> tuple[str, ...]:
    """Leave out of some texts the last ones, at least one, that together take `over` bytes."""
    kept = list(texts)
    while kept and over > 0:
        over -= len(encode_value(kept.pop()))
    return tuple(kept)


class ModelReport(Model):
    """How the language model of an agent answers.

    Attributes:
        name: What it is called.
        last_ok: When the agent noticed its last answer; None if it has not answered since the agent began.
        failures: How often it has failed since.
    """

    name: Annotated[str, Field(max_length=200)]
    last_ok: Time | None = None
    failures: Count = 0


class AgentStatus(Model):
    """A card as the registry holds it, with the agent's liveness, and what it told when it last renewed its lease.

    That is how busy it was, and how its model answered, if it has one.
    """

    card: AgentCard
    online: bool
    registered_at: Time
    load: Load = IDLE
    model: ModelReport | None = None


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
