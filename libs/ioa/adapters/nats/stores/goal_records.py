"""Records of accepted goals (`IOA_GOAL_RECORDS`) and of removed goals (`IOA_ENDED`), and the queues of goals (`IOA_WORK`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from nats.aio.client import Client
from nats.js.api import Header
from nats.js.errors import NotFoundError

from ioa.adapters.nats.stores.records import Records, draw_once, read_value
from ioa.adapters.nats.streams.stream import ALL, Stream
from ioa.adapters.nats.streams.topology import (
    ANY_AGENT,
    ENDED,
    GOAL_RECORDS,
    GOALS,
    KEYS,
    WORK,
    ensure_pool_consumer,
    intake_subjects,
    pool_consumer,
)
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import UnavailableError
from ioa.protocol import subjects
from ioa.protocol.codec import encode
from ioa.protocol.goals import EndedGoal, GoalRecord
from ioa.protocol.ids import CommId, GoalName, PoolId, UserId
from ioa.protocol.setup.tickets import KEY_BYTES, seal_of, ticket_of

DEADLINE, TICKET = "Ioa-Deadline", "Ioa-Ticket"
"""Headers of a queued goal: its deadline, and the ticket that its leader must show."""
_QUEUE = "The queue of goals"


def record_key(comm_id: CommId, user: UserId | str = "*") -> str:
    """Return the key of a record: `<user>.<comm_id>`, so that a user's records can be read alone."""
    return f"{user}.{comm_id}"


class NatsGoalRecords:
    """Records of goals by the id of the goal's root group."""

    def __init__(self, client: Client) -> None:
        self._records = Records(client, GOAL_RECORDS, GoalRecord)

    async def create(self, record: GoalRecord) -> GoalRecord:
        """Store a goal under its id; return the stored record, which is an older goal's if the id was used before."""
        comm_id = record.goal.comm_id
        if await self._records.put_onto(record_key(comm_id, record.goal.user), record):
            return record
        return await self.find(comm_id) or record

    async def find(self, comm_id: CommId) -> GoalRecord | None:
        """Return the record of the goal whose root group is `comm_id`."""
        return await self._records.find(record_key(comm_id))

    async def oldest(self, *, after: int, limit: int) -> tuple[Sequence[GoalRecord], int | None]:
        """Read records after a number, in the order of acceptance, and the number to continue from; None at the end.

        Unreadable records are left out.
        """
        page = await self._records.stream.page(ALL, after=after, limit=limit)
        records = [read_value(GOAL_RECORDS, message.subject, GoalRecord, message.data) for message in page.messages]
        return [record for record in records if record is not None], None if page.complete else page.messages[-1].seq

    async def remove(self, goal: GoalName) -> None:
        """Remove a record."""
        await self._records.erase(record_key(goal.comm_id, goal.user))


class NatsEndedGoals:
    """Outcomes of removed goals, by the root group."""

    def __init__(self, client: Client) -> None:
        self._records = Records(client, ENDED, EndedGoal)

    async def put(self, ended: EndedGoal) -> None:
        """Store how a goal ended, unless it is stored."""
        await self._records.put_onto(ended.name.comm_id, ended)

    async def find(self, goal: GoalName) -> EndedGoal | None:
        """Return how a goal ended."""
        return await self._records.find(goal.comm_id)


class NatsWorkQueue:
    """Queues of goals that wait for an agent, a subject and a durable consumer for each pool."""

    def __init__(self, client: Client) -> None:
        self._stream = Stream(client, WORK)
        self._js = client.jetstream()

    async def put(self, record: GoalRecord, pool: PoolId | None, ticket: str | None = None) -> int:
        """Queue a goal until its deadline, for a pool or for any agent; return its sequence. The server's clock counts (ADR-43)."""
        headers = {DEADLINE: record.deadline.isoformat()} | ({} if ticket is None else {TICKET: ticket})
        headers[Header.MSG_TTL.value] = str(math.ceil(record.goal.timeout.total_seconds()))
        return await self._stream.publish(subjects.work_of(pool), encode(record.goal), headers)

    async def was_taken(self, pool: PoolId | None, seq: int) -> bool:
        """Whether the queue, which delivers in order, has delivered a sequence."""
        with unavailable_unless_answered(_QUEUE):
            consumer = ANY_AGENT if pool is None else pool_consumer(pool)
            delivered = (await self._js.consumer_info(WORK, consumer)).delivered
        return delivered is not None and (delivered.stream_seq or 0) >= seq

    async def withdraw(self, seq: int) -> None:
        """Remove a queued goal, if it is still queued."""
        try:
            await self._stream.remove(seq)
        except UnavailableError:  # JetStream's error for a missing message has no code of its own
            if await self.contains(seq):
                raise

    async def contains(self, seq: int) -> bool:
        """Whether a sequence is queued or delivered and not acknowledged, read from the stream's leader."""
        return await self._stream.contains(seq)

    async def ensure_pool(self, pool: PoolId) -> None:
        """Create the queue of a pool."""
        with unavailable_unless_answered(_QUEUE):
            await ensure_pool_consumer(self._js, pool)

    async def remove_pool(self, pool: PoolId) -> bool:
        """Delete the queue of a pool if no goal waits; return whether it is gone.

        The stream counts a goal from its acknowledgement to the publisher until its end; the consumer counts it a moment later.
        """
        if await self._stream.subject_counts(subjects.work_of(pool)):
            return False
        with unavailable_unless_answered(_QUEUE), suppress(NotFoundError):
            await self._js.delete_consumer(WORK, pool_consumer(pool))
        return True


async def drop_orders(client: Client, user: UserId) -> None:
    """Remove all published goals of a user, as an admin. Accepted goals are not affected."""
    for subject in intake_subjects(user):
        await Stream(client, GOALS).purge(subject)


class NatsTickets:
    """HMACs for launch tickets, seals of uploads and names of files, with a secret key in the bucket `IOA_KEYS`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._key = b""

    async def of(self, goal: GoalName) -> str:
        """Return the ticket of a goal."""
        return ticket_of(await self._read_key(), goal)

    async def seal(self, words: str) -> str:
        """Return the HMAC of a text."""
        return seal_of(await self._read_key(), words)

    def forget(self) -> None:
        """Read the key again: after a reconnect, the server may have another store."""
        self._key = b""

    async def _read_key(self) -> bytes:
        self._key = self._key or await draw_once(self._client, KEYS, "launch", KEY_BYTES)
        return self._key
