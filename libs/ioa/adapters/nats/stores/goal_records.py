"""Goals on record, and the queues in which they wait for somebody to lead them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from nats.js import JetStreamContext
from nats.js.errors import APIError, NotFoundError

from ioa.adapters.nats.streams.compare_and_set import last_message, publish_onto, stream_of, subject_of
from ioa.adapters.nats.streams.topology import ANY_AGENT, GOAL_RECORDS, WORK, ensure_pool_consumer, pool_consumer
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import InvalidInputError
from ioa.protocol import subjects
from ioa.protocol.codec import decode, encode
from ioa.protocol.goals import GoalRecord
from ioa.protocol.ids import CommId, PoolId

DEADLINE = "Ioa-Deadline"
"""The header in which a queued goal says until when it is worth leading."""
TICKET = "Ioa-Ticket"
"""The header with what its leader has to show. Not in the goal itself, which is kept and shown elsewhere."""
_STREAM = stream_of(GOAL_RECORDS)


@dataclass(frozen=True)
class Queued:
    """A message that waits in a queue, as published."""

    subject: str
    data: bytes


class NatsGoalRecords:
    """The bucket `IOA_GOAL_RECORDS`, keyed by the `comm_id` that follows from the goal's id."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def create(self, record: GoalRecord) -> GoalRecord:
        """Record a goal once."""
        comm_id = record.goal.comm_id
        with unavailable_unless_answered("The goals on record"):
            if await publish_onto(self._js, _STREAM, subject_of(GOAL_RECORDS, comm_id), encode(record)):
                return record
        return await self.find(comm_id) or record

    async def find(self, comm_id: CommId) -> GoalRecord | None:
        """Read the goal whose root group is `comm_id`, from the leader: the bucket's own get may be answered by one that lags."""
        stored = await self.stored(comm_id)
        return None if stored is None else decode(GoalRecord, stored)

    async def stored(self, comm_id: CommId) -> bytes | None:
        """Read the same as it is stored, for who decodes it later, or not all of it."""
        with unavailable_unless_answered("The goals on record"):
            message = await last_message(self._js, _STREAM, subject_of(GOAL_RECORDS, comm_id))
        return None if message is None else message.data or b""


def deadline_of(headers: Mapping[str, str]) -> datetime | None:
    """Read a queued goal's deadline; None if the header is missing.

    Raises:
        InvalidInputError: It is no time.
    """
    written = headers.get(DEADLINE)
    if written is None:
        return None
    try:
        return datetime.fromisoformat(written).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInputError(f"{written[:80]!r} is no deadline.") from None


class NatsWorkQueue:
    """The stream `IOA_WORK`, a subject and a durable consumer for each pool."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def put(self, record: GoalRecord, pool: PoolId | None, ticket: str | None = None) -> int:
        """Offer a goal. The server removes it at its deadline, by its own clock (NATS ADR-43)."""
        goal, seconds = record.goal, math.ceil(record.goal.timeout.total_seconds())
        headers = {DEADLINE: record.deadline.isoformat()} | ({} if ticket is None else {TICKET: ticket})
        with unavailable_unless_answered("The queue of goals"):
            subject = subjects.work_of(pool)
            return (await self._js.publish(subject, encode(goal), stream=WORK, headers=headers, msg_ttl=seconds)).seq

    async def was_taken(self, pool: PoolId | None, seq: int) -> bool:
        """Ask how far the queue's consumer has come, which gives out in order."""
        with unavailable_unless_answered("The queue of goals"):
            consumer = ANY_AGENT if pool is None else pool_consumer(pool)
            delivered = (await self._js.consumer_info(WORK, consumer)).delivered
        return delivered is not None and (delivered.stream_seq or 0) >= seq

    async def withdraw(self, seq: int) -> None:
        """Delete a message by its sequence. That one is gone has no error code of its own, so it is looked up after any error."""
        with unavailable_unless_answered("The queue of goals"):
            try:
                await self._js.delete_msg(WORK, seq)
            except APIError:
                if await self.look(seq) is not None:
                    raise

    async def look(self, seq: int) -> Queued | None:
        """Read a message by its sequence, from the stream's leader."""
        with unavailable_unless_answered("The queue of goals"):
            try:
                message = await self._js.get_msg(WORK, seq=seq)
            except NotFoundError:
                return None
        return Queued(message.subject or "", message.data or b"")

    async def ensure_pool(self, pool: PoolId) -> None:
        """Make the pool's queue."""
        with unavailable_unless_answered("The queue of goals"):
            await ensure_pool_consumer(self._js, pool)
