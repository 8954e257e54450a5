"""Who took the decisions of a group, so that nobody takes the answers of rules for those of a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from ioa.protocol.model import Model
from ioa.protocol.usage import MAX_COUNT, Count

Decider = Literal["model", "rules", "function", "human"]
"""What decides: a language model, the rules of the client, a function of the agent's author, or a person."""

MAX_DECIDERS = 16
"""So many deciders are told apart in a group; of further ones only what they are."""


class DecidedBy(Model):
    """Who took a decision.

    Attributes:
        name: The model's name as it is configured, or a person's id.
        instead_of: The model that was asked first and failed.
        cause: Why it failed.
    """

    kind: Decider
    name: Annotated[str, Field(max_length=200)] = ""
    instead_of: Annotated[str, Field(max_length=200)] = ""
    cause: Annotated[str, Field(max_length=64)] = ""


class Decisions(Model):
    """How many decisions somebody took."""

    by: DecidedBy
    count: Count


def counted_once(known: tuple[Decisions, ...], by: DecidedBy) -> tuple[Decisions, ...]:
    """Count one decision more; nearly always of somebody who has decided before, which costs a router next to nothing."""
    for place, one in enumerate(known):
        if one.by == by:
            return (*known[:place], Decisions.model_construct(by=one.by, count=min(MAX_COUNT, one.count + 1)), *known[place + 1 :])
    return counted(known, [Decisions(by=by, count=1)])


def counted(known: tuple[Decisions, ...], more: Iterable[Decisions]) -> tuple[Decisions, ...]:
    """Count further decisions; the order is that in which deciders came."""
    counts = {one.by: one.count for one in known}
    for one in more:
        by = one.by if one.by in counts or len(counts) < MAX_DECIDERS else DecidedBy(kind=one.by.kind)
        counts[by] = min(MAX_COUNT, counts.get(by, 0) + one.count)
    return tuple([Decisions(by=by, count=count) for by, count in counts.items()])
