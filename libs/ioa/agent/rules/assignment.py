"""Find who of a group's members could do a task, by the words on their cards: for groups without a plan, and for substitutes.

Only a stand-in for discovery, which has the say while a team is formed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from itertools import chain

from ioa.agent.rules.planning import task_id_of
from ioa.agent.rules.text.goal_splitting import MAX_READ_CHARS, split_goal
from ioa.group.state import Charter, GroupState, PlannedTask
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId

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
    owner, cards = charter.owner, Cards(sorted(charter.team_members, key=lambda card: card.agent_id != charter.owner))
    if len(needs) < 2:
        return (PlannedTask(task_id=task_id_of(0), assignee=cards.best_for(charter.goal) or owner, task_desc=charter.goal),)
    return tuple(
        PlannedTask(
            task_id=task_id_of(position),
            assignee=cards.best_for(need.text) or owner,
            task_desc=need.text,
            uses=tuple(task_id_of(use) for use in need.uses),
        )
        for position, need in enumerate(needs)
    )


class StandIns:
    """Who of a group can do what another member cannot. A plan may hold thousands of tasks for one that is lost."""

    def __init__(self, charter: Charter, state: GroupState) -> None:
        self.living = frozenset(state.living())
        self._cards = [card for card in charter.team_members if card.agent_id in self.living]
        self._pools = {card.agent_id: card.pool for card in charter.team_members}
        self._of_pool = defaultdict[PoolId, list[AgentId]](list)
        for card in self._cards:
            self._of_pool[card.pool].append(card.agent_id)

    @cached_property
    def _told(self) -> Cards:
        return Cards(self._cards)

    def substitute(self, task: PlannedTask, *, instead_of: AgentId) -> AgentId | None:
        """Return a living member whose card speaks of what a task asks for, where no replica of who cannot do it is left."""
        return self._told.best_for(task.task_desc, ENOUGH_WORDS, but=instead_of)

    def replica_of(self, agent_id: AgentId) -> AgentId | None:
        """Return a living member of the same pool, which does everything as well."""
        pool = self._pools.get(agent_id)
        return next((one for one in self._of_pool[pool] if one != agent_id), None) if pool is not None else None


class Cards:
    """What agents say of themselves, to find whose words are most like a request's. Each card is read once, for all requests."""

    def __init__(self, cards: Sequence[AgentCard]) -> None:
        self._agents = [card.agent_id for card in cards]
        self._with = defaultdict[str, list[int]](list)
        for at, card in enumerate(cards):
            for word in _stems(_told_by(card)):
                self._with[word].append(at)

    def best_for(self, request: str, least: int = 1, *, but: AgentId | None = None) -> AgentId | None:
        """Return whose card has the most words of a request, the first of several; None if none has so many, `but` one aside."""
        shared = Counter(chain.from_iterable([self._with.get(word, ()) for word in _stems(request[:MAX_READ_CHARS])]))
        fit = [(-count, at) for at, count in shared.items() if count >= least and self._agents[at] != but]
        return self._agents[min(fit)[1]] if fit else None


def _told_by(card: AgentCard) -> str:
    skills = (f"{one.name} {one.description}" for one in card.skills)
    return " ".join((card.name, card.description, *card.examples, *card.tags, *skills))


def _stems(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"[a-z]{3,}", text.lower()) if word not in _STOP}
