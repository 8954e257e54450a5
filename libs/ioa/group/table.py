"""The group's transition table: the legal events of each phase, and their consequences (paper, section 2.3.3).

A kind of event without a cell for a phase in its row of `TABLE` is illegal in this phase. `STATE_RULES` are transitions without an
event. Rules are pure functions. `ioa.group.legality`, labels of metrics, and the documentation with its diagram use this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from ioa.group import deadlines, questions, speaking, tasks
from ioa.group.events import (
    CancelRequested,
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
    SubgroupClosed,
    SubgroupOpened,
    TaskDecision,
    TimerFired,
    name_of,
)
from ioa.group.floor import BUDGET_SPENT, NO_TURN_LEFT, StateRule
from ioa.group.policy import deciding
from ioa.group.speaking import NOTHING_TO_WAIT_FOR
from ioa.group.state import GroupState
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
    Phase,
    SyncTaskAssignment,
    TaskQuestion,
    Thinking,
    rejects_of,
)
from ioa.protocol.policy import Policy


class Sender(StrEnum):
    """The sender of a kind."""

    FLOOR_HOLDER = "floor holder"
    ASSIGNEE = "assignee"
    ASSIGNER = "assigner"
    ROUTER = "router"
    NESTED_TEAM = "router, for the nested team"
    REGISTRY = "registry"
    SETUP = "group setup"
    USER = "user, or the parent group"
    ANSWERER = "group setup for the user"


@dataclass(frozen=True)
class Cell:
    """The meaning of a kind of event in a phase; None is before the launch.

    Attributes:
        to: Phases to which the event itself leads.
        then: State rules that may lead on from there.
    """

    phase: Phase | None
    to: tuple[Phase, ...]
    meaning: str
    then: tuple[StateRule, ...] = ()

    @cached_property
    def leads_to(self) -> frozenset[Phase]:
        """Every phase that the group may be in after the step."""
        return frozenset((*self.to, *(rule.target for rule in self.then)))


@dataclass(frozen=True)
class Row:
    """One kind of event.

    Attributes:
        apply: The rule. It takes the state, which is None before the launch, an event of this kind, and the policy of the group.
    """

    kind: Kind
    sender: Sender
    apply: Callable[[Any, Any, Policy | None], GroupState]
    cells: Mapping[Phase | None, Cell]

    @cached_property
    def name(self) -> str:
        """The name of the kind, as it travels."""
        return name_of(self.kind)


def _event(kind: Kind, sender: Sender, apply: Callable[[Any, Any, Any], GroupState], *cells: Cell) -> Row:
    """Return the row of an event."""
    return Row(kind, sender, apply, {cell.phase: cell for cell in cells})


def _message(
    kind: Kind, apply: Callable[[GroupState, Said, Any, Any], GroupState], *cells: Cell, sender: Sender = Sender.FLOOR_HOLDER
) -> Row:
    """Return the row of a kind of message. Its rule gets the payload, after the results that it rejects are rejected."""

    def apply_payload(state: GroupState, said: Said, policy: Policy | None) -> GroupState:
        payload: Any = said.message.payload
        if rejects := rejects_of(payload):
            state = tasks.reject(state, rejects, said.message.header.sender)
        return apply(state, said, payload, policy)

    return _event(kind, sender, apply_payload, *cells)


def _stays(phases: Iterable[Phase], meaning: str, then: tuple[StateRule, ...] = ()) -> list[Cell]:
    """Return cells of an event that leaves each of some phases as it is."""
    return [Cell(phase, (phase,), meaning, then) for phase in phases]


_D, _G, _Q = Phase.DISCUSSING, Phase.GATHERING, Phase.DECIDING
_W, _A, _P = Phase.AWAITING_ACKS, Phase.ASSIGNED, Phase.PAUSED
_C, _CONCLUDED, _FAILED = Phase.CONCLUDING, Phase.CONCLUDED, Phase.FAILED
_TALKING, _WAITING = (_D, _G, _Q), (_W, _A, _P)

_CHARGED = (BUDGET_SPENT,)
_LED_ON = (NO_TURN_LEFT, BUDGET_SPENT)
_FREED = (NOTHING_TO_WAIT_FOR, NO_TURN_LEFT)
_CHARGED_AND_FREED = (BUDGET_SPENT, *_FREED)

_ASSIGNED = "the tasks start, or wait for the tasks that they use; the floor returns to the assigner when "
_REPORTED = "acknowledges the task and renews its lease"
_CLOSED = "closes the task; tasks that waited for it start, or are cancelled if it failed"
_NESTED = "the assignee serves its task with a nested group, on a share of the budget"
_NESTED_CLOSED = "the nested group's conclusion closes the task; its usage is counted"
_CANCELLED = "the group ends; its open tasks and nested groups are cancelled"
_THINKING = "a member with patience keeps the floor for as long again, in the second half of its time"

_ROWS = (
    _message(SyncTaskAssignment, tasks.assign, Cell(_D, (_A,), _ASSIGNED + "all have ended", _CHARGED)),
    _message(AsyncTaskAssignment, tasks.assign, Cell(_D, (_W,), _ASSIGNED + "all that start have answered", _CHARGED_AND_FREED)),
    _message(
        Discussion,
        speaking.discuss,
        Cell(_D, (_D, _G), "the floor goes to the next speaker, or to several that speak in parallel", _LED_ON),
        Cell(_G, (_G, _D), "an answer closes the seat; after the last one the floor returns to the member that asked", _LED_ON),
    ),
    _message(
        Decision,
        deciding.take_decision,
        Cell(_Q, (_Q, _D, _G, _C), "the choice is applied; a choice that is no option is rejected, and costs a try", _CHARGED),
    ),
    _message(Pause, tasks.pause, Cell(_D, (_P,), "the discussion waits until all triggers are closed", _CHARGED_AND_FREED)),
    _message(
        ConcludeGroupDiscussion,
        speaking.conclude,
        Cell(
            _D,
            (_C, _CONCLUDED, _FAILED),
            "without open tasks: ends the group if it contains the conclusion, otherwise only the speaker's conclusion is legal",
        ),
    ),
    _message(
        Conclusion,
        speaking.end,
        Cell(
            _C,
            (_CONCLUDED, _FAILED),
            "the group ends with its result; a forced conclusion is a failure with an answer, unless the goal was reached",
        ),
    ),
    _message(
        Pass,
        speaking.pass_turn,
        Cell(
            _D,
            (_D, _P, _C, _FAILED),
            "the next member gets the floor, and no turn is used up; after all have passed: with nothing to add the group waits for"
            " open tasks, or the owner concludes; without usable answers, or with models away for too long, the group fails",
            _CHARGED,
        ),
        Cell(_G, (_G, _D), "the seat is closed without an answer", _CHARGED),
        Cell(_Q, (_Q, _D, _G, _C), "the default counts", _CHARGED),
        Cell(
            _C, (_C, _FAILED), "the next member has to conclude; after all have passed, or if the budget is spent, the group fails"
        ),
    ),
    _message(Thinking, speaking.prolong, *_stays(_TALKING, _THINKING, _CHARGED), *_stays((_C,), _THINKING)),
    _message(AskUser, questions.ask, Cell(_D, (_P,), "the discussion waits until the goal's user has answered", _CHARGED)),
    _message(
        InformTaskProgress,
        tasks.progress,
        *_stays(_TALKING, _REPORTED, _CHARGED),
        *_stays(_WAITING, _REPORTED, _CHARGED_AND_FREED),
        sender=Sender.ASSIGNEE,
    ),
    _message(
        InformTaskResult,
        tasks.result,
        *_stays(_TALKING, _CLOSED, _CHARGED),
        *_stays(_WAITING, _CLOSED, _CHARGED_AND_FREED),
        sender=Sender.ASSIGNEE,
    ),
    _message(
        TaskQuestion,
        questions.ask_of_task,
        *_stays((*_TALKING, *_WAITING), "the task waits for an answer; its lease is renewed", _CHARGED),
        sender=Sender.ASSIGNEE,
    ),
    _message(
        TaskDecision,
        questions.decide_for_task,
        *_stays((*_TALKING, *_WAITING), "answers the question of a task, without the floor", _CHARGED),
        sender=Sender.ASSIGNER,
    ),
    _event(
        TimerFired,
        Sender.ROUTER,
        deadlines.time_out,
        Cell(_D, (_D, _FAILED), "leases expire; a silent holder is passed over, until no member is left to speak"),
        Cell(_G, (_G, _D, _FAILED), "leases expire; silent seats are closed, until no member is left to speak"),
        Cell(_Q, (_Q, _D, _G, _C, _FAILED), "the default counts"),
        Cell(_W, (_W, _D, _FAILED), "leases expire; after the timeout the floor returns", _FREED),
        Cell(_A, (_A, _FAILED), "leases expire, and their tasks fail", _FREED),
        Cell(_P, (_P, _D, _FAILED), "leases expire; after the timeout the default counts, and the floor returns", _FREED),
        Cell(
            _C,
            (_C, _FAILED),
            "a silent speaker is passed over: the next member concludes, unless the budget is spent or all members are silent",
        ),
    ),
    _event(
        MemberLost,
        Sender.REGISTRY,
        speaking.lose,
        Cell(_D, (_D,), "its tasks are suspect; a lost holder is passed over"),
        Cell(_G, (_G, _D), "its tasks are suspect; its seat is closed without an answer"),
        Cell(_Q, (_Q, _D, _G, _C), "another member is asked, or the default counts"),
        *_stays(_WAITING, "its tasks are suspect: they fail when their lease expires"),
        *_stays((_C,), "a lost speaker is passed over"),
    ),
    _event(
        MemberReturned,
        Sender.REGISTRY,
        speaking.return_member,
        *_stays((*_TALKING, *_WAITING, _C), "the member may speak and work again; it has the floor if all others are lost"),
    ),
    _event(
        MemberJoined,
        Sender.SETUP,
        speaking.invite,
        Cell(_D, (_D,), "an agent joins that the holder of the floor has invited; it hears later messages and reads earlier ones"),
        Cell(_Q, (_Q, _D, _G, _C), "an agent joins that a watcher has invited; this is its decision"),
    ),
    _event(
        CancelRequested,
        Sender.USER,
        speaking.cancel,
        *[Cell(phase, (Phase.CANCELLED,), _CANCELLED) for phase in (*_TALKING, *_WAITING, _C)],
    ),
    _event(
        MessageRefused,
        Sender.ROUTER,
        deciding.refuse_decision,
        Cell(_Q, (_Q, _D, _G, _C), "a wrong choice has cost a try; after the last one the default counts"),
    ),
    _event(
        RepetitionRefused,
        Sender.ROUTER,
        speaking.refuse_repetition,
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
        *_stays((*_TALKING, _A, _P), _NESTED),
        *_stays((_W,), _NESTED, (NOTHING_TO_WAIT_FOR,)),
    ),
    _event(
        SubgroupClosed,
        Sender.NESTED_TEAM,
        tasks.close_subgroup,
        *_stays((*_TALKING, _W), _NESTED_CLOSED, _CHARGED),
        *_stays((_A, _P), _NESTED_CLOSED, _CHARGED_AND_FREED),
        *_stays((_C,), "the usage of a nested group whose task is closed is counted"),
    ),
    _event(
        QuestionAnswered,
        Sender.ANSWERER,
        speaking.take_answer,
        *_stays((*_TALKING, _W, _A), "answers the question of a task"),
        Cell(_P, (_P, _D), "answers the question of a task, or of the member that waits, which has the floor again", _FREED),
    ),
    _event(
        GroupLaunched,
        Sender.SETUP,
        speaking.launch,
        Cell(None, (_D, _G, _Q), "the group is opened; its owner has the floor, or the first speaker of its policy", _CHARGED),
    ),
    _event(
        LaunchAbandoned,
        Sender.SETUP,
        speaking.abandon,
        Cell(None, (_FAILED, Phase.CANCELLED), "the goal ended before it had a group; launches are rejected"),
    ),
)

TABLE: Mapping[Kind, Row] = {row.kind: row for row in _ROWS}
"""The rows by their kind, in the order in which rejections list the legal kinds."""

LED_TO = frozenset((*_TALKING, _C, _CONCLUDED, _FAILED))
"""Phases to which a policy may also lead, after any event that ends a turn."""

STATE_RULES = (NO_TURN_LEFT, BUDGET_SPENT, NOTHING_TO_WAIT_FOR)
"""The transitions that the state itself calls for, in the order of the checks; at most one is made after an event."""

STATE_RULES_IN: Mapping[Phase, tuple[StateRule, ...]] = {
    phase: tuple(rule for rule in STATE_RULES if phase in rule.phases) for phase in Phase
}
