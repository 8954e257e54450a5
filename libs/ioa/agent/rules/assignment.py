"""Find who of a group's members could do a task, by the words on their cards: for groups without a plan, and for substitutes.

Only a stand-in for discovery, which has the say while a team is formed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ioa.agent.rules.planning import task_id_of
from ioa.agent.rules.text.goal_splitting import split_goal
from ioa.group.state import Charter, GroupState, PlannedTask
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId

ENOUGH_WORDS = 2
_STOP = frozenset(
    "the and for with from that this what which how many much are was were per all any into its his her our your out "
    "has have does not but can".split()
)


def plan_of(charter: Charter) -> tuple[PlannedTask, ...]:
    """Return the group's plan; a group that was launched without one gets it from its goal and its members' cards.

    It depends on the charter alone, so that every member comes to the same plan.
    """
    if charter.plan:
        return charter.plan
    needs = split_goal(charter.goal) if len(charter.team_members) > 1 else ()
    if len(needs) < 2:
        return (PlannedTask(task_id=task_id_of(0), assignee=_best(charter.goal, charter), task_desc=charter.goal),)
    return tuple(
        PlannedTask(
            task_id=task_id_of(position),
            assignee=_best(need.text, charter),
            task_desc=need.text,
            uses=tuple(task_id_of(use) for use in need.uses),
        )
        for position, need in enumerate(needs)
    )


def substitute(task: PlannedTask, charter: Charter, state: GroupState, *, instead_of: AgentId) -> AgentId | None:
    """Return a living member that can do a task another one cannot: a replica of it, else one whose card speaks of such things."""
    cards, replica = _others(charter, state, instead_of), replica_of(instead_of, charter, state)
    if replica is not None or not cards:
        return replica
    best = max(cards, key=lambda card: _shared(task.task_desc, card))
    return best.agent_id if _shared(task.task_desc, best) >= ENOUGH_WORDS else None


def replica_of(agent_id: AgentId, charter: Charter, state: GroupState) -> AgentId | None:
    """Return a living member of the same pool, which does everything as well."""
    pool = next((card.pool for card in charter.team_members if card.agent_id == agent_id), None)
    return next((card.agent_id for card in _others(charter, state, agent_id) if card.pool == pool), None)


def _others(charter: Charter, state: GroupState, agent_id: AgentId) -> list[AgentCard]:
    living = set(state.living())
    return [card for card in charter.team_members if card.agent_id in living and card.agent_id != agent_id]


def _best(request: str, charter: Charter) -> AgentId:
    cards: Sequence[AgentCard] = sorted(charter.team_members, key=lambda card: card.agent_id != charter.owner)
    best = max(cards, key=lambda card: _shared(request, card))
    return best.agent_id if _shared(request, best) else charter.owner


def _shared(request: str, card: AgentCard) -> int:
    told = " ".join(
        (card.name, card.description, *card.examples, *card.tags, *(f"{one.name} {one.description}" for one in card.skills))
    )
    return len(_stems(request) & _stems(told))


def _stems(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"[a-z]{3,}", text.lower()) if word not in _STOP}
