"""Queues the messages of webhooks, and delivers them: signed, and retried for a day, each by any replica.

All replicas share durable consumers of results and of queued notices. Open questions and turns of people are read from the list of
open groups while a webhook requests them; a replica that starts queues the notices of all of them. A notice that two replicas queue
within two minutes is stored once. A notice that was not delivered is delivered again after 1, 5, 25 s and so on. The intervals
follow from its age since storage, so that they do not depend on which replicas were running.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

import structlog
from prometheus_client import Counter as Metric

from ioa.adapters.nats.delivery.work_queue import Delivery
from ioa.adapters.nats.stores.webhook_store import NatsWebhooks
from ioa.client.client import Client
from ioa.client.documents import ResultDocument, told
from ioa.errors import IoaError, NotYetError, UnavailableError
from ioa.ports.delivery import DeadLetters
from ioa.protocol.codec import decode
from ioa.protocol.goals import GoalResult, bears, decode_result
from ioa.protocol.ids import GoalName
from ioa.protocol.operation.dead_letters import DeadReason
from ioa.protocol.operation.webhooks import HookEvent, Notice, Webhook, WebhookId, signature_of
from ioa_gateway.caller import Caller
from ioa_gateway.open_items import OpenItem, read_open_items
from ioa_gateway.webhooks.http_post import HttpPost

TRIED_FOR = timedelta(days=1)
AT_ONCE = 4
"""Maximum concurrent posts of a replica to one webhook."""
_SOON, _BUSY_FOR = timedelta(seconds=1), timedelta(seconds=30)
"""First retry, and longest pause of a notice that waits for other posts to its webhook."""
_GONE, _OK = 410, range(200, 300)
_NEW, _KEY_IS_NEW = timedelta(seconds=10), timedelta(minutes=1)
"""Age up to which a replica may lack a notice's result, and up to which it may lack a webhook's key."""
_READ_EVERY = timedelta(seconds=1)
_TRACED_FOR = timedelta(days=1)
"""Age of a result up to which it is reported to `ended`."""

_log = structlog.get_logger(__name__)

posts = Metric("ioa_gateway_webhooks_total", "Messages to webhooks, by what became of them", ["outcome"])


@dataclass
class WebhookService:
    """One replica's part.

    Attributes:
        store: The webhooks, and the streams that cause notices.
        client: Reads goals and logs.
        dead: Stores notices that were not delivered within a day.
        holder: Returns the holder of a key, as the keys were read last; None if the key is not valid.
        ended: Called with each new result, at least once over all replicas.
    """

    store: NatsWebhooks
    client: Client
    dead: DeadLetters
    http: HttpPost
    holder: Callable[[str], Caller | None]
    now: Callable[[], datetime]
    ended: Callable[[GoalResult], None]
    _running: Counter[WebhookId] = field(default_factory=Counter)
    _noted: set[tuple[WebhookId, OpenItem]] = field(default_factory=set)

    async def note_end(self, delivery: Delivery) -> None:
        """Queue the notices of a result."""
        result = decode_result(delivery.data)
        hooks = [hook for hook in await self._hooks(HookEvent.ENDED) if delivery.seq > hook.after]
        for hook in await self._concerned(hooks, result.name):
            await queue_notice(self.store, hook, HookEvent.ENDED, result.name, result.finished_at)
        if self.now() - delivery.stored_at < _TRACED_FOR:
            self.ended(result)

    async def follow_items(self) -> None:
        """Queue the notices of open questions and turns of people, until cancelled. It takes at most a quarter of the time."""
        now = asyncio.get_running_loop().time
        while True:
            began = now()
            try:
                await self._note_items()
            except IoaError as error:
                _log.warning("webhooks_delayed", error=error.message)
            await asyncio.sleep(max(_READ_EVERY.total_seconds(), 3 * (now() - began)))

    async def _note_items(self) -> None:
        """Queue the notices of open items that this replica has not queued. Each other replica queues the same notices."""
        hooks, noted = await self._hooks(HookEvent.ASKED), set[tuple[WebhookId, OpenItem]]()
        for user in {hook.user for hook in hooks}:
            for item in await read_open_items(self.client, user):
                for hook in await self._concerned(hooks, item.goal):
                    noted.add((hook.webhook_id, item))
                    if (hook.webhook_id, item) not in self._noted:
                        await queue_notice(self.store, hook, HookEvent.ASKED, item.goal, self.now(), item.item)
        self._noted = noted

    async def _hooks(self, event: HookEvent) -> Sequence[Webhook]:
        """Read the webhooks of an event, and remove those whose key is gone."""
        hooks = list[Webhook]()
        async for hook in self.store.all():
            if self._has_lost_its_key(hook):
                _log.info("webhook_without_key", webhook_id=hook.webhook_id)
                await self.store.erase(hook.webhook_id)
            elif event in hook.events:
                hooks.append(hook)
        return hooks

    async def _concerned(self, hooks: Sequence[Webhook], goal: GoalName) -> Sequence[Webhook]:
        """Return the webhooks of a goal."""
        found = [hook for hook in hooks if hook.is_of(goal)]
        labels = await self.store.labels(goal) if any(hook.labels for hook in found) else {}
        return [hook for hook in found if bears(labels, hook.labels)]

    def _has_lost_its_key(self, hook: Webhook) -> bool:
        """Whether the key that created a webhook was removed: it has no holder here, and the webhook is not new."""
        return self.holder(hook.key_id) is None and self.now() - hook.created_at >= _KEY_IS_NEW

    async def deliver(self, delivery: Delivery) -> None:
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
        if hook is None or self._has_lost_its_key(hook):
            posts.labels("dropped").inc()
            return
        try:
            body = await self._body(hook, notice, age)
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

    async def _body(self, hook: Webhook, notice: Notice, age: timedelta) -> bytes | None:
        """Return the body of a message; None if there is nothing to send. Raise `NotYetError` if its content is not stored yet."""
        if (caller := self.holder(hook.key_id)) is None:
            raise NotYetError("Its key is not known here.")
        if hook.push is not None:
            pushes = await asyncio.to_thread(import_module, "ioa_gateway.a2a.pushes")
            body: bytes | None = await pushes.notification(self.client, hook.push, notice, caller)
            return body
        name = GoalName(notice.user, notice.goal_id)
        data: dict[str, Any] = {**name._asdict(), "comm_id": name.comm_id}
        if notice.event is HookEvent.ENDED:
            result = await self.client.result(name)
            if result is None and age < _NEW:
                raise NotYetError("The result is not known here yet.")
            data["result"] = None if result is None else told(ResultDocument.of(result))
        else:
            data["item"] = notice.item
        message = {"type": f"goal.{notice.event}", "timestamp": notice.at.isoformat().replace("+00:00", "Z"), "data": data}
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()

    async def _post(self, hook: Webhook, notice: Notice, body: bytes) -> None:
        """Post a message, or raise `UnavailableError` if the receiver does not accept it."""
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


def again_after(age: timedelta) -> timedelta:
    """Return the time until the next attempt for a notice of this age; the last attempt is at the end of its day."""
    return min(4 * age + _SOON, max(TRIED_FOR - age, _SOON))


async def queue_notice(store: NatsWebhooks, hook: Webhook, event: HookEvent, goal: GoalName, at: datetime, item: str = "") -> None:
    """Queue a notice of a goal for a webhook, or drop it if too many messages of the webhook wait.

    `item` is the reference of the open item; empty for an end.
    """
    notice = Notice(
        webhook_id=hook.webhook_id,
        message_id="-".join(filter(None, (goal.goal_id, event, item))),
        event=event,
        at=at,
        user=goal.user,
        goal_id=goal.goal_id,
        item=item,
    )
    if not await store.queue(notice):
        posts.labels("refused").inc()
        _log.warning("webhook_full", user=goal.user, webhook_id=hook.webhook_id)
