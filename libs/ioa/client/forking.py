"""The order for a goal that goes on from another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ioa.errors import ConflictError, InvalidInputError, NoAgentError, NotFoundError
from ioa.ports.system_client import SystemClient
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import validate
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Fork, Goal, Replacement
from ioa.protocol.ids import AgentId, GoalName, parse_agent_id, parse_goal_id
from ioa.protocol.labels import RESERVED
from ioa.protocol.search import Search
from ioa.protocol.usage import MICROS


@dataclass(frozen=True)
class Changes:
    """What a fork changes of the goal that it comes from; None leaves it as it is.

    Attributes:
        say: What the message of the entry says.
        replace: Who stands in whose place; None for whoever discovery finds by the other's card.
        max_turns: How many messages may be said, those that are copied included.
        max_tokens: How many tokens may be used up, with what the copied part has cost.
        max_cost: The same of money, in the currency the agents count in.
        timeout: How long the fork may take from when it is launched, in seconds.
        labels: Labels that it bears besides those of the other goal.
    """

    say: str | None = None
    replace: Mapping[str, str | None] = field(default_factory=dict)
    max_turns: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    timeout: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


async def order_of_fork(system: SystemClient, name: GoalName, at: int | None, goal_id: str | None, changes: Changes) -> GoalOrder:
    """Build the order for a fork. With an id that is taken by a fork like it, it is the order of that one.

    Raises:
        NotFoundError: There is no such goal, or it was removed.
        ConflictError: It has no group yet, or has ended, and nobody says at which entry to begin.
        InvalidInputError: What is to be another cannot be.
        NoAgentError: Discovery finds nobody for the place of a member.
    """
    status = await system.goal(name)
    if status.standing is None:
        raise ConflictError(f"No group was opened for {name}: there is nothing to fork.")
    goal = status.record.goal
    known = None if goal_id is None else await _known(system, GoalName(name.user, parse_goal_id(goal_id)))
    if at is None and known is not None and known.forked_from is not None and known.forked_from.goal_id == goal.goal_id:
        at = known.forked_from.at  # where it stood when it was first asked for
    if at is None:
        if status.standing.state.phase.is_terminal:
            raise ConflictError(f"{name} has ended: nothing goes on from its last entry.", hint="Say at which entry to begin.")
        at = status.standing.seq
    if known is not None and _is_alike(known, goal, at, changes):
        replace = known.forked_from.replace if known.forked_from is not None else ()
    else:
        cards = {card.agent_id: card for card in await _cards(system, name)}
        replace = tuple([await _replacement(system, old, new, cards) for old, new in changes.replace.items()])
    fork = validate(Fork, {"goal_id": goal.goal_id, "at": at, "say": changes.say, "replace": replace})
    cost = None if goal.max_cost_micros is None else goal.max_cost_micros / MICROS
    labels = {key: value for key, value in goal.labels.items() if key not in RESERVED}
    terms = {
        "goal_id": goal_id,
        "agent": goal.agent,
        "inputs": goal.inputs,
        "team": goal.team,
        "repetition": goal.repetition,
        "result_format": goal.result_format,
        "max_turns": changes.max_turns or goal.max_turns,
        "max_tokens": changes.max_tokens or goal.max_tokens,
        "max_cost": cost if changes.max_cost is None else changes.max_cost,
        "timeout": goal.timeout.total_seconds() if changes.timeout is None else changes.timeout,
        "labels": labels | dict(changes.labels),
        "forked_from": fork,
    }
    return GoalOrder.model_validate({"goal": goal.goal, **{key: value for key, value in terms.items() if value is not None}})


async def _known(system: SystemClient, name: GoalName) -> Goal | None:
    try:
        return (await system.goal(name)).record.goal
    except NotFoundError:
        return None


def _is_alike(known: Goal, goal: Goal, at: int, changes: Changes) -> bool:
    """Whether a goal is this fork: a repetition finds nobody anew for a place."""
    fork = known.forked_from
    if fork is None or (fork.goal_id, fork.at, fork.say) != (goal.goal_id, at, changes.say):
        return False
    taken = {one.old: one.new for one in fork.replace}
    return taken.keys() == set(changes.replace) and all(new in (None, taken[AgentId(old)]) for old, new in changes.replace.items())


async def _cards(system: SystemClient, name: GoalName) -> tuple[AgentCard, ...]:
    charter = (await system.group(name.comm_id)).charter
    return () if charter is None else charter.team_members


async def _replacement(system: SystemClient, old: str, new: str | None, cards: Mapping[AgentId, AgentCard]) -> Replacement:
    """Say who stands in a member's place, whom discovery is asked for if nobody says."""
    member = parse_agent_id(old)
    if new is not None:
        return Replacement(old=member, new=parse_agent_id(new))
    if member not in cards:
        raise InvalidInputError(f"{old} is no member of the group that is forked.", hint="`ioa goal show` lists them.")
    found = await system.search(validate(Search, {"needs": [{"text": cards[member].description}], "exclude": [*cards]}))
    hits = [hit.card.agent_id for hit in found.by_need[0].hits if hit.online and hit.card.agent_id not in cards]
    if not hits:
        raise NoAgentError(f"Discovery finds nobody for the place of {old}.")
    return Replacement(old=member, new=hits[0])
