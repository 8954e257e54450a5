"""Tasks in the nodes of a policy: who gives them out and waits, who hears of them, and what ends them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ioa.group.events import TaskHeard, TimerFired, encode_entry
from ioa.group.policy.visibility import seen_by, view_for
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    Discussion,
    InformTaskResult,
    TaskSpec,
)
from tests.unit.group.scenario import Scenario, launched_under, said
from tests.unit.group.test_policy import A, B, C, policy_of
from tests.unit.group.test_visibility import entries, record

ADA, BOB, EVE = map(AgentId, (A, B, C))
WORK: Mapping[str, Any] = {"name": "work", "roles": ["a", "b"], "tasks": True, "max": 4}


def scoped(**more: Any) -> Scenario:
    """Ada and Bob work where Eve and Joe hear nothing; Eve judges in the end, where all hear all."""
    nodes = ({**WORK, "heard_by": "node", "then": "judge", **more}, {"name": "judge", "roles": ["c"], "tasks": True})
    cast = {"a": [A], "b": [B], "c": [C], "d": ["joe"]}
    return launched_under(policy_of(*nodes, roles={"d": {}}), cast, A, B, C, "joe")


def test_who_is_not_told_of_a_task_does_not_see_that_a_team_serves_it() -> None:
    """Neither by what it is shown nor by how that is written, which the assignee reads as it is."""
    shown: dict[str, list[list[bytes]]] = {A: [], "joe": []}
    nodes = ({**WORK, "heard_by": "node", "max": 1, "then": "talk"}, {"name": "talk", "roles": ["c", "d"], "max": 2})
    begun = launched_under(policy_of(*nodes, roles={"d": {}}), {"a": [A], "b": [B], "c": [C], "d": ["joe"]}, A, B, C, "joe")
    for team in (None, "debate"):
        task = TaskSpec(task_id=TaskId("t1-1"), assignee=BOB, task_desc="…", team=team)
        given = begun.speaks(A, AsyncTaskAssignment(tasks=(task,))).progresses("t1-1")
        story = given.speaks(A, Discussion(content="Well.")).speaks(C, Discussion(content="All hear this, and it is open yet."))
        assert story.policy is not None
        log = entries(story.log, story.policy)
        for member, seen in shown.items():
            seen.append([encode_entry(view).data for view in record(story.policy, log, AgentId(member))])
    assert shown["joe"][0] == shown["joe"][1] and shown[A][0] != shown[A][1]


def test_view_of_a_timer_names_no_task() -> None:
    """A timer reaches all members of a group with hidden tasks, without the tasks whose leases it renews."""
    story = scoped(max=1).assigns(A, f"t1-1:{B}").progresses("t1-1").after(29)
    heard = TimerFired(at=story.now, heard=(TaskHeard(task_id=TaskId("t1-1"), at=story.now),))
    assert story.policy is not None
    log = entries((*story.log, heard), story.policy)
    told = {name: view_for(story.policy, log[-1], AgentId(name)).event for name in (A, B, C)}
    assert list(told.values()) == [heard.model_copy(update={"heard": ()})] * 3


def test_task_that_has_left_the_state_is_answered_by_the_turn_of_its_id() -> None:
    """A member whose view is restricted sees no number of such tasks, and is answered as about any id of an earlier turn."""
    story = scoped(max=9)
    for turn in range(1, 41):
        story = story.assigns_and_waits(A, f"t{turn}-1:{B}").finishes(f"t{turn}-1")
    policy, joe = story.policy, AgentId("joe")
    assert policy is not None
    assert [story.state.folded, *(seen_by(policy, story.state, one).folded for one in (BOB, joe))] == [8, 0, 0]
    assert seen_by(policy, story.state, joe).tasks == ()
    gone, never = (InformTaskResult(task_id=TaskId(one), task_conclusion="Mine.") for one in ("t1-1", "t99-1"))
    codes = [[story.refusal(said(who, one, 1, story.now)).code for one in (gone, never)] for who in ("joe", B)]
    assert codes == [["task_closed", "unknown_task"]] * 2
