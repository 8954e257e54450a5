"""Tasks that name a stored team: how they end, and which processes can read them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ioa.group.events import Entry
from ioa.group.state import WaitingTask
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import SyncTaskAssignment, TaskOutcome, TaskSpec
from tests.unit.group.scenario import Scenario, launched


def task(name: str = "t1-a", *, team: str | None = "debate@3", uses: str = "") -> TaskSpec:
    """A task for bob."""
    used = (TaskId(uses),) if uses else ()
    return TaskSpec(task_id=TaskId(name), assignee=AgentId("bob"), task_desc="…", uses=used, team=team)


def given(*tasks: TaskSpec) -> Scenario:
    """A group in which ada has given out tasks."""
    return launched("ada", "bob", "eve").speaks("ada", SyncTaskAssignment(tasks=tasks))


def entry(story: Scenario) -> Entry:
    """The last entry of its log."""
    return Entry.of(story.log[-1], story.state, story.state.hearing)


def test_it_is_done_by_its_team_and_fails_by_its_assignee() -> None:
    """That no assignee answers in the team's place is a row of `test_rejection`."""
    story = given(task())
    assert story.fails("t1-a").outcome("t1-a") is TaskOutcome.FAILED
    assert story.nests("t1-a").nested_ends("t1-a").outcome("t1-a") is TaskOutcome.DONE


def test_one_that_waits_keeps_its_team() -> None:
    """It is served by it when what it uses is done."""
    story = given(task(team=None), task("t1-b", uses="t1-a"))
    waiting = story.state.task(TaskId("t1-b"))
    assert isinstance(waiting, WaitingTask)
    assert (waiting.team, story.finishes("t1-a").open("t1-b").team) == ("debate@3", "debate@3")


@pytest.mark.parametrize("team", ["", "debate@0", "debate@x", "a b", "../debate"])
def test_what_names_no_team_is_no_task(team: str) -> None:
    """It is refused where it is read, before anybody looks for it."""
    with pytest.raises(ValidationError):
        task(team=team)
