"""A brain with scripted answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TypeVar

from ioa.agent.brain_port import TaskView
from ioa.agent.turn_view import TurnView
from ioa.errors import InvalidInputError
from ioa.ports.brain_types import Invite, Mission, NobodyFits, TeamLaunch, TeamTools, Utterance
from ioa.protocol.messages import Conclusion

Answer = TypeVar("Answer")


class ScriptedBrain:
    """Answer each kind of question from its own list, in order, and record the questions.

    The attributes with the names of the arguments contain the remaining answers; a test may add to them.

    Args:
        teams: Answers to `form_team`.
        utterances: Answers to `speak`.
        conclusions: Answers to `conclude`.
        approaches: Answers to `approach`; without one, the agent does the task alone and unchanged.

    Raises:
        InvalidInputError: A list other than `approaches` has run out.
    """

    def __init__(
        self,
        *,
        teams: Iterable[TeamLaunch | NobodyFits] = (),
        utterances: Iterable[Utterance | Invite] = (),
        conclusions: Iterable[Conclusion] = (),
        approaches: Iterable[TeamLaunch | None] = (),
    ) -> None:
        self.teams = deque(teams)
        self.utterances = deque(utterances)
        self.conclusions = deque(conclusions)
        self.approaches = deque(approaches)
        self.missions: list[Mission] = []
        self.views: list[TurnView] = []
        self.tasks: list[TaskView] = []

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Play the next team."""
        self.missions.append(mission)
        return _next(self.teams, "form_team")

    async def speak(self, view: TurnView) -> Utterance | Invite:
        """Play the next utterance."""
        self.views.append(view)
        return _next(self.utterances, "speak")

    async def conclude(self, view: TurnView) -> Conclusion:
        """Play the next conclusion."""
        self.views.append(view)
        return _next(self.conclusions, "conclude")

    async def approach(self, task: TaskView, tools: TeamTools) -> TeamLaunch | None:
        """Play the next approach, or do the task alone."""
        self.tasks.append(task)
        return self.approaches.popleft() if self.approaches else None


def _next(answers: deque[Answer], question: str) -> Answer:
    if not answers:
        raise InvalidInputError(f"The script has no answer left for {question}.", hint="Give the ScriptedBrain one more.")
    return answers.popleft()
