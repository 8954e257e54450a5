"""How busy an agent says that it is: all who search are told, and learn nothing by it that they were not to hear."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ioa.agent.busyness import load_of
from ioa.agent.history import GroupHistory
from ioa.group.state import ParentTask
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.load import Load
from tests.contract.agent_store.stories import sequenced
from tests.unit.agent.test_history import history_of
from tests.unit.group.scenario import COMM, Scenario, launched
from tests.unit.group.test_policy import A, B, C
from tests.unit.group.test_tasks_under_policy import scoped

NESTED = CommId("g_nested")


def told_to_all(story: Scenario) -> GroupHistory:
    """What each member of a group without a policy knows of it."""
    history = GroupHistory(COMM)
    for entry in sequenced(story):
        history.apply(entry)
    return history


def load(me: str, groups: Mapping[CommId, GroupHistory]) -> Load:
    """How busy an agent of four slots says that it is."""
    return load_of(AgentId(me), groups, 4)


def test_each_open_task_counts_that_does_not_wait_for_an_answer() -> None:
    """A task that asks has left its slot to others."""
    story = launched("ada", "bob").assigns("ada", "t1-1:bob", "t1-2:bob", "t1-3:ada")
    assert load("bob", {COMM: told_to_all(story)}) == Load(tasks=2, groups=1, slots=4)
    asking = story.task_asks("t1-1")
    assert load("bob", {COMM: told_to_all(asking)}) == Load(tasks=1, groups=1, slots=4)


@pytest.mark.parametrize("me", [A, B, C, "joe"])
def test_nobody_learns_by_it_who_has_a_task_that_not_all_heard_of(me: str) -> None:
    """It is the same before, while and after it is done, by whom ever, and when a nested team serves it."""
    idle = scoped()
    told = [idle, *(idle.assigns(A, f"t1-1:{one}") for one in (B, C)), idle.assigns(A, f"t1-1:{B}", f"t1-2:{B}")]
    told += [told[1].progresses("t1-1"), told[1].nests("t1-1"), told[1].finishes("t1-1")]
    assert {load(me, {COMM: history_of(story, me)}) for story in told} == {Load(tasks=1, groups=1, slots=4)}


def test_a_team_that_is_led_for_such_a_group_is_not_told() -> None:
    """Nor is what its leader does in it; for another group both are."""
    parent = ParentTask(comm_id=COMM, task_id=TaskId("t1-1"))
    nested = told_to_all(launched("bob", "zoe", parent=parent, depth=1).assigns("bob", "t1-1:bob"))
    hidden = {COMM: history_of(scoped().assigns(A, f"t1-1:{B}"), B), NESTED: nested}
    assert load(B, hidden) == Load(tasks=1, groups=1, slots=4)
    assert load("zoe", {NESTED: nested}) == Load(tasks=0, groups=1, slots=4)
    plain = {COMM: told_to_all(launched("ada", "bob").assigns("ada", "t1-1:bob")), NESTED: nested}
    assert load(B, plain) == Load(tasks=2, groups=2, slots=4)
