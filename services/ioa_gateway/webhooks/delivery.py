"""Delivers queued notices to webhooks: signed, and retried for a day, each notice by any replica.

A notice that was not delivered is delivered again after 1, 5, 25 s and so on. The intervals follow from its age since storage,
so that they do not depend on which replicas were running.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import import_module
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
from ioa.protocol.ids import GoalName
from ioa.protocol.operation.dead_letters import DeadReason
from ioa.protocol.operation.webhooks import HookEvent, Notice, Webhook, WebhookId, signature_of
from ioa_gateway.caller import Caller
from ioa_gateway.webhooks.http_post import HttpPost

TRIED_FOR = timedelta(days=1)
AT_ONCE = 4
"""Maximum concurrent posts of a replica to one webhook."""
_SOON, _BUSY_FOR = timedelta(seconds=1), timedelta(seconds=30)
"""First retry, and longest pause of a notice that waits for other posts to its webhook."""
_GONE, _OK = 410, range(200, 300)
_NEW, _KEY_IS_NEW = timedelta(seconds=10), timedelta(minutes=1)
"""Age up to which a replica may lack a notice's result, and up to which it may lack a webhook's key."""

_log = structlog.get_logger(__name__)

posts = Metric("ioa_gateway_webhooks_total", "Messages to webhooks, by what became of them", ["outcome"])


@dataclass
class WebhookDelivery:
    """Delivers notices.

    Attributes:
        store: The webhooks.
        goals: Reads goals.
        dead: Stores notices that were not delivered within a day.
        http: Sends messages.
        holder: Returns the holder of a key, as the keys were read last; None if the key is not valid.
        now: Returns the time.
    """

    store: NatsWebhooks
    goals: Client
    dead: DeadLetters
    http: HttpPost
    holder: Callable[[str], Caller | None]
    now: Callable[[], datetime]
    _running: Counter[WebhookId] = field(default_factory=Counter)

    async def work(self, delivery: Delivery) -> None:
        """Deliver one notice, or raise `UnavailableError` to deliver it again later."""
        notice = decode(Notice, delivery.data)
        age = max(self.now() - delivery.stored_at, timedelta(0))
        if self._running[notice.webhook_id] >= AT_ONCE:
            raise NotYetError("Other messages are being sent to this webhook.", retry_after=min(age + _SOON, _BUSY_FOR))
        self._running[notice.webhook_id] += 1
        try:
            await self._deliver(delivery, notice, age)
        finally:
            self._running[notice.webhook_id] -= 1
            self._running = +self._running

    async def _deliver(self, delivery: Delivery, notice: Notice, age: timedelta) -> None:
        hook = await self.store.find(notice.webhook_id)
        caller = None if hook is None else self.holder(hook.key_id)
        if hook is None or has_lost_its_key(hook, caller, self.now()):
            posts.labels("dropped").inc()
            return
        try:
            if caller is None:
                raise NotYetError("Its key is not known here.")
            body = await self._body(hook, notice, caller, age)
            if body is not None:
                await self._post(hook, notice, body)
        except IoaError as error:
            if age < TRIED_FOR:
                kind = NotYetError if isinstance(error, NotYetError) else UnavailableError
                raise kind(f"The webhook {hook.webhook_id}: {error.message}", retry_after=again_after(age)) from error
            reason = f"The webhook {hook.webhook_id} did not accept it for {TRIED_FOR.days} day: {error.message}"
            await self.dead.put(DeadReason.WEBHOOK, reason, subject=delivery.subject, data=delivery.data, key=delivery.identity)
            posts.labels("dead").inc()
        if hook.push is not None and notice.event is HookEvent.ENDED:
            await self.store.erase(hook.webhook_id)

    async def _body(self, hook: Webhook, notice: Notice, caller: Caller, age: timedelta) -> bytes | None:
        """Return the body of a message; None if there is nothing to send.

        Raises:
            NotYetError: The content of the message is not stored yet.
        """
        if hook.push is not None:
            pushes = await asyncio.to_thread(import_module, "ioa_gateway.a2a.pushes")
            body: bytes | None = await pushes.notification(self.goals, hook.push, notice, caller)
            return body
        data: dict[str, Any] = {name: getattr(notice, name) for name in ("user", "goal_id", "comm_id")}
        if notice.event is HookEvent.ENDED:
            result = await self.goals.result(GoalName(notice.user, notice.goal_id))
            if result is None and age < _NEW:
                raise NotYetError("The result is not known here yet.")
            data["result"] = None if result is None else told(ResultDocument.of(result))
        else:
            data["seq"] = notice.seq
        message = {"type": f"goal.{notice.event}", "timestamp": notice.at.isoformat().replace("+00:00", "Z"), "data": data}
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()

    async def _post(self, hook: Webhook, notice: Notice, body: bytes) -> None:
        """Post a message.

        Raises:
            UnavailableError: The receiver did not accept the message.
        """
        now, headers = self.now(), {"webhook-id": notice.message_id}
        if hook.push is None:
            headers["webhook-timestamp"] = str(int(now.timestamp()))
            headers["webhook-signature"] = signature_of(hook.secret, notice.message_id, now, body)
        else:  # by these headers, the receiver recognizes the sender
            shown = {"X-A2A-Notification-Token": hook.push.token, "Authorization": hook.push.authorization}
            headers |= {name: value for name, value in shown.items() if value}
        try:
            status = await self.http.post(hook.url, body, headers)
            if status != _GONE and status not in _OK:
                raise UnavailableError(f"The answer was {status}.")
        except IoaError:
            posts.labels("failed").inc()
            raise
        posts.labels("gone" if status == _GONE else "delivered").inc()
        if status == _GONE:
            _log.info("webhook_gone", webhook_id=hook.webhook_id)
            await self.store.erase(hook.webhook_id)


def has_lost_its_key(hook: Webhook, holder: Caller | None, now: datetime) -> bool:
    """Whether the key that created a webhook was removed: it has no holder here, and the webhook is not new."""
    return holder is None and now - hook.created_at >= _KEY_IS_NEW


def again_after(age: timedelta) -> timedelta:
    """Return the time until the next attempt for a notice of this age; the last attempt is at the end of its day."""
    return min(4 * age + _SOON, max(TRIED_FOR - age, _SOON))
