"""Every stream, bucket and shared consumer of the system. The control plane creates them; agents never do.

Creation is idempotent, so each service does it when it starts. Each stream's metadata contains the number of the format of its
messages. A stream of another format is rejected; another configuration of the same format is updated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    ConsumerInfo,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
    StreamInfo,
    SubjectTransform,
)
from nats.js.errors import APIError, NotFoundError

from ioa.adapters.nats.streams.compare_and_set import stream_of
from ioa.errors import ConflictError
from ioa.protocol import subjects
from ioa.protocol.audit import MAX_LINE_BYTES
from ioa.protocol.ids import LOCAL, MAX_ID_CHARS, AgentId, PoolId, UserId
from ioa.protocol.outcomes import KEEP, REMEMBERED

GOALS, WORK, RESULTS = "IOA_ORDERS", "IOA_WORK", "IOA_RESULTS"
LOG, TIMERS, DEAD = "IOA_LOG", "IOA_TIMERS", "IOA_DEAD"
OUTCOMES, AUDIT = "IOA_OUTCOMES", "IOA_AUDIT"
CARDS, LEASES, MEMBERS, GOAL_RECORDS = "IOA_CARDS", "IOA_LEASES", "IOA_MEMBERS", "IOA_GOAL_RECORDS"
SESSIONS, OPEN, ENDED, KEYS = "IOA_SESSIONS", "IOA_OPEN", "IOA_ENDED", "IOA_KEYS"
API_KEYS, TEAMS, WEBHOOKS, GATEWAY, HOOKS = "IOA_API_KEYS", "IOA_TEAMS", "IOA_WEBHOOKS", "IOA_GATEWAY", "IOA_HOOKS"
FORMAT_KEY, FORMAT = "ioa-format", "1"
"""Name and value of the format number in the metadata of each stream."""
BEAT = "registry.beat"
"""Where among the leases the registry shows that it is up: with a dot, which no agent's id can have."""
LAUNCH_KEY = "launch"
"""Where among the keys that is which launch tickets are made with."""
TAIL = "tail"
"""Where in the bucket of gateways that is which of them tells others of results."""
FILES = "IOA_FILES"

INTAKE, ROUTERS, ANY_AGENT, DELIVERING = "intake", "routers", "any", "hooks"

_BUCKETS = (CARDS, SESSIONS, LEASES, MEMBERS, GOAL_RECORDS, OPEN, ENDED, KEYS, API_KEYS, TEAMS, WEBHOOKS, GATEWAY)

STREAMS = (
    *(GOALS, WORK, RESULTS, LOG, TIMERS, DEAD, OUTCOMES, AUDIT, HOOKS),
    *(stream_of(bucket) for bucket in _BUCKETS),
    f"OBJ_{FILES}",
)
"""Every stream, those of buckets too, by its own name."""

CONSUMERS = (
    (WORK, ANY_AGENT, (subjects.WORK,)),
    (TIMERS, ROUTERS, (subjects.ANY_TIMER,)),
    (HOOKS, DELIVERING, ()),
)
"""Every shared consumer but those of users and pools: its stream, its name, and the subjects it is for."""

GOALS_OPEN, GOALS_WAITING = 100, 20_000
"""How many goals of one user may be open at a time, and how many more may wait, if nobody says otherwise."""

ACK_WAIT = timedelta(seconds=6)
"""How long a worker that was killed keeps its message from the others. A living one says twice in this time that it is at work."""
_LETTERS_PER_REASON = 10_000
"""Maximum dead letters of one reason; the oldest are removed."""
_SAME_LETTER = timedelta(days=1)
"""How long a dead letter is known by its key."""
_SAME_GOAL = timedelta(seconds=10)
"""How long a goal that was put back is known by its message id. The server keeps ids in memory, and they may have 64 KB: in two
minutes, as is usual, one user fills it with 7 GB."""
_MAX_MESSAGE_BYTES = 1_048_576
_ADDRESSEE_CHARS = MAX_ID_CHARS + 1
"""How much of a goal's addressee is stored, so that it is refused if it is longer than an id: the server keeps each subject of a
stream in its memory, and a line of the wire may have one of 4 KB, where guests come by tokens of 8."""
_MAX_POOLS = _MAX_USERS = 100_000
_POOL_IDLE = timedelta(days=1)
"""After how long without pulls the consumer of a pool goes; what waits for the pool stays in the stream, for the next one."""
_USER_IDLE = timedelta(hours=1)
"""After how long without pulls the consumer of a user goes, who has no goals then."""
_LONGEST_GOAL = timedelta(days=30)
_FILES_KEPT_LONGER = timedelta(days=30)
_HOOKS_KEPT = timedelta(days=2)
_HOOKS_WAITING, _HOOKS_OF_ALL, _HOOKS_PUT_OFF = 10_000, 500_000, 1_000_000
"""How many notices may wait for one webhook, and for all together, and how many may be put off, which is more: new ones are given
out all the same. Those of a user the gateway bounds. A bound in bytes would be set aside from the start."""
_LISTED = (GOAL_RECORDS, MEMBERS, OPEN, ENDED, API_KEYS, WEBHOOKS, GATEWAY)
"""Buckets that are read by direct gets, by pages or by users."""


