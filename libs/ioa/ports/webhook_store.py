"""Where webhooks are kept, and where what they are to tell waits until it is delivered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from ioa.protocol.webhooks import Notice, StreamEnds, Webhook, WebhookId


class WebhookStore(Protocol):
    """Webhooks by their ids. Every method raises `UnavailableError` when the store does not answer."""

    def all(self) -> AsyncIterator[Webhook]:
        """Yield all webhooks, of which few are held at a time."""

    async def find(self, webhook_id: WebhookId) -> Webhook | None:
        """Read one."""

    async def put(self, hook: Webhook) -> None:
        """Keep a webhook; one of the same id is replaced."""

    async def remove(self, webhook_id: WebhookId) -> None:
        """Forget a webhook; one that is not there is forgotten already."""

    async def ends(self) -> StreamEnds:
        """Tell how far results and logs have come."""

    async def waiting(self) -> Mapping[WebhookId, int]:
        """Count what waits to be delivered, by webhook; one for which nothing waits is left out."""

    async def queue(self, notice: Notice) -> bool:
        """Have something delivered; False if too much waits, for it or for all. The same thing twice, soon, is queued once."""
