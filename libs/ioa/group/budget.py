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


def charge(state: GroupState, said: Said, *, is_turn: bool) -> GroupState:
    """Add the usage of a message, the usage of its task since the task's last report, and the decider."""
    usage, payload = said.message.header.usage or NOTHING, said.message.payload
    changed: dict[str, object] = {}
    if not is_turn and isinstance(payload, TASK_REPORTS) and payload.usage is not None:
        task = state.task(payload.task_id)
        if isinstance(task, OpenTask):
            more = payload.usage.beyond(task.spent)
            usage = usage.plus(more)
            charged = task.model_copy(update={"spent": task.spent.plus(more)})
            changed["tasks"] = tuple([charged if other is task else other for other in state.tasks])
    if (spent := state.spent.plus(usage)) is not state.spent:
        changed["spent"] = spent
        if is_turn and state.limits.max_tokens is not None and usage.tokens > state.dearest_turn:
            changed["dearest_turn"] = usage.tokens
    by = said.message.header.decided_by
    if by is not None and not isinstance(payload, TASK_REPORTS):
        changed["decisions"] = counted_once(state.decisions, by)
    return state.model_copy(update=changed) if changed else state


def spent_budget(state: GroupState, speakers: int = 0) -> str | None:
    """Return the name of a spent budget; None if each suffices.

    The tokens of the most expensive turn are reserved for each speaker, so that no turn starts that cannot be paid. Loans count as
    available for this, because most of them return.
    """
    tokens, reserved = tokens_left(state), speakers * state.dearest_turn
    if tokens is not None and (
        tokens == 0 or (tokens < reserved and tokens + sum(loan.tokens or 0 for loan in state.loans) < reserved)
    ):
        return "token"
    return "cost" if cost_left(state) == 0 else None


def tokens_left(state: GroupState) -> int | None:
    """Return the tokens that are neither used nor lent; None without a limit."""
    limit = state.limits.max_tokens
    return None if limit is None else max(0, limit - state.spent.tokens - sum(loan.tokens or 0 for loan in state.loans))


def cost_left(state: GroupState) -> int | None:
    """Return the cost in millionths that is neither used nor lent; None without a limit."""
    limit = state.limits.max_cost_micros
    return None if limit is None else max(0, limit - state.spent.cost_micros - sum(loan.cost_micros or 0 for loan in state.loans))


def is_exhausted(state: GroupState, unreported: Usage) -> bool:
    """Return whether unreported usage exhausts a budget."""
    tokens, cost = tokens_left(state), cost_left(state)
    return (tokens is not None and tokens <= unreported.tokens) or (cost is not None and cost <= unreported.cost_micros)


def share_of_task(state: GroupState) -> tuple[int | None, int | None]:
    """Return the maximum tokens and cost in millionths of a task: nine tenths of the rest; None without a limit."""
    tokens, cost = tokens_left(state), cost_left(state)
    return tokens and tokens * 9 // 10, cost and cost * 9 // 10


def lend(state: GroupState, task: OpenTask, subgroup: CommId, at: datetime) -> GroupState:
    """Lend a nested group half of the rest, and nine tenths of the time.

    Raises:
        IllegalEventError: Half of the rest is nothing.
    """
    left = {"turns": state.turns_left, "tokens": tokens_left(state), "cost_micros": cost_left(state)}
    shares = {what: rest and rest // _SHARE for what, rest in left.items()}
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
    """Remove the loan of a nested group and count its usage."""
    return state.model_copy(
        update={
            "loans": tuple(loan for loan in state.loans if loan.subgroup != closed.subgroup),
            "nested_turns": state.nested_turns + closed.turns,
            "spent": state.spent.plus(closed.usage),
            "decisions": counted(state.decisions, closed.decisions) if closed.decisions else state.decisions,
        }
    )
