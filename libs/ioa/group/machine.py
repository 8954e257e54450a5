"""The group's finite-state machine: one table, one step function (paper, section 2.3.3).

`step` is pure and total: the same state and event give the same result; an illegal event raises and changes nothing. The table is
in `ioa.group.table`, its checks are in `ioa.group.legality`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ioa.group import budget, legality, tasks
from ioa.group.events import Event, GroupLaunched, Said, kind_of, name_of
from ioa.group.limits import UNLIMITED, GroupLimits
from ioa.group.policy.hearing import audience
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.speaking import forget_monologue
from ioa.group.state import ClosedTask, Ended, GroupState
from ioa.group.table import LED_TO, STATE_RULES_IN, TABLE, Sender
from ioa.protocol.decisions import Decisions
from ioa.protocol.goals import Artifact, Degraded, GoalResult, Reason
from ioa.protocol.ids import AgentId, CommId, GoalName
from ioa.protocol.messages import InformTaskProgress
from ioa.protocol.policy import Policy
from ioa.protocol.setup.charter import ParentTask
from ioa.protocol.usage import NOTHING, Usage


@dataclass(frozen=True)
class PublishResult:
    """Publish the one terminal result of a goal."""

    result: GoalResult


@dataclass(frozen=True)
class ReportToParent:
    """Close the parent group's task with the result and usage of the nested group."""

    parent: ParentTask
    subgroup: CommId
    reason: Reason
    content: str
    artifacts: tuple[Artifact, ...]
    turns: int = 0
    usage: Usage = NOTHING
    degraded: Degraded | None = None
    decisions: tuple[Decisions, ...] = ()


@dataclass(frozen=True)
class CancelSubgroup:
    """Cancel a nested group whose task is closed, or prevent its launch."""

    subgroup: CommId
    task: ParentTask
    goal: GoalName
    why: str


Effect = PublishResult | ReportToParent | CancelSubgroup


class Transition(NamedTuple):
    """The state after an event, and the event as it is appended: without words that other members must not hear.

    `effects` are actions of the control plane that follow. The `audience` includes a member that the event removes.
    """

    state: GroupState
    event: Event
    effects: tuple[Effect, ...] = ()
    audience: tuple[AgentId, ...] = ()


def step(state: GroupState | None, event: Event, policy: Policy | None = None, limits: GroupLimits = UNLIMITED) -> Transition:
    """Apply one event to a group.

    Args:
        state: The group as its last log entry left it, or None while its log is empty.
        event: The event.
        policy: The policy of the group's charter; None in a free group. A launch brings its own.
        limits: The configured limits of the group. Default: none.

    Raises:
        IllegalEventError: The event is not legal now; nothing has changed.
    """
    if state is None:
        opened = _open(event)
        return Transition(opened, event, owed_effects(opened), opened.hearing)
    event = legality.admit(policy, state, event)
    try:
        after = _apply(state, event, policy, limits)
    except IllegalEventError as rejected:
        legal: tuple[str, ...] = ()
        if isinstance(event, Said):
            kinds = legality.legal_kinds(state, event.message.header.sender, event.at, policy, limits)
            legal = tuple(map(name_of, kinds))
        raise IllegalEventError(rejected.code, rejected.message, legal=legal, repeats_turn=rejected.repeats_turn) from None
    return Transition(after, event, owed_effects(after), audience(policy, state, event))


def needs_entry(state: GroupState, said: Said, report: InformTaskProgress) -> bool:
    """Return whether a progress report needs an entry: if it acknowledges its task, is charged to a budget, or is rejected.

    Other reports only renew the lease of their task, and are taken in when the leases are checked (`TimerFired.heard`). Without a
    budget their usage is ignored.
    """
    try:
        legality.check(state, said, None)
        task = tasks.check_progress(state, said, report)
    except IllegalEventError:
        return True
    limits, usage, spent = state.limits, said.message.header.usage or NOTHING, report.usage or NOTHING
    has_budget = limits.max_tokens is not None or limits.max_cost_micros is not None
    return task.progress == 0 or (has_budget and (usage != NOTHING or spent.beyond(task.spent) != NOTHING))


