"""Webhooks in the bucket `IOA_WEBHOOKS`, the streams that cause notices, and queued notices in the stream `IOA_HOOKS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from nats.aio.client import Client
from nats.js.api import Header

from ioa.adapters.nats.delivery.work_queue import Delivery, consume, into_dead_letters
from ioa.adapters.nats.stores.goal_records import record_key
from ioa.adapters.nats.stores.records import Records
from ioa.adapters.nats.streams.group_log import read_entry
from ioa.adapters.nats.streams.stream import ALL, Stream
from ioa.adapters.nats.streams.topology import DELIVERING, GATEWAY, GOAL_RECORDS, HOOKS, LOG, NOTIFYING, POSITION, RESULTS, WEBHOOKS
from ioa.adapters.nats.wire.translated_errors import TooManyMessagesError
from ioa.concurrency import TaskGroup
from ioa.errors import IoaError
from ioa.ports.delivery import DeadLetters
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.codec import decode, encode
from ioa.protocol.goals import GoalRecord, Labels
from ioa.protocol.ids import GoalName
from ioa.protocol.model import Model
from ioa.protocol.operation.dead_letters import DeadReason
from ioa.protocol.operation.webhooks import Notice, StreamEnds, Webhook

_MAX_CONCURRENT, _MAX_RESULTS = 128, 16
"""Notices, and results, that are processed concurrently."""
_PAGE = 256


class LogPosition(Model):
    """The last entry of which all webhooks were informed."""

    seq: int


class NatsWebhooks(Records[Webhook]):
    """Webhooks by id, and the queue of their notices."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, WEBHOOKS, Webhook)
        self._hooks, self._results, self._log = (Stream(client, name) for name in (HOOKS, RESULTS, LOG))
        self._position, self._goals = Records(client, GATEWAY, LogPosition), Records(client, GOAL_RECORDS, GoalRecord)

    async def ends(self) -> StreamEnds:
        """Return the last sequences of results and logs."""
        return StreamEnds(results=await self._results.last_sequence(), log=await self._log.last_sequence())

    async def queue(self, notice: Notice) -> bool:
        """Queue a notice; return False if too many notices wait."""
        headers = {Header.MSG_ID.value: f"{notice.webhook_id}/{notice.user}/{notice.message_id}"}
        try:
            await self._hooks.publish(subjects.hook(notice.webhook_id), encode(notice), headers)
        except TooManyMessagesError:
            return False
        return True

    async def labels(self, goal: GoalName) -> Labels:
        """Read the labels of a goal from its record; none of a goal that was removed."""
        found = await self._goals.stream.latest(self._goals.subject(record_key(goal.comm_id, goal.user)))
        return {} if found is None else decode(GoalRecord, found.data).goal.labels

    async def position(self) -> tuple[int, int]:
        """Return the position in the entries of all groups, and its revision."""
        position, revision = await self._position.read(POSITION)
        return 0 if position is None else position.seq, revision

    async def move(self, seq: int, revision: int) -> bool:
        """Replace the position; return False if another replica did since `revision`."""
        return await self._position.put_onto(POSITION, LogPosition(seq=seq), last=revision) is not None

    async def entries(self, after: int) -> tuple[Sequence[StoredEntry], int]:
        """Read the next entries after a sequence, without unreadable ones, and the sequence of the last message that was read."""
        messages, found = (await self._log.page(ALL, after=after, limit=_PAGE)).messages, list[StoredEntry]()
        for message in messages:
            with suppress(IoaError):  # the router reports unreadable entries
                found.append(read_entry(subjects.parse_comm(message.subject), message))
        return found, messages[-1].seq if messages else after


Work = Callable[[Delivery], Awaitable[None]]


async def follow_webhooks(client: Client, dead: DeadLetters, note_end: Work, deliver: Work) -> None:
    """Pass results and queued notices to their functions until cancelled, together with all other callers.

    A message whose processing fails repeatedly becomes a dead letter.
    """
    set_aside = into_dead_letters(dead, DeadReason.WEBHOOK)
    async with TaskGroup() as group:
        group.create_task(consume(client, RESULTS, NOTIFYING, note_end, set_aside=set_aside, max_concurrent=_MAX_RESULTS))
        group.create_task(consume(client, HOOKS, DELIVERING, deliver, set_aside=set_aside, max_concurrent=_MAX_CONCURRENT))