def pool_consumer(pool: PoolId) -> str:
    """Return the durable consumer that holds a pool's waiting goals."""
    return f"pool-{pool}"


def intake_consumer(user: UserId) -> str:
    """Return the name of the durable consumer of a user's goals."""
    return f"{INTAKE}-{user}"


@dataclass(frozen=True)
class Shares:
    """Maximum bytes of the largest streams. A full stream rejects messages; the other streams still have room.

    Attributes:
        store: Maximum bytes of all streams.
    """

    store: int

    @property
    def log(self) -> int:
        """Maximum bytes of all groups' logs."""
        return self.store * 40 // 100

    @property
    def files(self) -> int:
        """Maximum bytes of files."""
        return self.store * 40 // 100

    @property
    def goals(self) -> int:
        """Maximum bytes of goals that wait."""
        return self.store * 8 // 100

    @property
    def dead(self) -> int:
        """Maximum bytes of dead letters; the oldest are removed."""
        return self.store * 2 // 100

    def by_stream(self) -> Mapping[str, int]:
        """Return `max_bytes` of each stream that has a share."""
        return {LOG: self.log, f"OBJ_{FILES}": self.files, GOALS: self.goals, DEAD: self.dead}


@dataclass(frozen=True)
class Topology:
    """How durable the system is: replicas of everything, how long goals and the audit log are kept, and the shares of the store.

    What belongs to a goal is removed as one, `keep` after its end, by group setup and not by the age of streams. If `store_bytes`
    is 0, the size of the store is the limit of the account, if it has one.
    """

    replicas: int = 1
    keep: timedelta = timedelta(days=30)
    store_bytes: int = 0
    audit_keep: timedelta = timedelta(days=90)
    audit_lines: int = 200_000
    goals_open: int = GOALS_OPEN
    goals_waiting: int = GOALS_WAITING

    async def ensure(self, js: JetStreamContext) -> Shares | None:
        """Create missing streams and consumers; return the shares of the store, if there are any.

        Raises:
            ConflictError: A stream has another format.
        """
        limits = (await js.account_info()).limits
        allowed = max(0, limits.max_storage or 0) // self.replicas
        store = self.store_bytes or allowed
        shares = Shares(store) if store else None
        max_bytes = {} if shares is None else shares.by_stream()
        for config in self.streams():
            config = _within(config, limits.max_consumers).evolve(max_bytes=max_bytes.get(str(config.name)))
            await _ensure_stream(js, config)
        for stream, name, filters in CONSUMERS:
            put_off = {"max_ack_pending": _HOOKS_PUT_OFF} if stream == HOOKS else {}
            await _ensure_consumer(js, stream, name, *filters, **put_off)
        await ensure_intake(js, LOCAL, self.goals_open)
        return shares

    def streams(self) -> tuple[StreamConfig, ...]:
        """Return the configuration of every stream, those of buckets too."""

        def stream(name: str, *patterns: str, **options: object) -> StreamConfig:
            config = StreamConfig(
                name=name,
                subjects=list(patterns),
                storage=StorageType.FILE,
                num_replicas=self.replicas,
                max_msg_size=_MAX_MESSAGE_BYTES,
                discard=DiscardPolicy.NEW,
                allow_direct=True,
                metadata={FORMAT_KEY: FORMAT},
            )
            return config.evolve(**options)

        def bucket(name: str) -> StreamConfig:
            return stream(
                stream_of(name),
                f"$KV.{name}.>",
                max_msg_size=-1,
                max_msgs_per_subject=1,
                allow_direct=name in _LISTED,
                allow_rollup_hdrs=True,
                allow_msg_ttl=True,
                deny_delete=True,
            )

        queue = RetentionPolicy.WORK_QUEUE
        return (
            # A user has a consumer, too.
            stream(
                GOALS,
                subjects.ANY_GOAL,
                subjects.ANY_ADDRESSED_GOAL,
                retention=queue,
                max_consumers=_MAX_USERS,
                max_msgs_per_subject=self.goals_waiting,
                discard_new_per_subject=True,
                duplicate_window=_SAME_GOAL.total_seconds(),
                subject_transform=SubjectTransform(
                    subjects.ANY_ADDRESSED_GOAL,
                    subjects.goal_to(UserId("{{wildcard(1)}}"), AgentId(f"{{{{left(2,{_ADDRESSEE_CHARS})}}}}")),
                ),
            ),
            # A pool has a consumer; of a work queue the server allows 1,000 unless told.
            stream(WORK, subjects.WORK, subjects.ANY_POOL_WORK, retention=queue, max_consumers=_MAX_POOLS, allow_msg_ttl=True),
            stream(RESULTS, subjects.ANY_RESULT),
            stream(LOG, subjects.ANY_LOG),
            # Files go with their goals. Those that no goal knows of, such as of a task that died before its report, go by age.
            stream(
                f"OBJ_{FILES}",
                f"$O.{FILES}.C.>",
                f"$O.{FILES}.M.*",
                f"$O.{FILES}.P.*",
                max_age=(self.keep + _LONGEST_GOAL + _FILES_KEPT_LONGER).total_seconds(),
            ),
            # Scheduling does not go with refusing new messages, but without a limit nothing is ever discarded either.
            stream(
                TIMERS,
                subjects.ANY_TIMER,
                subjects.ANY_TIMER_SCHEDULE,
                retention=queue,
                allow_msg_schedules=True,
                discard=DiscardPolicy.OLD,
            ),
            stream(
                HOOKS,
                subjects.ANY_HOOK,
                retention=queue,
                max_age=_HOOKS_KEPT.total_seconds(),
                max_msgs=_HOOKS_OF_ALL,
                max_msgs_per_subject=_HOOKS_WAITING,
                discard_new_per_subject=True,
            ),
            stream(
                DEAD,
                subjects.ANY_DEAD,
                max_msgs_per_subject=_LETTERS_PER_REASON,
                discard=DiscardPolicy.OLD,
                duplicate_window=_SAME_LETTER.total_seconds(),
            ),
            stream(
                OUTCOMES,
                subjects.ANY_OUTCOME,
                max_msgs_per_subject=REMEMBERED,
                max_age=KEEP.total_seconds(),
                discard=DiscardPolicy.OLD,
            ),
            # Not even an admin takes a line out. Bounded by lines of a bounded size: bytes would be set aside from the start.
            stream(
                AUDIT,
                subjects.ANY_AUDIT,
                max_msgs=self.audit_lines,
                max_msg_size=MAX_LINE_BYTES,
                max_age=self.audit_keep.total_seconds(),
                discard=DiscardPolicy.OLD,
                deny_delete=True,
                deny_purge=True,
            ),
            *map(bucket, _BUCKETS),
        )


