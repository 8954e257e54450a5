"""Following a key-value bucket: a snapshot first, then every change, across reconnects and server restarts.

Each comes with the time at which the server stored it. Keys of an older version that ran out by themselves arrive as deletions.
Whatever stands under a key that cannot be read is survived, said once and counted: anybody may have put it there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import cast

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import KeyNotFoundError
from nats.js.kv import KV_DEL, KV_PURGE, KeyValue
from prometheus_client import Counter

from ioa.adapters.nats.handles import BucketHandle
from ioa.adapters.nats.renewal import UntilRenewal, until_renewal
from ioa.adapters.nats.topology import BEAT, CARDS, LEASES
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.errors import IoaError, UnavailableError
from ioa.ports.registry_store import NOTHING_TOLD, CardRecord, Renewal
from ioa.protocol.cards import ModelReport
from ioa.protocol.codec import decode, encode
from ioa.protocol.ids import AgentId, parse_agent_id
from ioa.protocol.liveness import LeaseJudge, Sign, Standing, StandingChange
from ioa.protocol.load import IDLE, Load

_RETRY_SECONDS = 1.0
_QUIET_SECONDS = 5.0
"""After so long without a change it is asked whether the watch still stands."""
_BEAT_TIMEOUT = timedelta(seconds=2)

_log = structlog.get_logger(__name__)

unreadable = Counter("ioa_bucket_unreadable_total", "Keys or values of a bucket that cannot be read, each once", ["bucket"])


@dataclass(frozen=True)
class Change:
    """A key was set, or removed (`value` is None), and when the server stored that."""

    key: str
    value: bytes | None
    at: datetime


@dataclass(frozen=True)
class Snapshot:
    """The last change of every key the bucket knows. Follows every interruption, so that nothing missed stays missed."""

    changes: dict[str, Change]

    @property
    def values(self) -> dict[str, bytes]:
        """Everything the bucket holds now."""
        return {key: change.value for key, change in self.changes.items() if change.value is not None}


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
    changes: dict[str, Change] | None = {}
    while True:
        entry = await waits.next(partial(_next, watcher))
        if entry is None:
            if changes is not None:
                yield Snapshot(changes)
            changes = None
            continue
        removed = entry.operation in (KV_DEL, KV_PURGE)
        # nats-py says that `created` is a number; it is a time.
        change = Change(entry.key, None if removed else entry.value or b"", cast("datetime", entry.created))
        if changes is None:
            yield change
        else:
            changes[entry.key] = change


async def _next(watcher: KeyValue.KeyWatcher) -> KeyValue.Entry | None:
    """Wait for the next update; None says that everything which was stored has come.

    If none comes for a while, the server is asked whether it still has the watch, and whether it has sent everything: nats-py waits
    for a last message, which never comes if keys were removed while the others were read.

    Raises:
        UnavailableError: It does not say so: a watch dies with its node, and nobody would ever tell.
    """
    try:
        return cast("KeyValue.Entry | None", await watcher.updates(timeout=_QUIET_SECONDS))  # type: ignore[no-untyped-call]  # nats-py leaves it bare
    except nats.errors.TimeoutError:
        with unavailable_unless_answered("The watch of a bucket"):
            info = await cast("JetStreamContext.PushSubscription", watcher._sub).consumer_info()
        if info.num_pending:
            raise
        return None


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
    """What was heard of agents, in the bucket `IOA_LEASES`."""

    def __init__(self, client: Client) -> None:
        self._bucket = BucketHandle(client.jetstream(), LEASES)

    async def renew(self, agent_id: AgentId, renewal: Renewal = NOTHING_TOLD) -> None:
        """Take or keep the lease."""
        with unavailable_unless_answered("The store of leases"):
            await (await self._bucket.open()).put(agent_id, encode(renewal))

    async def release(self, agent_id: AgentId) -> None:
        """Give the lease back, which leaves a marker with its time."""
        with unavailable_unless_answered("The store of leases"):
            await (await self._bucket.open()).delete(agent_id)

    async def beat(self) -> None:
        """Show that registry and store are up; not waited for longer than the next one should take."""
        with unavailable_unless_answered("The store of leases"):
            async with asyncio.timeout(_BEAT_TIMEOUT.total_seconds()):
                await (await self._bucket.open()).put(BEAT, b"")


class NatsRegistryView:
    """Cards and leases, followed live, and who is alive by them.

    Args:
        client: The connection.
        lease: How long an agent may be silent while others are heard.
    """

    def __init__(self, client: Client, lease: timedelta) -> None:
        self._client = client
        self._cards: dict[AgentId, CardRecord] = {}
        self._judge = LeaseJudge(lease)
        self._renewals: dict[AgentId, bytes] = {}
        self._unreadable: dict[tuple[str, str], str] = {}
        self._listeners: list[Callable[[AgentId], None]] = []
        self._mourners: list[Callable[[AgentId], None]] = []
        self.cards_ready = asyncio.Event()
        self.leases_ready = asyncio.Event()

    def listen(self, changed: Callable[[AgentId], None]) -> None:
        """Call `changed` with each agent whose card has changed or that has come online or gone, on the event loop."""
        self._listeners.append(changed)

    def listen_for_losses(self, changed: Callable[[AgentId], None]) -> None:
        """Call `changed` with each agent that is lost, or online again, on the event loop. One that is briefly away is neither."""
        self._mourners.append(changed)

    async def whole(self) -> None:
        """Return once both buckets have been read."""
        await self.cards_ready.wait()
        await self.leases_ready.wait()

    async def follow_cards(self) -> None:
        """Keep the cards current, for ever."""
        async for change in follow(self._client, CARDS):
            match change:
                case Snapshot(values=values):
                    before, after = self._cards, self._read_cards(values)
                    self._cards = after
                    self.cards_ready.set()
                    self._tell(agent_id for agent_id in {**before, **after} if before.get(agent_id) != after.get(agent_id))
                case Change(key=key, value=value):
                    self._tell(self._store(key, value))

    async def follow_leases(self) -> None:
        """Keep the leases current, for ever."""
        async for change in follow(self._client, LEASES):
            interruptions = self._judge.interruptions
            match change:
                case Snapshot(changes=changes):
                    self._announce(self._begin(changes))
                    self.leases_ready.set()
                case Change(key=key) if key == BEAT:
                    self._announce(self._judge.beat(change.at))
                case Change():
                    self._announce(self._hear(change))
            if self._judge.interruptions != interruptions:
                _log.info("leases_were_interrupted")

    def card(self, agent_id: AgentId) -> CardRecord | None:
        """Return the card of an agent."""
        return self._cards.get(agent_id)

    def cards(self) -> Sequence[CardRecord]:
        """All cards, by id."""
        return [self._cards[agent_id] for agent_id in sorted(self._cards)]

    def unreadable(self) -> Sequence[str]:
        """Return what was skipped, by bucket and key."""
        return [f"{bucket}/{key}: {why}" for (bucket, key), why in sorted(self._unreadable.items())]

    def is_online(self, agent_id: AgentId) -> bool:
        """Whether the agent's lease stands."""
        return self._judge.standing(agent_id) is Standing.ONLINE

    def is_lost(self, agent_id: AgentId) -> bool:
        """Whether the agent was silent for a whole lease while others were heard."""
        return self._judge.standing(agent_id) is Standing.LOST

    def silence(self, agent_id: AgentId) -> timedelta | None:
        """How long the agent has not been heard."""
        return self._judge.silence(agent_id)

    def load(self, agent_id: AgentId) -> Load:
        """How busy the agent said it was."""
        value = self._renewals.get(agent_id)
        return _renewal_of(value).load if value and self.is_online(agent_id) else IDLE

    def model(self, agent_id: AgentId) -> ModelReport | None:
        """How the agent said that its model answers."""
        value = self._renewals.get(agent_id)
        return _renewal_of(value).model if value and self.is_online(agent_id) else None

    def _begin(self, changes: dict[str, Change]) -> tuple[StandingChange, ...]:
        signs, self._renewals = dict[AgentId, Sign](), {}
        for key, change in changes.items():
            agent_id = None if key == BEAT else self._agent_of(LEASES, key)
            if agent_id is not None:
                signs[agent_id] = self._sign(agent_id, change)
        return self._judge.restart(signs, max((change.at for change in changes.values()), default=None))

    def _hear(self, change: Change) -> tuple[StandingChange, ...]:
        agent_id = self._agent_of(LEASES, change.key)
        return () if agent_id is None else self._judge.hear(agent_id, self._sign(agent_id, change))

    def _sign(self, agent_id: AgentId, change: Change) -> Sign:
        if change.value is None:
            self._renewals.pop(agent_id, None)
        else:
            self._renewals[agent_id] = change.value
        return Sign(change.at, leaves=change.value is None)

    def _announce(self, changes: Iterable[StandingChange]) -> None:
        for change in changes:
            if Standing.ONLINE in (change.before, change.after):
                self._tell((change.agent_id,))
            if change.after is not Standing.AWAY:
                for mourner in self._mourners:
                    mourner(change.agent_id)

    def _read_cards(self, values: dict[str, bytes]) -> dict[AgentId, CardRecord]:
        """Read all cards. One that has become unreadable stays as it was."""
        cards: dict[AgentId, CardRecord] = {}
        for key, value in values.items():
            agent_id = self._agent_of(CARDS, key)
            record = None if agent_id is None else self._card_of(agent_id, value) or self._cards.get(agent_id)
            if agent_id is not None and record is not None:
                cards[agent_id] = record
        return cards

    def _store(self, key: str, value: bytes | None) -> tuple[AgentId, ...]:
        agent_id = self._agent_of(CARDS, key)
        if agent_id is None:
            return ()
        if value is None:
            self._cards.pop(agent_id, None)
            self._unreadable.pop((CARDS, agent_id), None)
        elif (record := self._card_of(agent_id, value)) is not None:
            self._cards[agent_id] = record
        return (agent_id,)

    def _card_of(self, agent_id: AgentId, value: bytes) -> CardRecord | None:
        try:
            record = decode(CardRecord, value)
        except IoaError as error:
            self._note_unreadable(CARDS, agent_id, error.message)
            return None
        if record.card.agent_id != agent_id:
            self._note_unreadable(CARDS, agent_id, f"It is the card of {record.card.agent_id}.")
            return None
        self._unreadable.pop((CARDS, agent_id), None)
        return record

    def _agent_of(self, bucket: str, key: str) -> AgentId | None:
        try:
            return parse_agent_id(key)
        except IoaError as error:
            self._note_unreadable(bucket, key, error.message)
            return None

    def _note_unreadable(self, bucket: str, key: str, why: str) -> None:
        if (bucket, key) not in self._unreadable:
            self._unreadable[bucket, key] = why
            unreadable.labels(bucket).inc()
            _log.error("bucket_unreadable", bucket=bucket, key=key, why=why)

    def _tell(self, agent_ids: Iterable[AgentId]) -> None:
        for agent_id in sorted(agent_ids):
            for listener in self._listeners:
                listener(agent_id)


@lru_cache(maxsize=4_096)
def _renewal_of(value: bytes) -> Renewal:
    """Read what an agent told with its renewal. One that says nothing that can be read is a renewal all the same."""
    try:
        return decode(Renewal, value)
    except IoaError as error:
        _log.warning("load_unreadable", error=error.message)
        return NOTHING_TOLD