def _open(event: Event) -> GroupState:
    row = TABLE[kind_of(event)]
    cell = row.cells.get(None)
    if cell is None:
        raise IllegalEventError(RejectionCode.NO_GROUP, "No group has been launched under this comm_id.")
    policy = event.charter.policy if isinstance(event, GroupLaunched) else None
    after = _fire(row.apply(None, event, policy), event, policy)
    assert after.phase in cell.leads_to, f"{row.name} began with {after.phase}, which the table does not contain"
    return after


def _apply(state: GroupState, event: Event, policy: Policy | None, limits: GroupLimits) -> GroupState:
    if state.course is not None and (policy is None or policy.digest != state.course.policy):
        raise ValueError(f"The group {state.comm_id} was not handed the policy of its charter.")
    row, cell = legality.check(state, event, policy, limits)
    is_turn = row.sender is Sender.FLOOR_HOLDER
    charged = budget.charge(state, event, is_turn=is_turn) if isinstance(event, Said) else state
    after = row.apply(charged, event, policy)
    if after.tasks is not state.tasks:
        after = tasks.settle(after, event.at)
    if after.turn == state.turn:  # a new grant has already checked what the state calls for
        after = _fire(after, event, policy)
        # Comparing whole states is expensive, and a turn that is taken or granted is a change.
        if after.turn == state.turn and after.turns_taken == state.turns_taken and after == state:
            raise IllegalEventError(RejectionCode.NO_CHANGE, f"{row.name} changes nothing.")
    phase = after.phase
    is_known = phase in cell.leads_to or (policy is not None and phase in LED_TO)
    assert is_known, f"{row.name} led from {cell.phase} to {phase}, which the table does not contain"
    return tasks.fold(state, forget_monologue(state, after, event))


def _fire(state: GroupState, event: Event, policy: Policy | None) -> GroupState:
    """Make the transition that the state calls for, if any."""
    for rule in STATE_RULES_IN[state.phase]:
        if rule.when(state):
            return rule.apply(state, event.at, policy)
    return state


def owed_effects(state: GroupState) -> tuple[Effect, ...]:
    """Return the effects that follow from the state of a group.

    If a router stops between an append and its effects, any process that reads the group next carries them out. Effects may be
    repeated: a nested group is cancelled until it has ended and its loan is removed.
    """
    if not state.loans and not isinstance(state.stage, Ended):
        return ()
    effects: list[Effect] = [_conclusion(state, state.stage)] if isinstance(state.stage, Ended) else []
    lent = {loan.subgroup for loan in state.loans}
    for task in state.tasks:
        if isinstance(task, ClosedTask) and task.subgroup in lent:
            served = ParentTask(comm_id=state.comm_id, task_id=task.task_id)
            effects.append(CancelSubgroup(task.subgroup, served, state.name, task.why or "its task is closed"))
    return tuple(effects)


def _conclusion(state: GroupState, ended: Ended) -> PublishResult | ReportToParent:
    """Return the result of an ended group to its goal's owner, or to its parent."""
    turns = state.turns_taken + state.nested_turns
    if state.parent is not None:
        loans = state.loans  # of groups that are cancelled with this one: without their reports all of it counts
        lent = Usage(tokens_in=sum(loan.tokens or 0 for loan in loans), cost_micros=sum(loan.cost_micros or 0 for loan in loans))
        used = turns + sum(loan.turns for loan in loans), state.spent.plus(lent)
        outcome = ended.reason, ended.content, ended.artifacts
        return ReportToParent(state.parent, state.comm_id, *outcome, *used, ended.degraded, state.decisions)
    result = GoalResult(
        goal_id=state.goal_id,
        user=state.user,
        reason=ended.reason,
        content=ended.content,
        artifacts=ended.artifacts,
        comm_id=state.comm_id,
        turns=turns,
        usage=state.spent,
        degraded=ended.degraded,
        decisions=state.decisions,
        finished_at=ended.ended_at,
        limit=ended.limit,
    )
    return PublishResult(result)
