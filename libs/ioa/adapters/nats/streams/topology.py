"""The streams, buckets and shared consumers of the system, which each service of the control plane creates when it starts.

Each stream's metadata contains the number of the format of its messages. A stream of another format is rejected; another
configuration of the same format is updated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import APIError, NotFoundError

from ioa.errors import ConflictError
from ioa.protocol import subjects
from ioa.protocol.agents.outcomes import KEEP, REMEMBERED
from ioa.protocol.ids import LOCAL, AgentId, PoolId, UserId
from ioa.protocol.operation.audit import MAX_LINE_BYTES

API = "$JS.API"
READS = f"{API}.DIRECT.GET."
"""Prefix of the subjects of direct gets, which the control plane and the gateway use. Users send read requests to group setup."""

GOALS, WORK, RESULTS = "IOA_ORDERS", "IOA_WORK", "IOA_RESULTS"
LOG, TIMERS, DEAD = "IOA_LOG", "IOA_TIMERS", "IOA_DEAD"
OUTCOMES, AUDIT, HOOKS = "IOA_OUTCOMES", "IOA_AUDIT", "IOA_HOOKS"
CARDS, LEASES, MEMBERS, GOAL_RECORDS = "IOA_CARDS", "IOA_LEASES", "IOA_MEMBERS", "IOA_GOAL_RECORDS"
SESSIONS, OPEN, ENDED, KEYS = "IOA_SESSIONS", "IOA_OPEN", "IOA_ENDED", "IOA_KEYS"
API_KEYS, TEAMS, WEBHOOKS = "IOA_API_KEYS", "IOA_TEAMS", "IOA_WEBHOOKS"
FILES = "IOA_FILES"
FORMAT_KEY, FORMAT = "ioa-format", "1"
"""Name and value of the format number in the metadata of each stream."""
BEAT = "registry.beat"
"""Key in the bucket of leases with which the registry shows that it runs. No agent's id contains a dot."""

INTAKE, ROUTERS, ANY_AGENT, NOTIFYING, DELIVERING = "intake", "routers", "any", "webhooks", "hooks"

GOALS_OPEN, GOALS_WAITING = 100, 20_000
"""Default maximum of a user's open goals, and of the user's goals that wait, per addressee."""
ACK_WAIT = timedelta(seconds=6)
"""Time after which a message of a killed worker is delivered again. A living worker sends progress twice in this time."""
_LETTERS_PER_REASON = 10_000
"""Maximum dead letters per reason; the oldest are removed."""
_SAME_LETTER, _SAME_GOAL = timedelta(days=1), timedelta(seconds=10)
"""Time for which the server keeps the keys of dead letters, and the message ids of goals, which may have 64 KB."""
_MAX_MESSAGE_BYTES = 1_048_576
_MAX_POOLS = _MAX_USERS = 100_000
_POOL_IDLE, _USER_IDLE = timedelta(days=1), timedelta(hours=1)
"""Time without pulls after which the server removes the consumer of a pool or user. Waiting goals stay in the stream."""
_LONGEST_GOAL, _FILES_KEPT_LONGER, _HOOKS_KEPT = timedelta(days=30), timedelta(days=30), timedelta(days=2)
_HOOKS_PER_WEBHOOK, _HOOKS_OF_ALL = 10_000, 500_000
"""Maximum waiting messages per webhook and in total."""
_MAX_TAKEN = 1_000_000
"""Maximum messages of a consumer that are processed or wait for a retry. Consumers of users have their own limit."""
_SHARES = {LOG: 40, f"OBJ_{FILES}": 40, GOALS: 8, DEAD: 2}
"""Maximum size of the largest streams, in percent of the store. A full stream rejects messages; other streams still have space."""
_STREAM_NAME_IN_USE, _INSUFFICIENT_STORAGE = 10058, 10047
"""JetStream's error codes for an existing stream with another configuration. It checks the sum of all `max_bytes` first."""


def stream_of(bucket: str) -> str:
    """Return the stream of a bucket (NATS ADR-8)."""
    return f"KV_{bucket}"


def subject_of(bucket: str, key: str) -> str:
    """Return the subject of a key, or of all keys that match a pattern."""
    return f"$KV.{bucket}.{key}"


