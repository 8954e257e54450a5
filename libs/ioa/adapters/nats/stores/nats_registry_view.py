"""Live view of the agents' cards and leases in the buckets `IOA_CARDS` and `IOA_LEASES`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

from nats.aio.client import Client

from ioa.adapters.nats.stores.records import read_value
from ioa.adapters.nats.streams.follow import Change, follow_bucket
from ioa.adapters.nats.streams.topology import BEAT, CARDS, LEASES
from ioa.protocol.agents.lease_expiry import LeaseJudge, Sign, Standing, StandingChange
from ioa.protocol.cards import Load, ModelReport
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.registry import EMPTY_RENEWAL, CardRecord, Renewal

V = TypeVar("V")


class NatsRegistryView:
    """A live view of cards and leases. `lease` is the maximum silence of an agent while other agents are heard."""

    def __init__(self, client: Client, lease: timedelta) -> None:
        self._client = client
        self._cards: dict[AgentId, CardRecord] = {}
        self._pools: dict[PoolId, set[AgentId]] = {}
        self._judge = LeaseJudge(lease)
        self._renewals: dict[AgentId, bytes] = {}
        self._listeners: list[Callable[[AgentId], None]] = []
        self.cards_ready = asyncio.Event()
        self.leases_ready = asyncio.Event()

    def listen(self, changed: Callable[[AgentId], None]) -> None:
        """Call `changed` with each agent whose card changed, or that went online or offline, or is lost."""
        self._listeners.append(changed)

    async def whole(self) -> None:
        """Return once both buckets have been read."""
        await self.cards_ready.wait()
        await self.leases_ready.wait()

    async def follow_cards(self) -> None:
        """Keep the cards current until cancelled."""
        async for changes, is_snapshot in follow_bucket(self._client, CARDS):
            removed = self._cards if is_snapshot else ()
            self._store({**dict.fromkeys(removed), **{key: change.value for key, change in changes.items()}})
            self.cards_ready.set()

    async def follow_leases(self) -> None:
        """Keep the leases current until cancelled."""
        async for changes, is_snapshot in follow_bucket(self._client, LEASES):
            if is_snapshot:
                self._renewals.clear()
                signs = {agent_id: self._sign(agent_id, one) for agent_id, one in _by_agent(changes)}
                self._announce(self._judge.restart(signs, max((one.at for one in changes.values()), default=None)))
                self.leases_ready.set()
                continue
            if BEAT in changes:
                self._announce(self._judge.beat(changes[BEAT].at))
            for agent_id, one in _by_agent(changes):
                self._announce(self._judge.hear(agent_id, self._sign(agent_id, one)))

    def card(self, agent_id: AgentId) -> CardRecord | None:
        """Return the card of an agent."""
        return self._cards.get(agent_id)

    def cards(self) -> Sequence[CardRecord]:
        """Return all cards, by id."""
        return [self._cards[agent_id] for agent_id in sorted(self._cards)]

    def of_pool(self, pool: PoolId) -> Sequence[CardRecord]:
        """Return the cards of a pool, by id."""
        return [self._cards[agent_id] for agent_id in sorted(self._pools.get(pool, ()))]

    def is_online(self, agent_id: AgentId) -> bool:
        """Whether the agent's lease is valid."""
        return self._judge.standing(agent_id) is Standing.ONLINE

    def is_lost(self, agent_id: AgentId) -> bool:
        """Whether the agent was silent for a whole lease while other agents were heard."""
        return self._judge.standing(agent_id) is Standing.LOST

    def silence(self, agent_id: AgentId) -> timedelta | None:
        """Return the time since the agent was heard."""
        return self._judge.silence(agent_id)

    def load(self, agent_id: AgentId) -> Load:
        """Return the load in the agent's last renewal."""
        return self._renewal(agent_id).load

    def model(self, agent_id: AgentId) -> ModelReport | None:
        """Return the state of the model in the agent's last renewal."""
        return self._renewal(agent_id).model

    def _renewal(self, agent_id: AgentId) -> Renewal:
        value = self._renewals.get(agent_id) if self.is_online(agent_id) else None
        return (read_value(LEASES, agent_id, Renewal, value) if value else None) or EMPTY_RENEWAL

    def _sign(self, agent_id: AgentId, change: Change) -> Sign:
        if change.value is None:
            self._renewals.pop(agent_id, None)
        else:
            self._renewals[agent_id] = change.value
        return Sign(change.at, leaves=change.value is None)

    def _announce(self, changes: Iterable[StandingChange]) -> None:
        self._notify(change.agent_id for change in changes)

    def _store(self, values: Mapping[str, bytes | None]) -> None:
        """Replace cards, or remove them where the value is None. A card whose new value cannot be read stays."""
        changed = list[AgentId]()
        for agent_id, value in _by_agent(values):
            before = self._cards.get(agent_id)
            after = None if value is None else read_value(CARDS, agent_id, CardRecord, value) or before
            if before == after:
                continue
            changed.append(agent_id)
            if before is not None:
                del self._cards[agent_id]
                self._pools[before.card.pool].discard(agent_id)
            if after is not None:
                self._cards[agent_id] = after
                self._pools.setdefault(after.card.pool, set()).add(agent_id)
        self._notify(changed)

    def _notify(self, agent_ids: Iterable[AgentId]) -> None:
        for agent_id in sorted(agent_ids):
            for listener in self._listeners:
                listener(agent_id)


def _by_agent(values: Mapping[str, V]) -> Iterator[tuple[AgentId, V]]:
    """Yield the values whose keys are ids of agents."""
    for key, value in values.items():
        if key != BEAT:
            yield AgentId(key), value
