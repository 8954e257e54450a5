"""A brain for load: it solves the puzzles of `ioa_testkit.oracle` as a sensible agent would. A wrong answer is the system's doing.

What it says and whom it asks follows from the goal's own words. False in that it understands nothing else.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from ioa.ports.brain import Alone, GroupView, Mission, NobodyFits, TaskView, Team, TeamTools, Utterance
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    Pause,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.search import Need
from ioa_testkit.oracle import Puzzle, number_in, part_of, parts_of, puzzle_of, stated

_SYLLABLES = "ba do fe gi ku la me no pi ra su ti vo xe zu".split()
_MOST_HELPERS = 3


class LoadBrain:
    """Solve the goal's puzzle.

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
        """Talk as long as the goal asks for, give out what is missing, wait for it; conclude when nothing else is left or legal."""
        puzzle = _puzzle(view)
        chance = random.Random(f"{view.charter.goal}/{view.state.turn}/{len(view.refusals)}")
        if _turns(view) < puzzle.turns and Discussion in view.legal:
            await _think(puzzle, chance)
            return Discussion(content=_words(chance), next_speaker=chance.choice(_others(view)))
        known = _known(view)
        under_way = {part_of(task.spec.task_desc) for task in view.tasks if task.outcome is None}
        missing = [part for part in parts_of(view.charter.goal) if part not in known and part not in under_way][: puzzle.batch]
        if missing and SyncTaskAssignment in view.legal:
            is_awaited = len(view.tasks) < puzzle.sync * puzzle.batch
            kind = SyncTaskAssignment if is_awaited else AsyncTaskAssignment
            return kind(content=_words(chance), tasks=_tasks(view, chance, missing))
        if Pause in view.legal:
            return Pause(triggers=tuple(task.task_id for task in view.state.open_tasks))
        return ConcludeGroupDiscussion()

    async def conclude(self, view: GroupView) -> Conclusion:
        """State the answer, as far as it is known; one that a limit has cut short is none."""
        reason = Reason.FAILED if view.state.forced else Reason.CONCLUDED
        return Conclusion(content=stated(_puzzle(view), _turns(view), _known(view).values()), reason=reason)

    async def approach(self, task: TaskView, tools: TeamTools) -> Alone | Team:
        """Treat a task that reads like a goal as one."""
        others = [agent_id for agent_id in task.group.state.living() if agent_id != task.me.agent_id]
        if task.spec.task_desc.startswith("load ") and others:
            return Team(members=_some(random.Random(task.spec.task_desc), others))
        return Alone(task.spec.task_desc)


def _puzzle(view: GroupView) -> Puzzle:
    puzzle = puzzle_of(view.charter.goal)
    assert puzzle is not None, f"{view.charter.goal!r} is no goal of load"
    return puzzle


async def _think(puzzle: Puzzle, chance: random.Random) -> None:
    least, most = puzzle.pace.thought
    await asyncio.sleep(chance.uniform(least.total_seconds(), most.total_seconds()))


def _some(chance: random.Random, others: Sequence[AgentId]) -> tuple[AgentId, ...]:
    return tuple(chance.sample(others, k=min(len(others), chance.randint(1, _MOST_HELPERS))))


def _others(view: GroupView) -> list[AgentId]:
    """Who may speak next."""
    return [agent_id for agent_id in view.reachable if agent_id != view.me]


def _tasks(view: GroupView, chance: random.Random, parts: Sequence[str]) -> tuple[TaskSpec, ...]:
    """Return a task for each part, for one member after the other; its words name it uniquely in the whole system."""
    living = tuple(view.reachable) or (view.me,)
    first, specs = chance.randrange(len(living)), []
    for number, part in enumerate(parts):
        task_id = TaskId(f"t{view.state.turn}-{number}")
        assignee = living[(first + number) % len(living)]
        specs.append(TaskSpec(task_id=task_id, assignee=assignee, task_desc=f"{part} {view.state.comm_id}/{task_id}"))
    return tuple(specs)


def _turns(view: GroupView) -> int:
    return sum(isinstance(message.payload, Discussion) for message in view.messages)


def _known(view: GroupView) -> dict[str, int]:
    """Return what the parts that are done came to."""
    parts = set(parts_of(view.charter.goal))
    done = {part_of(task.spec.task_desc): task.conclusion for task in view.tasks if task.outcome is TaskOutcome.DONE}
    return {part: number_in(conclusion) for part, conclusion in done.items() if part in parts}


def _words(chance: random.Random) -> str:
    return " ".join("".join(chance.choices(_SYLLABLES, k=3)) for _ in range(12))
