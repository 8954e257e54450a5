"""Following a key-value bucket: a snapshot first, then every change, across reconnects and server restarts.

Each comes with the time at which the server stored it.
Whatever stands under a key that cannot be read is survived, said once and counted: anybody may have put it there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, partial

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, DeliverPolicy
from nats.js.errors import KeyNotFoundError
from nats.js.kv import KV_DEL, KV_MARKER_REASON, KV_OP, KV_PURGE
from prometheus_client import Counter

from ioa.adapters.nats.stores.bucket_handle import BucketHandle
from ioa.adapters.nats.streams.ordered_consumer import ordered
from ioa.adapters.nats.streams.topology import BEAT, CARDS, LEASES
from ioa.adapters.nats.wire.renewal import UntilRenewal, until_renewal
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.cancellation import fail_after
from ioa.errors import IoaError, UnavailableError
from ioa.protocol.cards import ModelReport
from ioa.protocol.codec import decode, encode
from ioa.protocol.ids import AgentId, PoolId, parse_agent_id
from ioa.protocol.liveness import LeaseJudge, Sign, Standing, StandingChange
from ioa.protocol.load import IDLE, Load
from ioa.protocol.registry_records import EMPTY_RENEWAL, CardRecord, Renewal

_RETRY_SECONDS = 1.0
_QUIET_SECONDS = 5.0
"""After so long without a change it is asked whether the consumer still stands."""
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


async def follow(client: Client, bucket: str) -> AsyncGenerator[Snapshot | Change, None]:
    """Yield the bucket's snapshot and then its changes, for ever; a new snapshot after each interruption."""
    newest = ConsumerConfig(deliver_policy=DeliverPolicy.LAST_PER_SUBJECT)
    while True:
        try:
            with until_renewal(client) as waits:
                async with ordered(client, f"The bucket {bucket}", f"KV_{bucket}", f"$KV.{bucket}.>", newest) as subscription:
                    yield await _snapshot(client, bucket, waits, subscription)
                    while True:
                        message = await waits.next(partial(_next, subscription))
                        if message is not None:
                            yield _change_of(message)
        except UnavailableError as error:
            _log.warning("bucket_out_of_reach", bucket=bucket, error=error.message)
            await asyncio.sleep(_RETRY_SECONDS)


async def _snapshot(client: Client, bucket: str, waits: UntilRenewal, subscription: JetStreamContext.PushSubscription) -> Snapshot:
    """Read every key once.

    The consumer reads a copy of the stream that may still be catching up after its node was away, and calls what that has all there
    is. So as many keys have to come as the stream's leader counts.

    Raises:
        UnavailableError: They do not come: the copy lacks some.
    """
    changes: dict[str, Change] = {}
    has_sent_all = await _has_sent_all(subscription, before_any=True)
    while not has_sent_all or await _stored(client, bucket) > len(changes):
        message = await waits.next(partial(_next, subscription))
        if message is None and has_sent_all:
            raise UnavailableError(f"The copy of the bucket {bucket} that was read lacks keys: its node is still catching up.")
        if message is not None:
            change = _change_of(message)
            changes[change.key] = change
        has_sent_all = message is None or not message.metadata.num_pending
    return Snapshot(changes)


async def _stored(client: Client, bucket: str) -> int:
    """Ask the stream's leader how many keys there are, removed ones included that left a mark: each has one message."""
    with unavailable_unless_answered(f"The bucket {bucket}"):
        return (await client.jetstream().stream_info(f"KV_{bucket}")).state.messages


def _change_of(message: Msg) -> Change:
    """Read a change as the server stored it: a removal is a mark of the client's (NATS ADR-8) or of the server's own (ADR-43)."""
    headers = message.headers or {}
    is_removed = headers.get(KV_OP) in (KV_DEL, KV_PURGE) or KV_MARKER_REASON in headers
    key = message.subject.split(".", 2)[2]
    return Change(key, None if is_removed else message.data, message.metadata.timestamp)


async def _next(subscription: JetStreamContext.PushSubscription) -> Msg | None:
    """Wait for the next message; None says that everything which was stored has come.

    If none comes for a while, the server is asked whether it still has the consumer, and whether it has sent everything: the last
    message never comes if its key was removed while the others were read.

    Raises:
        TimeoutError: Nothing comes, and there is more.
        UnavailableError: It does not say so: a consumer dies with its node, and nobody would ever tell.
    """
    try:
        return await subscription.next_msg(timeout=_QUIET_SECONDS)
    except nats.errors.TimeoutError:
        if not await _has_sent_all(subscription):
            raise
        return None


async def _has_sent_all(subscription: JetStreamContext.PushSubscription, *, before_any: bool = False) -> bool:
    """Tell whether the server has nothing more to send, or never had (`before_any`)."""
    with unavailable_unless_answered("The consumer of a bucket"):
        info = await subscription.consumer_info()
    return not info.num_pending and not (before_any and info.delivered and info.delivered.consumer_seq)


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

    async def renew(self, agent_id: AgentId, renewal: Renewal = EMPTY_RENEWAL) -> None:
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
            async with fail_after(_BEAT_TIMEOUT.total_seconds()):
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
        self._pools: dict[PoolId, set[AgentId]] = {}
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
                    self._cards, self._pools = {}, {}
                    for agent_id, record in after.items():
                        self._replace(agent_id, record)
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

    def of_pool(self, pool: PoolId) -> Sequence[CardRecord]:
        """Return the cards of a pool, by id."""
        return [self._cards[agent_id] for agent_id in sorted(self._pools.get(pool, ()))]

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
            self._unreadable.pop((CARDS, agent_id), None)
            self._replace(agent_id, None)
        elif (record := self._card_of(agent_id, value)) is not None:
            self._replace(agent_id, record)
        return (agent_id,)

    def _replace(self, agent_id: AgentId, record: CardRecord | None) -> None:
        before = self._cards.pop(agent_id, None)
        if before is not None:
            members = self._pools[before.card.pool]
            members.remove(agent_id)
            if not members:
                del self._pools[before.card.pool]
        if record is not None:
            self._cards[agent_id] = record
            self._pools.setdefault(record.card.pool, set()).add(agent_id)

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
        return EMPTY_RENEWAL
