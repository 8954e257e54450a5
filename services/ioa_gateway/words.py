"""The text of an entry, for protocols without structured entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def text_of(entry: Mapping[str, Any]) -> str:
    """Return the text of an entry's message; empty for an entry without a message."""
    if entry["sender"] is None:
        return ""
    body = entry["body"]
    tasks = [f"{task['assignee']}: {task['task_desc']}" for task in body.get("tasks", ()) if isinstance(task, dict)]
    given = [one for one in tasks if one not in body.get("content", "")]  # rules repeat the tasks in the content
    concluded = (body.get("conclusion") or {}).get("content", "")
    words = (body.get("content", ""), body.get("task_conclusion", ""), body.get("text", ""), concluded, *given)
    return "\n".join(one for one in words if one)
