"""Encoding of server-sent events (HTML standard), and the text of an entry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

EVENTS = "text/event-stream"
"""The media type of streams."""
HEARTBEAT = b":\n\n"
"""A comment, which clients ignore."""


def encode_event(data: object, *, kind: str | None = None, seq: int | None = None) -> bytes:
    """Encode an event, with its kind and the sequence after which a client continues, if any."""
    told_kind = "" if kind is None else f"event: {kind}\n"
    place = "" if seq is None else f"id: {seq}\n"
    return f"{told_kind}{place}data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


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
