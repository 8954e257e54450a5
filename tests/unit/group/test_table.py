"""Every kind of event in every situation a group can be in. The table below is written by hand, not derived from the code's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import get_args

import pytest

from ioa.group.events import (
    CancelRequested,
    ControlEvent,
    Event,
    GroupLaunched,
    Kind,
    LaunchAbandoned,
    MemberJoined,
    MemberLost,
    MemberReturned,
    MessageRefused,
    QuestionAnswered,
    RepetitionRefused,
    SubgroupAsked,
    SubgroupClosed,
    SubgroupOpened,
    TaskDecision,
    TimerFired,
    kind_of,
    name_of,
)
from ioa.group.machine import step
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Asking, Concluding, Discussing, Gathering, GroupState
from ioa.group.table import TABLE
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, MessageId, TaskId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Pass,
    PassCause,
    Pause,
    Payload,
    Phase,
    SyncTaskAssignment,
    TaskQuestion,
    Thinking,
)
from ioa.protocol.policy import Exit, Node, Policy, Role, Watcher
from ioa.protocol.questions import Question
from tests.unit.group.scenario import (
    COMM,
    GOAL,
    START,
    WELL,
    Scenario,
    card,
    charter,
    launched,
    launched_under,
    limits,
    said,
    specs,
)

EXPECTED = """
                          nothing   talking      tasked      gathered    asked       handing   assigned  paused    concluding
