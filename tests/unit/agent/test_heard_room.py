"""What an agent keeps of what it has heard: no more than its process has room for."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from ioa.agent.heard_room import HeardRoom, size_of, size_of_entry
from ioa.group.encoding import encode_state
from ioa.group.events import Said
from ioa.group.state import OpenTask, TaskMode
from ioa.ports.brain import TeamLaunch
from ioa.protocol.ids import AgentId, CommId, GoalId, TaskId, UserId, comm_id_of_goal
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Conclusion,
    InformTaskResult,
    SyncTaskAssignment,
    TaskOutcome,
)
from ioa.testing.scripted_brain import ScriptedBrain
from tests.contract.agent_store.stories import message, sequenced
from tests.rig.deadline import eventually
from tests.unit.agent.company import GOAL, Company, idle, task, working
from tests.unit.group.scenario import START

EVE, BOB = UserId("eve"), UserId("bob")
WORKER, LEAD = AgentId("worker"), AgentId("lead")
ROOM, OTHER = comm_id_of_goal(GOAL.goal_id), comm_id_of_goal(GoalId("goal-2"))


class Group:
    """A member that notes whether it was to leave."""

    def __init__(self, name: str, left: list[str]) -> None:
        self._name = name
        self._left = left

    def leave(self) -> None:
        """Note it."""
        self._left.append(self._name)


def test_of_who_has_most_the_group_that_has_most_is_left() -> None:
    """However much is said in many groups of one user, no group of another is left that holds less than all of his."""
    left: list[str] = []
    room, long, short, his = HeardRoom(1_000), Group("long", left), Group("short", left), Group("his", left)
    room.take(long, EVE, 300)
    room.take(short, EVE, 200)
    room.take(his, BOB, 400)
    room.take(his, BOB, 50)
    before = list(left)
    room.take(short, EVE, 51)

    assert (before, left) == ([], ["long"])


def test_what_was_left_or_has_ended_takes_no_room() -> None:
    """Room is there again for others, and who has left is not told to again."""
    left: list[str] = []
    room, first, second = HeardRoom(1_000), Group("first", left), Group("second", left)
    room.take(first, EVE, 1_001)
    room.take(second, EVE, 900)
    room.give_back(first)
    room.give_back(second)
    room.take(second, BOB, 900)

    assert left == ["first"]


def test_letters_count_as_they_are_kept() -> None:
    """One letter beyond the Basic Multilingual Plane has all of its text take four bytes a letter."""
    plain, wide = size_of(message("m1", "x" * 60_000)), size_of(message("m1", "x" * 59_999 + "\N{GRINNING FACE}"))

    assert (60_000 < plain < 75_000, 240_000 < wide < 320_000) == (True, True)


def test_an_entry_counts_by_what_it_has_on_the_disk_as_well() -> None:
    """A report has a hundred bytes, and the state that goes with it as many thousand: by them one key fills the disk in minutes."""
    [*_, short] = sequenced()
    tasks = tuple(
        OpenTask(task_id=TaskId(f"t{number}"), assignee=WORKER, assigner=LEAD, mode=TaskMode.SYNC, turn=1, lease_until=START)
        for number in range(200)
    )
    entry = short.entry.model_copy(update={"state": short.entry.state.model_copy(update={"tasks": tasks})})
    stored = len(encode_state(entry.state))
    assert size_of_entry(entry) >= stored // 4 > size_of(entry.event)
    assert size_of_entry(short.entry) == size_of(short.entry.event)


async def test_a_group_that_says_too_much_is_left_and_told_so(company: Company) -> None:
    """Its tasks fail with the reason, no more of it is followed or kept, and what is asked in other groups is done as before."""
    worker = company.hire(working(_stuck_with_much))
    worker.room = HeardRoom(60_000)
    await company.restart("worker")
    much = task().model_copy(update={"task_desc": "x" * 50_000})
    team = TeamLaunch(members=(WORKER,))
    brain = ScriptedBrain(
        teams=[team, team],
        utterances=[SyncTaskAssignment(tasks=(one,)) if one else ConcludeGroupDiscussion() for one in (much, None, task(), None)],
        conclusions=[Conclusion(content="Done without it."), Conclusion(content="Done.")],
    )
    await company.start(idle("lead"), brain)
    with capture_logs() as lines:
        first = await company.has_done()
        await eventually(lambda: company.sessions("worker") == 0)
        kept = await eventually(lambda: worker.store.entries(ROOM), lambda found: not found)
        second = await company.has_done(GOAL.model_copy(update={"goal_id": GoalId("goal-2")}))
    results = [payload for comm_id in (ROOM, OTHER) for payload in await _results(company, comm_id)]
    left = [line["comm_id"] for line in lines if line["event"] == "group_left_for_room"]

    assert [(one.outcome, one.task_conclusion) for one in results] == [
        (TaskOutcome.FAILED, "worker leaves this group: more was said in it than there is room for."),
        (TaskOutcome.DONE, "short"),
    ]
    assert (first.content, second.content, list(kept), left) == ("Done without it.", "Done.", [], [ROOM])


async def test_nothing_lies_there_of_a_group_that_is_left(company: Company) -> None:
    """What its tasks were given and made fills the disk no longer than the group is followed."""
    begun = asyncio.Event()

    async def stuck(words: str) -> str:
        begun.set()
        worker.room.take(Group("his", []), BOB, 45_000)  # which is less than was said here
        await asyncio.Event().wait()
        return words

    worker = company.hire(working(stuck))
    worker.room = HeardRoom(100_000)
    await company.restart("worker")
    much = task().model_copy(update={"task_desc": "x" * 50_000})
    brain = ScriptedBrain(teams=[TeamLaunch(members=(WORKER,))], utterances=[SyncTaskAssignment(tasks=(much,))])
    await company.start(idle("lead"), brain)
    with capture_logs() as lines:
        await company.network.offer(GOAL)
        await eventually(lambda: [line for line in lines if line["event"] == "group_left_for_room"])
        await eventually(lambda: company.sessions("worker") == 0)

    assert (begun.is_set(), (company.folder / "worker" / ROOM).exists()) == (True, False)


async def test_who_comes_back_leaves_before_all_is_read_again(company: Company) -> None:
    """A process that finds more in its memory than it has room for forgets that group, and goes on."""
    worker = await company.start(working(_stuck_with_much))
    much = task().model_copy(update={"task_desc": "x" * 50_000})
    await company.start(
        idle("lead"), ScriptedBrain(teams=[TeamLaunch(members=(WORKER,))], utterances=[SyncTaskAssignment(tasks=(much,))])
    )
    await company.network.offer(GOAL)
    await eventually(lambda: worker.store.entries(ROOM))
    await company.stop("worker")
    worker.room = HeardRoom(10_000)
    with capture_logs() as lines:
        await company.restart("worker")
        await eventually(lambda: [line for line in lines if line["event"] == "group_left_for_room"])
        await eventually(lambda: company.sessions("worker") == 0)

    assert list(await worker.store.entries(ROOM)) == []


async def _stuck_with_much(words: str) -> str:
    if len(words) > 1_000:
        await asyncio.Event().wait()
    return "short"


async def _results(company: Company, comm_id: CommId) -> list[InformTaskResult]:
    said = [one.entry.event.message for one in await company.network.entries(comm_id) if isinstance(one.entry.event, Said)]
    return [one.payload for one in said if isinstance(one.payload, InformTaskResult)]
