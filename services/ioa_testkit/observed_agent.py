"""An agent that works as the author's does, and tells a test what its function reports.

The group hears the newest report of a second, so that of a function that is done sooner nothing is in the log. A test wants all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from ioa.agent.definition import AgentDefinition
from ioa.agent.task_context import TaskContext
from ioa.protocol.ids import AgentId
from ioa_testkit.finished import Progress


class _ObservedContext:
    """A task context that notes progress before it hands it on; the rest is the real context's."""

    def __init__(self, context: TaskContext, agent_id: AgentId, note: Callable[[Progress], None]) -> None:
        self._context = context
        self._agent_id = agent_id
        self._note = note

    def progress(self, content: str, fraction: float | None = None) -> None:
        self._context.progress(content, fraction)
        self._note(Progress(self._agent_id, self._context.task_id, content, fraction))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


@dataclass
class _ObservedAgent(AgentDefinition):
    note: Callable[[Progress], None] = lambda _: None

    def arguments(self, task: str, context: TaskContext) -> tuple[Any, ...]:
        return tuple(
            _ObservedContext(context, AgentId(self.agent_id), self.note) if given is context else given
            for given in super().arguments(task, context)
        )


def observed(agent: AgentDefinition, note: Callable[[Progress], None]) -> AgentDefinition:
    """Make an agent of the same card and function, whose reports of progress a test is told of, from whichever thread they come."""
    said = {one.name: getattr(agent, one.name) for one in fields(AgentDefinition) if one.init}
    return _ObservedAgent(**said, note=note).working_as(agent)
