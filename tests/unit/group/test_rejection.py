"""Every reason to refuse an event, and that a refusal says what would be legal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Literal

import pytest

from ioa.group.events import (
    CancelRequested,
    Event,
    GroupLaunched,
    MemberJoined,
    MemberReturned,
    SubgroupClosed,
    SubgroupOpened,
    TimerFired,
)
from ioa.group.machine import step
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import MAX_MEMBERS, GroupState
from ioa.group.tasks import MAX_OPEN_TASKS
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Decision,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Pause,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.policy import FormField, Guard, Node, Opening, Policy, Role, Turns
from tests.unit.group.scenario import (
    START,
    Scenario,
    card,
    charter,
    launched,
    launched_under,
    limits,
    rejected,
    said,
    specs,
)

ADA = AgentId("ada")
Case = tuple[Scenario | None, Event]


def _to(speaker: str) -> Discussion:
    return Discussion(content="…", next_speaker=AgentId(speaker))


def _tasked() -> Scenario:
    return launched("ada", "bob", "eve").assigns("ada", "t1-1:bob").progresses("t1-1")


def _full(tasks: int) -> Scenario:
    """A group with this number of open tasks."""
    story = _tasked()
    task = story.open("t1-1")
    opened = tuple(task.model_copy(update={"task_id": TaskId(f"t1-{number}")}) for number in range(tasks))
    return replace(story, state=story.state.model_copy(update={"tasks": opened}))


def _result(task_id: str = "t1-1") -> InformTaskResult:
    return InformTaskResult(task_id=TaskId(task_id), task_conclusion="…")


def _last_turns(left: int) -> Scenario:
    return launched("ada", "bob", max_turns=1 + left).assigns("ada", "t1-1:bob").progresses("t1-1")


def _hurried() -> Scenario:
    task = specs(("t1-1:bob",))[0].model_copy(update={"timeout": timedelta(seconds=10)})
    return launched("ada", "bob").speaks("ada", SyncTaskAssignment(tasks=(task,)))


def _opened(subgroup: str) -> SubgroupOpened:
    return SubgroupOpened(at=START, task_id=TaskId("t1-1"), by=AgentId("bob"), subgroup=CommId(subgroup))


_FOR_A_TEAM = TaskSpec(task_id=TaskId("t1-1"), assignee=AgentId("bob"), task_desc="…", team="debate@3")
_QUESTION = (FormField(name="size", kind="number"),)

CASES: dict[RejectionCode, list[Callable[[], Case]]] = {
    RejectionCode.NO_GROUP: [lambda: (None, CancelRequested(at=START)), lambda: (None, said("ada", _to("bob"), 1))],
    RejectionCode.GROUP_EXISTS: [
        lambda: (launched("ada"), GroupLaunched(at=START, charter=charter("ada", limits=limits()))),
    ],
    RejectionCode.GROUP_ENDED: [lambda: (launched("ada").cancelled(), said("ada", ConcludeGroupDiscussion(), 1))],
    RejectionCode.WRONG_PHASE: [
        lambda: (launched("ada", "bob").announces("ada"), said("ada", _to("bob"), 2)),
        lambda: (_tasked().out_of_budget(), said("bob", _result(), 1)),
    ],
    RejectionCode.WRONG_GROUP: [
        lambda: (launched("ada", "bob"), said("ada", _to("bob"), 1, comm_id=CommId("elsewhere"))),
    ],
    RejectionCode.NOT_A_MEMBER: [
        lambda: (launched("ada", "bob"), said("mallory", _to("bob"), 1)),
        lambda: (_tasked(), said("mallory", _result(), 1)),
        lambda: (
            None,
            GroupLaunched(at=START, charter=charter("ada", limits=limits()).model_copy(update={"owner": AgentId("mallory")})),
        ),
    ],
    RejectionCode.NOT_YOUR_FLOOR: [
        lambda: (launched("ada", "bob"), said("bob", _to("ada"), 1)),
        lambda: (launched("ada", "bob").assigns("ada", "t1-1:bob"), said("ada", _to("bob"), 1)),
    ],
    RejectionCode.STALE_TURN: [
        lambda: (launched("ada", "bob").says("ada", to="bob").says("bob", to="ada"), said("ada", _to("bob"), 1)),
        lambda: (launched("ada", "bob"), said("ada", _to("bob"), 2)),
        lambda: (_tasked(), said("bob", _result(), 2)),
    ],
    RejectionCode.REPETITION: [
        lambda: (
            launched("ada", "bob").says("ada", to="bob").timer(),
            said("ada", Discussion(content="Point 1!", next_speaker=AgentId("bob")), 3),
        ),
        lambda: (_counting(), said("ada", AsyncTaskAssignment(tasks=(_count("t2-2"),)), 2)),
    ],
    RejectionCode.BAD_NEXT_SPEAKER: [
        lambda: (launched("ada", "bob"), said("ada", _to("ada"), 1)),
        lambda: (launched("ada", "bob"), said("ada", _to("mallory"), 1)),
        lambda: (launched("ada", "bob").loses("bob"), said("ada", _to("bob"), 1, at=START + timedelta(seconds=60))),
        lambda: (launched("ada", "bob"), said("ada", _to_all("bob", "bob"), 1)),
        lambda: (launched("ada", "bob", "eve", max_turns=2), said("ada", _to_all("bob", "eve"), 1)),
        lambda: (_asking(), said("bob", _to("ada"), 2)),
    ],
    RejectionCode.BAD_ASSIGNEE: [
        lambda: (launched("ada", "bob"), said("ada", AsyncTaskAssignment(tasks=specs(("t1-1:mallory",))), 1)),
        lambda: (
            launched("ada", "bob").loses("bob"),
            said("ada", AsyncTaskAssignment(tasks=specs(("t1-1:bob",))), 1, at=START + timedelta(seconds=60)),
        ),
        lambda: (launched("ada", "bob"), said("ada", AsyncTaskAssignment(tasks=specs(("t1-1:ada", "t1-2:mallory"))), 1)),
    ],
    RejectionCode.BAD_TASK_ID: [
        lambda: (_tasked(), said("ada", AsyncTaskAssignment(tasks=specs(("t1-1:bob",))), 2)),
        lambda: (_tasked(), said("ada", AsyncTaskAssignment(tasks=specs(("t2-1:bob", "sum:eve"))), 2)),
    ],
    RejectionCode.BAD_TEAM: [
        lambda: (
            launched("ada", "bob").speaks("ada", AsyncTaskAssignment(tasks=(_FOR_A_TEAM,))),
            said("bob", InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="I did it."), 1),
        ),
    ],
    RejectionCode.TOO_MANY_TASKS: [
        lambda: (_full(MAX_OPEN_TASKS), said("ada", AsyncTaskAssignment(tasks=specs(("t2-9:bob",))), 2)),
        lambda: (_full(MAX_OPEN_TASKS - 1), said("ada", SyncTaskAssignment(tasks=specs(("t2-8:bob", "t2-9:bob"))), 2)),
    ],
    RejectionCode.UNKNOWN_TASK: [
        lambda: (_tasked(), said("bob", _result("t1-7"), 1)),
        lambda: (_tasked(), said("ada", AsyncTaskAssignment(tasks=(_using("t1-7"),)), 2)),
        lambda: (_tasked(), SubgroupOpened(at=START, task_id=TaskId("t1-7"), by=AgentId("bob"), subgroup=CommId("sub"))),
    ],
    RejectionCode.NOT_YOUR_TASK: [
        lambda: (_tasked(), said("eve", _result(), 1)),
        lambda: (_tasked(), SubgroupOpened(at=START, task_id=TaskId("t1-1"), by=AgentId("eve"), subgroup=CommId("sub"))),
        lambda: (_tasked(), _nested_end("sub")),
    ],
    RejectionCode.TASK_CLOSED: [
        lambda: (_tasked().finishes("t1-1"), said("bob", _result(), 1)),
        lambda: (_tasked().finishes("t1-1"), said("bob", InformTaskProgress(task_id=TaskId("t1-1"), number=2), 1)),
        lambda: (_tasked().nests("t1-1").finishes("t1-1").nested_ends("t1-1"), _nested_end("sub")),
    ],
    RejectionCode.TOO_LITTLE_LEFT: [
        lambda: (_last_turns(1), _opened("sub")),
    ],
    RejectionCode.TOO_LATE: [
        lambda: (launched("ada", "bob"), said("ada", _to("bob"), 1, at=START + timedelta(days=1))),
        lambda: (_tasked(), _opened("sub").model_copy(update={"at": START + timedelta(days=1)})),
        lambda: (_hurried(), said("bob", _result(), 1, at=START + timedelta(seconds=10))),
    ],
    RejectionCode.STALE_PROGRESS: [
        lambda: (_tasked(), said("bob", InformTaskProgress(task_id=TaskId("t1-1"), number=1), 1)),
    ],
    RejectionCode.BAD_TRIGGER: [lambda: (_tasked(), said("ada", Pause(triggers=(TaskId("t1-1"), TaskId("t1-7"))), 2))],
    RejectionCode.TASKS_OPEN: [lambda: (_tasked(), said("ada", ConcludeGroupDiscussion(), 2))],
    RejectionCode.BAD_REJECT: [
        lambda: (_tasked(), said("ada", _rejecting("t1-1"), 2)),
        lambda: (_tasked(), said("ada", _rejecting("t1-7"), 2)),
        lambda: (launched("ada", "bob").assigns("ada", "t1-1:bob").fails("t1-1"), said("ada", _rejecting("t1-1"), 2)),
        lambda: (_chained(), said("ada", _rejecting("t1-2"), 2)),
    ],
    RejectionCode.BAD_USES: [
        lambda: (launched("ada", "bob"), said("ada", SyncTaskAssignment(tasks=specs(("t1-1:bob:t1-1",))), 1)),
        lambda: (
            launched("ada", "bob"),
            said("ada", AsyncTaskAssignment(tasks=specs(("t1-1:bob:t1-3", "t1-2:bob:t1-1", "t1-3:ada:t1-2"))), 1),
        ),
    ],
    RejectionCode.TASK_WAITING: [
        lambda: (_chained(), said("eve", InformTaskProgress(task_id=TaskId("t1-2"), number=1), 1)),
        lambda: (_chained(), said("eve", _result("t1-2"), 1)),
    ],
    RejectionCode.SUBGROUP_EXISTS: [
        lambda: (
            _tasked().nests("t1-1"),
            SubgroupOpened(at=START, task_id=TaskId("t1-1"), by=AgentId("bob"), subgroup=CommId("other")),
        ),
    ],
    RejectionCode.TOO_DEEP: [
        lambda: (launched("ada", "bob", depth=2, max_depth=2), said("ada", AsyncTaskAssignment(tasks=(_FOR_A_TEAM,)), 1)),
        lambda: (
            launched("ada", "bob", depth=2, max_depth=2).assigns("ada", "t1-1:bob"),
            SubgroupOpened(at=START, task_id=TaskId("t1-1"), by=AgentId("bob"), subgroup=CommId("sub")),
        ),
    ],
    RejectionCode.BAD_FORM: [
        lambda: (launched("ada", "bob"), said("ada", Discussion(content="…", next_speaker=AgentId("bob"), fields={"x": 1}), 1)),
        lambda: (_asking(), said("bob", Discussion(content="…"), 2)),
        lambda: (_asking(), said("bob", Discussion(content="…", fields={"size": "three"}), 2)),
    ],
    RejectionCode.BAD_DECISION: [lambda: (_deciding(), said("ada", Decision(choice="nobody"), 1))],
    RejectionCode.BAD_EXIT: [lambda: (_led(), said("ada", Discussion(content="…", go="nowhere"), 1))],
    RejectionCode.BAD_ADDRESSEE: [
        lambda: (launched("ada", "bob"), said("ada", Discussion(content="…", next_speaker=AgentId("bob"), to=_BOB), 1)),
        lambda: (_asking(), said("bob", Discussion(content="…", fields={"size": 3}, to=_BOB), 2)),
        lambda: (_led(), said("ada", Discussion(content="…", to=_BOB), 1)),
    ],
    RejectionCode.BAD_OPENING: [lambda: (_led(say="Go."), said("ada", Discussion(content="…"), 1))],
    RejectionCode.GUARDED: [lambda: (_led(guards=("not_empty",)), said("ada", Discussion(content=" "), 1))],
    RejectionCode.OFF_COURSE: [lambda: (_led(), said("ada", ConcludeGroupDiscussion(), 1))],
    RejectionCode.TOO_MANY_MEMBERS: [
        lambda: (launched(*[f"m{one}" for one in range(MAX_MEMBERS)]), MemberJoined(at=START, card=card("zoe"), by=_M0, turn=1))
    ],
    RejectionCode.NOTHING_DUE: [lambda: (launched("ada"), TimerFired(at=START))],
    RejectionCode.NO_CHANGE: [lambda: (launched("ada"), MemberReturned(at=START, agent_id=AgentId("ada")))],
}


_BOB: tuple[AgentId, ...] = (AgentId("bob"),)
_M0: AgentId = AgentId("m0")


def _to_all(*agents: str) -> Discussion:
    return Discussion(content="…", next_speakers=tuple(map(AgentId, agents)))


def _asking() -> Scenario:
    return launched("ada", "bob").speaks("ada", _to_all("bob").model_copy(update={"question": _QUESTION}))


def _deciding() -> Scenario:
    node = Node(name="x", roles=("a",), turns=Turns(mode="ask", by="a"), max=3)
    return launched_under(Policy(roles=(Role(name="a"),), nodes=(node,)), {"a": ["ada", "bob"]}, "ada", "bob")


def _led(say: str = "", guards: Sequence[Literal["not_empty"]] = ()) -> Scenario:
    held_to = tuple([Guard(kind=kind) for kind in guards])
    node = Node(name="x", roles=("a",), opens=Opening(role="a", say=say), guards=held_to)
    return launched_under(Policy(roles=(Role(name="a"),), nodes=(node,)), {"a": ["ada"]}, "ada")


def _rejecting(*task_ids: str) -> Discussion:
    return Discussion(content="…", next_speaker=AgentId("bob"), rejects=rejected(*task_ids))


def _chained() -> Scenario:
    return launched("ada", "bob", "eve").assigns("ada", "t1-1:bob", "t1-2:eve:t1-1").progresses("t1-1")


def _count(task_id: str) -> TaskSpec:
    return TaskSpec(task_id=TaskId(task_id), assignee=AgentId("bob"), task_desc="Count the sheep on the meadow.")


def _counting() -> Scenario:
    return launched("ada", "bob", "eve").speaks("ada", AsyncTaskAssignment(tasks=(_count("t1-1"),))).progresses("t1-1")


def _using(task_id: str) -> TaskSpec:
    return TaskSpec(task_id=TaskId("t2-2"), assignee=AgentId("eve"), task_desc="…", uses=(TaskId(task_id),))


def _nested_end(subgroup: str) -> SubgroupClosed:
    return SubgroupClosed(at=START, task_id=TaskId("t1-1"), subgroup=CommId(subgroup), reason=Reason.CONCLUDED, content="…")


def test_each_code_has_a_case() -> None:
    """No code exists that nothing is refused with."""
    assert set(CASES) == set(RejectionCode)


@pytest.mark.parametrize(
    ("code", "case"),
    [(code, case) for code, cases in CASES.items() for case in cases],
    ids=[f"{code}-{number}" for code, cases in CASES.items() for number in range(len(cases))],
)
def test_an_illegal_event_is_refused_with_its_code(code: RejectionCode, case: Callable[[], Case]) -> None:
    """Each wrong event meets the code that says what is wrong with it, and the state is left as it was."""
    story, event = case()
    state: GroupState | None = story.state if story else None
    before = state.model_dump_json() if state else None
    with pytest.raises(IllegalEventError) as refused:
        step(state, event, story.policy if story else None)
    assert (refused.value.code, state.model_dump_json() if state else None) == (code, before)


def test_a_refusal_names_what_its_sender_could_say() -> None:
    """A floor holder that concludes too early learns that it may pause, assign or go on; so does its brain."""
    refused = _tasked().refusal(said("ada", ConcludeGroupDiscussion(), 2))
    assert refused.legal == ("SYNC_TASK_ASSIGNMENT", "ASYNC_TASK_ASSIGNMENT", "DISCUSSION", "PAUSE", "PASS", "ASK_USER")


def test_a_refused_assignee_learns_what_it_may_report() -> None:
    """The task rules' refusals carry the legal kinds too."""
    refused = _tasked().refusal(said("bob", _result(), 2))
    assert refused.hint == "Legal now: INFORM_TASK_PROGRESS, INFORM_TASK_RESULT, TASK_QUESTION."


def test_the_control_planes_refusals_name_no_kinds() -> None:
    """A timer has no legal alternatives."""
    assert launched("ada").refusal(TimerFired(at=START)).legal == ()
