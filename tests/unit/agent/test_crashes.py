"""Wherever an agent's process is killed, its group ends as it would have, from its journal and the log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

import pytest

from ioa.agent.brain_port import TaskView
from ioa.agent.turn_view import TurnView
from ioa.group.requests import Accepted, Entries, Rejected, Sync
from ioa.ports.brain_types import Mission, TeamLaunch, TeamTools, Utterance
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, comm_id_of_goal
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Conclusion,
    InformTaskProgress,
    InformTaskResult,
    Message,
    SyncTaskAssignment,
)
from tests.rig.agent_stores import UnreliableStore
from tests.rig.deadline import eventually
from tests.unit.agent.company import GOAL, T1, Company, idle, open_company, task, working

pytestmark = pytest.mark.timeout(60)

ROOM = comm_id_of_goal(GOAL.goal_id)
BOTH = ("lead", "worker")
_CALLS = ("thoughts", "begin_task", "finish_task", "finished_task", "meet", "forget_group")
_FEWEST_CALLS = 7
"""Minimum number of calls of a run."""

Moment = Literal["before", "after"]
P = ParamSpec("P")
T = TypeVar("T")


class _Planner:
    """Have one task done and conclude, whichever process asks."""

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch:
        """Take the worker."""
        return TeamLaunch(members=(AgentId("worker"),))

    async def speak(self, view: TurnView) -> Utterance:
        """Assign the task, or conclude if it is done."""
        return ConcludeGroupDiscussion() if view.tasks else SyncTaskAssignment(tasks=(task(),))

    async def conclude(self, view: TurnView) -> Conclusion:
        """Conclude with the result."""
        return Conclusion(content=view.tasks[0].conclusion)

    async def approach(self, task: TaskView, tools: TeamTools) -> None:
        """Work alone."""
        return


class _Death:
    """Kills a process when it has called its memory and its router so often, before the last call takes effect or after."""

    def __init__(self, nth: int, moment: Moment) -> None:
        self.came = False
        self._over = False
        self._left = nth
        self._moment = moment

    def awaits(self, call: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        """Count a call among those at which the process may die."""

        async def counted(*args: P.args, **kwargs: P.kwargs) -> T:
            if self._over:
                return await call(*args, **kwargs)
            self._left -= 1
            is_last = self._left == 0
            if is_last and self._moment == "before":
                await self._die()
            answer = await call(*args, **kwargs)
            if is_last and self._moment == "after":
                await self._die()
            return answer

        return counted

    def call_off(self) -> None:
        """Count nothing more."""
        self._over = True

    async def _die(self) -> None:
        self.came = self._over = True
        await asyncio.Event().wait()


def _let_die(company: Company, who: str, store: UnreliableStore, death: _Death) -> None:
    for name in _CALLS:
        setattr(store, name, death.awaits(getattr(store, name)))
    say = company.network.say
    say_and_die = death.awaits(say)

    async def say_as_told(message: Message) -> Accepted | Rejected:
        own = message.header.sender == who and not isinstance(message.payload, InformTaskProgress)
        return await (say_and_die(message) if own else say(message))

    sync = company.network.sync
    sync_and_die = death.awaits(sync)

    async def sync_as_told(request: Sync) -> Entries:
        return await (sync_and_die(request) if request.agent_id == who else sync(request))

    company.network.say, company.network.sync = say_as_told, sync_as_told  # type: ignore[method-assign]


async def _is_over(company: Company, who: str, death: _Death) -> bool:
    ended = await company.network.result(GOAL) is not None and not company.sessions(who)
    return ended or death.came


async def _is_settled(company: Company, memory: UnreliableStore) -> bool:
    """Return True if the task's result was journalled or reported: its function must not run again."""
    reported = [message.payload for message in await company.messages(ROOM)]
    entries = await company.network.entries(ROOM)
    journalled = bool(entries) and await memory.finished_task(ROOM, entries[0].entry.event.at, T1) is not None
    return journalled or any(isinstance(payload, InformTaskResult) for payload in reported)


async def _died_in(folder: Path, who: str, nth: int, moment: Moment) -> bool:
    """Run a goal and kill one process at its nth call; return False if there are fewer calls."""
    runs: list[str] = []

    def work(words: str) -> str:
        runs.append(words)
        return "done"

    death = _Death(nth, moment)
    async with open_company(folder) as company:
        members = {"worker": await company.start(working(work)), "lead": await company.start(idle("lead"), _Planner())}
        _let_die(company, who, members[who].store, death)
        await company.network.offer(GOAL)
        await eventually(lambda: _is_over(company, who, death))
        death.call_off()
        is_settled = False
        if death.came:
            await company.crash(who)
            is_settled = await _is_settled(company, members["worker"].store)
            await company.restart(who)
        result = await company.result()
        left = await company.have_left(BOTH)
        said = [(message.header.sender, message.payload.type) for message in await company.messages(ROOM)]

    assert (result.reason, result.content, left) == (Reason.CONCLUDED, "done", True)
    assert [one for one in said if one[1] != "INFORM_TASK_PROGRESS"] == [
        ("lead", "SYNC_TASK_ASSIGNMENT"),
        ("worker", "INFORM_TASK_RESULT"),
        ("lead", "CONCLUDE_GROUP_DISCUSSION"),
        ("lead", "CONCLUSION"),
    ]
    assert len(runs) == 1 if is_settled or who == "lead" else len(runs) in (1, 2)
    return death.came


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("who", BOTH)
async def test_killed_process_at_each_call_loses_no_message(tmp_path: Path, who: str, moment: Moment) -> None:
    """Killed at each call in turn: each message is sent once, no settled task runs again, both members leave."""
    nth = 1
    while await _died_in(tmp_path / str(nth), who, nth, moment):
        nth += 1

    assert nth > _FEWEST_CALLS
