"""Goals made from conversations, for clients of chat protocols."""

from __future__ import annotations

from collections.abc import Sequence

from ioa.errors import InvalidInputError, NotFoundError
from ioa.protocol.goal_order import GoalOrder, InlineInput
from ioa.protocol.ids import AgentId, parse_agent_id

NETWORK = "ioa"
"""The model name of all agents together."""
_EARLIER = "conversation.txt"
"""The input that contains the other messages."""


def goal_of(messages: Sequence[tuple[str, str]], model: str) -> GoalOrder:
    """Return the goal of a conversation: the user's last message, with all others as an input.

    Args:
        messages: The role and the text of each message.
        model: `NETWORK`, or the pool whose agent does the goal as its task.

    Raises:
        InvalidInputError: The user's last message has no text, or is missing.
        NotFoundError: The model has no valid name.
    """
    last = next((index for index in reversed(range(len(messages))) if messages[index][0] == "user"), None)
    if last is None or not messages[last][1].strip():
        raise InvalidInputError("The last message of the user has no text.")
    others = "\n\n".join(f"{role}: {text}" for index, (role, text) in enumerate(messages) if index != last and text)
    agent = _agent(model)
    return GoalOrder(
        goal=messages[last][1],
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
