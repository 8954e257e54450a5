"""Replicas of pools: their status and load, by cards and leases.

None of it is in the index: a load changes with every renewal of a lease, and an agent that went offline must not be returned, even
if the index lags. Replicas are agents of the same pool with equal cards. While a pool is upgraded, it has two kinds of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from ioa.ports.clock import Clock
from ioa.ports.registry_view import RegistryView
from ioa.protocol.cards import IDLE, AgentCard, Load, why_not_drafted
from ioa.protocol.ids import AgentId, PoolId


class Named(NamedTuple):
    """The replica that represents its pool in an answer, and the number of replicas it was chosen from."""

    agent_id: AgentId
    online: bool = True
    load: Load = IDLE
    replicas: int = 1


class Replicas:
    """Choose replicas by a registry's view. `touch` must be called for every agent whose card changed.

    A named agent counts as busier by one task for `renew_every`, because its load does not contain that task yet.
    """

    def __init__(self, view: RegistryView, clock: Clock, renew_every: timedelta) -> None:
        self._view = view
        self._clock = clock
        self._renew_every = renew_every
        self._nominations: dict[AgentId, dict[str, datetime]] = {}
        self._kinds: dict[AgentId, tuple[PoolId, int]] = {}
        self._alike: dict[tuple[PoolId, int], set[AgentId]] = {}

    def touch(self, agent_id: AgentId) -> None:
        """Read an agent's card again."""
        record = self._view.card(agent_id)
        kind = (record.card.pool, _digest(record.card)) if record is not None else None
        before = self._kinds.get(agent_id)
        if kind == before:
            return
        if before is not None:
            self._alike[before].discard(agent_id)
            if not self._alike[before]:
                del self._alike[before]
            del self._kinds[agent_id]
            self._nominations.pop(agent_id, None)
        if kind is not None:
            self._kinds[agent_id] = kind
            self._alike.setdefault(kind, set()).add(agent_id)

    def name(
        self, found: AgentId, *, purpose: str, allowed: Callable[[AgentId, bool], bool], by: AgentId | None = None
    ) -> Named | None:
        """Return the least busy replica of an agent that was found, itself included; None if none is allowed or left.

        Args:
            found: An agent of the index.
            purpose: Chooses among equally busy replicas, so that different purposes are distributed evenly.
            allowed: Returns for an agent and its status whether it may be named.
            by: The agent that searches. If the card of the agent found does not accept its pool, none is named. None: no check.
        """
        kind = self._kinds.get(found)
        if kind is None or not self._accepts(found, by):
            return None
        alike = [(agent_id, self._view.is_online(agent_id)) for agent_id in self._alike[kind]]
        eligible = [Named(agent_id, online, self._view.load(agent_id)) for agent_id, online in alike if allowed(agent_id, online)]
        if not eligible:
            return None
        best = min(
            eligible,
            key=lambda one: (not one.online, self._busy(one, purpose), one.load.groups, _rendezvous(purpose, one.agent_id)),
        )
        return Named(best.agent_id, best.online, best.load, len(eligible))

    def nominate(self, agent_id: AgentId, purpose: str) -> None:
        """Record that an agent was named for a purpose. Each replica of discovery knows its own answers only."""
        self._recent(agent_id)[purpose] = self._clock.now() + self._renew_every

    def _accepts(self, found: AgentId, by: AgentId | None) -> bool:
        record = self._view.card(found)
        if by is None or record is None:
            return True
        asking = self._view.card(by)
        return not why_not_drafted(None if asking is None else asking.card, record.card)

    def _busy(self, one: Named, purpose: str) -> float:
        """Return the tasks per slot. A nomination for the same purpose does not count: the same search returns the same agent."""
        nominations = self._recent(one.agent_id)
        return (one.load.tasks + len(nominations) - (purpose in nominations)) / one.load.slots

    def _recent(self, agent_id: AgentId) -> dict[str, datetime]:
        """Return the purposes for which an agent was named since its last renewal, after removing older ones."""
        nominations, now = self._nominations.setdefault(agent_id, {}), self._clock.now()
        for old in [purpose for purpose, until in nominations.items() if until <= now]:
            del nominations[old]
        return nominations


def _digest(card: AgentCard) -> int:
    """Return a digest of a card without its id. Hashes of strings are valid within this process only."""
    return hash((card.name, card.description, card.skills, card.examples, card.tags, card.version, card.may_team_up, card.accepts))


def _rendezvous(purpose: str, agent_id: AgentId) -> bytes:
    """Return a hash that is the same on every replica of discovery (rendezvous hashing)."""
    return hashlib.blake2b(f"{purpose}\0{agent_id}".encode("utf-8", "replace"), digest_size=8).digest()
