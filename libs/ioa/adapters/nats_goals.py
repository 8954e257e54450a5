"""Goals on record, and the queues in which they wait for somebody to lead them."""

from __future__ import annotations

from collections.abc import Sequence

from nats.js import JetStreamContext
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError

from ioa.adapters.nats_failures import unavailable_unless_answered
from ioa.adapters.nats_handles import BucketHandle
from ioa.adapters.nats_topology import GOAL_RECORDS, WORK, ensure_pool_consumer
from ioa.protocol import subjects
from ioa.protocol.codec import decode, encode
from ioa.protocol.goals import Goal, GoalRecord
from ioa.protocol.ids import CommId, PoolId, comm_id_of_goal

_KEYS = f"$KV.{GOAL_RECORDS}."


class NatsGoalRecords:
    """The bucket `IOA_GOAL_RECORDS`, keyed by the `comm_id` that follows from the goal's id."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js
        self._bucket = BucketHandle(js, GOAL_RECORDS)

    async def create(self, record: GoalRecord) -> GoalRecord:
        """Record a goal once."""
        comm_id = comm_id_of_goal(record.goal.goal_id)
        with unavailable_unless_answered("The goals on record"):
            bucket = await self._bucket.open()
            try:
                await bucket.create(comm_id, encode(record))
            except KeyWrongLastSequenceError:
                return await self.find(comm_id) or record
        return record

    async def find(self, comm_id: CommId) -> GoalRecord | None:
        """Read the goal whose root group is `comm_id`."""
        with unavailable_unless_answered("The goals on record"):
            bucket = await self._bucket.open()
            try:
                entry = await bucket.get(comm_id)
            except KeyNotFoundError:
                return None
        return decode(GoalRecord, entry.value or b"")

    async def goals(self) -> Sequence[GoalRecord]:
        """List all goals, oldest first."""
        found = [record for comm_id in await self.comm_ids() if (record := await self.find(comm_id)) is not None]
        return sorted(found, key=lambda record: record.accepted_at)

    async def comm_ids(self) -> Sequence[CommId]:
        """List the keys of the bucket. Not by a watch: users may list goals, but not have the server deliver anything anywhere."""
        with unavailable_unless_answered("The goals on record"):
            info = await self._js.stream_info(f"KV_{GOAL_RECORDS}", subjects_filter=f"{_KEYS}>")
        return [CommId(subject.removeprefix(_KEYS)) for subject in info.state.subjects or {}]


class NatsWorkQueue:
    """The stream `IOA_WORK`, a subject and a durable consumer for each pool."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def put(self, goal: Goal, pool: PoolId | None) -> None:
        """Offer a goal."""
        with unavailable_unless_answered("The queue of goals"):
            await self._js.publish(subjects.work_of(pool), encode(goal), stream=WORK)

    async def ensure_pool(self, pool: PoolId) -> None:
        """Make the pool's queue."""
        with unavailable_unless_answered("The queue of goals"):
            await ensure_pool_consumer(self._js, pool)
