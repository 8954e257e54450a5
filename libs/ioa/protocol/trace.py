"""Trace ids that stay with a goal from its launch to the last push (W3C Trace Context, `traceparent`).

A goal that comes with a `traceparent` keeps its trace; one that comes without gets a trace that follows from its name, so that
every process and every retry names the same one. Each message is a span of its own within it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ioa.protocol.ids import AgentId, CommId, GoalName, MessageId, TaskId
from ioa.protocol.usage import Usage

Attribute = str | int | float

# OpenTelemetry's names for what models and agents do, which are still in development there: here and nowhere else.
AGENT_ID, OPERATION = "gen_ai.agent.id", "gen_ai.operation.name"
INPUT_TOKENS, OUTPUT_TOKENS = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
CHAT, INVOKE_AGENT = "chat", "invoke_agent"


@dataclass(frozen=True)
class Span:
    """Something that took its time, as OpenTelemetry has it.

    Attributes:
        span_id: 16 hexadecimal digits.
        parent_id: Of what it is a part; empty of the root of a goal that came without a trace.
        attributes: What is known of it: ids, counts, usage; never what was said.
        failure: Why it failed; empty if it did not.
    """

    name: str
    span_id: str
    parent_id: str
    start: datetime
    end: datetime
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    failure: str = ""


_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_VERSION, _SAMPLED = "00", "01"


def trace_of_goal(goal: GoalName, given: str) -> str:
    """Return the `traceparent` that was given with a goal if it is one, else the goal's own."""
    if _TRACEPARENT.fullmatch(given):
        return given
    digest = hashlib.sha256(goal.key.encode()).hexdigest()
    return f"{_VERSION}-{digest[:32]}-{digest[32:48]}-{_SAMPLED}"


def span_id_of_goal(goal: GoalName) -> str:
    """Name the span of a goal, which is the root of the trace that it has by itself."""
    return trace_of_goal(goal, "")[36:52]


def parent_of_goal(goal: GoalName, traceparent: str) -> str:
    """Name the span that a goal is a part of: the one that was given with it; empty if none was."""
    above = traceparent[36:52] if trace_id_of(traceparent) else ""
    return "" if above == span_id_of_goal(goal) else above


def span_id_of(name: str) -> str:
    """Name a span by what it is of: the nth call of a model for something by `<name>/<n>`."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def span_id_of_message(sender: AgentId, message_id: MessageId) -> str:
    """Name the span of a message, by its sender as well: anybody may give his own the id of another's."""
    return span_id_of(f"message/{sender}/{message_id}")


def span_of_message(traceparent: str, sender: AgentId, message_id: MessageId) -> str:
    """Name a message as a span of the trace; nothing without a trace."""
    trace_id = trace_id_of(traceparent)
    if not trace_id:
        return ""
    return f"{_VERSION}-{trace_id}-{span_id_of_message(sender, message_id)}-{traceparent.split('-')[3]}"


def span_id_of_group(comm_id: CommId) -> str:
    """Name the span of a group."""
    return span_id_of(f"group/{comm_id}")


def span_id_of_task(comm_id: CommId, task_id: TaskId) -> str:
    """Name the span of a task of a group."""
    return span_id_of(f"task/{comm_id}/{task_id}")


def usage_attributes(usage: Usage | None) -> dict[str, Attribute]:
    """Tell what models have used; nothing if nothing was counted."""
    if usage is None or not (usage.tokens_in or usage.tokens_out):
        return {}
    return {INPUT_TOKENS: usage.tokens_in, OUTPUT_TOKENS: usage.tokens_out}


def trace_id_of(traceparent: str) -> str:
    """Read the trace id; empty if this is no `traceparent`."""
    return traceparent[3:35] if _TRACEPARENT.fullmatch(traceparent) else ""
