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
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import AsyncTaskAssignment, TaskOutcome, TaskSpec
from tests.unit.agent.rules.group_play import OWNER, GroupPlay, card, charter_of, planned


def given(
    name: str,
    desc: str = "do it",
    said: str = "done",
    outcome: TaskOutcome = TaskOutcome.DONE,
    files: Sequence[Artifact] = (),
    turn: int = 1,
) -> TaskRecord:
    """A task that was given out for a planned one and has ended."""
    spec = TaskSpec(task_id=TaskId(f"t{turn}-{name}"), assignee=AgentId("a"), task_desc=desc)
    return TaskRecord(spec, outcome, said, tuple(files))


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


def test_a_result_that_one_of_several_quotes_is_not_shown_again() -> None:
    """Whichever of those that build on it, where the plan has it stand behind them."""
    plan = [planned("p1", "a", uses=("p3",)), planned("p2", "a", uses=("p3",)), planned("p3", "a")]
    said = {"p1": "A bar.", "p2": "The figure:\n\ntotal: 7\n\nThat is all.", "p3": "total: 7"}
    content = conclude(view_of(plan, [given(name, said=text) for name, text in said.items()])).content
    assert (content.count("total: 7"), content.count("A bar.")) == (1, 1)
