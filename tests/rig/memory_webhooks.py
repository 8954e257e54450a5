"""Webhooks in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping

from ioa.protocol.webhooks import Notice, StreamEnds, Webhook, WebhookId


class MemoryWebhooks:
    """A `WebhookStore` that forgets everything with the process, and delivers nothing by itself.

    Attributes:
        queued: What was queued.
    """

    def __init__(self) -> None:
        self._hooks: dict[WebhookId, Webhook] = {}
        self.queued: list[Notice] = []

    async def all(self) -> AsyncIterator[Webhook]:
        """Yield all webhooks."""
        for hook in (*self._hooks.values(),):
            yield hook

    async def find(self, webhook_id: WebhookId) -> Webhook | None:
        """Read one."""
        return self._hooks.get(webhook_id)

    async def put(self, hook: Webhook) -> None:
        """Keep a webhook."""
        self._hooks[hook.webhook_id] = hook

    async def remove(self, webhook_id: WebhookId) -> None:
        """Forget a webhook."""
        self._hooks.pop(webhook_id, None)

    async def ends(self) -> StreamEnds:
        """Nothing is stored here."""
        return StreamEnds(results=0, log=0)

    async def waiting(self) -> Mapping[WebhookId, int]:
        """Count what was queued."""
        return Counter(notice.webhook_id for notice in self.queued)

    async def queue(self, notice: Notice) -> bool:
        """Keep what is to be delivered."""
        if notice not in self.queued:
            self.queued.append(notice)
        return True
