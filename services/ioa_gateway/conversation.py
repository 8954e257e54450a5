"""Goals out of conversations, for programs that only know how to chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ioa.errors import InvalidInputError, NotFoundError
from ioa.protocol.goal_order import GoalOrder, InlineInput
from ioa.protocol.ids import AgentId, parse_agent_id

NETWORK = "ioa"
"""The model that is all agents together."""
_EARLIER = "conversation.txt"
"""The input that holds what else was said."""


class SpokenMessage(Protocol):
    """What somebody said."""

    @property
    def role(self) -> str:
        """Who, such as `user`."""

    @property
    def text(self) -> str:
        """Its words."""


def goal_of(messages: Sequence[SpokenMessage], model: str) -> GoalOrder:
    """Return the goal of a conversation: the user's last message, with all others as an input.

    Raises:
        InvalidInputError: Nobody asks for anything.
        NotFoundError: There can be no such model.
    """
    last = next((one for one in reversed(messages) if one.role == "user"), None)
    if last is None or not last.text.strip():
        raise InvalidInputError("No message of the user says what is wanted.")
    others = "\n\n".join(f"{one.role}: {one.text}" for one in messages if one is not last and one.text)
    return GoalOrder(
        goal=last.text,
        agent=_leader(model),
        inputs=(InlineInput(name=_EARLIER, text=others),) if others else (),
    )


def _leader(model: str) -> AgentId | None:
    """Return the pool that a model is; None of all agents together.

    Raises:
        NotFoundError: None can be called so.
    """
    if model == NETWORK:
        return None
    try:
        return AgentId(parse_agent_id(model))
    except InvalidInputError:
        raise NotFoundError(f"There is no model {model[:100]!r}.", hint="GET /v1/models lists them.") from None
