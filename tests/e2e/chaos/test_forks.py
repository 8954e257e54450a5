"""Group setup and routers die while goals are forked: each fork is one goal, its log is whole, and nothing is done again."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.client.client import Client
from ioa.errors import UnavailableError
from ioa.group.state import ClosedTask
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import GoalId, comm_id_of_goal
from ioa.testing.log_checker import (
    check_logs,
    check_open_groups,
    check_records,
    check_results,
)
from tests.rig.deadline import eventually
from tests.rig.fleet import Fleet

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

POINTS = ("groups.goal_recorded", "groups.before_copied_entry:2", "groups.after_copied_entry:4", "groups.before_copy_goes_on")
KINDS = ("sync", "async", "mixed", "deep")
"""Those of goals with tasks; nested teams work at some of the last one's."""


async def _fork(client: Client, goal_id: GoalId, at: int, fork: GoalId) -> None:
    """Fork as a user does who asks until there is an answer."""
    while True:
        with suppress(UnavailableError):
            await client.fork(goal_id, at=at, goal_id=fork, accepted_within=timedelta(seconds=0.5))
            return
        await asyncio.sleep(0.1)


def _where(log: Sequence[StoredEntry]) -> StoredEntry:
    """The last entry before the end at which no task ran."""
    return [one for one in log if not one.entry.state.phase.is_terminal and not one.entry.state.unfinished_tasks][-1]


def _is_of_the_past(log: Sequence[StoredEntry]) -> bool:
    """Whether a log is of a nested team that had ended when its goal was forked, of which nobody has to be told."""
    state = log[0].entry.state
    return state.forked_from is not None and state.parent is not None


async def test_group_setup_dies_at_each_step_of_a_fork(fleet: Fleet) -> None:
    """Before, between and behind entries, and before the copy goes on; a router dies as well. Whoever comes next finishes it."""
    client, died = Client(NatsSystemClient(fleet.client)), list[int]()
    goals = [GoalId(f"base-{kind}") for kind in KINDS]
    for goal_id, kind in zip(goals, KINDS, strict=True):
        await fleet.publish(goal_id, kind)
    before = await fleet.evidence()
    done = list[str]()
    for number, (goal_id, point) in enumerate(zip(goals, POINTS, strict=True)):
        entry, fork = _where(before.logs[comm_id_of_goal(goal_id)]), GoalId(f"fork-{number}")
        done += [task.task_id for task in entry.entry.state.tasks if isinstance(task, ClosedTask)]
        await fleet.stop("groups-0", "groups-1")
        await fleet.start("groups-0", fault_point=point)
        fleet.goals.append(fork)
        forking = asyncio.create_task(_fork(client, goal_id, entry.seq, fork))
        died.append(await fleet.died("groups-0"))
        await fleet.kill("router-0")
        await fleet.start("groups-0", "groups-1", "router-0")
        await forking
        await _fork(client, goal_id, entry.seq, fork)
        await eventually(lambda fork=fork: client.result(fork), within=timedelta(seconds=60))  # type: ignore[misc]
    after = await fleet.evidence()
    told_of = {comm_id: log for comm_id, log in after.logs.items() if not _is_of_the_past(log)}
    recorded = check_records(replace(after, logs=told_of))
    wrong = [*check_results(after), *check_logs(after), *recorded, *check_open_groups(after)]
    assert (died, wrong) == ([-signal.SIGKILL] * len(POINTS), [])
    assert done, "nothing was done in what was forked, so that nothing could have been done again"
    for fork in (GoalId(f"fork-{number}") for number in range(len(POINTS))):
        log = after.logs[comm_id_of_goal(fork)]
        assert log[0].entry.state.copying and not log[-1].entry.state.copying
    assert all(after.logs[comm_id] == before.logs[comm_id] for comm_id in before.logs)
    assert before.runs is not None and after.runs is not None
    again = Counter(run.task for run in after.runs)
    again.subtract(run.task for run in before.runs)
    told = {
        spec.task_id
        for fork in range(len(POINTS))
        for stored in after.logs[comm_id_of_goal(GoalId(f"fork-{fork}"))]
        if not stored.entry.state.copying
        for spec in stored.entry.state.tasks
    }
    assert sum(again.values()) <= len(told - set(done)), "a task that was done was done again"
