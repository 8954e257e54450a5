"""Calls of a language model for a decision: number, duration and outcome, without any content.

They show where a goal spent time and tokens, and which answers had to be repaired. They are part of messages that all members may
read, so they contain nothing that a model read or wrote.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ioa.protocol.model import OMITTED_IF_EMPTY, Model
from ioa.protocol.usage import NOTHING, Count, Usage

MAX_CALLS = 32
"""Maximum calls of a decision; only the last calls are stored."""

TAKEN, READ, NOT_LEGAL, REJECTED = "taken", "read", "not_legal", "rejected"


class ModelCall(Model):
    """One call of a model.

    Attributes:
        purpose: The decision: `form`, `plan`, `speak`, `decide`, `approach`; `task` for a call by a task, and `remember` for a
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