async def ensure_pool_consumer(js: JetStreamContext, pool: PoolId) -> None:
    """Make the queue in which goals wait for a pool, also while the pool is scaled to zero."""
    idle = _POOL_IDLE.total_seconds()
    await _ensure_consumer(js, WORK, pool_consumer(pool), subjects.work_of(pool), inactive_threshold=idle)


async def ensure_intake(js: JetStreamContext, user: UserId, goals_open: int) -> ConsumerInfo:
    """Make the queue of a user's goals, of which so many are given out at a time until they have ended; return how it stands.

    Those of `LOCAL`, whom nobody asks who he is, are not counted: they are everybody's.
    """
    filters = subjects.goal_of(user), subjects.goal_to(user, AgentId("*"))
    bounds = {"max_ack_pending": goals_open, "inactive_threshold": _USER_IDLE.total_seconds()} if user != LOCAL else {}
    return await _ensure_consumer(js, GOALS, intake_consumer(user), *filters, **bounds)


def _within(config: StreamConfig, allowed: int | None) -> StreamConfig:
    """Have a stream take no more consumers than its account may have of one, where that is bounded: the server refuses it else."""
    if not allowed or allowed < 0 or not config.max_consumers:
        return config
    return config.evolve(max_consumers=min(config.max_consumers, allowed))


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
        _check_format(found)
        if config.discard_new_per_subject:
            config = _keeping_all(config, found)
        await js.update_stream(config)


def _check_format(found: StreamInfo) -> None:
    """Reject a stream of another format, or one without a format number that contains messages."""
    number = (found.config.metadata or {}).get(FORMAT_KEY)
    if number == FORMAT or (number is None and not found.state.messages):
        return
    raise ConflictError(
        f"The stream {found.config.name} has {'no format number' if number is None else f'format {number}'}; expected {FORMAT}.",
        hint="Start nats-server with an empty JetStream store: streams of another format cannot be converted.",
    )


def _keeping_all(config: StreamConfig, found: StreamInfo) -> StreamConfig:
    """Lower no bound of a stream to less than it may hold now: what is beyond a bound when that is set would be dropped.

    Nobody asks how much each subject holds: the server would list all subjects in one message, which whoever publishes makes as
    long as he likes, and a service does so whenever it connects. None holds more than the stream, or than its bound allows already.
    """
    held, bound = found.state.messages, found.config.max_msgs_per_subject or 0
    if found.config.discard_new_per_subject and bound > 0:
        held = min(held, bound)
    config = config.evolve(max_msgs_per_subject=max(config.max_msgs_per_subject or 0, held))
    return config.evolve(max_msgs=max(config.max_msgs, found.state.messages)) if config.max_msgs else config


_STREAM_NAME_IN_USE, _INSUFFICIENT_STORAGE = 10058, 10047
"""JetStream's error codes for a stream with another configuration. The second one: the server adds the new `max_bytes` to the
`max_bytes` of all streams before it looks for the name."""


async def _ensure_consumer(js: JetStreamContext, stream: str, name: str, *filters: str, **options: float | None) -> ConsumerInfo:
    config = ConsumerConfig(
        durable_name=name,
        filter_subject=filters[0] if len(filters) == 1 else None,
        filter_subjects=list(filters) if len(filters) > 1 else None,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=ACK_WAIT.total_seconds(),
        max_ack_pending=10_000,
        max_waiting=8_192,
    )
    return await js.add_consumer(stream, config.evolve(**options))
