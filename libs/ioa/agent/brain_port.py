"""The port of a brain, which decides the messages of an agent (paper, section 2.3 and appendix A).

A brain decides; it performs nothing. The router checks its answers again. Every method may be called again for the same situation
after a crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ioa.agent.turn_view import TurnView
from ioa.ports.brain_types import Invite, Mission, NobodyFits, TaskRecord, TeamLaunch, TeamTools, Utterance
from ioa.protocol.cards import AgentCard
from ioa.protocol.messages import Conclusion, Decision, Pass, TaskSpec


@dataclass(frozen=True)
class TaskView:
    """A task as its assignee sees it when it starts."""

    spec: TaskSpec
    me: AgentCard
    group: TurnView

    @property
    def used(self) -> tuple[TaskRecord, ...]:
        """The tasks whose results this task uses."""
        return tuple(task for task_id in self.spec.uses if (task := self.group.task(task_id)) is not None)


class Brain(Protocol):
    """Decides an agent's messages and teams: rules, a language model, or a script of a test."""

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Find the agents for a goal and plan the work.

        Raises:
            UndecidedError: No decision was made.
        """

    async def speak(self, view: TurnView) -> Utterance | Invite:
        """Return the next message of the floor holder, or an invitation before it."""

    async def conclude(self, view: TurnView) -> Conclusion | Pass:
        """Return the group's answer, or pass; a `WholeConclusion` can be longer than a message."""

    async def approach(self, task: TaskView, tools: TeamTools) -> TeamLaunch | None:
        """Return the nested team that does an assigned task; None: this agent does it alone."""


@runtime_checkable
class Decides(Protocol):
    """A brain that answers the decisions of a policy. Without it, the default of each decision is used."""

    async def decide(self, view: TurnView) -> Decision | Pass | Invite:
        """Choose one of `view.offer.options`, or pass to use the default; an invitation chooses an option that adds a member."""
