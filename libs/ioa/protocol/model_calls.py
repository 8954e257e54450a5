"""What a language model was asked on the way to a decision: how often, how long it took, what came of it. No word of either side.

Whoever looks into a goal sees by it where time and tokens went and what had to be repaired. It travels with what was decided, to
all members of a group that keeps nothing from them, so that nothing stands in it that a model was shown, thought or wrote.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ioa.protocol.model import OMITTED_IF_EMPTY, Model
from ioa.protocol.usage import NOTHING, Count, Usage

MAX_CALLS = 32
"""So many calls travel with one decision, the last ones."""

TAKEN, READ, NOT_LEGAL, REJECTED = "taken", "read", "not_legal", "rejected"


class ModelCall(Model):
    """One call of a model.

    Attributes:
        purpose: What was to be decided: `form`, `plan`, `speak`, `decide`, `approach`; `task` is what a task asked by itself, and
            `remember` a summary of what was said.
        came_to: `taken`: the answer was used. `read`: it asked to see something first. `rejected`: the group refused what came of
            it. Else why there was none that could be used: `cut`, `useless_answer`, `not_legal`, `unavailable`, `too_slow`,
            `refused` by the model's server.
        about: Of what is not legal, the kind that was tried; of what was rejected, the code.
        milliseconds: How long it took, with all that was waited for.
        live: Its agent has exported spans of it while it went on.
    """

    purpose: Annotated[str, Field(max_length=32)]
    came_to: Annotated[str, Field(max_length=32)] = TAKEN
    about: Annotated[str, Field(max_length=64), OMITTED_IF_EMPTY] = ""
    milliseconds: Count = 0
    usage: Usage = NOTHING
    live: Annotated[bool, OMITTED_IF_EMPTY] = False


ModelCalls = Annotated[tuple[ModelCall, ...], Field(max_length=MAX_CALLS), OMITTED_IF_EMPTY]
"""In their order. Where there is none, nothing travels."""


def rejected(calls: tuple[ModelCall, ...], code: str) -> tuple[ModelCall, ...]:
    """Return the calls of a message that the group refused: what was taken came to nothing."""
    return tuple(call.model_copy(update={"came_to": REJECTED, "about": code}) if call.came_to == TAKEN else call for call in calls)
