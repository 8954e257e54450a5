"""IoA, an Internet of Agents on NATS. The names below are the public API; everything else may change.

Each is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioa.lazy_names import lazy_names

if TYPE_CHECKING:
    from ioa.agent.conversation import Heard
    from ioa.agent.model.task import ask_model
    from ioa.agent.task_context import InputFile, TaskContext, UpstreamResult
    from ioa.agent.tasks.chat_question import ChatAnswer
    from ioa.agent.turn_view import TurnView
    from ioa.client.client import Client
    from ioa.errors import (
        BudgetSpentError,
        DeclinedError,
        InvalidInputError,
        IoaError,
        ModelError,
        NotFoundError,
        TaskError,
        UnavailableError,
    )
    from ioa.hosting.agent import Agent, ModelAgent
    from ioa.hosting.connecting import connect
    from ioa.hosting.serving import serving
    from ioa.hosting.team_builder import Team
    from ioa.ports.chat_model import ChatMessage, Tool
    from ioa.protocol.goal_order import GoalOrder
    from ioa.protocol.goals import GoalResult

__all__ = [
    "Agent",
    "BudgetSpentError",
    "ChatAnswer",
    "ChatMessage",
    "Client",
    "DeclinedError",
    "GoalOrder",
    "GoalResult",
    "Heard",
    "InputFile",
    "InvalidInputError",
    "IoaError",
    "ModelAgent",
    "ModelError",
    "NotFoundError",
    "TaskContext",
    "TaskError",
    "Team",
    "Tool",
    "TurnView",
    "UnavailableError",
    "UpstreamResult",
    "ask_model",
    "connect",
    "serving",
]

_HOMES = {
    "Agent": "ioa.hosting.agent",
    "ChatAnswer": "ioa.agent.tasks.chat_question",
    "ChatMessage": "ioa.ports.chat_model",
    "Client": "ioa.client.client",
    "GoalOrder": "ioa.protocol.goal_order",
    "GoalResult": "ioa.protocol.goals",
    "Heard": "ioa.agent.conversation",
    "InputFile": "ioa.agent.task_context",
    "ModelAgent": "ioa.hosting.agent",
    "TaskContext": "ioa.agent.task_context",
    "Team": "ioa.hosting.team_builder",
    "Tool": "ioa.ports.chat_model",
    "TurnView": "ioa.agent.turn_view",
    "UpstreamResult": "ioa.agent.task_context",
    "ask_model": "ioa.agent.model.task",
    "connect": "ioa.hosting.connecting",
    "serving": "ioa.hosting.serving",
}
"""Where each name is defined; all others are errors."""

__getattr__, __dir__ = lazy_names(__name__, {**dict.fromkeys(__all__, "ioa.errors"), **_HOMES})
