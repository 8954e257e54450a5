"""Asking the agent's language model from within a task: what is asked, what comes back, and how much may still be spent.

A task learns here that nothing is left of the goal's budget, which spares requests that are lost already. The router stays the
authority: it ends the discussion of a group whose budget is spent, whatever its members think is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from ioa.agent.under_way import UnderWay
from ioa.errors import BudgetSpentError
from ioa.group.budget import share_of_task
from ioa.group.state import GroupState, OpenTask
from ioa.ports.chat_model import ChatMessage, Hear, Tool, ToolCall
from ioa.protocol.ids import TaskId
from ioa.protocol.usage import NOTHING, Usage


@dataclass(frozen=True)
class ChatQuestion:
    """What a task asks its model; see `TaskContext.chat`."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[Tool, ...] = ()
    schema: type[BaseModel] | None = None
    max_tokens: int | None = None
    may_call: bool = True
    stream: bool = False


@dataclass(frozen=True)
class ChatAnswer:
    """What the model answered.

    Attributes:
        text: In its own words.
        parsed: An object of the class that was asked for; None without one, and where tools are asked for instead.
        tool_calls: The tools it wants, in order. It runs none; each call needs an answer before the conversation goes on.
        complete: False: the answer was cut at its limit, or held back by a filter. Ask again with more room; do not mend it.
        usage: What this answer has cost, those that were mended included. It is counted already.
    """

    text: str
    parsed: Any = None
    tool_calls: tuple[ToolCall, ...] = ()
    complete: bool = True
    usage: Usage = NOTHING


Chatting = UnderWay[ChatAnswer]
"""A question that is under way."""
CHAT = "ctx.chat(…)"

Ask = Callable[[ChatQuestion, Hear], Chatting]
"""Asks, and tells of the answer while it is written, if the question says so."""


@dataclass(frozen=True)
class Left:
    """What may still be spent: tokens, and money in millionths. None: as much as you like."""

    tokens: int | None = None
    cost_micros: int | None = None

    def check(self) -> None:
        """Check that there is something of each.

        Raises:
            BudgetSpentError: There is not.
        """
        for what, left in (("tokens", self.tokens), ("money", self.cost_micros)):
            if left is not None and left <= 0:
                raise BudgetSpentError(f"Nothing is left of the goal's budget of {what}.", hint="Launch it with a larger one.")


def left_of(state: GroupState, task_id: TaskId, counted: Usage) -> Left:
    """Return what a task may still spend of what its group has left, without what it has `counted` and not reported yet."""
    task = state.task(task_id)
    unreported = counted.beyond(task.spent) if isinstance(task, OpenTask) else counted
    tokens, cost = share_of_task(state)
    return Left(None if tokens is None else tokens - unreported.tokens, None if cost is None else cost - unreported.cost_micros)


def question(
    messages: str | Sequence[ChatMessage],
    tools: Sequence[Tool],
    schema: type[BaseModel] | None,
    max_tokens: int | None,
    *,
    may_call: bool,
    stream: bool = False,
) -> ChatQuestion:
    """Make a question of what an author's function asks; a text is one message of the user."""
    asked = (ChatMessage("user", messages),) if isinstance(messages, str) else tuple(messages)
    return ChatQuestion(asked, tuple(tools), schema, max_tokens, may_call, stream)
