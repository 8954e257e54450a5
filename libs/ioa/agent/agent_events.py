"""Events of an agent, for its author's `on_event` function; they are reported after they happened, and nothing waits for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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
