"""Events of an agent, for its author's `on_event` function; they are reported after they happened, and nothing waits for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog

from ioa.errors import reason_of

EventFunction = Callable[[str, Mapping[str, Any]], object]
"""Called in the agent's event loop with the kind of an event and its data; it must return at once.

All data contains `agent_id`, `goal_id` and `comm_id`. The kinds, and their further data:

- `turn_started`: turn
- `decision_requested`: turn, about, options, default
- `message_accepted`: turn, kind, content, decided_by
- `message_rejected`: turn, why, code
- `task_started`: task_id, attempt, task
- `tool_called`: task_id, tool, arguments, result
- `tool_rejected`: task_id, tool, arguments, why
- `model_called`: call, and task_id or turn
- `group_ended`: reason, content
"""

_log = structlog.get_logger(__name__)


class Events:
    """Reports the events of one agent.

    Args:
        agent_id: The agent.
        function: The author's function; None reports nothing.
    """

    def __init__(self, agent_id: str, function: EventFunction | None) -> None:
        self._agent_id = agent_id
        self._function = function

    def report(self, kind: str, /, **data: Any) -> None:
        """Call the author's function; log its error."""
        if self._function is None:
            return
        try:
            self._function(kind, {"agent_id": self._agent_id, **data})
        except Exception as error:  # noqa: BLE001 - an author's function may raise anything
            _log.warning("event_function_failed", agent_id=self._agent_id, event_kind=kind, error=reason_of(error))
