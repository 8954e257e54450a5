"""What was said in an entry, for who tells of it by another protocol than events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def text_of(entry: Mapping[str, Any]) -> str:
    """Return what was said, in words; empty if nobody said anything."""
    if entry["sender"] is None:
        return ""
    body = entry["body"]
    tasks = [f"{task['assignee']}: {task['task_desc']}" for task in body.get("tasks", ()) if isinstance(task, dict)]
    given = [one for one in tasks if one not in body.get("content", "")]  # rules say what they give out in the same words
    concluded = (body.get("conclusion") or {}).get("content", "")
    words = (body.get("content", ""), body.get("task_conclusion", ""), body.get("text", ""), concluded, *given)
    return "\n".join(one for one in words if one)
