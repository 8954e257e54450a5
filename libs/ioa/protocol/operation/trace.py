"""Trace ids of a goal, from its launch to the last push (W3C Trace Context, `traceparent`).

A goal keeps its `traceparent`. Without one, its trace is derived from its name, so that every process and every retry uses the same
trace. Each message is a span.
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

# The GenAI conventions of OpenTelemetry, for calls of models and of agents. Own attributes begin with `ioa.`.
AGENT_ID, AGENT_NAME, OPERATION = "gen_ai.agent.id", "gen_ai.agent.name", "gen_ai.operation.name"
PROVIDER, REQUEST_MODEL = "gen_ai.provider.name", "gen_ai.request.model"
INPUT_TOKENS, OUTPUT_TOKENS = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
CHAT, INVOKE_AGENT = "chat", "invoke_agent"
_OPENAI = "openai"
"""The convention for each server that is called by the API of OpenAI."""


@dataclass(frozen=True)
class Span:
    """A span of OpenTelemetry.

    Attributes:
        span_id: 16 hexadecimal digits.
        parent_id: The span that contains it; empty for the root of a goal without a trace.
        attributes: Ids, counts and usage, without any content.
        failure: The reason of a failure; empty on success.
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
    """Return the given `traceparent` of a goal if it is valid, otherwise a derived one."""
    if _TRACEPARENT.fullmatch(given):
        return given
    digest = hashlib.sha256(goal.key.encode()).hexdigest()
    return f"{_VERSION}-{digest[:32]}-{digest[32:48]}-{_SAMPLED}"


def span_id_of_goal(goal: GoalName) -> str:
    """Return the id of the span of a goal, the root of its derived trace."""
    return trace_of_goal(goal, "")[36:52]


def parent_of_goal(goal: GoalName, traceparent: str) -> str:
    """Return the id of the span that contains a goal; empty if there is none."""
    above = traceparent[36:52] if trace_id_of(traceparent) else ""
    return "" if above == span_id_of_goal(goal) else above


def span_id_of(name: str) -> str:
    """Return the id of a span by its name; the nth call of a model is `<name>/<n>`."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def span_id_of_message(sender: AgentId, message_id: MessageId) -> str:
    """Return the id of the span of a message, by its sender and id, because senders choose ids."""
    return span_id_of(f"message/{sender}/{message_id}")


def span_of_message(traceparent: str, sender: AgentId, message_id: MessageId) -> str:
    """Return the `traceparent` of a message; empty without a trace."""
    trace_id = trace_id_of(traceparent)
    if not trace_id:
        return ""
    return f"{_VERSION}-{trace_id}-{span_id_of_message(sender, message_id)}-{traceparent.split('-')[3]}"


def span_id_of_group(comm_id: CommId) -> str:
    """Return the id of the span of a group."""
    return span_id_of(f"group/{comm_id}")


def span_id_of_task(comm_id: CommId, task_id: TaskId) -> str:
    """Return the id of the span of a task of a group."""
    return span_id_of(f"task/{comm_id}/{task_id}")


def name_of_call(model: str) -> str:
    """Return the name of the span of a model call; `model` is empty if it is not known."""
    return f"{CHAT} {model}".strip()


def call_attributes(model: str) -> dict[str, Attribute]:
    """Return the attributes of a model call before its answer."""
    known: dict[str, Attribute] = {OPERATION: CHAT, PROVIDER: _OPENAI}
    return {**known, REQUEST_MODEL: model} if model else known


def usage_attributes(usage: Usage) -> dict[str, Attribute]:
    """Return the tokens of a model call; empty if nothing was counted."""
    if not (usage.tokens_in or usage.tokens_out):
        return {}
    return {INPUT_TOKENS: usage.tokens_in, OUTPUT_TOKENS: usage.tokens_out}


def trace_id_of(traceparent: str) -> str:
    """Return the trace id; empty if the text is no `traceparent`."""
    return traceparent[3:35] if _TRACEPARENT.fullmatch(traceparent) else ""
