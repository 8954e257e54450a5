"""Which group, goal, task, agent and trace a log line is about: bound once where work begins, added to every line it writes.

One context variable holds all of them, so that binding costs a router a fifth of a microsecond for each message. A task of
asyncio starts with what its maker has bound, and what it binds itself is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any

from ioa.protocol.trace import trace_id_of

_NOTHING: Mapping[str, str] = {}

_ids: ContextVar[Mapping[str, str]] = ContextVar("ids_of_log_lines", default=_NOTHING)


def bind(ids: Mapping[str, str]) -> None:
    """Replace what this task's log lines are about: `comm_id`, `goal_id`, `task_id`, `agent_id`, `traceparent`."""
    _ids.set(ids)


def bind_also(**ids: str) -> None:
    """Add to what this task's log lines are about."""
    _ids.set({**_ids.get(), **ids})


def add_ids(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add what is bound to a log line, as a processor of structlog; what the line says itself stands."""
    ids = _ids.get()
    for name, value in ids.items():
        if name == "traceparent":
            name, value = "trace_id", trace_id_of(value)
        if value:
            line.setdefault(name, value)
    return line
