"""IoA, an Internet of Agents on NATS. The names below are the public API; everything else may change.

Each is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioa.lazy_names import lazy_names

if TYPE_CHECKING:
    from ioa.agent.chatting import ChatAnswer
    from ioa.agent.conversation import Heard, Teammate
    from ioa.agent.definition import InputFile, TaskContext, UpstreamResult
    from ioa.agent.hooks import TurnView
    from ioa.agent.model.task import ask_model
    from ioa.client.client import Client, Launched
    from ioa.errors import (
        BudgetSpentError,
        ConflictError,
        DeclinedError,
        ForbiddenError,
        InvalidInputError,
        IoaError,
        ModelError,
        NotFoundError,
        TaskError,
        UnavailableError,
    )
    from ioa.group.forms import Blank
    from ioa.group.policy.offer import Offer
    from ioa.group.policy.part import Part
    from ioa.group.state import FieldVotes, Votes
    from ioa.hosting.agent import Agent, ModelAgent
    from ioa.hosting.connecting import connect
    from ioa.hosting.serving import serving
    from ioa.hosting.team import Team
    from ioa.ports.chat_model import ChatMessage, Tool
    from ioa.protocol.goal_order import GoalOrder
    from ioa.protocol.goals import GoalResult

__all__ = [
    "Agent",
    "Blank",
    "BudgetSpentError",
    "ChatAnswer",
    "ChatMessage",
    "Client",
    "ConflictError",
    "DeclinedError",
    "FieldVotes",
    "ForbiddenError",
    "GoalOrder",
    "GoalResult",
    "Heard",
    "InputFile",
    "InvalidInputError",
    "IoaError",
    "Launched",
    "ModelAgent",
    "ModelError",
    "NotFoundError",
    "Offer",
    "Part",
    "TaskContext",
    "TaskError",
    "Team",
    "Teammate",
    "Tool",
    "TurnView",
    "UnavailableError",
    "UpstreamResult",
    "Votes",
    "ask_model",
    "connect",
    "serving",
]

_HOMES = {
    "Agent": "ioa.hosting.agent",
    "Blank": "ioa.group.forms",
    "ChatAnswer": "ioa.agent.chatting",
    "ChatMessage": "ioa.ports.chat_model",
    "Client": "ioa.client.client",
    "FieldVotes": "ioa.group.state",
    "GoalOrder": "ioa.protocol.goal_order",
    "GoalResult": "ioa.protocol.goals",
    "Heard": "ioa.agent.conversation",
    "InputFile": "ioa.agent.definition",
    "Launched": "ioa.client.client",
    "ModelAgent": "ioa.hosting.agent",
    "Offer": "ioa.group.policy.offer",
    "Part": "ioa.group.policy.part",
    "TaskContext": "ioa.agent.definition",
    "Team": "ioa.hosting.team",
    "Teammate": "ioa.agent.conversation",
    "Tool": "ioa.ports.chat_model",
    "TurnView": "ioa.agent.hooks",
    "UpstreamResult": "ioa.agent.definition",
    "Votes": "ioa.group.state",
    "ask_model": "ioa.agent.model.task",
    "connect": "ioa.hosting.connecting",
    "serving": "ioa.hosting.serving",
}
"""Where each name is defined; all others are errors."""

__getattr__, __dir__ = lazy_names(__name__, {**dict.fromkeys(__all__, "ioa.errors"), **_HOMES})
