"""Goals made from conversations, for clients of chat protocols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ioa.errors import InvalidInputError, NotFoundError
from ioa.protocol.goal_order import GoalOrder, InlineInput
from ioa.protocol.ids import AgentId, parse_agent_id
from ioa.protocol.model import Model

NETWORK = "ioa"
"""The model name of all agents together."""
_EARLIER = "conversation.txt"
"""The input that contains the other messages."""


class ConversationMessage(Model):
    """A message: a text, or a list of parts. Other content, such as a tool call, has no text."""

    role: str
    content: Any = None

    @property
    def text(self) -> str:
        """Its text parts.

        Raises:
            InvalidInputError: It has a part that is no text.
        """
        if not isinstance(self.content, list):
            return self.content if isinstance(self.content, str) else ""
        parts = [part if isinstance(part, dict) else {} for part in self.content]
        if other := next((part.get("type") for part in parts if part.get("type") != "text"), None):
            raise InvalidInputError(
                f"A message has a part of type {other!r:.40}.", hint="Only text is taken; POST /v1/goals takes files."
            )
        return "\n".join(str(part.get("text", "")) for part in parts)


def build_goal_order(messages: Sequence[ConversationMessage], model: str) -> GoalOrder:
    """Return the goal of a conversation: the user's last message, with all others as an input.

    Args:
        messages: The messages.
        model: `NETWORK`, or the pool whose agent does the goal as its task.

    Raises:
        InvalidInputError: The user's last message has no text, or is missing.
        NotFoundError: The model has no valid name.
    """
    last = next((message for message in reversed(messages) if message.role == "user"), None)
    if last is None or not last.text.strip():
        raise InvalidInputError("The last message of the user has no text.")
    others = "\n\n".join(f"{one.role}: {one.text}" for one in messages if one is not last and one.text)
    agent = _agent(model)
    return GoalOrder(
        goal=last.text,
        agent=agent,
        as_task=agent is not None,
        inputs=(InlineInput(name=_EARLIER, text=others),) if others else (),
    )


def _agent(model: str) -> AgentId | None:
    """Return the pool that a model names; None for `NETWORK`.

    Raises:
        NotFoundError: The name is not valid.
    """
    if model == NETWORK:
        return None
    try:
        return AgentId(parse_agent_id(model))
    except InvalidInputError:
        raise NotFoundError(f"There is no model {model[:100]!r}.", hint="GET /v1/models lists them.") from None
