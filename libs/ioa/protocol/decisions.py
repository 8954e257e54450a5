"""Deciders of a group (models, rules, functions or people), and calls of models without any content."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from ioa.protocol.model import OMITTED_IF_EMPTY, Model
from ioa.protocol.usage import MAX_COUNT, NOTHING, Count, Usage

Decider = Literal["model", "rules", "function", "human"]
"""A language model, the rules of the client, a function of the agent's author, or a person."""

MAX_DECIDERS = 16
"""Maximum deciders that are counted separately in a group; of others only the kind."""


class DecidedBy(Model):
    """The decider of a message.

    Attributes:
        kind: A model, rules, a function or a person.
        name: The configured name of the model, or the id of the person.
        instead_of: The model that failed, so that rules decided.
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


MAX_CALLS = 32
"""Maximum calls of a decision; only the last calls are stored."""

TAKEN, READ, NOT_LEGAL, REJECTED = "taken", "read", "not_legal", "rejected"


class ModelCall(Model):
    """One call of a model.

    Attributes:
        purpose: The decision: `form`, `plan`, `speak`, `decide`; `task` for a call by a task, and `remember` for a
            summary of messages.
        came_to: `taken`: the answer was used. `read`: the model read something first. `rejected`: the group rejected the message.
            Otherwise the reason why there was no usable answer: `cut`, `useless_answer`, `not_legal`, `unavailable`, `too_slow`, or
            `refused` by the model's server.
        about: The kind of an illegal message, or the code of a rejection.
        milliseconds: Duration, with all waiting.
        live: Its agent has exported spans of it during the call.
    """

    purpose: Annotated[str, Field(max_length=32)]
    came_to: Annotated[str, Field(max_length=32)] = TAKEN
    about: Annotated[str, Field(max_length=64), OMITTED_IF_EMPTY] = ""
    milliseconds: Count = 0
    usage: Usage = NOTHING
    live: Annotated[bool, OMITTED_IF_EMPTY] = False


ModelCalls = Annotated[tuple[ModelCall, ...], Field(max_length=MAX_CALLS), OMITTED_IF_EMPTY]
"""Calls in their order."""


def rejected(calls: tuple[ModelCall, ...], code: str) -> tuple[ModelCall, ...]:
    """Return the calls of a message that the group rejected."""
    return tuple(call.model_copy(update={"came_to": REJECTED, "about": code}) if call.came_to == TAKEN else call for call in calls)
