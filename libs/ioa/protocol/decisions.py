"""Deciders of a group: models, rules, functions or people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from ioa.protocol.model import Model
from ioa.protocol.usage import MAX_COUNT, Count

Decider = Literal["model", "rules", "function", "human"]
"""A language model, the rules of the client, a function of the agent's author, or a person."""

MAX_DECIDERS = 16
"""Maximum deciders that are counted separately in a group; of others only the kind."""


class DecidedBy(Model):
    """The decider of a message.

    Attributes:
        name: The configured name of the model, or the id of a person.
        instead_of: The model that failed before.
        cause: The reason of its failure.
    """

    kind: Decider
    name: Annotated[str, Field(max_length=200)] = ""
    instead_of: Annotated[str, Field(max_length=200)] = ""
    cause: Annotated[str, Field(max_length=64)] = ""


class Decisions(Model):
    """Number of decisions of a decider."""

    by: DecidedBy
    count: Count


def counted_once(known: tuple[Decisions, ...], by: DecidedBy) -> tuple[Decisions, ...]:
    """Add one decision; the common case, a known decider, is fast."""
    for place, one in enumerate(known):
        if one.by == by:
            return (*known[:place], Decisions.model_construct(by=one.by, count=min(MAX_COUNT, one.count + 1)), *known[place + 1 :])
    return counted(known, [Decisions(by=by, count=1)])


def counted(known: tuple[Decisions, ...], more: Iterable[Decisions]) -> tuple[Decisions, ...]:
    """Add decisions; new deciders are appended."""
    counts = {one.by: one.count for one in known}
    for one in more:
        by = one.by if one.by in counts or len(counts) < MAX_DECIDERS else DecidedBy(kind=one.by.kind)
        counts[by] = min(MAX_COUNT, counts.get(by, 0) + one.count)
    return tuple([Decisions(by=by, count=count) for by, count in counts.items()])
