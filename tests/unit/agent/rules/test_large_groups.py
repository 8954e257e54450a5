"""Whoever plans thousands of tasks, or has reports and files by the hundred, takes a leader without a model no time from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from ioa.agent.rules.merging import conclude
from ioa.agent.rules.turns import next_utterance
from ioa.group.events import MemberLost
from ioa.group.state import PlannedTask
from ioa.ports.brain import GroupView, TaskRecord
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import AsyncTaskAssignment, TaskOutcome, TaskSpec
from tests.unit.agent.rules.group_play import OWNER, GroupPlay, card, charter_of, planned


def view_of(plan: Sequence[PlannedTask], tasks: Sequence[TaskRecord], **charter: object) -> GroupView:
    """What the owner knows of a group with these tasks."""
    return replace(GroupPlay(charter_of(plan, **charter)).view(OWNER), tasks=tuple(tasks))  # type: ignore[arg-type]


def test_as_many_are_given_out_at_once_as_a_message_holds() -> None:
    """Whoever is gone that they were planned for, and the others in the next turn."""
    play = GroupPlay(charter_of([planned(f"p{number}", "gone", "count words") for number in range(40)], [card("m", "count words")]))
    play.apply(MemberLost(at=play.now, agent_id=AgentId("gone")))
    play.now += timedelta(minutes=2)
    first = next_utterance(play.view(OWNER))
    assert isinstance(first, AsyncTaskAssignment)
    records = [TaskRecord(task, TaskOutcome.DONE, "done", ()) for task in first.tasks]
    second = next_utterance(replace(play.view(OWNER), tasks=tuple(records)))
    assert isinstance(second, AsyncTaskAssignment)
    assert [task.task_id for task in (*first.tasks, *second.tasks)] == [f"t1-p{number}" for number in range(40)]


def test_a_task_is_an_attempt_at_one_that_was_planned() -> None:
    """Ids of groups of level 0 are cut: one long report stood in an answer once for each that begins alike."""
    plan = [planned(f"{'x' * 62}{number}", "a", "do it") for number in range(10, 20)]
    spec = TaskSpec(task_id=TaskId(f"{'x' * 62}-2"), assignee=AgentId("a"), task_desc="do it")
    told = conclude(view_of(plan, [TaskRecord(spec, TaskOutcome.FAILED, "a long report", ())])).content
    assert told.count("a long report") == 1
