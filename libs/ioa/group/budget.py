"""What a group may use up, and what it has: turns, tokens and money, with those of the teams nested in it.

A nested team gets a share of what is left as a loan. What is lent counts as used until the team has ended and says what it came
to, so that a whole tree of teams never uses more than its goal's budget, whatever runs side by side in it.
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
"""A nested team gets what is left, divided by this."""

_KEPT_TIME = 10
"""The parent keeps this fraction of the time that is left, to conclude in."""

_TENTHS = 10

_KEPT_BUDGET = 10
"""One part of so many of what is left of tokens and money a group keeps from each task."""


def charge(state: GroupState, said: Said, *, has_floor: bool) -> GroupState:
    """Add what a message cost its sender, what the task it reports on has cost since the last report, and who decided it.

    What is told without the floor, which is about a task, counts as far as it is within the task's share.
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
    """Name a budget of which nothing is left, or too little to let so many speak; None while there is enough of each.

    What the dearest turn took is kept for each who is to speak, so that no turn is started that cannot be paid. What nested teams
    were lent counts as there, since most of it comes back.
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
    """Return how many tokens nobody has used or been lent; None where they are not limited."""
    return _left(state.limits.max_tokens, state.spent.tokens, [loan.tokens for loan in state.loans])


def cost_left(state: GroupState) -> int | None:
    """Return how much money, in millionths, nobody has used or been lent; None where it is not limited."""
    return _left(state.limits.max_cost_micros, state.spent.cost_micros, [loan.cost_micros for loan in state.loans])


def is_exhausted(state: GroupState, unreported: Usage) -> bool:
    """Whether nothing is left of a budget once this usage, which no message has reported yet, is counted."""
    tokens, cost = tokens_left(state), cost_left(state)
    return (tokens is not None and tokens <= unreported.tokens) or (cost is not None and cost <= unreported.cost_micros)


def share_of_task(state: GroupState) -> tuple[int | None, int | None]:
    """Return how many tokens, and how much money in millionths, a task may yet cost; None is no bound.

    The group keeps a tenth of what is left, and what its dearest turn took, so that no report on a task ends it.
    """
    tokens, cost = tokens_left(state), cost_left(state)
    return (
        None if tokens is None else max(0, tokens - max(1, tokens // _KEPT_BUDGET, state.dearest_turn)),
        None if cost is None else max(0, cost - max(1, cost // _KEPT_BUDGET)),
    )


def within_share(state: GroupState, usage: Usage) -> Usage:
    """Return what counts of a usage that is told of a task: no more than the task's share."""
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
    """Whether more is told of a task than has been counted, by `charge`, since it is more than its share."""
    if told is None:
        return False
    more = told.beyond(task.spent)
    return more.tokens > 0 or more.cost_micros > 0


def lend(state: GroupState, task: OpenTask, subgroup: CommId, at: datetime) -> GroupState:
    """Lend a nested team half of what is left, and nine tenths of the time.

    Raises:
        IllegalEventError: Half of what is left is nothing.
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
    """Take a nested team's loan back and count what the team has used instead, as far as it is within its task's share."""
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
