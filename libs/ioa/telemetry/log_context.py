"""Ids in log lines: group, goal, task, agent and trace, bound where the work begins.

One context variable contains all ids, so that binding is cheap for each message of a router. An asyncio task inherits the ids of
its creator; its own changes do not affect the creator.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any

from ioa.protocol.operation.trace import trace_id_of

_NOTHING: Mapping[str, str] = {}

_ids: ContextVar[Mapping[str, str]] = ContextVar("ids_of_log_lines", default=_NOTHING)


def bind(ids: Mapping[str, str]) -> None:
    """Replace the ids in the log lines of the current asyncio task: `comm_id`, `goal_id`, `task_id`, `agent_id`, `traceparent`."""
    _ids.set(ids)


def bind_also(**ids: str) -> None:
    """Add ids to the log lines of the current asyncio task."""
    _ids.set({**_ids.get(), **ids})


def add_ids(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the bound ids to a log line, as a processor of structlog; ids of the line itself stay."""
    ids = _ids.get()
    for name, value in ids.items():
        if name == "traceparent":
            name, value = "trace_id", trace_id_of(value)
        if value:
            line.setdefault(name, value)
    return line
