"""Which replicas a pool has, who of them is alive and how busy, as cards and leases say.

None of it is in the index: a load that changes with every renewal of a lease rewrites nothing, and an agent that went offline is
out of the answers at once, however far the index lags. Replicas are told by their cards: agents of one pool that say the same of
themselves. While a pool is upgraded, it has two kinds of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import NamedTuple

from ioa.ports.clock import Clock
from ioa.ports.registry_store import RegistryView
from ioa.protocol.cards import AgentCard, may_draft
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.load import IDLE, Load
from ioa_discovery.search.recent_nominations import RecentNominations


class Named(NamedTuple):
    """The replica that stands for its pool in an answer, and out of how many it was chosen."""

    agent_id: AgentId
    online: bool = True
    load: Load = IDLE
    replicas: int = 1


class Replicas:
    """Choose replicas by what a registry's view shows. `touch` has to be told of every agent whose card changed.

    Args:
        view: Cards, leases and loads.
        clock: The time.
        renew_every: How old a load may be.
    """

    def __init__(self, view: RegistryView, clock: Clock, renew_every: timedelta) -> None:
        self._view = view
        self._handovers = RecentNominations(clock, renew_every)
        self._said: dict[AgentId, tuple[PoolId, int]] = {}
        self._alike: dict[tuple[PoolId, int], set[AgentId]] = {}

    def touch(self, agent_id: AgentId) -> None:
        """Look at an agent's card again."""
        record = self._view.card(agent_id)
        says = (record.card.pool, _words_of(record.card)) if record is not None else None
        before = self._said.get(agent_id)
        if says == before:
            return
        if before is not None:
            self._alike[before].discard(agent_id)
            if not self._alike[before]:
                del self._alike[before]
            del self._said[agent_id]
        if says is not None:
            self._said[agent_id] = says
            self._alike.setdefault(says, set()).add(agent_id)

    def name(
        self, found: AgentId, *, purpose: str, allowed: Callable[[AgentId, bool], bool], by: AgentId | None = None
    ) -> Named | None:
        """Name the least busy replica of an agent that was found, itself included; None if none is allowed or left.

        Args:
            found: An agent of the index.
            purpose: Of equally busy replicas it decides, and for each purpose so that all get their share.
            allowed: Says of an agent, and of whether it is online, whether it may be named.
            by: Who looks for it. Of who accepts no teams of this agent's pool none is named; None looks for no team.
        """
        says = self._said.get(found)
        if says is None or not self._is_open_to(found, by):
            return None
        alike = [(agent_id, self._view.is_online(agent_id)) for agent_id in self._alike[says]]
        eligible = [Named(agent_id, online, self._view.load(agent_id)) for agent_id, online in alike if allowed(agent_id, online)]
        if len(eligible) < 2:
            return eligible[0] if eligible else None
        best = min(
            eligible,
            key=lambda one: (not one.online, self._busy(one, purpose), one.load.groups, _lot(purpose, one.agent_id)),
        )
        return Named(best.agent_id, best.online, best.load, len(eligible))

    def hand_over(self, agent_id: AgentId, purpose: str, excluded: Collection[AgentId] = ()) -> None:
        """Note that an agent will probably get a task, which its load does not show yet.

        Not where others like it were excluded: whoever searches says whom, and could have any replica seem busy, so that the others
        got all that comes.
        """
        says = self._said.get(agent_id)
        if says is not None and self._alike[says].isdisjoint(excluded):
            self._handovers.add(agent_id, purpose)

    def _is_open_to(self, found: AgentId, by: AgentId | None) -> bool:
        record = self._view.card(found)
        if by is None or record is None:
            return True
        asking = self._view.card(by)
        return may_draft(None if asking is None else asking.card, record.card)

    def _busy(self, one: Named, purpose: str) -> float:
        return (one.load.tasks + self._handovers.count(one.agent_id, but_for=purpose)) / one.load.slots


def _words_of(card: AgentCard) -> int:
    """Digest what a card says of the agent, its id apart. Good within this process only, as hashes of strings are."""
    return hash((card.name, card.description, card.skills, card.examples, card.tags, card.version, card.may_team_up, card.accepts))


def _lot(purpose: str, agent_id: AgentId) -> bytes:
    """Draw a lot that is the same on every replica of discovery (rendezvous hashing)."""
    return hashlib.blake2b(f"{purpose}\0{agent_id}".encode("utf-8", "replace"), digest_size=8).digest()
