"""Telling webhooks what waits for them: signed, for a day, each from any replica.

What cannot be delivered comes back after 1, 5, 25 s and so on, five times as old each time. How old it is says the time at which it
was stored, so that neither a replica that dies nor one that takes over changes when it is tried next.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import structlog
from prometheus_client import Counter as Metric

from ioa.adapters.nats.queues import Delivery
from ioa.client.documents import ResultDocument, told
from ioa.errors import IoaError, NotYetError, UnavailableError
from ioa.ports.delivery import DeadLetters, DeadReason
from ioa.ports.goal_client import GoalClient
from ioa.ports.webhook_store import WebhookStore
from ioa.protocol.codec import decode
from ioa.protocol.ids import GoalName
from ioa.protocol.webhooks import HookEvent, Notice, Webhook, WebhookId, signature_of
from ioa_gateway.outward.posting import Posting

TRIED_FOR = timedelta(days=1)
_AT_ONCE = 4
_SOON = timedelta(seconds=1)
_GONE, _OK = 410, range(200, 300)
_NEW = timedelta(seconds=10)
"""How young a notice is whose webhook, or result, a lagging replica of a stream may not know yet."""

_log = structlog.get_logger(__name__)

posts = Metric("ioa_gateway_webhooks_total", "Messages to webhooks, by what became of them", ["outcome"])


class Webhooks:
    """Delivers.

    Args:
        store: Which webhooks there are.
        goals: Where results are read.
        dead: Where that goes which nobody has taken.
        posting: How it is sent.
        lets_in: Whether a key still lets anybody in.
        now: The time.
    """

    def __init__(
        self,
        store: WebhookStore,
        goals: GoalClient,
        dead: DeadLetters,
        posting: Posting,
        lets_in: Callable[[str], Awaitable[bool]],
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._goals = goals
        self._dead = dead
        self._posting = posting
        self._lets_in = lets_in
        self._now = now
        self._busy = Counter[WebhookId]()

    async def work(self, delivery: Delivery) -> None:
        """Deliver one notice.

        Raises:
            UnavailableError: It is to be tried again.
        """
        notice = decode(Notice, delivery.data)
        age = max(self._now() - delivery.stored_at, timedelta(0))
        hook = await self._store.find(notice.webhook_id)
        if hook is None and age < _NEW:
            raise NotYetError("The webhook is not known yet.", retry_after=_SOON)
        if hook is None or not await self._lets_in(hook.key_id):
            posts.labels("dropped").inc()
            return
        if self._busy[hook.webhook_id] >= _AT_ONCE:
            raise NotYetError("This webhook is being told other things.", retry_after=_SOON)
        self._busy[hook.webhook_id] += 1
        try:
            why = await self._tell(hook, notice, age)
        finally:
            self._busy[hook.webhook_id] -= 1
            if not self._busy[hook.webhook_id]:
                del self._busy[hook.webhook_id]
        if not why:
            return
        if age >= TRIED_FOR:
            told_of = f"The webhook {hook.webhook_id} did not take it for {TRIED_FOR.days} day: {why}"
            key = delivery.identity
            await self._dead.put(DeadReason.WEBHOOK, told_of, subject=delivery.subject, data=delivery.data, key=key)
            posts.labels("dead").inc()
            return
        raise UnavailableError(f"The webhook {hook.webhook_id}: {why}", retry_after=again_after(age))

    async def _tell(self, hook: Webhook, notice: Notice, age: timedelta) -> str:
        """Post, and return why it failed; empty if it did not."""
        body = await self._body(notice, age)
        now = self._now()
        headers = {
            "webhook-id": notice.message_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": signature_of(hook.secret, notice.message_id, now, body),
        }
        try:
            status = await self._posting.post(hook.url, body, headers)
        except IoaError as error:
            posts.labels("failed").inc()
            return error.message
        if status == _GONE:
            _log.info("webhook_gone", webhook_id=hook.webhook_id)
            await self._store.remove(hook.webhook_id)
            posts.labels("gone").inc()
            return ""
        posts.labels("delivered" if status in _OK else "failed").inc()
        return "" if status in _OK else f"The answer was {status}."

    async def _body(self, notice: Notice, age: timedelta) -> bytes:
        data: dict[str, Any] = told(notice)
        for one in ("webhook_id", "message_id", "event", "at"):
            del data[one]
        if notice.event is HookEvent.ENDED:
            result = await self._goals.result(GoalName(notice.user, notice.goal_id))
            if result is None and age < _NEW:
                raise NotYetError("The result is not known here yet.", retry_after=_SOON)
            del data["seq"]
            data["result"] = None if result is None else told(ResultDocument.of(result))
        message = {"type": f"goal.{notice.event}", "timestamp": notice.at.isoformat().replace("+00:00", "Z"), "data": data}
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def again_after(age: timedelta) -> timedelta:
    """Return in how long something of an age is tried again, the last time when its day is over."""
    return min(4 * age + _SOON, max(TRIED_FOR - age, _SOON))