_BUCKETS = (CARDS, SESSIONS, LEASES, MEMBERS, GOAL_RECORDS, OPEN, ENDED, KEYS, API_KEYS, TEAMS, WEBHOOKS)
STREAMS = (
    *(GOALS, WORK, RESULTS, LOG, TIMERS, DEAD, OUTCOMES, AUDIT, HOOKS),
    *(stream_of(bucket) for bucket in _BUCKETS),
    f"OBJ_{FILES}",
)
"""All streams, streams of buckets included."""
CONSUMERS = (
    (WORK, ANY_AGENT, (subjects.WORK,)),
    (TIMERS, ROUTERS, (subjects.ANY_TIMER,)),
    (RESULTS, NOTIFYING, ()),
    (HOOKS, DELIVERING, ()),
)
"""All consumers, except consumers of users and pools: stream, name, and subjects."""


def pool_consumer(pool: PoolId) -> str:
    """Return the name of the durable consumer of a pool's waiting goals."""
    return f"pool-{pool}"


def intake_consumer(user: UserId) -> str:
    """Return the name of the durable consumer of a user's goals."""
    return f"{INTAKE}-{user}"


def intake_subjects(user: UserId) -> tuple[str, str]:
    """Return the subjects of a user's goals, without and with an addressee."""
    return subjects.goal_of(user), subjects.goal_to(user, AgentId("*"))


