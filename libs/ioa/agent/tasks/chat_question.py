"""Questions of a task to the agent's language model, their answers, and the budget that is left for them.

The check of the budget avoids useless requests; the router decides when a budget is spent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from ioa.errors import BudgetSpentError
from ioa.group.budget import share_of_task
from ioa.group.state import GroupState, OpenTask
from ioa.ports.chat_model import ChatMessage, Tool, ToolCall
from ioa.protocol.ids import TaskId
from ioa.protocol.usage import NOTHING, Usage


@dataclass(frozen=True)
class ChatQuestion:
    """A question to the model; see `TaskContext.chat`."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[Tool, ...] = ()
    schema: type[BaseModel] | None = None
    max_tokens: int | None = None
    may_call: bool = True
    stream: bool = False


@dataclass(frozen=True)
class ChatAnswer:
    """An answer of the model.

    Attributes:
        text: The text.
        parsed: The object of the requested class; None without a class, and if tools are requested instead.
        tool_calls: The requested tool calls, in order. None was run; each needs an answer before the conversation continues.
        complete: False if the answer was cut at its limit, or stopped by a filter.
        usage: The cost of the answer, including repairs. It is counted already.
    """

    text: str
    parsed: Any = None
    tool_calls: tuple[ToolCall, ...] = ()
    complete: bool = True
    usage: Usage = NOTHING


@dataclass(frozen=True)
class Left:
    """The rest of a budget: tokens, and money in millionths; None: no limit."""

    tokens: int | None = None
    cost_micros: int | None = None

    @classmethod
    def after(cls, tokens: int | None, cost_micros: int | None, spent: Usage) -> Left:
        """Return the rest of an amount after a usage that the amount does not contain yet."""
        return cls(
            None if tokens is None else tokens - spent.tokens, None if cost_micros is None else cost_micros - spent.cost_micros
        )

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
    return Left.after(*share_of_task(state), unreported)
