"""Delivers queued notices to webhooks: signed, and retried for a day, each notice by any replica.

A notice that was not delivered is delivered again after 1, 5, 25 s and so on. The intervals follow from its age since storage,
so that they do not depend on which replicas were running.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import structlog
from prometheus_client import Counter as Metric

from ioa.adapters.nats.delivery.work_queue import Delivery
from ioa.adapters.nats.stores.webhooks import NatsWebhooks
from ioa.client.client import Client
from ioa.client.documents import ResultDocument, told
from ioa.errors import IoaError, NotYetError, UnavailableError
from ioa.ports.delivery import DeadLetters
from ioa.protocol.codec import decode
from ioa.protocol.dead_letters import DeadReason
from ioa.protocol.ids import GoalName
from ioa.protocol.webhooks import HookEvent, Notice, Webhook, signature_of
from ioa_gateway.webhooks.http_post import Posting
from ioa_gateway.webhooks.pacing import Pacing
from ioa_gateway.webhooks.pushes import Pushes, headers_of

TRIED_FOR = timedelta(days=1)
_SOON = timedelta(seconds=1)
_GONE, _OK = 410, range(200, 300)
_NEW, _KEY_IS_NEW = timedelta(seconds=10), timedelta(minutes=1)
"""Age up to which a replica may lack a notice's webhook or result, and up to which it may lack a webhook's key."""

_log = structlog.get_logger(__name__)

posts = Metric("ioa_gateway_webhooks_total", "Messages to webhooks, by what became of them", ["outcome"])


class Webhooks:
    """Delivers notices.

    Args:
        store: The webhooks.
        goals: Reads results.
        dead: Stores notices that were not delivered within a day.
        posting: Sends messages.
        is_valid: Whether a key, as the keys were read last, is valid.
        now: Returns the time.
        pushes: Writes push notifications of A2A.
    """

    def __init__(
        self,
        store: NatsWebhooks,
        goals: Client,
        dead: DeadLetters,
        posting: Posting,
        is_valid: Callable[[str], bool],
        now: Callable[[], datetime],
        pushes: Pushes,
    ) -> None:
        self._store = store
        self._goals = goals
        self._dead = dead
        self._posting = posting
        self._is_valid = is_valid
        self._now = now
        self._pushes = pushes
        self._pacing = Pacing()

    async def work(self, delivery: Delivery) -> None:
        """Deliver one notice, or raise `UnavailableError` to deliver it again later."""
        notice = decode(Notice, delivery.data)
        began, is_taken = self._now(), None
        age = max(began - delivery.stored_at, timedelta(0))
        # Before the webhook is read, so that a waiting notice costs little.
        if after := self._pacing.enter(notice, began):
            if age < TRIED_FOR or not self._pacing.is_failing(notice.webhook_id):
                raise NotYetError("Other messages are being sent to this webhook.", retry_after=after)
            hook = await self._find(notice, age)
            if hook is not None:
                await self._give_up(delivery, hook, notice, "earlier messages failed.")
            return
        try:
            hook = await self._find(notice, age)
            why = "" if hook is None else await self._try(hook, notice, age)
            is_taken = None if hook is None else not why
        finally:
            self._pacing.leave(notice, began, self._now(), is_taken=is_taken)
        if hook is None:
            self._pacing.forget(notice.webhook_id)
        elif why and age >= TRIED_FOR:
            await self._give_up(delivery, hook, notice, why)
        elif why:
            raise UnavailableError(f"The webhook {hook.webhook_id}: {why}", retry_after=again_after(age))
        else:
            await self._end(hook, notice)

    async def _find(self, notice: Notice, age: timedelta) -> Webhook | None:
        """Read the webhook of a notice; None if the webhook or its key was removed. Raise `NotYetError` if that is unknown."""
        hook = await self._store.find(notice.webhook_id)
        if hook is None and age < _NEW:
            raise NotYetError("The webhook is not known yet.", retry_after=_SOON)
        if hook is None or has_lost_its_key(hook, self._is_valid, self._now()):
            posts.labels("dropped").inc()
            return None
        if not self._is_valid(hook.key_id):
            raise NotYetError("The key of the webhook is not known here.", retry_after=again_after(age))
        return hook

    async def _try(self, hook: Webhook, notice: Notice, age: timedelta) -> str:
        """Send a message, and return why that failed. A message that cannot be written for a day has failed."""
        try:
            return await self._send(hook, notice, age)
        except NotYetError as error:
            if age < TRIED_FOR:
                raise
            return error.message

    async def _end(self, hook: Webhook, notice: Notice) -> None:
        """Remove the webhook of an A2A task after its last message."""
        if hook.push is not None and notice.event is HookEvent.ENDED:
            await self._store.erase(hook.webhook_id)

    async def _give_up(self, delivery: Delivery, hook: Webhook, notice: Notice, why: str) -> None:
        reason = f"The webhook {hook.webhook_id} did not accept it for {TRIED_FOR.days} day: {why}"
        await self._dead.put(DeadReason.WEBHOOK, reason, subject=delivery.subject, data=delivery.data, key=delivery.identity)
        posts.labels("dead").inc()
        await self._end(hook, notice)

    async def _send(self, hook: Webhook, notice: Notice, age: timedelta) -> str:
        """Post a message, and return why it failed; empty if it succeeded."""
        now, headers = self._now(), {"webhook-id": notice.message_id}
        if hook.push is not None:
            pushed = await self._pushes.body(hook.push, notice, hook.key_id)
            if pushed is None:
                return ""
            body, headers = pushed, {**headers, **headers_of(hook.push)}
        else:
            body = await self._body(notice, age)
            headers["webhook-timestamp"] = str(int(now.timestamp()))
            headers["webhook-signature"] = signature_of(hook.secret, notice.message_id, now, body)
        try:
            status = await self._posting.post(hook.url, hook.user, body, headers)
        except IoaError as error:
            posts.labels("failed").inc()
            return error.message
        if status == _GONE:
            _log.info("webhook_gone", webhook_id=hook.webhook_id)
            await self._store.erase(hook.webhook_id)
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


def has_lost_its_key(hook: Webhook, is_valid: Callable[[str], bool], now: datetime) -> bool:
    """Whether the key that created a webhook was removed; False while the webhook is so new that its key may be unknown here."""
    return not is_valid(hook.key_id) and now - hook.created_at >= _KEY_IS_NEW


def again_after(age: timedelta) -> timedelta:
    """Return the time until the next attempt for a notice of this age; the last attempt is at the end of its day."""
    return min(4 * age + _SOON, max(TRIED_FOR - age, _SOON))
