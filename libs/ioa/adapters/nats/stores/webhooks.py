"""Webhooks in the bucket `IOA_WEBHOOKS`, and their queued notices in the stream `IOA_HOOKS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from nats.aio.client import Client
from nats.js.api import Header

from ioa.adapters.nats.delivery.work_queue import Delivery, consume, into_dead_letters
from ioa.adapters.nats.stores.records import Records
from ioa.adapters.nats.streams.stream import Stream
from ioa.adapters.nats.streams.topology import DELIVERING, HOOKS, LOG, RESULTS, WEBHOOKS
from ioa.adapters.nats.wire.translated_errors import TooManyMessagesError
from ioa.ports.delivery import DeadLetters
from ioa.protocol import subjects
from ioa.protocol.codec import encode
from ioa.protocol.dead_letters import DeadReason
from ioa.protocol.webhooks import Notice, StreamEnds, Webhook, WebhookId

_MAX_CONCURRENT = 128
"""Notices that are processed concurrently."""


class NatsWebhooks(Records[Webhook]):
    """Webhooks by id, and the queue of their notices."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, WEBHOOKS, Webhook)
        self._queue, self._results, self._log = (Stream(client, name) for name in (HOOKS, RESULTS, LOG))

    async def ends(self) -> StreamEnds:
        """Return the last sequences of results and logs."""
        return StreamEnds(results=await self._results.last_sequence(), log=await self._log.last_sequence())

    async def waiting(self) -> Mapping[WebhookId, int]:
        """Count the queued notices of each webhook."""
        counts = await self._queue.subject_counts()
        return {WebhookId(subject.rpartition(".")[2]): count for subject, count in counts.items()}

    async def queue(self, notice: Notice) -> bool:
        """Queue a notice; return False if too many notices wait."""
        headers = {Header.MSG_ID.value: f"{notice.webhook_id}/{notice.user}/{notice.message_id}"}
        try:
            await self._queue.publish(subjects.hook(notice.webhook_id), encode(notice), headers)
        except TooManyMessagesError:
            return False
        return True


async def deliver_notices(client: Client, dead: DeadLetters, work: Callable[[Delivery], Awaitable[None]]) -> None:
    """Process queued notices until cancelled, together with all other callers; a notice that fails becomes a dead letter."""
    set_aside = into_dead_letters(dead, DeadReason.WEBHOOK)
    await consume(client, HOOKS, DELIVERING, work, set_aside=set_aside, max_concurrent=_MAX_CONCURRENT)
