"""Goals made from conversations, for clients of chat protocols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ioa.errors import InvalidInputError, NotFoundError
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import is_token
from ioa.protocol.model import Model

NETWORK = "ioa"
"""The model name of all agents together."""


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
        if any(not isinstance(part, dict) or part.get("type") != "text" for part in self.content):
            raise InvalidInputError("A message has a part that is no text.", hint="POST /v1/goals takes files.")
        return "\n".join(str(part.get("text", "")) for part in self.content)


def build_goal_order(messages: Sequence[ConversationMessage], model: str, **fields: object) -> GoalOrder:
    """Return the goal of a conversation: the user's last message, with all others as an input.

    Args:
        messages: The messages.
        model: `NETWORK`, or the pool whose agent does the goal as its task.
        fields: Further fields of the order.

    Raises:
        InvalidInputError: The user's last message has no text, or is missing.
        NotFoundError: The model has no valid name.
    """
    if not is_token(model):
        raise NotFoundError(f"There is no model {model[:100]!r}.", hint="GET /v1/models lists them.")
    last = next((message for message in reversed(messages) if message.role == "user"), None)
    if last is None or not last.text.strip():
        raise InvalidInputError("The last message of the user has no text.")
    others = "\n\n".join(f"{one.role}: {one.text}" for one in messages if one is not last and one.text)
    inputs = [{"name": "conversation.txt", "text": others}] if others else []
    agent = {} if model == NETWORK else {"agent": model, "as_task": True}
    return GoalOrder.model_validate({"goal": last.text, "inputs": inputs, **agent, **fields})
