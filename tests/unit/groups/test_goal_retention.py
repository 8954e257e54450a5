"""Retention: what belongs to a goal goes together, whatever cuts it short, and what was concluded stays concluded."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from ioa.concurrency import beside
from ioa.errors import UnavailableError
from ioa.group.requests import AbandonGoal, LaunchGroup
from ioa.protocol import subjects
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import LOCAL, CommId, GoalId, GoalName, TaskId, comm_id_of_goal, comm_id_of_task
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, InformTaskResult, SyncTaskAssignment
from ioa.protocol.operation.status import Prune, Pruned
from ioa.protocol.setup.file_requests import folder_of
from ioa.protocol.setup.open_groups import OpenGroup
from tests.rig.deadline import eventually
from tests.unit.group.scenario import specs
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, ROOM, TICKET, Plane

KEEP = timedelta(days=30)
LATER = timedelta(days=31)
NESTED = comm_id_of_task(ROOM, TaskId("t1-1"))
INPUT = f"{folder_of(GoalName(LOCAL, GOAL).key)}/in.csv"


async def made(plane: Plane, name: str) -> Artifact:
    """A file in the store."""
    return await plane.artifacts.put(name, name.rpartition("/")[2], b"data", "text/plain")


async def conclude(plane: Plane) -> None:
    """Have a goal with a nested team, an input and two files concluded."""
    await plane.join(ADA, BOB, EVE)
    given = await made(plane, INPUT)
    order = {"goal": "Count to ten.", "goal_id": GOAL, "inputs": [given.model_dump(mode="json")]}
    await plane.intake.accept(subjects.goal_of(LOCAL), json.dumps(order).encode(), "1")
    await plane.setup.launch(LaunchGroup(owner=ADA, members=(BOB,), goal_id=GOAL, ticket=TICKET))
    await plane.says(ADA, SyncTaskAssignment(tasks=specs(("t1-1:bob",))))
    await plane.nest("t1-1", BOB, EVE)
    await plane.says(BOB, SyncTaskAssignment(tasks=specs(("t1-1:eve",))), comm_id=NESTED)
    chart = await made(plane, f"{folder_of(NESTED)}/chart.png")
    await plane.says(EVE, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="Five.", artifacts=(chart,)), comm_id=NESTED)
    await plane.says(BOB, ConcludeGroupDiscussion(), comm_id=NESTED)
    await plane.says(BOB, Conclusion(content="Five.", artifacts=(chart,)), comm_id=NESTED)
    plane.clock.advance(timedelta(seconds=20))
    await plane.says(ADA, ConcludeGroupDiscussion())
    foreign = await made(plane, "another-goal/in/0-shared.csv")
    await plane.says(ADA, Conclusion(content="Ten.", artifacts=(chart, foreign)))
    assert await plane.reason() is Reason.CONCLUDED
    for comm_id in (ROOM, NESTED):
        await plane.open_groups.put(LOCAL, comm_id, OpenGroup(goal_id=GOAL, deadline=plane.clock.now()))


async def prune(plane: Plane, keep: timedelta = KEEP, *, dry_run: bool = False) -> Pruned:
    """Remove what is old enough."""
    return await plane.retention.prune(Prune(older_than=keep, dry_run=dry_run))


def left(plane: Plane) -> dict[str, object]:
    """What is kept of goals."""
    return {
        "records": [record.goal.goal_id for record in plane.goals.all()],
        "logs": sorted(plane.log.comm_ids()),
        "open": list(plane.open_groups.comm_ids()),
        "members": sorted(plane.memberships.comm_ids()),
        "timers": plane.timers.next_at() is not None,
        "files": sorted(plane.artifacts.stored()),
    }


def interrupt(plane: Plane, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Let so many removals succeed; then all fail."""
    left = iter(range(steps))

    def interrupted(remove: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
        async def remove_or_fail(owned: Any) -> None:
            if next(left, None) is None:
                raise UnavailableError("Nothing can be removed now.")
            await remove(owned)

        return remove_or_fail

    for store in (plane.artifacts, plane.timers, plane.memberships, plane.open_groups, plane.log, plane.results, plane.goals):
        name = "remove_group" if store is plane.memberships else "remove"
        monkeypatch.setattr(store, name, interrupted(getattr(store, name)))


EMPTY = {"records": [], "logs": [], "open": [], "members": [], "timers": False, "files": ["another-goal/in/0-shared.csv"]}


@pytest.mark.parametrize("steps", range(12))
async def test_a_removal_that_was_cut_short_is_finished(plane: Plane, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """After a crash behind any step nothing takes the goal for one that was never begun, and the next look removes the rest."""
    await conclude(plane)
    plane.clock.advance(LATER)
    with monkeypatch.context() as interrupted:
        interrupt(plane, interrupted, steps)
        assert (await prune(plane)).failed == 1
    for router in plane.routers:
        await router.fire_timer(ROOM)
    await plane.run_timers()
    await plane.intake.accept(subjects.goal_of(LOCAL), json.dumps({"goal": "Count to ten.", "goal_id": GOAL}).encode(), "2")
    await plane.setup.abandon(AbandonGoal(goal_id=GOAL, by=ADA, reason=Reason.FAILED, content="No.", ticket=TICKET))
    assert await plane.reason() in (Reason.CONCLUDED, None)
    assert (await prune(plane)).failed == 0
    ended = await plane.ended.find(GoalName(LOCAL, GOAL))
    assert ended is not None
    assert (left(plane), ended.reason, await plane.results.get(GoalName(LOCAL, GOAL))) == (EMPTY, Reason.CONCLUDED, None)


async def test_a_goal_that_cannot_be_removed_holds_up_no_other(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails is counted and logged; the goals behind it go."""
    await plane.join(ADA)
    for number in range(3):
        await plane.accept(GoalId(f"goal-{number}"), timeout=timedelta(minutes=1))
    await plane.run_timers()
    plane.clock.advance(LATER)
    poisoned, remove = comm_id_of_goal(GoalId("goal-1")), plane.log.remove

    async def remove_others(comm_id: CommId) -> None:
        if comm_id == poisoned:
            raise ValueError(f"The log of {comm_id} is poisoned.")
        await remove(comm_id)

    monkeypatch.setattr(plane.log, "remove", remove_others)
    done = await prune(plane)
    assert (done.goals, done.failed, [record.goal.goal_id for record in plane.goals.all()]) == ({"deadline": 2}, 1, ["goal-1"])


async def test_open_goals_are_skipped_and_pages_go_on(plane: Plane) -> None:
    """Goals in front that are open stay; what lies behind them goes, page by page."""
    for number in range(150):
        timeout = timedelta(days=30) if number % 3 == 0 else timedelta(minutes=1)
        await plane.accept(GoalId(f"goal-{number}"), timeout=timeout)
    while plane.clock.now() < plane.goals.all()[0].accepted_at + timedelta(days=1):
        plane.clock.advance(timedelta(hours=12))
        await plane.fire_due()
    counted, after = 0, 0
    for _ in range(10):
        part = await plane.retention.prune(Prune(older_than=timedelta(hours=1), after=after))
        counted += sum(part.goals.values())
        if part.after is None:
            break
        after = part.after
    assert (counted, len(plane.goals.all())) == (100, 50)


async def test_it_looks_by_itself_and_survives_what_goes_wrong(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Left alone it removes what is old enough, also after the records were out of reach."""
    await conclude(plane)
    plane.clock.advance(LATER)
    interrupt(plane, monkeypatch, 0)
    async with beside(plane.retention.follow(KEEP, every=timedelta(milliseconds=1))):
        await eventually(lambda: plane.ended.find(GoalName(LOCAL, GOAL)))
        monkeypatch.undo()
        await eventually(lambda: left(plane), EMPTY.__eq__)
