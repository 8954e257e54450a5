"""The budget of a group: turns, tokens and cost, nested groups included.

A nested group gets a share of the rest as a loan. A loan counts as used until the group has ended and reports its usage, so that a
tree of groups never exceeds the budget of its goal.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from ioa.group.events import Said, SubgroupClosed
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import GroupState, Loan, OpenTask
from ioa.protocol.decisions import counted, counted_once
from ioa.protocol.ids import CommId
from ioa.protocol.messages import TASK_REPORTS
from ioa.protocol.usage import NOTHING, Usage

_SHARE = 2
"""Divisor of the rest for a nested group's share."""

_KEPT_TIME = 10
"""Divisor of the remaining time that the parent keeps for its conclusion."""

_KEPT_BUDGET = 10
"""Divisor of the remaining tokens and cost that a group keeps from each task."""


def charge(state: GroupState, said: Said, *, has_floor: bool) -> GroupState:
    """Add the usage of a message, of the task that it reports on since the last report, and the decider.

    Usage without the floor, which is about a task, counts up to the share of the task.
    """
    usage, payload = said.message.header.usage or NOTHING, said.message.payload
    if isinstance(payload, TASK_REPORTS) and payload.usage is not None:
        task = state.task(payload.task_id)
        if isinstance(task, OpenTask):
            more = payload.usage.beyond(task.spent)
            usage = within_share(state, usage.plus(more))
            state = _with_spent(state, task, within_share(state, more))
    elif usage is not NOTHING and not has_floor:
        usage = within_share(state, usage)
    changed: dict[str, object] = {} if usage is NOTHING else {"spent": state.spent.plus(usage)}
    if usage is not NOTHING and usage.tokens > state.dearest_turn and has_floor and state.limits.max_tokens is not None:
        changed["dearest_turn"] = usage.tokens
    by = said.message.header.decided_by
    if by is not None and not isinstance(payload, TASK_REPORTS):
        changed["decisions"] = counted_once(state.decisions, by)
    return state.model_copy(update=changed) if changed else state


def spent_budget(state: GroupState, speakers: int = 0) -> str | None:
    """Return the name of a spent budget; None if each suffices.

    The tokens of the most expensive turn are reserved for each speaker, so that no turn begins that cannot be paid. Loans count as
    available for this, because most of them return.
    """
    if state.limits.max_tokens is None and state.limits.max_cost_micros is None:
        return None
    tokens = tokens_left(state)
    if tokens == 0:
        return "token"
    if tokens is not None and speakers and state.dearest_turn:
        lent = sum([loan.tokens or 0 for loan in state.loans])
        if tokens + lent < speakers * state.dearest_turn:
            return "token"
    if cost_left(state) == 0:
        return "cost"
    return None


def tokens_left(state: GroupState) -> int | None:
    """Return the tokens that are neither used nor lent; None without a limit."""
    return _left(state.limits.max_tokens, state.spent.tokens, [loan.tokens for loan in state.loans])


def cost_left(state: GroupState) -> int | None:
    """Return the cost in millionths that is neither used nor lent; None without a limit."""
    return _left(state.limits.max_cost_micros, state.spent.cost_micros, [loan.cost_micros for loan in state.loans])


def is_exhausted(state: GroupState, unreported: Usage) -> bool:
    """Return whether unreported usage exhausts a budget."""
    tokens, cost = tokens_left(state), cost_left(state)
    return (tokens is not None and tokens <= unreported.tokens) or (cost is not None and cost <= unreported.cost_micros)


def share_of_task(state: GroupState) -> tuple[int | None, int | None]:
    """Return the tokens and the cost in millionths that a task may still use; None without a limit.

    The group keeps a tenth of the rest and the tokens of its most expensive turn, so that no report on a task ends it.
    """
    tokens, cost = tokens_left(state), cost_left(state)
    return (
        None if tokens is None else max(0, tokens - max(1, tokens // _KEPT_BUDGET, state.dearest_turn)),
        None if cost is None else max(0, cost - max(1, cost // _KEPT_BUDGET)),
    )


def within_share(state: GroupState, usage: Usage) -> Usage:
    """Return the part of reported usage that counts: at most the share of the task."""
    tokens, cost = share_of_task(state)
    tokens_in = usage.tokens_in if tokens is None else min(usage.tokens_in, tokens)
    return usage.model_copy(
        update={
            "tokens_in": tokens_in,
            "tokens_out": usage.tokens_out if tokens is None else min(usage.tokens_out, tokens - tokens_in),
            "cost_micros": usage.cost_micros if cost is None else min(usage.cost_micros, cost),
        }
    )


def exceeds_share(task: OpenTask, told: Usage | None) -> bool:
    """Return whether the reported usage exceeds the usage that `charge` has counted."""
    if told is None:
        return False
    more = told.beyond(task.spent)
    return more.tokens > 0 or more.cost_micros > 0


def lend(state: GroupState, task: OpenTask, subgroup: CommId, at: datetime) -> GroupState:
    """Lend a nested group half of the rest, and nine tenths of the time.

    Raises:
        IllegalEventError: Half of the rest is nothing.
    """
    shares = {
        "turns": state.turns_left // _SHARE,
        "tokens": _share(tokens_left(state)),
        "cost_micros": _share(cost_left(state)),
    }
    for what, share in shares.items():
        if share == 0:
            why = f"Too little of the budget is left for a nested team: {what.removesuffix('_micros')}."
            raise IllegalEventError(RejectionCode.TOO_LITTLE_LEFT, why)
    deadline = state.limits.deadline - max(timedelta(0), state.limits.deadline - at) / _KEPT_TIME
    if task.deadline is not None:
        deadline = min(deadline, task.deadline)
    loan = Loan.model_validate({"subgroup": subgroup, "deadline": deadline, **shares})
    return state.model_copy(update={"loans": (*state.loans, loan)})


def repay(state: GroupState, closed: SubgroupClosed) -> GroupState:
    """Remove the loan of a nested group and count its usage, up to the share of its task."""
    state = state.model_copy(update={"loans": tuple(loan for loan in state.loans if loan.subgroup != closed.subgroup)})
    return state.model_copy(
        update={
            "nested_turns": state.nested_turns + closed.turns,
            "spent": state.spent.plus(within_share(state, closed.usage)),
            "decisions": counted(state.decisions, closed.decisions) if closed.decisions else state.decisions,
        }
    )


def _left(limit: int | None, spent: int, lent: list[int | None]) -> int | None:
    return None if limit is None else max(0, limit - spent - (sum([share or 0 for share in lent]) if lent else 0))


def _share(left: int | None) -> int | None:
    return None if left is None else left // _SHARE


def _with_spent(state: GroupState, task: OpenTask, more: Usage) -> GroupState:
    charged = task.model_copy(update={"spent": task.spent.plus(more)})
    return state.model_copy(update={"tasks": tuple(charged if other is task else other for other in state.tasks)})
