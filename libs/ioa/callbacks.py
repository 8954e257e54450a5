"""What a function registered by `@agent.listen` is called with: what has happened to its agent.

Each event is of one agent (`me`) in one group (`comm_id`) of one goal (`goal_id`). Deciding is for guards and hooks: an event is
told after the fact, nothing waits for it, and one that nobody got is not told again.
"""

from ioa.agent.listening import (
    AgentEvent,
    AttemptRefused,
    Decided,
    DecisionAsked,
    GroupEnded,
    MessageTaken,
    ModelCalled,
    TaskEvent,
    TaskStarted,
    ToolCalled,
    ToolRefused,
    TurnStarted,
)

__all__ = [
    "AgentEvent",
    "AttemptRefused",
    "Decided",
    "DecisionAsked",
    "GroupEnded",
    "MessageTaken",
    "ModelCalled",
    "TaskEvent",
    "TaskStarted",
    "ToolCalled",
    "ToolRefused",
    "TurnStarted",
]