@dataclass(frozen=True)
class Shares:
    """Maximum bytes of the store, and of its largest streams."""

    store: int

    def by_stream(self) -> Mapping[str, int]:
        """Return `max_bytes` of each stream that has a share."""
        return {stream: self.store * percent // 100 for stream, percent in _SHARES.items()}


@dataclass(frozen=True)
class Topology:
    """Configuration of all streams: replicas, times and numbers of messages.

    Everything that belongs to a goal is removed together, `keep` after its end, by group setup and not by the age of messages. If
    `store_bytes` is 0, the size of the store is the limit of the account, if it has one.
    """

    replicas: int = 1
    keep: timedelta = timedelta(days=30)
    store_bytes: int = 0
    audit_keep: timedelta = timedelta(days=90)
    audit_lines: int = 200_000
    goals_open: int = GOALS_OPEN
    goals_waiting: int = GOALS_WAITING

    async def ensure(self, js: JetStreamContext) -> Shares | None:
        """Create missing streams and consumers; return the shares of the store, if there are any."""
        limits = (await js.account_info()).limits
        store = self.store_bytes or max(0, limits.max_storage or 0) // self.replicas
        shares = Shares(store) if store else None
        max_bytes = {} if shares is None else shares.by_stream()
        for config in self.streams():
            if config.max_consumers and (limits.max_consumers or 0) > 0:
                config = config.evolve(max_consumers=min(config.max_consumers, limits.max_consumers))
            await _ensure_stream(js, config.evolve(max_bytes=max_bytes.get(str(config.name))))
        for stream, name, filters in CONSUMERS:
            await _ensure_consumer(js, stream, name, *filters)
        await ensure_intake(js, LOCAL, self.goals_open)
        return shares

    def streams(self) -> tuple[StreamConfig, ...]:
        """Return the configuration of every stream, streams of buckets included."""
        queue, oldest_first = {"retention": RetentionPolicy.WORK_QUEUE}, {"discard": DiscardPolicy.OLD}
        goals = {"max_consumers": _MAX_USERS, "max_msgs_per_subject": self.goals_waiting, "discard_new_per_subject": True}
        hooks = {"max_msgs": _HOOKS_OF_ALL, "max_msgs_per_subject": _HOOKS_PER_WEBHOOK, "discard_new_per_subject": True}
        letters = {"max_msgs_per_subject": _LETTERS_PER_REASON, "duplicate_window": _SAME_LETTER.total_seconds()}
        lines = {"max_msgs": self.audit_lines, "max_msg_size": MAX_LINE_BYTES, "max_age": self.audit_keep.total_seconds()}
        # A file is removed with its goal, or by its age if no goal names it.
        files = {"max_age": (self.keep + _LONGEST_GOAL + _FILES_KEPT_LONGER).total_seconds()}
        of_files = (f"$O.{FILES}.{kind}" for kind in ("C.>", "M.*", "P.*"))
        of_goals, of_timers = (subjects.ANY_GOAL, subjects.ANY_ADDRESSED_GOAL), (subjects.ANY_TIMER, subjects.ANY_TIMER_SCHEDULE)
        outcomes = {"max_msgs_per_subject": REMEMBERED, "max_age": KEEP.total_seconds()}
        return (
            self._stream(GOALS, *of_goals, **queue, **goals, duplicate_window=_SAME_GOAL.total_seconds()),
            self._stream(WORK, subjects.WORK, subjects.ANY_POOL_WORK, **queue, max_consumers=_MAX_POOLS, allow_msg_ttl=True),
            self._stream(RESULTS, subjects.ANY_RESULT),
            self._stream(LOG, subjects.ANY_LOG),
            self._stream(f"OBJ_{FILES}", *of_files, **files),
            # JetStream does not schedule messages in streams that reject new ones. Without a limit, it discards nothing either.
            self._stream(TIMERS, *of_timers, **queue, **oldest_first, allow_msg_schedules=True),
            self._stream(HOOKS, subjects.ANY_HOOK, **queue, **hooks, max_age=_HOOKS_KEPT.total_seconds()),
            self._stream(DEAD, subjects.ANY_DEAD, **oldest_first, **letters),
            self._stream(OUTCOMES, subjects.ANY_OUTCOME, **oldest_first, **outcomes),
            self._stream(AUDIT, subjects.ANY_AUDIT, **oldest_first, **lines, deny_delete=True, deny_purge=True),
            *map(self._bucket, _BUCKETS),
        )

    def _stream(self, name: str, *patterns: str, **options: object) -> StreamConfig:
        defaults = StreamConfig(
            name=name,
            subjects=list(patterns),
            storage=StorageType.FILE,
            num_replicas=self.replicas,
            max_msg_size=_MAX_MESSAGE_BYTES,
            discard=DiscardPolicy.NEW,
            allow_direct=True,
            metadata={FORMAT_KEY: FORMAT},
        )
        return defaults.evolve(**options)

    def _bucket(self, name: str) -> StreamConfig:
        options = {"max_msg_size": -1, "max_msgs_per_subject": 1, "allow_rollup_hdrs": True, "allow_msg_ttl": True}
        return self._stream(stream_of(name), subject_of(name, ">"), **options, deny_delete=True)


async def ensure_pool_consumer(js: JetStreamContext, pool: PoolId) -> None:
    """Create the queue of goals for a pool, which also waits while the pool has no agent."""
    idle = _POOL_IDLE.total_seconds()
    await _ensure_consumer(js, WORK, pool_consumer(pool), subjects.work_of(pool), inactive_threshold=idle)


async def ensure_intake(js: JetStreamContext, user: UserId, goals_open: int) -> None:
    """Create the queue of a user's goals, which delivers at most `goals_open` goals that have not ended.

    Goals of `LOCAL` are not limited: on a server without keys, all users share this name.
    """
    bounds = {"max_ack_pending": goals_open, "inactive_threshold": _USER_IDLE.total_seconds()} if user != LOCAL else {}
    await _ensure_consumer(js, GOALS, intake_consumer(user), *intake_subjects(user), **bounds)


async def _ensure_stream(js: JetStreamContext, config: StreamConfig) -> None:
    try:
        await js.add_stream(config)
    except APIError as error:
        if error.err_code not in (_STREAM_NAME_IN_USE, _INSUFFICIENT_STORAGE):
            raise
        try:
            found = await js.stream_info(str(config.name))
        except NotFoundError:
            raise error from None
        number = (found.config.metadata or {}).get(FORMAT_KEY)
        if number != FORMAT and (number is not None or found.state.messages):
            raise ConflictError(
                f"The stream {config.name} has {'no format number' if number is None else f'format {number}'}; expected {FORMAT}.",
                hint="Start nats-server with an empty JetStream store: streams of another format cannot be converted.",
            ) from None
        if config.discard_new_per_subject:  # a limit below the number of waiting messages would remove some of them
            waiting = min(found.state.messages, found.config.max_msgs_per_subject or 0)
            config = config.evolve(max_msgs_per_subject=max(config.max_msgs_per_subject or 0, waiting))
        await js.update_stream(config)


async def _ensure_consumer(js: JetStreamContext, stream: str, name: str, *filters: str, **options: float) -> None:
    config = ConsumerConfig(
        durable_name=name,
        filter_subjects=list(filters) or None,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=ACK_WAIT.total_seconds(),
        max_ack_pending=_MAX_TAKEN,
        max_waiting=8_192,
    )
    await js.add_consumer(stream, config.evolve(**options))