DISCUSSION                no_group  discussing   discussing  gathering   wrong_phase not_floor not_floor not_floor wrong_phase
DECISION                  no_group  wrong_phase  wrong_phase wrong_phase discussing  not_floor not_floor not_floor wrong_phase
TaskDecision              no_group  unknown_task discussing  gathering   deciding    handing   assigned paused    wrong_phase
ASK_USER                  no_group  paused       paused      wrong_phase wrong_phase not_floor not_floor not_floor wrong_phase
TASK_QUESTION             no_group  unknown_task discussing  gathering   deciding    handing   assigned paused    wrong_phase
SYNC_TASK_ASSIGNMENT      no_group  assigned     assigned    wrong_phase wrong_phase not_floor not_floor not_floor wrong_phase
ASYNC_TASK_ASSIGNMENT     no_group  handing      handing     wrong_phase wrong_phase not_floor not_floor not_floor wrong_phase
INFORM_TASK_PROGRESS      no_group  unknown_task discussing  gathering   deciding    discussing assigned paused    wrong_phase
INFORM_TASK_RESULT        no_group  unknown_task discussing  gathering   deciding    discussing assigned paused    wrong_phase
PAUSE                     no_group  bad_trigger  paused      wrong_phase wrong_phase not_floor not_floor not_floor wrong_phase
CONCLUDE_GROUP_DISCUSSION no_group  concluding   tasks_open  wrong_phase wrong_phase not_floor not_floor not_floor wrong_phase
CONCLUSION                no_group  wrong_phase  wrong_phase wrong_phase wrong_phase not_floor not_floor not_floor concluded
PASS                      no_group  discussing   discussing  gathering   discussing  not_floor not_floor not_floor concluding
THINKING                  no_group  discussing   discussing  gathering   deciding    not_floor not_floor not_floor concluding
timer_fired               no_group  discussing   discussing  gathering   deciding    handing   assigned paused    concluding
member_lost               no_group  discussing   discussing  gathering   deciding    handing   assigned paused    concluding
member_returned           no_group  discussing   discussing  gathering   deciding    handing   assigned paused    concluding
member_joined             no_group  discussing   discussing  wrong_phase discussing  wrong_phase wrong_phase wrong_phase wrong_phase
cancel_requested          no_group  cancelled    cancelled   cancelled   cancelled   cancelled cancelled cancelled cancelled
repetition_refused        no_group  discussing   discussing  wrong_phase wrong_phase wrong_phase wrong_phase wrong_phase wrong_phase
message_refused           no_group  wrong_phase  wrong_phase wrong_phase deciding    wrong_phase wrong_phase wrong_phase wrong_phase
subgroup_opened           no_group  unknown_task discussing  gathering   deciding    discussing assigned paused    wrong_phase
subgroup_closed           no_group  unknown_task discussing  gathering   deciding    handing   assigned paused    concluding
subgroup_asked            no_group  unknown_task discussing  gathering   deciding    handing   assigned paused    wrong_phase
question_answered         no_group  too_late     discussing  gathering   deciding    handing   assigned paused    wrong_phase
group_launched            discussing exists exists exists exists exists exists exists exists
launch_abandoned          failed    exists exists exists exists exists exists exists exists
"""


def _talking() -> Scenario:
    return launched("ada", "bob", "eve", patient=["ada"]).loses("eve")


def _handing() -> Scenario:
    return _talking().assigns("ada", "t1-1:bob", "t1-2:bob").nests("t1-2").team_asks("t1-2")


def _tasked() -> Scenario:
    return _handing().progresses("t1-1")


def _gathered() -> Scenario:
    """Bob asks Ada and Joe while he does what Ada has given him."""
    story = launched("ada", "bob", "eve", "joe", max_turns=20, patient=["ada"]).loses("eve").assigns("ada", "t1-1:bob", "t1-2:bob")
    both = (AgentId("ada"), AgentId("joe"))
    asked = story.nests("t1-2").team_asks("t1-2").progresses("t1-1").says("ada", to="bob")
    return asked.speaks("bob", Discussion(content="Well?", next_speakers=both))


def _asked() -> Scenario:
    """Ada, who watches, is asked whether to step in after what Bob has said, while he does what she has given him."""
    plan = Node(name="plan", roles=("chair",), max=1, tasks=True, exits=(Exit(to="talk"),))
    talk = Node(name="talk", roles=("guest",), max=9, exits=(Exit(to="end"),))
    watcher = Watcher(role="chair", node="talk", may=("add",))
    policy = Policy(roles=(Role(name="chair"), Role(name="guest")), nodes=(plan, talk), watchers=(watcher,))
    cast = {"chair": ["ada"], "guest": ["bob", "eve"]}
    story = launched_under(policy, cast, "ada", "bob", "eve", patient=["ada"]).loses("eve").assigns("ada", "t1-1:bob", "t1-2:bob")
    story = story.nests("t1-2").team_asks("t1-2").progresses("t1-1").speaks("ada", Discussion(content="On."))
    return story.speaks("bob", Discussion(content="Well."))


SITUATIONS: dict[str, Callable[[], Scenario]] = {
    "talking": _talking,
    "tasked": _tasked,
    "gathered": _gathered,
    "asked": _asked,
    "handing": _handing,
    "assigned": lambda: _talking().assigns_and_waits("ada", "t1-1:bob", "t1-2:bob").nests("t1-2").team_asks("t1-2"),
    "paused": lambda: _tasked().pauses("ada", "t1-1", "t1-2"),
    "concluding": lambda: (
        _talking().assigns("ada", "t1-1:bob", "t1-2:bob").nests("t1-2").finishes("t1-1").finishes("t1-2").announces("ada")
    ),
}
ENDED: dict[str, Callable[[], Scenario]] = {
    "concluded": lambda: _talking().announces("ada").concludes("ada"),
    "failed": lambda: _talking().announces("ada").concludes("ada", Reason.FAILED),
    "cancelled": lambda: _handing().cancelled(),
}

PAYLOADS: dict[Kind, tuple[str, Payload]] = {
    Discussion: ("ada", Discussion(content="…", next_speaker=AgentId("bob"))),
    Decision: ("ada", Decision(choice="nothing")),
    SyncTaskAssignment: ("ada", SyncTaskAssignment(tasks=specs(("t1-9:bob",)))),
    AsyncTaskAssignment: ("ada", AsyncTaskAssignment(tasks=specs(("t1-9:bob",)))),
    InformTaskProgress: ("bob", InformTaskProgress(task_id=TaskId("t1-1"), number=2)),
    InformTaskResult: ("bob", InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="…")),
    Pause: ("ada", Pause(triggers=(TaskId("t1-1"),))),
    ConcludeGroupDiscussion: ("ada", ConcludeGroupDiscussion()),
    Conclusion: ("ada", Conclusion(content="Ten.")),
    Pass: ("ada", Pass(cause=PassCause.NOTHING_TO_ADD)),
    Thinking: ("ada", Thinking()),
    AskUser: ("ada", AskUser(**WELL)),
    TaskQuestion: ("bob", TaskQuestion(task_id=TaskId("t1-1"), number=1, **WELL)),
    TaskDecision: ("ada", Decision(task_id=TaskId("t1-2"), choice="yes")),
}
KINDS: dict[str, Kind] = {name_of(kind): kind for kind in (*get_args(get_args(Payload)[0]), *get_args(ControlEvent))}
KINDS |= {TaskDecision.__name__: TaskDecision}
"""Every class of message and event, by its name; what is `Said` is of the kind of its payload, but for an answer to a task."""
TASK_TURN = 1
"""In every situation with tasks they were given out in the first turn."""


def event_of(kind: Kind, state: GroupState | None) -> Event:
    """The event of this kind that has the best prospects: the right sender, the right turn, the right task."""
    if kind in PAYLOADS:
        sender, payload = PAYLOADS[kind]
        turn = TASK_TURN if sender == "bob" or state is None else state.turn
        if isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment):
            payload = payload.model_copy(update={"tasks": specs((f"t{turn}-9:bob",))})
        stage = state.stage if state is not None else None
        if isinstance(payload, Discussion) and isinstance(stage, Gathering):
            payload = Discussion(content="…")
        at = stage.until if kind is Thinking and isinstance(stage, Discussing | Gathering | Asking | Concluding) else START
        return said(sender, payload, turn, at)
    due = (state and state.next_deadline()) or START
    rules = limits()
    events: dict[Kind, Event] = {
        TimerFired: TimerFired(at=due),
        MemberLost: MemberLost(at=START, agent_id=AgentId("bob")),
        MemberReturned: MemberReturned(at=START, agent_id=AgentId("eve")),
        MemberJoined: MemberJoined(
            at=START,
            card=card("zoe"),
            by=AgentId("ada"),
            turn=state.turn if state else 1,
            role="guest" if state and state.course else None,
        ),
        CancelRequested: CancelRequested(at=START),
        RepetitionRefused: RepetitionRefused(
            at=START, by=AgentId("ada"), turn=state.turn if state else 1, message_id=MessageId("m1"), repeats_turn=1
        ),
        MessageRefused: MessageRefused(
            at=START,
            by=AgentId("ada"),
            turn=state.turn if state else 1,
            message_id=MessageId("m1"),
            code=RejectionCode.BAD_DECISION,
        ),
        SubgroupOpened: SubgroupOpened(at=START, task_id=TaskId("t1-1"), by=AgentId("bob"), subgroup=CommId("sub1")),
        SubgroupClosed: SubgroupClosed(
            at=START, task_id=TaskId("t1-2"), subgroup=CommId("sub"), reason=Reason.CONCLUDED, content="…"
        ),
        SubgroupAsked: SubgroupAsked(at=START, task_id=TaskId("t1-2"), subgroup=CommId("sub"), number=2, question=Question(**WELL)),
        QuestionAnswered: _answered(state),
        GroupLaunched: GroupLaunched(at=START, charter=charter("ada", "bob", limits=rules)),
        LaunchAbandoned: LaunchAbandoned(
            at=START, comm_id=COMM, goal_id=GOAL, by=AgentId("ada"), reason=Reason.NO_AGENT, content="Nobody."
        ),
    }
    return events[kind]


def _answered(state: GroupState | None) -> QuestionAnswered:
    """An answer to what the nested team asks, or else to who has the floor."""
    if state is not None and state.tasks:
        return QuestionAnswered(at=START, task_id=TaskId("t1-2"), number=1, answer="yes", by="user")
    return QuestionAnswered(at=START, turn=state.turn if state else 1, answer="yes", by="user")


def what_happens(story: Scenario | None, event: Event) -> str:
    """The phase the event leads to, or the code of its rejection."""
    try:
        return (step(None, event) if story is None else step(story.state, event, story.policy)).state.phase
    except IllegalEventError as refused:
        return refused.code


def _cells() -> dict[tuple[str, Kind], str]:
    head, *rows = EXPECTED.strip("\n").splitlines()
    situations = head.split()
    cells = {}
    for row in rows:
        kind, *outcomes = row.replace("not_floor", "not_your_floor").replace(" exists", " group_exists").split()
        assert len(outcomes) == len(situations)
        cells.update({(situation, KINDS[kind]): out for situation, out in zip(situations, outcomes, strict=True)})
    return cells


CELLS = _cells()


@pytest.mark.parametrize(("situation", "kind"), CELLS, ids=lambda part: part if isinstance(part, str) else name_of(part))
def test_each_event_does_in_each_situation_what_the_table_says(situation: str, kind: Kind) -> None:
    """Each event leads to the phase, or meets the refusal, that the handwritten table names."""
    story = SITUATIONS[situation]() if situation != "nothing" else None
    assert what_happens(story, event_of(kind, None if story is None else story.state)) == CELLS[situation, kind]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("situation", ENDED)
def test_an_ended_group_takes_nothing(situation: str, kind: Kind) -> None:
    """The terminal phases absorb every kind of event."""
    story = ENDED[situation]()
    assert (story.phase, what_happens(story, event_of(kind, story.state))) == (situation, "group_ended")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_is_what_its_event_is_called(kind: Kind) -> None:
    """The column of an event is found from the event alone."""
    assert kind_of(event_of(kind, _talking().state)) is kind


def test_the_handwritten_table_covers_every_pair() -> None:
    """No kind of event and no phase is missing from the table above."""
    phases = {SITUATIONS[situation]().phase for situation, _ in CELLS if situation != "nothing"}
    phases |= {ENDED[situation]().phase for situation in ENDED}
    kinds = {kind for _, kind in CELLS}
    assert (phases, kinds) == (set(Phase), set(KINDS.values()))


def test_each_class_of_message_and_event_has_its_row() -> None:
    """Whoever adds a class to what travels says in the table who sends it, when it is legal and what follows."""
    assert {row.kind for row in TABLE.values()} == set(KINDS.values())
    assert all(row.cells for row in TABLE.values())


def test_the_machines_table_has_the_pairs_that_are_legal_and_no_other() -> None:
    """A pair is in the code's table exactly if the handwritten one knows a situation in which it is legal."""
    legal = {
        (SITUATIONS[situation]().phase if situation != "nothing" else None, kind)
        for (situation, kind), outcome in CELLS.items()
        if outcome in set(Phase)
    }
    assert {(phase, row.kind) for row in TABLE.values() for phase in row.cells} == legal


def test_a_state_rule_is_named_only_where_it_can_be_asked() -> None:
    """What a cell says may follow is asked where its event leads, or where a rule before it does."""
    for row in TABLE.values():
        for cell in row.cells.values():
            reached = cell.leads_to
            assert all(rule.phases & reached for rule in cell.then)


@pytest.mark.parametrize("situation", [*SITUATIONS, *ENDED])
def test_a_timer_that_fires_too_early_changes_nothing(situation: str) -> None:
    """A deadline that has not come is no reason for anything, so a timer may be armed twice."""
    story = (SITUATIONS | ENDED)[situation]()
    assert what_happens(story, TimerFired(at=START + timedelta(seconds=1))) in ("nothing_due", "group_ended")
