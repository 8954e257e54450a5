"""Finding whom the stored teams of tasks need, in the name of the users whose teams these are.

Who leads one goal of a user, or has a task in it, may ask for teams without end, and is none of those who work at his others. So
each agent has, in each goal, as much found as it may search for itself, and launches of one goal wait for each other before they
wait for those of the user's others: what comes of a goal's teams has those of another wait for one search of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from ioa.agent.casting import cast_needs
from ioa.errors import NoAgentError, RateLimitedError
from ioa.fair_turns import FairTurns
from ioa.group.state import ParentTask
from ioa.ports.brain import NobodyFits
from ioa.ports.clock import Clock
from ioa.ports.discovery import Discovery
from ioa.ports.inspection import SlowedCaller
from ioa.protocol.ids import AgentId, GoalName
from ioa.protocol.policy import Casting
from ioa.protocol.search import NEEDS_OF_ONE, Need, Search, SearchResult
from ioa.protocol.team import TeamSpec
from ioa.quotas import RATES, Family
from ioa.runtime.caller_pace import COME_BACK, CallerPace, tell_nobody
from ioa_groups.users_searches import UsersSearches

CAST_WITHIN = timedelta(seconds=3)
"""How long discovery may take to say who fits the roles of a task's team; a launch that it kept waiting is asked again."""


@dataclass(frozen=True)
class TeamOfTask:
    """The stored team that a task names.

    Attributes:
        team: A team of the user whose goal it is.
        goal: For what the task's group works.
        task: Which task it is.
        assignee: Who serves it, and leads the team.
    """

    team: TeamSpec
    goal: GoalName
    task: ParentTask
    assignee: AgentId

    @property
    def asker(self) -> str:
        """Who has agents found for it, as operators are told."""
        return f"{self.assignee} in {self.goal}"


class NeededAgents:
    """Searches for users: one thing of each at a time, his goals in turn, and for each agent as much as it may search for itself.

    Args:
        discovery: Knows who fits; it answers within `CAST_WITHIN`, or is away.
        clock: Says for how long nothing is searched for after that.
        now: Seconds of a clock that never goes back.
        slowed: Is told of agents that have too much searched for.
    """

    def __init__(
        self,
        discovery: Discovery,
        clock: Clock,
        now: Callable[[], float],
        slowed: Callable[[str, Family], None] = tell_nobody,
    ) -> None:
        self._searches = UsersSearches(discovery, clock, CAST_WITHIN)
        self._launches = FairTurns(sys.maxsize, 1)
        self._pace = CallerPace(now, Family.SEARCH, RATES[Family.SEARCH], slowed)

    async def cast(self, wanted: TeamOfTask) -> tuple[Casting, ...]:
        """Find who fits the roles of a task's team that name a need, as its leader would, who is not shown the team.

        Raises:
            NoAgentError: Nobody does; it says for which need.
            UnavailableError: Discovery does not answer.
            RateLimitedError: The leader has had too much searched for in this goal, or discovery has not answered it in time.
        """
        needs = sum(1 for one in wanted.team.fillings if one.need)
        if not needs:
            return ()
        async with self._launches.turn(wanted.goal.key, within=CAST_WITHIN):
            self._count(wanted, needs)
            cast = await cast_needs(wanted.team, lambda some: self._search(wanted, some), leader=wanted.assignee)
        if isinstance(cast, NobodyFits):
            raise NoAgentError(f"The team {wanted.team.team} is not complete: discovery knows nobody for “{cast.needs[0]}”.")
        return cast.cast

    def slowed(self) -> Sequence[SlowedCaller]:
        """Return which agents had too much searched for lately, and in which goals."""
        return self._pace.slowed()

    def _count(self, wanted: TeamOfTask, needs: int) -> None:
        """Count all that a launch searches for before any of it: one that was refused in between would begin anew each time."""
        if (left := self._searches.put_off(wanted.asker)) is not None:
            raise _put_off(wanted, left)
        if (again := self._pace.put_off(wanted.asker, counts=-(-needs // NEEDS_OF_ONE))) is not None:
            user = wanted.goal.owner
            raise RateLimitedError(f"{wanted.asker} has too much searched for of teams of {user}.", retry_after=again)

    async def _search(self, wanted: TeamOfTask, needs: Sequence[Need]) -> SearchResult:
        purpose = f"{wanted.task.comm_id}/{wanted.task.task_id}"
        asked = Search(needs=tuple(needs), by=wanted.assignee, purpose=purpose)
        found = await self._searches.search(wanted.goal.owner, asked, wanted.asker)
        if found is None:
            raise _put_off(wanted, self._searches.put_off(wanted.asker) or COME_BACK)
        return found


def _put_off(wanted: TeamOfTask, left: timedelta) -> RateLimitedError:
    why = f"Discovery has not answered in time what a team of {wanted.goal.owner} needs."
    return RateLimitedError(why, retry_after=left)
