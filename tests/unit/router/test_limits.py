"""Every limit ends in its typed reason, through the real router, group setup and ledger, at the very moment or number it names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest

from ioa.errors import ForbiddenError
from ioa.group.events import Said
from ioa.group.rejection import RejectionCode
from ioa.group.requests import Accepted, CancelGroup, LaunchGroup, Rejected
from ioa.group.state import ClosedTask, ParentTask
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalName, TaskId, comm_id_of_task
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Pass,
    PassCause,
    Pause,
    Phase,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.team import team_of
from ioa.protocol.usage import Usage
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, ROOM, TICKET, Plane, messages_of, open_task

WORDS = ("The river rises.", "Nobody owns a boat.", "Ask the miller about flour.", "Two bells rang at noon.", "Paint dries slowly.")
T1 = TaskId("t1-1")


def _task(timeout: timedelta | None = None, assignee: AgentId = BOB) -> TaskSpec:
    return TaskSpec(task_id=T1, assignee=assignee, task_desc="Count the bells.", timeout=timeout)


async def _talk(plane: Plane, *, tokens: int = 0) -> None:
    """Let the two members take turns until nobody may discuss any more, two times at most."""
    for number, speaker, other in ((0, ADA, BOB), (1, BOB, ADA)):
        if (await plane.state()).phase is Phase.DISCUSSING:
            await plane.says(speaker, Discussion(content=WORDS[number], next_speaker=other), usage=Usage(tokens_out=tokens))


async def _conclude(plane: Plane, reason: Reason = Reason.CONCLUDED) -> None:
    if (await plane.state()).phase is Phase.DISCUSSING:
        await plane.says(ADA, ConcludeGroupDiscussion())
    await plane.says(ADA, Conclusion.model_validate({"content": "Ten.", "reason": reason}))


async def _concluded(plane: Plane) -> None:
    await plane.open(ADA, BOB)
    await _talk(plane)
    await _conclude(plane)


async def _failed(plane: Plane) -> None:
    await plane.open(ADA, BOB)
    await _talk(plane)
    await _conclude(plane, Reason.FAILED)


async def _no_agent(plane: Plane) -> None:
    await plane.open(ADA, BOB)
    await _talk(plane)
    await _conclude(plane, Reason.NO_AGENT)


async def _max_turns(plane: Plane) -> None:
    await plane.open(ADA, BOB, max_turns=2)
    await _talk(plane)
    await _conclude(plane, Reason.FAILED)


async def _budget(plane: Plane) -> None:
    await plane.open(ADA, BOB, max_tokens=100)
    await _talk(plane, tokens=50)
    await _conclude(plane, Reason.FAILED)


async def _deadline(plane: Plane) -> None:
    await plane.open(ADA, BOB, timeout=timedelta(seconds=59))
    await _talk(plane)
    await plane.run_timers()


async def _member_lost(plane: Plane) -> None:
    await plane.open(ADA, BOB)
    await _talk(plane)
    await plane.run_timers()


async def _cancelled(plane: Plane) -> None:
    await plane.open(ADA, BOB)
    await _talk(plane)
    await plane.setup.cancel(LOCAL, CancelGroup(goal_id=GOAL, why="Enough."))


async def _model_unavailable(plane: Plane) -> None:
    await plane.open(ADA, BOB)
    await _talk(plane)
    for member in (ADA, BOB):
        await plane.says(member, Pass(cause=PassCause.MODEL_UNAVAILABLE))
    plane.clock.advance_to(plane.clock.now() + timedelta(seconds=301))
    await plane.says(ADA, Pass(cause=PassCause.MODEL_UNAVAILABLE))


async def _open_team(plane: Plane, roles: Mapping[str, Any], node: Mapping[str, Any]) -> None:
    team = team_of({"team": "t", "roles": roles, "nodes": [node]})
    await plane.join(ADA, BOB)
    await plane.accept(team=team)
    launch = LaunchGroup(owner=ADA, members=(), goal_id=GOAL, ticket=TICKET, policy=team.policy.digest)
    await plane.setup.launch(launch)


async def _no_speaker(plane: Plane) -> None:
    await _open_team(plane, {"both": {"agents": [ADA, BOB]}}, {"name": "talk", "roles": ["both"], "max": 99})
    await plane.says(ADA, Discussion(content=WORDS[0]))
    await plane.says(BOB, Discussion(content=WORDS[1]))
    await plane.run_timers()


async def _refused(plane: Plane) -> None:
    node = {"name": "talk", "roles": ["a"], "review": {"by": "b", "tries": 2, "then": "end"}}
    await _open_team(plane, {"a": ADA, "b": BOB}, node)
    for words in WORDS[:2]:
        await plane.says(ADA, Discussion(content=words))
        await plane.says(BOB, Decision(choice="reject"))


ENDINGS: dict[Reason, tuple[Callable[[Plane], Awaitable[None]], Phase]] = {
    Reason.CONCLUDED: (_concluded, Phase.CONCLUDED),
    Reason.FAILED: (_failed, Phase.FAILED),
    Reason.NO_AGENT: (_no_agent, Phase.FAILED),
    Reason.MAX_TURNS: (_max_turns, Phase.FAILED),
    Reason.BUDGET: (_budget, Phase.FAILED),
    Reason.DEADLINE: (_deadline, Phase.FAILED),
    Reason.MEMBER_LOST: (_member_lost, Phase.FAILED),
    Reason.CANCELLED: (_cancelled, Phase.CANCELLED),
    Reason.MODEL_UNAVAILABLE: (_model_unavailable, Phase.FAILED),
    Reason.NO_SPEAKER: (_no_speaker, Phase.FAILED),
    Reason.REFUSED: (_refused, Phase.FAILED),
}


def test_every_reason_has_its_case() -> None:
    """A reason that is added needs a way to be reached."""
    assert set(ENDINGS) == set(Reason)


@pytest.mark.parametrize("reason", Reason)
async def test_each_end_is_typed_and_keeps_what_was_said(reason: Reason) -> None:
    """One result with the reason, the phase that belongs to it, both turns of the talk in the log, and a log that replays."""
    plane = Plane()
    end, phase = ENDINGS[reason]
    await end(plane)
    said = [stored.entry.event.message.payload for stored in await plane.entries() if isinstance(stored.entry.event, Said)]
    talk = [payload.content for payload in said if isinstance(payload, Discussion)]
    assert (await plane.reason(), (await plane.state()).phase, talk) == (reason, phase, list(WORDS[:2]))
    assert await plane.replayed() == [stored.entry.state for stored in await plane.entries()]


@pytest.mark.parametrize("reason", Reason)
async def test_nothing_revives_a_group_that_has_ended(reason: Reason) -> None:
    """A late message, a timer and a second cancellation leave the log and the result as they are."""
    plane = Plane()
    await ENDINGS[reason][0](plane)
    before, result = await plane.entries(), await plane.results.get(GoalName(LOCAL, GOAL))
    late = await plane.says(ADA, Discussion(content=WORDS[4], next_speaker=BOB))
    await plane.setup.cancel(LOCAL, CancelGroup(goal_id=GOAL))
    await plane.run_timers()
    assert isinstance(late, Rejected)
    assert (late.code, await plane.entries(), await plane.results.get(GoalName(LOCAL, GOAL))) == (
        RejectionCode.GROUP_ENDED,
        before,
        result,
    )


@pytest.mark.parametrize("turns", [1, 2, 5])
async def test_two_routers_that_race_for_each_turn_take_no_turn_more(turns: int) -> None:
    """For every turn two messages arrive at once, one at each router, until no turn is left: N messages stand, and not one more."""
    plane = Plane()
    await plane.open(ADA, BOB, max_turns=turns)
    for number in range(turns + 2):
        state = await plane.state()
        speaker = state.floor_holder
        assert speaker is not None
        other = BOB if speaker == ADA else ADA
        texts = (f"{WORDS[number % 5]} Number {number}.", f"Something else altogether, the {number}th time.")
        both = [await plane.message(speaker, Discussion(content=text, next_speaker=other)) for text in texts]
        await asyncio.gather(*(plane.send(message, router) for router, message in enumerate(both)))
    state = await plane.state()
    assert (len(messages_of(await plane.entries())), state.turns_taken, state.phase) == (turns, turns, Phase.CONCLUDING)


async def test_teams_nest_as_deep_as_is_allowed_and_no_deeper() -> None:
    """With a depth of two the second nested team is opened and the third refused."""
    plane = Plane()
    await plane.open(ADA, BOB, EVE, max_turns=40)
    room, opened = ROOM, 0
    for _ in range(2):
        await plane.says(AgentId("ada") if room == ROOM else BOB, SyncTaskAssignment(tasks=(_task(),)), comm_id=room)
        room = await _nest(plane, room)
        opened += 1
    await plane.says(BOB, SyncTaskAssignment(tasks=(_task(),)), comm_id=room)
    with pytest.raises(ForbiddenError, match="2 deep"):
        await _nest(plane, room)
    assert opened == 2


async def _nest(plane: Plane, room: CommId) -> CommId:
    parent = ParentTask(comm_id=room, task_id=T1)
    await plane.setup.launch(LaunchGroup(owner=BOB, members=(EVE,), goal_id=GOAL, parent=parent, goal="Count."))
    return comm_id_of_task(room, T1)


async def _silent(plane: Plane) -> None:
    await plane.open(ADA, BOB)


async def _paused(plane: Plane) -> None:
    await plane.open(ADA, BOB)
    await plane.says(ADA, AsyncTaskAssignment(tasks=(_task(),)))
    await plane.says(BOB, InformTaskProgress(task_id=T1, number=1))
    await plane.says(ADA, Pause(triggers=(T1,)))


async def _concluding(plane: Plane) -> None:
    await plane.open(ADA, BOB)
    await plane.says(ADA, ConcludeGroupDiscussion())


async def _hurried(plane: Plane) -> None:
    await plane.open(ADA, BOB)
    await plane.says(ADA, SyncTaskAssignment(tasks=(_task(timeout=timedelta(seconds=45)),)))


async def _short(plane: Plane) -> None:
    await plane.open(ADA, BOB, timeout=timedelta(seconds=45))


@pytest.mark.parametrize(
    ("begin", "seconds", "phase", "holder"),
    [
        (_silent, 60, Phase.DISCUSSING, BOB),
        (_paused, 600, Phase.DISCUSSING, ADA),
        (_concluding, 50, Phase.CONCLUDING, BOB),
        (_hurried, 45, Phase.DISCUSSING, ADA),
        (_short, 45, Phase.FAILED, None),
    ],
    ids=["floor", "pause", "conclusion", "task", "deadline"],
)
async def test_each_time_limit_acts_when_it_has_passed_and_not_before(
    begin: Callable[[Plane], Awaitable[None]], seconds: float, phase: Phase, holder: AgentId | None
) -> None:
    """A millisecond before its time a timer changes nothing for that limit; at its time it does. Progress keeps the leases."""
    plane = Plane()
    await begin(plane)
    before = await plane.state()
    end = plane.clock.now() + timedelta(seconds=seconds)
    while (left := end - plane.clock.now()) > timedelta(milliseconds=1):
        plane.clock.advance(min(timedelta(seconds=20), left - timedelta(milliseconds=1)))
        await _report(plane)
        await plane.fire_due()
    early = await plane.state()
    plane.clock.advance_to(end)
    await plane.fire_due(router=1)
    late = await plane.state()
    assert (early.stage, late.phase, late.floor_holder) == (before.stage, phase, holder)


async def _report(plane: Plane) -> None:
    """Let whoever works report progress."""
    for task in (await plane.state()).open_tasks:
        await plane.says(task.assignee, InformTaskProgress(task_id=task.task_id, number=task.progress + 1))


async def test_a_ten_minute_task_under_a_lease_of_thirty_seconds_runs_once() -> None:
    """As long as it reports, nothing takes the task away, and its result counts; the log holds the first report and no other."""
    plane = Plane()
    await plane.open(ADA, BOB)
    await plane.says(ADA, SyncTaskAssignment(tasks=(_task(),)))
    for _ in range(60):
        plane.clock.advance(timedelta(seconds=10))
        await plane.fire_due()
        await _report(plane)
    answer = await plane.says(BOB, InformTaskResult(task_id=T1, task_conclusion="Twelve bells."))
    task, entries = (await plane.state()).task(T1), await plane.entries()
    said = [stored.entry.event.message.payload for stored in entries if isinstance(stored.entry.event, Said)]
    reports = [payload.number for payload in said if isinstance(payload, InformTaskProgress)]
    suspected = [task for stored in entries for task in stored.entry.state.open_tasks if task.suspect]
    assert isinstance(answer, Accepted) and isinstance(task, ClosedTask)
    assert (task.outcome, reports, suspected) == (TaskOutcome.DONE, [1], [])


async def test_a_task_that_goes_on_past_its_own_deadline_fails() -> None:
    """Reports do not help then; the task says why, the floor returns, and its result comes too late."""
    plane = Plane()
    await plane.open(ADA, BOB)
    await plane.says(ADA, SyncTaskAssignment(tasks=(_task(timeout=timedelta(seconds=45)),)))
    for _ in range(4):
        plane.clock.advance(timedelta(seconds=11))
        await _report(plane)
    deadline = open_task(await plane.state(), T1).deadline
    assert deadline is not None
    plane.clock.advance_to(deadline)
    late = [await plane.says(BOB, InformTaskResult(task_id=T1, task_conclusion="Twelve."))]
    await plane.fire_due()
    late.append(await plane.says(BOB, InformTaskResult(task_id=T1, task_conclusion="Twelve.")))
    state = await plane.state()
    task = state.task(T1)
    assert isinstance(task, ClosedTask)
    assert (task.outcome, task.why, state.floor_holder) == (TaskOutcome.FAILED, "bob was not done by the task's deadline", ADA)
    assert [answer.code for answer in late if isinstance(answer, Rejected)] == [RejectionCode.TOO_LATE, RejectionCode.TASK_CLOSED]


async def test_cancelling_reaches_teams_two_deep_and_counts_what_they_spent() -> None:
    """All three groups are cancelled, the goal has one result, and a result that a nested task brings later changes nothing."""
    plane = Plane()
    await plane.open(ADA, BOB, EVE, max_turns=40, max_tokens=1_000)
    rooms = [ROOM]
    for leader in (ADA, BOB):
        await plane.says(leader, SyncTaskAssignment(tasks=(_task(),)), comm_id=rooms[-1], usage=Usage(tokens_in=10))
        rooms.append(await _nest(plane, rooms[-1]))
    await plane.says(BOB, SyncTaskAssignment(tasks=(_task(assignee=EVE),)), comm_id=rooms[-1])
    await plane.setup.cancel(LOCAL, CancelGroup(goal_id=GOAL, why="Enough."))
    before = [await plane.entries(room) for room in rooms]
    late = await plane.says(EVE, InformTaskResult(task_id=T1, task_conclusion="Twelve."), comm_id=rooms[-1])
    await plane.run_timers()
    assert isinstance(late, Rejected)
    assert [(await plane.state(room)).phase for room in rooms] == [Phase.CANCELLED] * 3
    assert ([await plane.entries(room) for room in rooms], await plane.reason()) == (before, Reason.CANCELLED)
