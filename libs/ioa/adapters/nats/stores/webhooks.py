"""Webhooks in the bucket `IOA_WEBHOOKS`, and what they are to tell in the work queue `IOA_HOOKS`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from nats.aio.client import Client
from nats.js.api import Header
from nats.js.errors import APIError

from ioa.adapters.nats.delivery.work_queue import Delivery, consume, into_dead_letters
from ioa.adapters.nats.streams.compare_and_set import erase, last_message, stream_of, subject_of
from ioa.adapters.nats.streams.stream_names import counts_of
from ioa.adapters.nats.streams.stream_reader import pages, sequence_range
from ioa.adapters.nats.streams.topology import DELIVERING, HOOKS, LOG, RESULTS, WEBHOOKS
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.ports.delivery import DeadLetters
from ioa.protocol import subjects
from ioa.protocol.codec import decode, encode
from ioa.protocol.dead_letters import DeadReason
from ioa.protocol.webhooks import Notice, StreamEnds, Webhook, WebhookId

_STREAM = stream_of(WEBHOOKS)
_WHAT = "The bucket of webhooks"
_PAGE = 256
_FULL = ("maximum messages per subject", "maximum messages exceeded")
"""What JetStream says where too many notices wait, of a webhook or of all. The error's code says only that none was stored."""
_AT_ONCE, _PULLS = 128, 32
"""How many notices are worked on at a time, and how many are asked for: one that is put off costs little but the way to the server,
and many may have to be until one comes that can be told."""


class NatsWebhooks:
    """Webhooks by id, and the queue of their notices."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()

    async def all(self) -> AsyncIterator[Webhook]:
        """Yield all webhooks, a page at a time."""
        async for page in pages(self._client, _STREAM, subject_of(WEBHOOKS, "*"), limit=_PAGE):
            for message in page.messages:
                yield decode(Webhook, message.data)

    async def find(self, webhook_id: WebhookId) -> Webhook | None:
        """Read one."""
        with unavailable_unless_answered(_WHAT):
            kept = await last_message(self._js, _STREAM, subject_of(WEBHOOKS, webhook_id))
        return None if kept is None else decode(Webhook, kept.data or b"")

    async def put(self, hook: Webhook) -> None:
        """Keep a webhook."""
        with unavailable_unless_answered(_WHAT):
            await self._js.publish(subject_of(WEBHOOKS, hook.webhook_id), encode(hook), stream=_STREAM)

    async def remove(self, webhook_id: WebhookId) -> None:
        """Forget a webhook."""
        with unavailable_unless_answered(_WHAT):
            await erase(self._js, WEBHOOKS, webhook_id)

    async def ends(self) -> StreamEnds:
        """Tell how far results and logs have come."""
        (_, results), (_, log) = await sequence_range(self._client, RESULTS), await sequence_range(self._client, LOG)
        return StreamEnds(results=results - 1, log=log - 1)

    async def waiting(self) -> Mapping[WebhookId, int]:
        """Ask the leader of the queue."""
        return {
            WebhookId(subject.rpartition(".")[2]): count
            async for counts in counts_of(self._client, HOOKS, subjects.ANY_HOOK)
            for subject, count in counts.items()
        }

    async def queue(self, notice: Notice) -> bool:
        """Have something delivered."""
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
    """Do `work` for each notice in the queue, for ever, beside all others that do so; `dead` takes those that it fails on."""
    set_aside = into_dead_letters(dead, DeadReason.WEBHOOK)
    await consume(client, HOOKS, DELIVERING, work, set_aside=set_aside, max_concurrent=_AT_ONCE, pulls=_PULLS)
