"""Following a key-value bucket: a snapshot first, then every change, across reconnects and server restarts.

Expired keys arrive as deletions, since the buckets leave a marker where a key's time ran out (NATS ADR-43).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js.errors import KeyNotFoundError
from nats.js.kv import KV_DEL, KV_PURGE, KeyValue

from ioa.adapters.nats_failures import unavailable_unless_answered
from ioa.adapters.nats_handles import BucketHandle
from ioa.adapters.nats_renewal import UntilRenewal, until_renewal
from ioa.adapters.nats_topology import CARDS, LEASES, MEMBERS
from ioa.errors import IoaError, UnavailableError
from ioa.ports.registry_store import CardRecord
from ioa.protocol.codec import decode, encode
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.load import IDLE, Load

_RETRY_SECONDS = 1.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Snapshot:
    """Everything the bucket holds now. Follows every interruption, so that nothing missed stays missed."""

    values: dict[str, bytes]


@dataclass(frozen=True)
class Change:
    """A key was set, or removed (`value` is None)."""

    key: str
    value: bytes | None


async def follow(client: Client, bucket: str) -> AsyncIterator[Snapshot | Change]:
    """Yield the bucket's snapshot and then its changes, for ever; a new snapshot after each interruption."""
    while True:
        try:
            with until_renewal(client) as waits:
                with unavailable_unless_answered(f"The bucket {bucket}"):
                    store = await client.jetstream().key_value(bucket)
                    watcher = await store.watchall()
                try:
                    async for change in _changes(waits, watcher):
                        yield change
                finally:
                    await _stop(watcher)
        except UnavailableError as error:
            _log.warning("bucket_out_of_reach", bucket=bucket, error=error.message)
            await asyncio.sleep(_RETRY_SECONDS)


async def _changes(waits: UntilRenewal, watcher: KeyValue.KeyWatcher) -> AsyncIterator[Snapshot | Change]:
    values: dict[str, bytes] | None = {}
    while True:
        entry = await waits.next(watcher.updates)
        if entry is None:
            if values is not None:
                yield Snapshot(values)
            values = None
            continue
        removed = entry.operation in (KV_DEL, KV_PURGE)
        if values is None:
            yield Change(entry.key, None if removed else entry.value or b"")
        elif removed:
            values.pop(entry.key, None)
        else:
            values[entry.key] = entry.value or b""


async def _stop(watcher: KeyValue.KeyWatcher) -> None:
    try:
        await watcher.stop()  # type: ignore[no-untyped-call]  # nats-py leaves it bare
    except (nats.errors.Error, TimeoutError, OSError) as error:
        _log.debug("watch_not_stopped", error=str(error) or type(error).__name__)


class NatsCards:
    """Cards in the bucket `IOA_CARDS`."""

    def __init__(self, client: Client) -> None:
        self._bucket = BucketHandle(client.jetstream(), CARDS)

    async def put(self, record: CardRecord) -> None:
        """Store or replace a card."""
        with unavailable_unless_answered("The store of agent cards"):
            await (await self._bucket.open()).put(record.card.agent_id, encode(record))

    async def get(self, agent_id: AgentId) -> CardRecord | None:
        """Read a card."""
        with unavailable_unless_answered("The store of agent cards"):
            try:
                entry = await (await self._bucket.open()).get(agent_id)
            except KeyNotFoundError:
                return None
        return decode(CardRecord, entry.value or b"")


class NatsLeases:
    """Leases in the bucket `IOA_LEASES`, whose keys the server lets run out."""

    def __init__(self, client: Client) -> None:
        self._bucket = BucketHandle(client.jetstream(), LEASES)

    async def renew(self, agent_id: AgentId, load: Load = IDLE) -> None:
        """Take or keep the lease, whose value is how busy the agent is."""
        with unavailable_unless_answered("The store of leases"):
            await (await self._bucket.open()).put(agent_id, encode(load))

    async def release(self, agent_id: AgentId) -> None:
        """Give the lease back."""
        with unavailable_unless_answered("The store of leases"):
            await (await self._bucket.open()).delete(agent_id)


