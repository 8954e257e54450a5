"""What is counted of groups: each thing once, by the process that appended it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prometheus_client import REGISTRY

from ioa.group.machine import step
from ioa.group.state import GroupState
from ioa.protocol.goals import PROBE, GoalResult, Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName
from ioa.runtime.group_metrics import count_entry
from tests.unit.group.scenario import Scenario, launched
from tests.unit.runtime.plane import ADA, BOB, Plane

Since = Callable[..., float]
"""An audit log that nothing writes."""


@pytest.fixture
def since() -> Since:
    """How much a metric has grown since the test began."""
    before = {(one.name, tuple(one.labels.items())): one.value for family in REGISTRY.collect() for one in family.samples}

    def grown(name: str, **labels: str) -> float:
        now = REGISTRY.get_sample_value(name, labels)
        assert now is not None, f"there is no {name} {labels}"
        return round(now - before.get((name, tuple(labels.items())), 0.0), 6)  # what other tests have counted is no round number

    return grown


def count(story: Scenario) -> None:
    """Count every entry of a story's log, as the processes that append them do."""
    state: GroupState | None = None
    for event in story.log:
        after = step(state, event).state
        count_entry(state, event, after)
        state = after


def test_a_discussion_is_counted_by_turns_phases_and_time_with_the_floor(since: Since) -> None:
    """Two turns, an announcement and a conclusion: four times the floor, each from its grant to what was said."""
    count(launched("ada", "bob").after(2).says("ada", to="bob").after(3).says("bob", to="ada").announces("ada").concludes("ada"))
    assert (since("ioa_turns_total"), since("ioa_groups_ended_total", reason="concluded")) == (2, 1)
    phases = ("discussing", "concluding", "concluded", "failed", "paused")
    assert [since("ioa_group_phases_entered_total", phase=phase) for phase in phases] == [1, 1, 1, 0, 0]
    assert (since("ioa_floor_held_seconds_count"), since("ioa_floor_held_seconds_sum")) == (4, 5)
    events = ("group_launched", "DISCUSSION", "CONCLUDE_GROUP_DISCUSSION", "CONCLUSION", "PAUSE")
    assert [since("ioa_group_entries_total", event=event) for event in events] == [1, 2, 1, 1, 0]


def test_tasks_are_counted_by_mode_and_outcome(since: Since) -> None:
    """Given out, suspected and closed, each once; progress is neither."""
    story = (
        launched("ada", "bob", "eve")
        .assigns("ada", "t1-1:bob", "t1-2:eve")
        .progresses("t1-1")
        .progresses("t1-2")
        .progresses("t1-1")
    )
    count(story.finishes("t1-1").assigns_and_waits("ada", "t2-3:bob").loses("eve").cancelled())
    assert [since("ioa_tasks_assigned_total", mode=mode) for mode in ("async", "sync")] == [2, 1]
    assert [since("ioa_tasks_closed_total", outcome=outcome) for outcome in ("done", "failed", "cancelled")] == [1, 0, 2]
    assert (since("ioa_tasks_suspected_total"), since("ioa_groups_ended_total", reason="cancelled")) == (1, 1)


async def test_goals_are_counted_once_with_their_time(plane: Plane, since: Since) -> None:
    """From acceptance to the first result; publishing it again counts nothing, and neither does a result without a record."""
    await plane.accept()
    await plane.open(ADA, BOB)
    plane.clock.advance_to((await plane.state()).limits.deadline)
    await plane.fire_due()
    await plane.fire_due()
    result = await plane.results.get(GoalName(LOCAL, (await plane.state()).goal_id))
    assert result is not None and not await plane.ports.results.publish(result.model_copy(update={"content": "another"}))
    assert (result.reason, since("ioa_goals_ended_total", reason="deadline")) == (Reason.DEADLINE, 1)
    assert (since("ioa_goal_duration_seconds_count"), since("ioa_goal_duration_seconds_sum")) == (1, 3600)


async def test_a_goal_that_only_tries_the_way_is_not_counted(plane: Plane, since: Since) -> None:
    """However often a doctor tries whether goals get through, the share of goals that fail says nothing of it."""
    record = await plane.accept()
    probe = record.model_copy(update={"goal": record.goal.model_copy(update={"goal_id": GoalId("p"), "labels": {PROBE: "doctor"}})})
    await plane.goals.create(probe)
    ended = {"goal_id": "p", "user": LOCAL, "comm_id": probe.goal.comm_id, "finished_at": plane.clock.now()}
    result = GoalResult.model_validate({**ended, "reason": "deadline", "content": "", "turns": 0})
    assert await plane.ports.results.publish(result)
    assert [since("ioa_goals_ended_total", reason="deadline"), since("ioa_goal_duration_seconds_count")] == [0, 0]
