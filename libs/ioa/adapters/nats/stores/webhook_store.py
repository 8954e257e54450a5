"""Webhooks in the bucket `IOA_WEBHOOKS`, the results that cause notices, and queued notices in the stream `IOA_HOOKS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nats.aio.client import Client
from nats.js.api import Header

from ioa.adapters.nats.delivery.work_queue import Delivery, consume, into_dead_letters
from ioa.adapters.nats.stores.goal_records import record_key
from ioa.adapters.nats.stores.records import Records
from ioa.adapters.nats.streams.stream import Stream
from ioa.adapters.nats.streams.topology import DELIVERING, GOAL_RECORDS, HOOKS, NOTIFYING, RESULTS, WEBHOOKS
from ioa.adapters.nats.wire.translated_errors import TooManyMessagesError
from ioa.concurrency import TaskGroup
from ioa.ports.delivery import DeadLetters
from ioa.protocol import subjects
from ioa.protocol.codec import decode, encode
from ioa.protocol.goals import GoalRecord, Labels
from ioa.protocol.ids import GoalName
from ioa.protocol.operation.dead_letters import DeadReason
from ioa.protocol.operation.webhooks import Notice, Webhook

_MAX_CONCURRENT, _MAX_RESULTS = 128, 16
"""Notices, and results, that are processed concurrently."""


class NatsWebhooks(Records[Webhook]):
    """Webhooks by id, and the queue of their notices."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, WEBHOOKS, Webhook)
        self._hooks, self._results = Stream(client, HOOKS), Stream(client, RESULTS)
        self._goals = Records(client, GOAL_RECORDS, GoalRecord)

    async def last_result(self) -> int:
        """Return the sequence of the last result."""
        return await self._results.last_sequence()

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


Work = Callable[[Delivery], Awaitable[None]]


async def follow_webhooks(client: Client, dead: DeadLetters, note_end: Work, deliver: Work) -> None:
    """Pass results and queued notices to their functions until cancelled, together with all other callers.

    A message whose processing fails repeatedly becomes a dead letter.
    """
    set_aside = into_dead_letters(dead, DeadReason.WEBHOOK)
    async with TaskGroup() as group:
        group.create_task(consume(client, RESULTS, NOTIFYING, note_end, set_aside=set_aside, max_concurrent=_MAX_RESULTS))
        group.create_task(consume(client, HOOKS, DELIVERING, deliver, set_aside=set_aside, max_concurrent=_MAX_CONCURRENT))