class NatsMemberships:
    """The bucket `IOA_MEMBERS`, one key `<agent_id>.<comm_id>` for each open membership, and its live view."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._bucket = BucketHandle(client.jetstream(), MEMBERS)
        self._groups: dict[AgentId, set[CommId]] = {}
        self.ready = asyncio.Event()

    async def follow(self, restored: Callable[[], None] = lambda: None) -> None:
        """Keep the view current, for ever; `restored` is called when it is whole, at first and after each interruption."""
        async for change in follow(self._client, MEMBERS):
            match change:
                case Snapshot(values=values):
                    self._groups = {}
                    for key in values:
                        self._see(key, present=True)
                    self.ready.set()
                    restored()
                case Change(key=key, value=value):
                    self._see(key, present=value is not None)

    def groups_of(self, agent_id: AgentId) -> Sequence[CommId]:
        """The open groups of an agent."""
        return sorted(self._groups.get(agent_id, ()))

    def agents(self) -> Sequence[AgentId]:
        """Every agent with an open group."""
        return sorted(self._groups)

    def comm_ids(self) -> Sequence[CommId]:
        """Every open group."""
        return sorted({comm_id for groups in self._groups.values() for comm_id in groups})

    async def add(self, agent_ids: Sequence[AgentId], comm_id: CommId) -> None:
        """Put agents into a group."""
        with unavailable_unless_answered("The record of memberships"):
            bucket = await self._bucket.open()
            for agent_id in agent_ids:
                await bucket.put(f"{agent_id}.{comm_id}", b"")

    async def remove(self, agent_id: AgentId, comm_id: CommId) -> None:
        """Forget a membership."""
        with unavailable_unless_answered("The record of memberships"):
            await (await self._bucket.open()).purge(f"{agent_id}.{comm_id}")

    def _see(self, key: str, *, present: bool) -> None:
        agent, _, comm = key.partition(".")
        groups = self._groups.setdefault(AgentId(agent), set())
        if present:
            groups.add(CommId(comm))
        else:
            groups.discard(CommId(comm))
        if not groups:
            del self._groups[AgentId(agent)]


class NatsRegistryView:
    """Cards and leases, followed live."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._cards: dict[AgentId, CardRecord] = {}
        self._leases: dict[AgentId, Load] = {}
        self._listeners: list[Callable[[AgentId], None]] = []
        self.cards_ready = asyncio.Event()
        self.leases_ready = asyncio.Event()

    def listen(self, changed: Callable[[AgentId], None]) -> None:
        """Call `changed` with each agent whose card or liveness has changed, on the event loop."""
        self._listeners.append(changed)

    async def follow_cards(self) -> None:
        """Keep the cards current, for ever."""
        async for change in follow(self._client, CARDS):
            match change:
                case Snapshot(values=values):
                    before = set(self._cards)
                    self._cards = {}
                    for key, value in values.items():
                        self._store(AgentId(key), value)
                    self.cards_ready.set()
                    self._tell(before | set(self._cards))
                case Change(key=key, value=value):
                    self._store(AgentId(key), value)
                    self._tell({AgentId(key)})

    async def follow_leases(self) -> None:
        """Keep the leases current, for ever."""
        async for change in follow(self._client, LEASES):
            match change:
                case Snapshot(values=values):
                    before = set(self._leases)
                    self._leases = {AgentId(key): _load_of(value) for key, value in values.items()}
                    self.leases_ready.set()
                    self._tell(before ^ set(self._leases))
                case Change(key=key, value=value):
                    self._see_lease(AgentId(key), value)

    def card(self, agent_id: AgentId) -> CardRecord | None:
        """The card of an agent."""
        return self._cards.get(agent_id)

    def cards(self) -> Sequence[CardRecord]:
        """All cards, by id."""
        return [self._cards[agent_id] for agent_id in sorted(self._cards)]

    def is_online(self, agent_id: AgentId) -> bool:
        """Whether the agent's lease stands."""
        return agent_id in self._leases

    def load(self, agent_id: AgentId) -> Load:
        """How busy the agent said it was."""
        return self._leases.get(agent_id, IDLE)

    def _see_lease(self, agent_id: AgentId, value: bytes | None) -> None:
        """Note a lease. Listeners hear of those that begin and end, and not of the loads that come with every renewal."""
        was_online = agent_id in self._leases
        if value is None:
            self._leases.pop(agent_id, None)
        else:
            self._leases[agent_id] = _load_of(value)
        if was_online != (value is not None):
            self._tell({agent_id})

    def _store(self, agent_id: AgentId, value: bytes | None) -> None:
        if value is None:
            self._cards.pop(agent_id, None)
            return
        try:
            self._cards[agent_id] = decode(CardRecord, value)
        except IoaError as error:
            _log.error("card_unreadable", agent_id=agent_id, error=str(error))

    def _tell(self, agent_ids: set[AgentId]) -> None:
        for agent_id in sorted(agent_ids):
            for listener in self._listeners:
                listener(agent_id)


@lru_cache(maxsize=4_096)
def _load_of(value: bytes) -> Load:
    """Read a lease's value. One that says nothing, or nothing that can be read, still is a lease."""
    try:
        return decode(Load, value) if value else IDLE
    except IoaError as error:
        _log.warning("load_unreadable", error=error.message)
        return IDLE
