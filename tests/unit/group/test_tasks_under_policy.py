"""Tasks in the nodes of a policy: who gives them out and waits, who hears of them, and what ends them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ioa.group.effects import CancelSubgroup
from ioa.group.events import TaskHeard, TimerFired, encode_entry
from ioa.group.machine import legal_kinds, step
from ioa.group.policy.audience import seen_by, view_for
from ioa.group.policy.offer import offer
from ioa.group.state import Assigned, Awaiting, Elsewhere, Gathering, Paused
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    InformTaskResult,
    Pause,
    Payload,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from tests.unit.group.scenario import Scenario, launched_under, rejected, said, specs
from tests.unit.group.test_policy import CAST, A, B, C, group, policy_of
from tests.unit.group.test_visibility import entries, record

ADA, BOB, EVE = map(AgentId, (A, B, C))
WORK: Mapping[str, Any] = {"name": "work", "roles": ["a", "b"], "tasks": True, "max": 4}
LAST: Mapping[str, Any] = {"name": "last", "roles": ["a"]}
END_BY_SPEAKER: Mapping[str, Any] = {"exits": [{"to": "end", "by": "speaker"}]}


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


def test_the_floor_returns_to_who_gave_out_tasks_and_no_turn_of_the_node_is_used() -> None:
    """Both ways of giving out tasks, and to wait for them, cost turns of the group alone."""
    story = group(WORK)
    given = story.assigns_and_waits(A, f"t1-1:{B}", f"t1-2:{C}")
    assert given.state.course is not None
    assert (given.phase, given.state.turns_taken, given.state.course.turns) == ("assigned", 1, 0)
    done = given.finishes("t1-1").finishes("t1-2")
    assert (done.holder, done.state.turn, done.state.course) == (A, 2, given.state.course)
    handed = done.assigns(A, f"t2-1:{C}")
    assert handed.phase == "handing"
    acknowledged = handed.progresses("t2-1")
    paused = acknowledged.pauses(A, "t2-1")
    assert (acknowledged.holder, paused.phase) == (A, "paused")
    said_after = paused.finishes("t2-1").speaks(A, Discussion(content="Here it is."))
    assert said_after.state.course is not None
    assert (said_after.holder, said_after.state.course.turns, said_after.state.turns_taken) == (B, 1, 4)


def test_tasks_wait_for_each_other_as_in_any_group() -> None:
    """What is done starts the next one, and what fails cancels it."""
    story = group(WORK).assigns_and_waits(A, f"t1-1:{B}", f"t1-2:{C}:t1-1", f"t1-3:{C}:t1-2")
    assert story.waiting() == ("t1-2", "t1-3")
    failed = story.finishes("t1-1").fails("t1-2")
    assert (failed.outcome("t1-3"), failed.holder) == (TaskOutcome.CANCELLED, A)


def test_who_waits_and_is_gone_is_passed_over_as_silent() -> None:
    """Its turn counts, so that every cap is reached; if nobody else is there it has the floor all the same."""
    story = group(WORK).assigns_and_waits(A, f"t1-1:{B}").loses(A).finishes("t1-1")
    assert story.state.course is not None
    assert (story.holder, story.state.course.turns, story.state.silences) == (B, 1, 1)
    alone = group(WORK).assigns_and_waits(A, f"t1-1:{C}").loses(A, B).finishes("t1-1")
    assert (alone.holder, alone.state.silences) == (A, 0)


def test_timers_alone_end_what_nobody_does() -> None:
    """A lease that runs out twice fails a task; an answer, and a pause, are waited for only so long."""
    story = group(WORK).assigns_and_waits(A, f"t1-1:{B}")
    assert story.timers(2).outcome("t1-1") is TaskOutcome.FAILED
    assert story.timers(2).holder == A
    handed = group(WORK).assigns(A, f"t1-1:{B}")
    due = handed.timers(2)
    assert (due.holder, due.state.turn) == (A, 2)
    lost = group(WORK).assigns_and_waits(A, f"t1-1:{B}").loses(B)
    assert lost.open("t1-1").suspect and lost.timer().outcome("t1-1") is TaskOutcome.FAILED


def test_a_member_that_is_lost_while_others_speak_or_decide_has_its_tasks_suspected() -> None:
    """Wherever the group is by then."""
    together = {"name": "vote", "roles": ["a", "c"], "turns": "together"}
    story = group({**WORK, "roles": ["a"], "max": 1, "then": "vote"}, together).assigns(A, f"t1-1:{B}").progresses("t1-1")
    gathered = story.speaks(A, Discussion(content="Now you."))
    assert isinstance(gathered.state.stage, Gathering)
    assert gathered.loses(B).open("t1-1").suspect
    finished = gathered.finishes("t1-1")
    assert (finished.outcome("t1-1"), finished.phase) == (TaskOutcome.DONE, "gathering")


def test_tasks_go_on_while_the_group_goes_on() -> None:
    """A report, a question and its answer come in any node and phase, also while the user is asked."""
    story = group({**WORK, "roles": ["a"], "max": 1, "then": "last"}, {**LAST, "asks": True, "tasks": True})
    asked = story.assigns(A, f"t1-1:{B}").progresses("t1-1").speaks(A, Discussion(content="On.")).asks(A)
    assert isinstance(asked.state.stage, Awaiting)
    answered = asked.task_asks("t1-1").answered("yes", "t1-1")
    assert answered.open("t1-1").question is None and isinstance(answered.state.stage, Awaiting)
    decided = asked.task_asks("t1-1").speaks(A, Decision(task_id=TaskId("t1-1"), choice="yes"))
    assert decided.open("t1-1").question is None
    assert answered.finishes("t1-1").answered("no").holder == A


def test_a_speaker_cannot_end_it_while_tasks_are_open_that_it_knows() -> None:
    """It is told which, and offered the end when they are done."""
    story = group({**WORK, **END_BY_SPEAKER}).assigns(A, f"t1-1:{B}").progresses("t1-1")
    for payload in (ConcludeGroupDiscussion(), Discussion(content="Done.", go="end")):
        refused = story.refusal(said(A, payload, story.state.turn, story.now))
        assert (refused.code, "t1-1" in refused.message) == ("tasks_open", True)
    assert story.policy is not None
    before, after = (offer(story.policy, one.state, ADA) for one in (story, story.finishes("t1-1")))
    assert before is not None and after is not None
    assert (before.go, after.go) == ((), ("end",))


@pytest.mark.parametrize("ends", ["leader", "last"])
def test_an_end_that_comes_by_itself_cancels_what_is_open(ends: str) -> None:
    """A rule does not wait for tasks; neither do a judge and a watcher."""
    story = group({**WORK, "roles": ["a"], "max": 1}, ends=ends).assigns(A, f"t1-1:{B}").progresses("t1-1").nests("t1-1")
    over = story.speaks(A, Discussion(content="That is all."))
    assert over.outcome("t1-1") is TaskOutcome.CANCELLED
    assert [effect.subgroup for effect in over.effects if isinstance(effect, CancelSubgroup)] == ["sub"]


def test_who_is_removed_has_its_tasks_taken() -> None:
    """What waits for them is cancelled with them."""
    vote = {"name": "vote", "roles": ["a"], "form": {"out": "member"}, "max": 1}
    way = {"to": "last", "when": {"field": "out"}, "remove": {"field": "out"}}
    story = group({**WORK, "roles": ["a"], "max": 1, "then": "vote"}, {**vote, "exits": [way]}, LAST)
    given = story.assigns(A, f"t1-1:{B}", f"t1-2:{C}:t1-1").progresses("t1-1").speaks(A, Discussion(content="On."))
    removed = given.speaks(A, Discussion(content="Bob.", fields={"out": B}))
    assert (removed.outcome("t1-1"), removed.outcome("t1-2")) == (TaskOutcome.CANCELLED, TaskOutcome.CANCELLED)


def test_a_node_that_is_begun_anew_takes_back_its_tasks() -> None:
    """What was said since is struck, and what was given out since is done by nobody."""
    watcher = {"role": "c", "node": "last", "may": "go", "go": ["work"]}
    story = group({**WORK, "roles": ["a"], "max": 1, "then": "last"}, {**LAST, "max": 3}, roles={"c": {}}, watchers=[watcher])
    given = (
        story.assigns(A, f"t1-1:{B}").progresses("t1-1").speaks(A, Discussion(content="On.")).speaks(A, Discussion(content="Hm."))
    )
    anew = given.speaks(C, Decision(choice="work"))
    assert anew.state.course is not None
    assert (anew.outcome("t1-1"), anew.state.course.struck) == (TaskOutcome.CANCELLED, ((1, 3),))


def test_results_are_rejected_by_who_speaks() -> None:
    """Before the rest of its message, so that it may give the task out again."""
    story = group(WORK).assigns_and_waits(A, f"t1-1:{B}").finishes("t1-1")
    again = story.speaks(A, SyncTaskAssignment(tasks=specs((f"t2-1:{C}",)), rejects=rejected("t1-1")))
    assert (again.outcome("t1-1"), isinstance(again.state.stage, Assigned)) == (TaskOutcome.REJECTED, True)
    said_so = story.speaks(A, Discussion(content="No.", rejects=rejected("t1-1")))
    assert said_so.outcome("t1-1") is TaskOutcome.REJECTED


def test_what_is_not_offered_is_refused() -> None:
    """Where the node lacks `tasks`, before the words that open it, to people and in words that a guard refuses."""
    given: Payload = AsyncTaskAssignment(tasks=specs((f"t1-1:{B}",)))
    opening = {"opens": {"role": "a", "say": "Go."}}
    for node in ({**WORK, "tasks": False}, {**WORK, **opening}):
        story = group(node)
        assert story.refusal(said(A, given, 1)).code == "off_course"
        assert story.refusal(said(A, Pause(triggers=(TaskId("t1-1"),)), 1)).code == "off_course"
        assert AsyncTaskAssignment not in legal_kinds(story.state, ADA, story.now, story.policy)
    assert group({**WORK, "guards": [{"without": ["do t1"]}]}).refusal(said(A, given, 1)).code == "guarded"
    person = group({**WORK, "then": "y"}, {"name": "y", "roles": ["b"]}, roles={"b": {"human": True}})
    assert person.refusal(said(A, given, 1)).code == "bad_assignee"


def test_of_a_task_those_are_told_who_heard_it_given_out_and_who_does_it() -> None:
    """In whichever node the group is when it ends; others see neither the task nor that anybody waits for it."""
    story = scoped()
    log = entries((*story.log, *story.assigns_and_waits(A, f"t1-1:{C}").finishes("t1-1").log[1:]), story.policy)  # type: ignore[arg-type]
    assert [entry.audience for entry in log[1:]] == [(A, B, C), (A, B, C)]
    assert log[1].state.tasks[0].earshot == (0, 1, 2)
    policy, joe = story.policy, AgentId("joe")
    assert policy is not None
    assert (seen_by(policy, log[1].state, joe).tasks, isinstance(seen_by(policy, log[1].state, joe).stage, Elsewhere)) == ((), True)
    assert [task.task_id for task in seen_by(policy, log[1].state, EVE).tasks] == ["t1-1"]
    assert isinstance(seen_by(policy, log[1].state, EVE).stage, Elsewhere)
    assert isinstance(seen_by(policy, log[1].state, BOB).stage, Assigned)


def test_who_does_a_task_is_noticed_when_it_is_taken_from_it_unheard() -> None:
    """Else it would go on with what is long over."""
    story = scoped(max=1).assigns(A, f"t1-1:{C}").progresses("t1-1")
    cut = said(A, Discussion(content="On."), story.state.turn, story.now)
    last = story.state.model_copy(update={"limits": story.state.limits.model_copy(update={"max_turns": 2})})
    after = step(last, cut, story.policy)
    assert (after.audience, after.noticed) == ((A, B), (C,))
    assert after.state.task(TaskId("t1-1")) is not None and not after.state.open_tasks


def test_tasks_of_which_somebody_was_told_nothing_are_none_to_it() -> None:
    """It cannot use, reject, wait for or report on them, is kept by them from no end, and gives none to use to who may not know."""
    story = scoped(max=1).assigns(A, f"t1-1:{B}").progresses("t1-1").speaks(A, Discussion(content="On."))
    turn = story.state.turn
    assert (story.holder, turn) == (C, 3)
    wrong: Mapping[str, Payload] = {
        "unknown_task": AsyncTaskAssignment(tasks=specs((f"t3-1:{C}:t1-1",))),
        "bad_trigger": Pause(triggers=(TaskId("t1-1"),)),
        "bad_reject": Discussion(content="No.", rejects=rejected("t1-1")),
    }
    assert {story.refusal(said(C, payload, turn, story.now)).code for payload in wrong.values()} == set(wrong)
    report = InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="Mine.")
    assert story.refusal(said(C, report, 1, story.now)).code == "unknown_task"
    assert story.refusal(said("joe", report, 1, story.now)).message == story.refusal(said(C, report, 1, story.now)).message
    assert story.policy is not None and Pause not in legal_kinds(story.state, EVE, story.now, story.policy)
    unheard = scoped().assigns_and_waits(A, f"t1-1:{B}").finishes("t1-1")
    refused = unheard.refusal(said(A, AsyncTaskAssignment(tasks=specs((f"t2-1:{C}:t1-1",))), 2, unheard.now))
    assert (refused.code, C in refused.message) == ("bad_addressee", True)


def test_what_time_renews_of_tasks_is_shown_to_who_was_told_of_them() -> None:
    """A timer reaches all, and says which leases it renews."""
    story = scoped(max=1).assigns(A, f"t1-1:{B}").progresses("t1-1").after(29)
    heard = TimerFired(at=story.now, heard=(TaskHeard(task_id=TaskId("t1-1"), at=story.now),))
    assert story.policy is not None
    log = entries((*story.log, heard), story.policy)
    told = {name: view_for(story.policy, log[-1], AgentId(name)).event for name in (A, B, C)}
    assert (told[A], told[C]) == (heard, heard.model_copy(update={"heard": ()}))


def test_a_pause_shows_of_its_triggers_what_a_member_knows() -> None:
    """Whoever hears that somebody waits learns nothing of tasks that were given out elsewhere."""
    nodes = ({**WORK, "heard_by": ["a"], "roles": ["a"], "max": 1, "then": "talk"}, {"name": "talk", "roles": ["a"], "tasks": True})
    story = launched_under(policy_of(*nodes, roles={"b": {}, "c": {}}), CAST, A, B, C)
    paused = story.assigns(A, f"t1-1:{B}").progresses("t1-1").speaks(A, Discussion(content="On.")).pauses(A, "t1-1")
    assert paused.policy is not None
    seen = seen_by(paused.policy, paused.state, EVE).stage
    assert isinstance(seen, Paused)
    assert seen.triggers == ()


def test_the_leader_concludes_with_what_tasks_have_come_to() -> None:
    """When nothing is open an end may hold the conclusion, as without tasks."""
    story = group({**WORK, **END_BY_SPEAKER}).assigns_and_waits(A, f"t1-1:{B}").finishes("t1-1")
    ended = story.speaks(A, ConcludeGroupDiscussion(conclusion=Conclusion(content="Ten.")))
    assert ended.phase == "concluded"


def test_what_has_left_the_state_is_counted_for_who_was_told_of_it() -> None:
    """Others see no number of it, and are answered about it as about what never was."""
    story = scoped(max=9)
    for turn in range(1, 41):
        story = story.assigns_and_waits(A, f"t{turn}-1:{B}").finishes(f"t{turn}-1")
    policy, joe = story.policy, AgentId("joe")
    assert policy is not None
    assert [(one.assignee, one.done, one.earshot) for one in story.state.folded] == [(B, 8, (0, 1))]
    assert seen_by(policy, story.state, BOB).folded == story.state.folded
    assert (seen_by(policy, story.state, joe).folded, seen_by(policy, story.state, joe).tasks) == ((), ())
    gone, never = (InformTaskResult(task_id=TaskId(one), task_conclusion="Mine.") for one in ("t1-1", "t99-1"))
    codes = [[story.refusal(said(who, one, 1, story.now)).code for one in (gone, never)] for who in ("joe", B)]
    assert codes == [["unknown_task", "unknown_task"], ["task_closed", "unknown_task"]]
