"""Every stream, bucket and shared consumer of the system. The control plane makes them; agents never do.

Making them is idempotent, so each service does it when it starts. What an older version made is brought up to date.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import structlog
from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DiscardPolicy,
    KeyValueConfig,
    ObjectStoreConfig,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import BadRequestError, BucketNotFoundError, NotFoundError

from ioa.protocol import subjects
from ioa.protocol.ids import PoolId
from ioa.protocol.outcomes import KEEP, REMEMBERED

GOALS, WORK, RESULTS, LOG, TIMERS, DEAD = "IOA_GOALS", "IOA_WORK", "IOA_RESULTS", "IOA_LOG", "IOA_TIMERS", "IOA_DEAD"
OUTCOMES = "IOA_OUTCOMES"
CARDS, LEASES, MEMBERS, GOAL_RECORDS = "IOA_CARDS", "IOA_LEASES", "IOA_MEMBERS", "IOA_GOAL_RECORDS"
ARTIFACTS, FILES = "IOA_ARTIFACTS", "IOA_FILES"

INTAKE, ROUTERS, ANY_AGENT = "intake", "routers", "any"

STREAMS = (
    *(GOALS, WORK, RESULTS, LOG, TIMERS, DEAD, OUTCOMES),
    *(f"KV_{bucket}" for bucket in (CARDS, LEASES, MEMBERS, GOAL_RECORDS)),
    *(f"OBJ_{bucket}" for bucket in (ARTIFACTS, FILES)),
)
"""Every stream, those of buckets too, by its own name."""

CONSUMERS = ((GOALS, INTAKE, None), (WORK, ANY_AGENT, subjects.WORK), (TIMERS, ROUTERS, subjects.ANY_TIMER))
"""Every shared consumer but those of pools: its stream, its name, and the subject it is for."""

ACK_WAIT = timedelta(seconds=6)
"""How long a worker that was killed keeps its message from the others. A living one says twice in this time that it is at work."""
_EXPIRY_MARKER_TTL = timedelta(hours=1)
_MAX_MESSAGE_BYTES = 1_048_576
_MAX_POOLS = 100_000

_log = structlog.get_logger(__name__)


def pool_consumer(pool: PoolId) -> str:
    """The durable consumer that holds a pool's waiting goals."""
    return f"pool-{pool}"


@dataclass(frozen=True)
class Topology:
    """How durable the system is: the number of replicas of everything, and how long an agent's lease lasts."""

    replicas: int = 1
    lease: timedelta = timedelta(seconds=10)
    keep_results: timedelta = timedelta(days=30)

    async def ensure(self, js: JetStreamContext) -> None:
        """Make what is missing."""
        for config in self._streams():
            await _ensure_stream(js, config)
        for stream, name, subject in CONSUMERS:
            await _ensure_consumer(js, stream, name, subject)
        for bucket in (CARDS, MEMBERS, GOAL_RECORDS):
            await _ensure_bucket(js, KeyValueConfig(bucket=bucket, history=1, replicas=self.replicas))
        await _ensure_bucket(
            js,
            KeyValueConfig(
                bucket=LEASES,
                history=1,
                replicas=self.replicas,
                ttl=self.lease.total_seconds(),
                limit_marker_ttl=_EXPIRY_MARKER_TTL.total_seconds(),
            ),
        )
        try:
            await js.object_store(ARTIFACTS)
        except BucketNotFoundError:
            await js.create_object_store(ARTIFACTS, ObjectStoreConfig(bucket=ARTIFACTS, replicas=self.replicas))

    def _streams(self) -> tuple[StreamConfig, ...]:
        def stream(name: str, *patterns: str, **options: object) -> StreamConfig:
            config = StreamConfig(
                name=name,
                subjects=list(patterns),
                storage=StorageType.FILE,
                num_replicas=self.replicas,
                max_msg_size=_MAX_MESSAGE_BYTES,
                discard=DiscardPolicy.NEW,
                allow_direct=True,
            )
            return config.evolve(**options)

        queue = RetentionPolicy.WORK_QUEUE
        return (
            stream(GOALS, subjects.GOAL, subjects.ANY_ADDRESSED_GOAL, retention=queue),
            # A pool has a consumer; of a work queue the server allows 1,000 unless told.
            stream(WORK, subjects.WORK, subjects.ANY_POOL_WORK, retention=queue, max_consumers=_MAX_POOLS),
            stream(RESULTS, subjects.ANY_RESULT, max_age=self.keep_results.total_seconds(), discard=DiscardPolicy.OLD),
            stream(LOG, subjects.ANY_LOG),
            stream(f"OBJ_{FILES}", f"$O.{FILES}.C.*", f"$O.{FILES}.M.*"),
            # Scheduling does not go with refusing new messages, but without a limit nothing is ever discarded either.
            stream(
                TIMERS,
                subjects.ANY_TIMER,
                subjects.ANY_TIMER_SCHEDULE,
                retention=queue,
                allow_msg_schedules=True,
                discard=DiscardPolicy.OLD,
            ),
            stream(DEAD, subjects.ANY_DEAD, max_msgs=100_000, discard=DiscardPolicy.OLD),
            stream(
                OUTCOMES,
                subjects.ANY_OUTCOME,
                max_msgs_per_subject=REMEMBERED,
                max_age=KEEP.total_seconds(),
                discard=DiscardPolicy.OLD,
            ),
        )


async def ensure_pool_consumer(js: JetStreamContext, pool: PoolId) -> None:
    """Make the queue in which goals wait for a pool, also while the pool is scaled to zero."""
    await _ensure_consumer(js, WORK, pool_consumer(pool), subjects.work_of(pool))


async def _ensure_stream(js: JetStreamContext, config: StreamConfig) -> None:
    try:
        await js.add_stream(config)
    except BadRequestError as error:
        if error.err_code != _STREAM_NAME_IN_USE:
            raise
        await js.update_stream(config)


_STREAM_NAME_IN_USE = 10058
"""JetStream's error code for a stream of this name with another configuration."""


async def _ensure_consumer(js: JetStreamContext, stream: str, name: str, subject: str | None) -> None:
    await js.add_consumer(
        stream,
        ConsumerConfig(
            durable_name=name,
            filter_subject=subject,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=ACK_WAIT.total_seconds(),
            max_ack_pending=10_000,
            max_waiting=8_192,
        ),
    )


async def _ensure_bucket(js: JetStreamContext, config: KeyValueConfig) -> None:
    try:
        found = (await js.stream_info(f"KV_{config.bucket}")).config
    except NotFoundError:
        await js.create_key_value(config)
        return
    ttl = config.ttl or 0
    if ((found.max_age or 0), found.num_replicas) != (ttl, config.replicas):
        window = min(found.duplicate_window or ttl, ttl) if ttl else found.duplicate_window
        await js.update_stream(found.evolve(max_age=ttl, num_replicas=config.replicas, duplicate_window=window))
