"""Trace ids that stay with a goal from its launch to the last push (W3C Trace Context, `traceparent`).

A goal that comes with a `traceparent` keeps its trace; one that comes without gets a trace that follows from its name, so that
every process and every retry names the same one. Each message is a span of its own within it.
"""

from __future__ import annotations

import hashlib
import re

from ioa.protocol.ids import GoalName, MessageId

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_VERSION, _SAMPLED = "00", "01"


def trace_of_goal(goal: GoalName, given: str) -> str:
    """Return the `traceparent` that was given with a goal if it is one, else the goal's own."""
    if _TRACEPARENT.fullmatch(given):
        return given
    digest = hashlib.sha256(goal.key.encode()).hexdigest()
    return f"{_VERSION}-{digest[:32]}-{digest[32:48]}-{_SAMPLED}"


def span_of_message(traceparent: str, message_id: MessageId) -> str:
    """Name a message as a span of the trace; nothing without a trace."""
    trace_id = trace_id_of(traceparent)
    if not trace_id:
        return ""
    return f"{_VERSION}-{trace_id}-{hashlib.sha256(message_id.encode()).hexdigest()[:16]}-{traceparent.split('-')[3]}"


def trace_id_of(traceparent: str) -> str:
    """Read the trace id; empty if this is no `traceparent`."""
    return traceparent[3:35] if _TRACEPARENT.fullmatch(traceparent) else ""
