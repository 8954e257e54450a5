"""A brain for load: it plays a plan that follows from the goal's own words, so that the same words are the same conversation.

A goal reads `load deep 17`: the kind of plan and a seed. False in that it understands nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from enum import Enum

from ioa.group.events import EventKind
from ioa.ports.brain import Alone, GroupView, Mission, NobodyFits, TaskView, Team, TeamTools, Utterance
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    Pause,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.search import Need

_SYLLABLES = "ba do fe gi ku la me no pi ra su ti vo xe zu".split()
_MOST_HELPERS = 3


class Step(Enum):
    """What the floor holder does in one turn."""

    TALK = "talk"
    SYNC = "sync"
    ASYNC = "async"
    PAUSE = "pause"
    TEAM = "team"


_T, _S, _A, _P, _N = Step.TALK, Step.SYNC, Step.ASYNC, Step.PAUSE, Step.TEAM

PLANS: dict[str, Sequence[Step]] = {
    "talk": (_T, _T, _T, _T, _T, _T),
    "sync": (_T, _S, _T),
    "async": (_A, _T, _P, _T),
    "mixed": (_S, _T, _A, _T, _P, _S),
    "deep": (_T, _N),
    "team2": (_N,),
    "team1": (_S,),
}
"""What each kind of goal is made of. `deep` nests two teams: its task is a `team2`, whose task is a `team1`."""

KINDS = ("talk", "sync", "async", "mixed", "deep")
_NESTED = {"deep": "team2", "team2": "team1"}


class LoadBrain:
    """Play the plan of the goal.

    Args:
        roster: The agents that teams are made of.
        searches: Ask discovery before a team is formed, as a real brain does; the answer is not used.
    """

    def __init__(self, roster: Sequence[AgentId], *, searches: bool = False) -> None:
        self._roster = roster
        self._searches = searches

    async def form_team(self, mission: Mission, tools: TeamTools) -> Team | NobodyFits:
        """Take some of the roster."""
        if self._searches:
            await tools.search_client([Need(text=mission.text)])
        others = [agent_id for agent_id in self._roster if agent_id != mission.me.agent_id]
        return Team(members=_some(random.Random(mission.text), others))

    async def speak(self, view: GroupView) -> Utterance:
        """Do the plan's next step; where that is not legal, wait for what is open, or conclude."""
        taken = view.state.turns_taken
        plan = PLANS[_kind(view.charter.goal)]
        chance = random.Random(f"{view.charter.goal}/{taken}")
        step = plan[taken] if taken < len(plan) and not view.refusals else None
        living = list(view.state.living())
        others = [agent_id for agent_id in living if agent_id != view.me]
        if step is Step.TALK and EventKind.DISCUSSION in view.legal:
            return Discussion(content=_words(chance), next_speaker=chance.choice(others))
        if step is Step.ASYNC and EventKind.ASYNC_TASK_ASSIGNMENT in view.legal:
            return AsyncTaskAssignment(content=_words(chance), tasks=_tasks(view, chance, living))
        if step in (Step.SYNC, Step.TEAM) and EventKind.SYNC_TASK_ASSIGNMENT in view.legal:
            return SyncTaskAssignment(content=_words(chance), tasks=_tasks(view, chance, living, team=step is Step.TEAM))
        if EventKind.PAUSE in view.legal:
            return Pause(triggers=tuple(task.task_id for task in view.state.open_tasks))
        return ConcludeGroupDiscussion()

    async def conclude(self, view: GroupView) -> Conclusion:
        """Say how many tasks were done."""
        return Conclusion(content=f"{view.charter.goal}: {len(view.tasks)} tasks")

    async def approach(self, task: TaskView, tools: TeamTools) -> Alone | Team:
        """Treat a task that reads like a goal as one."""
        others = [agent_id for agent_id in task.group.state.living() if agent_id != task.me.agent_id]
        if task.spec.task_desc.startswith("load ") and others:
            return Team(members=_some(random.Random(task.spec.task_desc), others))
        return Alone(task.spec.task_desc)


def _kind(goal: str) -> str:
    return goal.split()[1]


def _some(chance: random.Random, others: Sequence[AgentId]) -> tuple[AgentId, ...]:
    return tuple(chance.sample(others, k=min(len(others), chance.randint(1, _MOST_HELPERS))))


def _tasks(view: GroupView, chance: random.Random, living: Sequence[AgentId], *, team: bool = False) -> tuple[TaskSpec, ...]:
    """One task for each of some members; its words name it uniquely in the whole system."""
    specs = []
    for number, assignee in enumerate(chance.sample(living, k=min(len(living), chance.randint(1, 2)))):
        task_id = TaskId(f"t{view.state.turns_taken}-{number}")
        nested = _NESTED.get(_kind(view.charter.goal)) if team and number == 0 else None
        words = f"load {nested} {chance.randrange(10**6)}" if nested else "work"
        specs.append(TaskSpec(task_id=task_id, assignee=assignee, task_desc=f"{words} {view.state.comm_id}/{task_id}"))
    return tuple(specs)


def _words(chance: random.Random) -> str:
    return " ".join("".join(chance.choices(_SYLLABLES, k=3)) for _ in range(12))
