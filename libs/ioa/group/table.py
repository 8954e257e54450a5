"""The group's transition table: which event is legal in which phase, and what follows (paper, section 2.3.3).

A kind of event that has no cell for a phase in its row of `TABLE` is illegal in it. `STATE_RULES` are the transitions that no event
names. The rules are pure: they read the state and the event and answer with the next state, or refuse. What else has to know the
kinds is derived from here: who may say what when, the labels of metrics, the documentation with its diagram.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeVar

from ioa.group import floor, forms, gathering, joining, lacks, monologue, opening, passing, questions, tasks
from ioa.group.events import (
    CancelRequested,
    ControlEvent,
    GroupLaunched,
    Kind,
    LaunchAbandoned,
    MemberJoined,
    MemberLost,
    MemberReturned,
    MessageRefused,
    QuestionAnswered,
    RepetitionRefused,
    Said,
    SubgroupAsked,
    SubgroupClosed,
    SubgroupOpened,
    TaskDecision,
    TimerFired,
    name_of,
)
from ioa.group.floor import BUDGET_SPENT, NO_TURN_LEFT, NOTHING_TO_WAIT_FOR, StateRule
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Awaiting, AwaitingAcks, Concluding, Discussing, Gathering, GroupState, Paused
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
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
    Pause,
    Payload,
    Phase,
    SyncTaskAssignment,
    TaskQuestion,
    Thinking,
    rejects_of,
)


class Sender(StrEnum):
    """Who a kind comes from."""

    FLOOR_HOLDER = "floor holder"
    ASSIGNEE = "assignee"
    ASSIGNER = "who gave out the task"
    ROUTER = "router"
    NESTED_TEAM = "router, for the nested team"
    REGISTRY = "registry"
    SETUP = "group setup"
    USER = "user, or the parent group"
    ANSWERER = "group setup for the user, or router for the parent group"


@dataclass(frozen=True)
class Cell:
    """What a kind of event means in a phase; None is before there is a group.

    Attributes:
        to: Where the event itself leads.
        then: The state rules that may lead on from there.
    """

    phase: Phase | None
    to: tuple[Phase, ...]
    meaning: str
    then: tuple[StateRule, ...] = ()

    @cached_property
    def leads_to(self) -> frozenset[Phase]:
        """Every phase that the group may be in after the step."""
        return frozenset((*self.to, *(rule.target for rule in self.then)))


Offer = Callable[[GroupState, AgentId, datetime], bool]
"""Whether a member that may send a kind now could send it with the right content, at a time."""


@dataclass(frozen=True)
class Row:
    """One kind of event. It is made by `_message`, `_event` or `_opening`, which take only a rule for this very kind.

    Attributes:
        apply: The rule. It takes an event of this kind, and the state, which is None before there is a group.
        offered: Asked only of kinds that members send.
    """

    kind: Kind
    sender: Sender
    apply: Callable[[Any, Any], GroupState]
    cells: Mapping[Phase | None, Cell]
    offered: Offer

    @cached_property
    def name(self) -> str:
        """The name of the kind, as it travels."""
        return name_of(self.kind)


P = TypeVar("P", bound=Payload)
E = TypeVar("E", bound=ControlEvent)


def _always(_state: GroupState, _agent_id: AgentId, _at: datetime) -> bool:
    """Offer a kind in every phase in which it is legal."""
    return True


def _message(
    kind: type[P],
    sender: Sender,
    apply: Callable[[GroupState, Said, P], GroupState],
    *cells: Cell,
    offered: Offer = _always,
) -> Row:
    """Return the row of a kind of message; its rule is handed the payload by itself, when what it rejects is rejected."""

    def apply_payload(state: GroupState, event: Said) -> GroupState:
        payload: Any = event.message.payload
        return apply(tasks.reject(state, rejects_of(payload), event.message.header.sender), event, payload)

    return _row(kind, sender, apply_payload, cells, offered)


def _event(kind: type[E], sender: Sender, apply: Callable[[GroupState, E], GroupState], *cells: Cell) -> Row:
    """Return the row of an event of the control plane."""
    return _row(kind, sender, apply, cells)


def _opening(kind: type[E], sender: Sender, apply: Callable[[E], GroupState], *cells: Cell) -> Row:
    """Return the row of an event that opens a log, and is legal nowhere else."""

    def begin(_state: None, event: E) -> GroupState:
        return apply(event)

    return _row(kind, sender, begin, cells)


def _row(
    kind: Any,
    sender: Sender,
    apply: Callable[[Any, Any], GroupState],
    cells: Iterable[Cell],
    offered: Offer = _always,
) -> Row:
    return Row(kind, sender, apply, {cell.phase: cell for cell in cells}, offered)


def _discussion(state: GroupState, said: Said, payload: Discussion) -> GroupState:
    if isinstance(state.stage, Gathering):
        return gathering.answer(state, said, payload)
    speaker = payload.next_speaker
    if payload.question or payload.fields:
        gathering.check_question(payload)
        forms.check_fields((), payload.fields)
    if payload.go is not None:
        raise IllegalEventError(RejectionCode.BAD_EXIT, "No policy leads this group: there is no way out to choose.")
    if payload.to:
        raise IllegalEventError(RejectionCode.BAD_ADDRESSEE, "No policy leads this group: all hear what is said, leave `to` out.")
    if payload.writes:
        forms.check_unwritten(payload.writes)
    if payload.next_speakers:
        gathering.check_names(state, said.message.header.sender, payload)
        return gathering.ask(floor.take_turn(state, monologue=monologue.check_remark(state, said)), said, payload)
    if speaker is None or speaker == said.message.header.sender or speaker not in state.reachable(said.at):
        why = f"{speaker or 'nobody'} cannot be the next speaker: name another member that is not out of reach."
        raise IllegalEventError(RejectionCode.BAD_NEXT_SPEAKER, why)
    remarks = monologue.check_remark(state, said)
    return floor.take_turn_and_grant(state, speaker, said.at, monologue=remarks)


def _repetition_refused(state: GroupState, refused: RepetitionRefused) -> GroupState:
    """Note the first repetition of a turn; at the next one force the way out."""
    noted = floor.note_repetition(state, refused.by, refused.turn, refused.message_id)
    return floor.force_way_out(state, refused.by, refused.at) if noted is None else noted


def _conclude(state: GroupState, said: Said, payload: ConcludeGroupDiscussion) -> GroupState:
    if state.open_tasks:
        still_open = ", ".join(task.task_id for task in state.unfinished_tasks)
        raise IllegalEventError(RejectionCode.TASKS_OPEN, f"Tasks are still open: {still_open}.")
    sender = said.message.header.sender
    if payload.conclusion is not None and floor.concludes(state, sender):
        return _conclusion(state, said, payload.conclusion)
    return floor.open_conclusion(state, sender, said.at, forced=None)


def _conclusion(state: GroupState, said: Said, payload: Conclusion) -> GroupState:
    """End the group. A limit that forced the conclusion is the reason, unless the goal was reached all the same."""
    forced = state.forced
    reached = payload.reason is Reason.CONCLUDED
    reason = payload.reason if forced is None or reached else forced
    limit = forced if reached else None
    return floor.end(state, reason, payload.content, said.at, payload.artifacts, lacks.of_conclusion(state), limit)


def _decision(_state: GroupState, _said: Said, _payload: Decision) -> GroupState:
    raise IllegalEventError(RejectionCode.OFF_COURSE, "No policy leads this group: nobody is asked to decide.")


def _message_refused(state: GroupState, _refused: MessageRefused) -> GroupState:
    return state


def _pass(state: GroupState, said: Said, payload: Pass) -> GroupState:
    if isinstance(state.stage, Gathering):
        return gathering.skip(state, (said.message.header.sender,), said.at)
    return passing.pass_on(state, said.message.header.sender, payload, said.at)


def _thinking(state: GroupState, said: Said, _payload: Thinking) -> GroupState:
    return passing.prolong(state, said.message.header.sender, said.at)


def _timer_fired(state: GroupState, fired: TimerFired) -> GroupState:
    if fired.at >= state.limits.deadline:
        return floor.end_at_deadline(state, fired.at)
    after = questions.run_out(state, fired)
    match after.stage:
        case Gathering() as stage if silent := gathering.overdue(stage, fired.at):
            after = gathering.skip(after, silent, fired.at, silences=len(silent))
        case Discussing(until=until) | Concluding(until=until) if until <= fired.at:
            after = _pass_over_silent_holder(after, fired.at)
        case (
            AwaitingAcks(assigner=waiter, until=until) | Paused(pauser=waiter, until=until) | Awaiting(asker=waiter, until=until)
        ) if until <= fired.at:
            after = floor.give_back(after, waiter, fired.at)
    if after is state:
        raise IllegalEventError(RejectionCode.NOTHING_DUE, "No deadline has passed.")
    return after


def _pass_over_silent_holder(state: GroupState, at: datetime) -> GroupState:
    silences = state.silences + 1
    if silences >= floor.ROUNDS_OF_SILENCE * len(state.members) or state.forced is Reason.BUDGET:
        return floor.end(state, state.forced or Reason.MEMBER_LOST, "No member of the group speaks any more.", at)
    return floor.pass_on(state.model_copy(update={"silences": silences}), at)


def _member_lost(state: GroupState, lost: MemberLost) -> GroupState:
    if lost.agent_id not in state.living():
        return state
    after = tasks.suspect(floor.mark_lost(state, lost.agent_id, lost.at), lost.agent_id, lost.at)
    if isinstance(state.stage, Gathering):
        return gathering.lose(after, lost)
    # No silence is counted: a lost holder never declined to speak.
    return floor.pass_on(after, lost.at) if state.floor_holder == lost.agent_id and after.living() else after


def _member_returned(state: GroupState, returned: MemberReturned) -> GroupState:
    """Count a member among the living; the first of them takes the floor from a lost holder, which others could not be given it."""
    if returned.agent_id in state.living() or not state.is_member(returned.agent_id):
        return state
    after = floor.mark_living(state, returned.agent_id)
    left_alone = not state.living() and state.floor_holder not in (None, returned.agent_id)
    return floor.pass_on(after, returned.at) if left_alone else after


def _cancel(state: GroupState, cancel: CancelRequested) -> GroupState:
    return floor.end(state, Reason.CANCELLED, cancel.why or "Cancelled on request.", cancel.at)


def _a_question_waits(state: GroupState, agent_id: AgentId, at: datetime) -> bool:
    return any(questions.waits_for(task, agent_id, at) for task in state.open_tasks)


def _a_question_may_be_asked(state: GroupState, agent_id: AgentId, _at: datetime) -> bool:
    return any(
        task.assignee == agent_id and task.question is None and task.asked < questions.MAX_QUESTIONS for task in state.open_tasks
    )


def _is_answered_or_others_are_reachable(state: GroupState, agent_id: AgentId, at: datetime) -> bool:
    return isinstance(state.stage, Gathering) or any(other != agent_id for other in state.reachable(at))


def _one_more_task_may_be_given(state: GroupState, _agent_id: AgentId, _at: datetime) -> bool:
    """Whoever has the floor is evidently alive: it may give a task to itself, so that to conclude is never all it can do."""
    return tasks.has_room(state)


def _tasks_are_open(state: GroupState, agent_id: AgentId, _at: datetime) -> bool:
    return bool(state.tasks_left(agent_id))


def _no_task_is_open(state: GroupState, agent_id: AgentId, _at: datetime) -> bool:
    return not state.tasks_left(agent_id)


_G, _Q = Phase.GATHERING, Phase.DECIDING
_D, _W, _A, _P, _C = Phase.DISCUSSING, Phase.AWAITING_ACKS, Phase.ASSIGNED, Phase.PAUSED, Phase.CONCLUDING
_FAILED = Phase.FAILED

_CHARGED = (BUDGET_SPENT,)
_ACKNOWLEDGES = "acknowledges the task and renews its lease; what costs more than its share has failed"
_FREED = (NOTHING_TO_WAIT_FOR, NO_TURN_LEFT)
_CHARGED_AND_FREED = (BUDGET_SPENT, NOTHING_TO_WAIT_FOR, NO_TURN_LEFT)

_ROWS = (
    _message(
        SyncTaskAssignment,
        Sender.FLOOR_HOLDER,
        tasks.assign,
        Cell(
            _D,
            (_A,),
            "the tasks start, or wait for those they use; the floor returns to the assigner when all have ended",
            _CHARGED,
        ),
        offered=_one_more_task_may_be_given,
    ),
    _message(
        AsyncTaskAssignment,
        Sender.FLOOR_HOLDER,
        tasks.assign,
        Cell(
            _D,
            (_W,),
            "the tasks start, or wait for those they use; the floor returns to the assigner when all that start have answered",
            _CHARGED_AND_FREED,
        ),
        offered=_one_more_task_may_be_given,
    ),
    _message(
        Discussion,
        Sender.FLOOR_HOLDER,
        _discussion,
        Cell(
            _D,
            (_D, _G),
            "the floor goes to the next speaker, who may be lost for less than a floor timeout, or to several side by side",
            (NO_TURN_LEFT, BUDGET_SPENT),
        ),
        Cell(
            _G,
            (_G, _D),
            "an answer closes the seat; when all are closed they are counted, and the floor returns to who has asked",
            (NO_TURN_LEFT, BUDGET_SPENT),
        ),
        offered=_is_answered_or_others_are_reachable,
    ),
    _message(
        Decision,
        Sender.FLOOR_HOLDER,
        _decision,
        Cell(_Q, (_Q, _D, _G, _C), "what is chosen is done; a choice that is no option is refused, and costs a try", _CHARGED),
    ),
    _message(
        Pause,
        Sender.FLOOR_HOLDER,
        tasks.pause,
        Cell(_D, (_P,), "the discussion sleeps until all triggers are closed; if they are, not at all", _CHARGED_AND_FREED),
        offered=_tasks_are_open,
    ),
    _message(
        ConcludeGroupDiscussion,
        Sender.FLOOR_HOLDER,
        _conclude,
        Cell(
            _D,
            (_C, Phase.CONCLUDED, _FAILED),
            "with no task open: ends the group if it holds the conclusion, else only the speaker's conclusion is legal from now on",
        ),
        offered=_no_task_is_open,
    ),
    _message(
        Conclusion,
        Sender.FLOOR_HOLDER,
        _conclusion,
        Cell(
            _C,
            (Phase.CONCLUDED, _FAILED),
            "the group ends with its result; a forced one is a failure with an answer, unless the goal was reached",
        ),
    ),
    _message(
        Pass,
        Sender.FLOOR_HOLDER,
        _pass,
        Cell(
            _D,
            (_D, _P, _C, _FAILED),
            "the next member gets the floor, and no turn is used up; when all have passed: with nothing to add the group waits for"
            " open tasks, or the owner concludes; without usable answers, or with models away for too long, the group fails",
            _CHARGED,
        ),
        Cell(_G, (_G, _D), "the seat is closed without an answer", _CHARGED),
        Cell(_Q, (_Q, _D, _G, _C), "the default stands", _CHARGED),
        Cell(
            _C,
            (_C, _FAILED),
            "the next member has to conclude; when all have passed, or the budget is spent, the group fails, with models away not"
            " at once",
        ),
    ),
    _message(
        Thinking,
        Sender.FLOOR_HOLDER,
        _thinking,
        *(
            Cell(
                phase,
                (phase,),
                "a member with patience keeps the floor for as long again, in the second half of its time",
                _CHARGED,
            )
            for phase in (_D, _G, _Q)
        ),
        Cell(_C, (_C,), "a member with patience keeps the floor for as long again, in the second half of its time"),
        offered=passing.may_prolong,
    ),
    _message(
        AskUser,
        Sender.FLOOR_HOLDER,
        questions.ask,
        Cell(
            _D,
            (_P,),
            "the discussion sleeps until the goal's user, or in a nested team who gave out its task, has answered; then the asker"
            " has the floor",
            _CHARGED,
        ),
    ),
    _message(
        InformTaskProgress,
        Sender.ASSIGNEE,
        tasks.progress,
        *(Cell(phase, (phase,), _ACKNOWLEDGES) for phase in (_D, _G, _Q)),
        Cell(_W, (_W,), _ACKNOWLEDGES, _FREED),
        Cell(_A, (_A,), _ACKNOWLEDGES, _FREED),
        Cell(_P, (_P,), _ACKNOWLEDGES, _FREED),
    ),
    _message(
        InformTaskResult,
        Sender.ASSIGNEE,
        tasks.result,
        *(
            Cell(phase, (phase,), "closes the task; what waited for it starts, or is cancelled if it failed")
            for phase in (_D, _G, _Q)
        ),
        Cell(_W, (_W,), "closes the task, which answers the assignment too", _FREED),
        Cell(_A, (_A,), "closes the task", _FREED),
        Cell(_P, (_P,), "closes the task", _FREED),
    ),
    _message(
        TaskQuestion,
        Sender.ASSIGNEE,
        questions.ask_of_task,
        *(Cell(phase, (phase,), "the task waits for an answer; its lease is renewed") for phase in (_D, _G, _Q, _W, _A, _P)),
        offered=_a_question_may_be_asked,
    ),
    _message(
        TaskDecision,
        Sender.ASSIGNER,
        questions.decide_for_task,
        *(Cell(phase, (phase,), "the task is answered what it asks, without the floor") for phase in (_D, _G, _Q, _W, _A, _P)),
        offered=_a_question_waits,
    ),
    _event(
        TimerFired,
        Sender.ROUTER,
        _timer_fired,
        Cell(_D, (_D, _FAILED), "leases run out; a silent holder is passed over, until nobody speaks any more"),
        Cell(_G, (_G, _D, _FAILED), "leases run out; silent seats are closed, until nobody speaks any more"),
        Cell(_Q, (_Q, _D, _G, _C, _FAILED), "the default stands"),
        Cell(_W, (_W, _D, _FAILED), "leases run out; a wait that was too long ends, and the floor returns", _FREED),
        Cell(_A, (_A, _FAILED), "leases run out, and their tasks fail", _FREED),
        Cell(
            _P,
            (_P, _D, _FAILED),
            "leases run out; a pause that was too long ends, or the default of a question stands, and the floor returns",
            _FREED,
        ),
        Cell(
            _C,
            (_C, _FAILED),
            "a silent speaker is passed over: the next member concludes, unless the budget is spent or all members are silent",
        ),
    ),
    _event(
        MemberLost,
        Sender.REGISTRY,
        _member_lost,
        Cell(_D, (_D,), "its tasks are suspect; a holder that is lost is passed over"),
        Cell(_G, (_G, _D), "its tasks are suspect; its seat is closed without an answer"),
        Cell(_Q, (_Q, _D, _G, _C), "another member is asked, or the default stands"),
        *(Cell(phase, (phase,), "its tasks are suspect: they fail when their lease runs out") for phase in (_W, _A, _P)),
        Cell(_C, (_C,), "a lost speaker is passed over"),
    ),
    _event(
        MemberReturned,
        Sender.REGISTRY,
        _member_returned,
        Cell(_D, (_D,), "the member may speak and work again; the floor is its own if everybody else is lost"),
        *(Cell(phase, (phase,), "the member may speak and work again") for phase in (_G, _Q, _W, _A, _P)),
        Cell(_C, (_C,), "the member may speak again; it concludes if everybody else is lost"),
    ),
    _event(
        MemberJoined,
        Sender.SETUP,
        joining.join,
        Cell(_D, (_D,), "who has the floor has invited an agent, which hears from now on, and reads what was said before"),
        Cell(_Q, (_Q, _D, _G, _C), "who watches has an agent join; that is its answer"),
    ),
    _event(
        CancelRequested,
        Sender.USER,
        _cancel,
        *(
            Cell(phase, (Phase.CANCELLED,), "the group ends; its open tasks and nested teams are cancelled")
            for phase in (_D, _G, _Q, _W, _A, _P, _C)
        ),
    ),
    _event(
        MessageRefused,
        Sender.ROUTER,
        _message_refused,
        Cell(_Q, (_Q, _D, _G, _C), "a wrong choice has cost a try; after the last one the default stands"),
    ),
    _event(
        RepetitionRefused,
        Sender.ROUTER,
        _repetition_refused,
        Cell(
            _D,
            (_D, _P, _C),
            "the first of a turn is noted; at the next one the speaker waits for open tasks, or the owner concludes",
        ),
    ),
    _event(
        SubgroupOpened,
        Sender.SETUP,
        tasks.open_subgroup,
        *(
            Cell(phase, (phase,), "the assignee serves its task with a nested team, on a share of the budget")
            for phase in (_D, _G, _Q)
        ),
        Cell(
            _W,
            (_W,),
            "the assignee serves its task with a nested team, on a share of the budget, which answers the assignment too",
            (NOTHING_TO_WAIT_FOR,),
        ),
        Cell(_A, (_A,), "the assignee serves its task with a nested team, on a share of the budget"),
        Cell(_P, (_P,), "the assignee serves its task with a nested team, on a share of the budget"),
    ),
    _event(
        SubgroupClosed,
        Sender.NESTED_TEAM,
        tasks.close_subgroup,
        *(
            Cell(phase, (phase,), "the nested team's conclusion closes the task; what it has used up is counted")
            for phase in (_D, _G, _Q)
        ),
        Cell(_W, (_W,), "the nested team's conclusion closes the task; what it has used up is counted"),
        Cell(_A, (_A,), "the nested team's conclusion closes the task; what it has used up is counted", _FREED),
        Cell(_P, (_P,), "the nested team's conclusion closes the task; what it has used up is counted", _FREED),
        Cell(_C, (_C,), "what a team has used up whose task is closed already is counted"),
    ),
    _event(
        QuestionAnswered,
        Sender.ANSWERER,
        questions.answer,
        *(Cell(phase, (phase,), "the task is answered what it asks") for phase in (_D, _G, _Q, _W, _A)),
        Cell(_P, (_P, _D), "the task is answered what it asks, or the floor returns to who has asked out of the group", _FREED),
    ),
    _event(
        SubgroupAsked,
        Sender.NESTED_TEAM,
        questions.ask_of_team,
        *(
            Cell(phase, (phase,), "the nested team waits for an answer of who gave out its task")
            for phase in (_D, _G, _Q, _W, _A, _P)
        ),
    ),
    _opening(
        GroupLaunched,
        Sender.SETUP,
        opening.launch,
        Cell(None, (_D, _G, _Q), "the group is opened; its owner has the floor, or who has it by its policy", _CHARGED),
    ),
    _opening(
        LaunchAbandoned,
        Sender.SETUP,
        opening.abandon,
        Cell(None, (_FAILED, Phase.CANCELLED), "the goal ended before there was a group; none can be launched any more"),
    ),
)

TABLE: Mapping[Kind, Row] = {row.kind: row for row in _ROWS}
"""The rows by their kind. Its order is that in which members are told what they may say."""

STATE_RULES = (NO_TURN_LEFT, BUDGET_SPENT, NOTHING_TO_WAIT_FOR)
"""The transitions that the state calls for by itself, in the order in which they are asked; at most one is made after an event."""

STATE_RULES_IN: Mapping[Phase, tuple[StateRule, ...]] = {
    phase: tuple(rule for rule in STATE_RULES if phase in rule.phases) for phase in Phase
}
