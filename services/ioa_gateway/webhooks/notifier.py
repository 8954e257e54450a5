"""Queues the messages of webhooks: ends of goals, and new questions and turns of people.

All replicas share a durable consumer of the results. Log entries are read, page by page, only while a webhook requests questions:
the replica that replaces the stored position first has processed the page. A notice that two replicas queue is stored once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from ioa.adapters.nats.delivery.work_queue import Delivery
from ioa.adapters.nats.stores.webhooks import NatsWebhooks
from ioa.client.client import Client
from ioa.errors import IoaError
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import GoalResult, bears, decode_result
from ioa.protocol.ids import GoalName
from ioa.protocol.operation.webhooks import HookEvent, Notice, Webhook
from ioa_gateway.caller import Caller
from ioa_gateway.open_items import open_items
from ioa_gateway.webhooks.delivery import has_lost_its_key, posts

_READ_EVERY = timedelta(seconds=1)
_TRACED_FOR = timedelta(days=1)
"""Age of a result up to which it is reported to `ended`."""

_log = structlog.get_logger(__name__)


@dataclass
class Notifier:
    """One replica's part.

    Attributes:
        store: The webhooks, and the streams that cause notices.
        groups: Reads logs.
        holder: Returns the holder of a key, as the keys were read last; None if the key is not valid.
        now: Returns the time.
        ended: Called with each new result, at least once over all replicas.
    """

    store: NatsWebhooks
    groups: Client
    holder: Callable[[str], Caller | None]
    now: Callable[[], datetime]
    ended: Callable[[GoalResult], None]

    async def note_end(self, delivery: Delivery) -> None:
        """Queue the notices of a result."""
        result = decode_result(delivery.data)
        hooks = [hook for hook in await self._hooks(HookEvent.ENDED) if delivery.seq > hook.since.results]
        for hook in await self._concerned(hooks, result.name):
            await queue_notice(self.store, hook, HookEvent.ENDED, result.name, result.finished_at)
        if self.now() - delivery.stored_at < _TRACED_FOR:
            self.ended(result)

    async def follow_questions(self) -> None:
        """Queue the notices of new questions and turns of people, until cancelled."""
        while True:
            has_more = False
            try:
                has_more = await self._read_entries()
            except IoaError as error:
                _log.warning("webhooks_delayed", error=error.message)
            if not has_more:
                await asyncio.sleep(_READ_EVERY.total_seconds())

    async def _read_entries(self) -> bool:
        """Process the next page of entries; return whether more may follow."""
        if not (hooks := await self._hooks(HookEvent.ASKED)):
            return False
        position, revision = await self.store.position()
        after = max(position, min(hook.since.log for hook in hooks))
        entries, last = await self.store.entries(after)
        hooks = await self._hooks(HookEvent.ASKED)  # also those made while the page was read
        for stored in entries:
            await self._note_questions(stored, hooks)
        return last > after and await self.store.move(last, revision)

    async def _note_questions(self, stored: StoredEntry, hooks: Sequence[Webhook]) -> None:
        """Queue the notices of an entry if its group has a new open item."""
        state = stored.entry.state
        items = open_items(state)
        hooks = [hook for hook in hooks if items and stored.seq > hook.since.log]
        concerned = await self._concerned(hooks, state.name)
        if not concerned:
            return
        before = await self.groups.group_entries(state.comm_id, before=stored.seq, limit=1)
        if items - frozenset[object]().union(*(open_items(one.entry.state) for one in before)):
            for hook in concerned:
                await queue_notice(self.store, hook, HookEvent.ASKED, state.name, stored.entry.event.at, stored.seq)

    async def _hooks(self, event: HookEvent) -> Sequence[Webhook]:
        """Read the webhooks of an event, and remove those whose key is gone."""
        hooks = list[Webhook]()
        async for hook in self.store.all():
            if has_lost_its_key(hook, self.holder(hook.key_id), self.now()):
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


async def queue_notice(store: NatsWebhooks, hook: Webhook, event: HookEvent, goal: GoalName, at: datetime, seq: int = 0) -> None:
    """Queue a notice of a goal for a webhook, or drop it if too many messages of the webhook wait.

    Args:
        store: The webhooks.
        hook: The webhook.
        event: The event.
        goal: The goal.
        at: The time of the event.
        seq: The sequence of the entry that asks; 0 for an end.
    """
    message_id = f"{goal.goal_id}-{event}-{seq}" if seq else f"{goal.goal_id}-{event}"
    notice = Notice(
        webhook_id=hook.webhook_id,
        message_id=message_id,
        event=event,
        at=at,
        user=goal.user,
        goal_id=goal.goal_id,
        comm_id=goal.comm_id,
        seq=seq,
    )
    if not await store.queue(notice):
        posts.labels("refused").inc()
        _log.warning("webhook_full", user=goal.user, webhook_id=hook.webhook_id)
