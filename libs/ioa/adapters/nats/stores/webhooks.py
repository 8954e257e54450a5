"""Webhooks in the bucket `IOA_WEBHOOKS`, and their queued notices in the stream `IOA_HOOKS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from nats.aio.client import Client
from nats.js.api import Header
from nats.js.errors import APIError

from ioa.adapters.nats.delivery.work_queue import Delivery, consume, into_dead_letters
from ioa.adapters.nats.stores.records import Records
from ioa.adapters.nats.streams.stream_reader import last_sequence
from ioa.adapters.nats.streams.stream_stats import subject_counts
from ioa.adapters.nats.streams.topology import DELIVERING, HOOKS, LOG, RESULTS, WEBHOOKS
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.ports.delivery import DeadLetters
from ioa.protocol import subjects
from ioa.protocol.codec import encode
from ioa.protocol.dead_letters import DeadReason
from ioa.protocol.webhooks import Notice, StreamEnds, Webhook, WebhookId

_FULL = ("maximum messages per subject", "maximum messages exceeded")
"""Descriptions of JetStream's error if too many notices wait, of a webhook or in total. Other errors have the same code."""
_MAX_CONCURRENT = 128
"""Notices that are processed concurrently."""


class NatsWebhooks(Records[Webhook]):
    """Webhooks by id, and the queue of their notices."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, WEBHOOKS, Webhook)

    async def ends(self) -> StreamEnds:
        """Return the last sequences of results and logs."""
        return StreamEnds(results=await last_sequence(self._client, RESULTS), log=await last_sequence(self._client, LOG))

    async def waiting(self) -> Mapping[WebhookId, int]:
        """Count the queued notices of each webhook."""
        counts = await subject_counts(self._client, HOOKS, subjects.ANY_HOOK)
        return {WebhookId(subject.rpartition(".")[2]): count for subject, count in counts.items()}

    async def queue(self, notice: Notice) -> bool:
        """Queue a notice; return False if too many notices wait."""
        headers = {Header.MSG_ID.value: f"{notice.webhook_id}/{notice.user}/{notice.message_id}"}
        with unavailable_unless_answered("The queue of webhooks"):
            try:
                await self._js.publish(subjects.hook(notice.webhook_id), encode(notice), stream=HOOKS, headers=headers)
            except APIError as error:
                if not any(words in str(error.description) for words in _FULL):
                    raise
                return False
        return True


async def deliver_notices(client: Client, dead: DeadLetters, work: Callable[[Delivery], Awaitable[None]]) -> None:
    """Process queued notices until cancelled, together with all other callers; a notice that fails becomes a dead letter."""
    set_aside = into_dead_letters(dead, DeadReason.WEBHOOK)
    await consume(client, HOOKS, DELIVERING, work, set_aside=set_aside, max_concurrent=_MAX_CONCURRENT)
