"""Queues what webhooks are informed of: the ends of goals, and the phases and turns of their groups.

All replicas share a durable consumer of the results. Log entries are read only while a webhook requests phases or turns, page by
page: the replica that replaces the stored position first has processed the page. A notice that two replicas queue is stored once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from ioa.adapters.nats.delivery.work_queue import Delivery
from ioa.adapters.nats.stores.webhooks import NatsWebhooks
from ioa.beside import together
from ioa.client.client import Client
from ioa.errors import InvalidInputError, IoaError, PayloadTooLargeError, UnavailableError
from ioa.group.state import GroupState
from ioa.ports.group_log import StoredEntry, UnreadableEntryError
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import CommId, GoalName
from ioa.protocol.labels import bears
from ioa.protocol.results import decode_result
from ioa.protocol.webhooks import HookEvent, Notice, Webhook, WebhookId
from ioa_gateway.webhooks.delivery import has_lost_its_key, posts

_READ_EVERY = timedelta(seconds=1)
_QUEUED_AT_ONCE = 32
_TRACED_FOR = timedelta(days=1)
"""Age of a result up to which it is reported to `ended`."""
_IN_LOG = {HookEvent.PHASE, HookEvent.TURN}

_log = structlog.get_logger(__name__)


class _Standing(NamedTuple):
    """Phase and turn of a group."""

    phase: str
    turn: int


class Notifier:
    """One replica's part.

    Args:
        store: The webhooks, and the streams that they are informed of.
        groups: Reads logs.
        is_valid: Whether a key, as the keys were read last, is valid.
        now: Returns the time.
        ended: Called with each new result, at least once over all replicas.
    """

    def __init__(
        self,
        store: NatsWebhooks,
        groups: Client,
        is_valid: Callable[[str], bool],
        now: Callable[[], datetime],
        ended: Callable[[GoalResult], None],
    ) -> None:
        self._store = store
        self._groups = groups
        self._is_valid, self._now = is_valid, now
        self._ended = ended
        self._full: set[WebhookId] = set()

    async def note_end(self, delivery: Delivery) -> None:
        """Queue the notices of a result."""
        try:
            result = decode_result(delivery.data)
        except (InvalidInputError, PayloadTooLargeError) as error:
            _log.warning("result_unreadable", message=delivery.identity, error=error.message)
            return
        hooks = await self._hooks()
        wanted = [
            one for one in hooks if delivery.seq > one.since.results and one.is_of(result.name) and HookEvent.ENDED in one.events
        ]
        await self._queue([notice_of_end(hook, result) for hook in await self._bearing(wanted, result.name)])
        if self._now() - delivery.stored_at < _TRACED_FOR:
            self._ended(result)

    async def follow_entries(self) -> None:
        """Queue the notices of new entries, until cancelled."""
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
        if not (hooks := await self._hooks_of_entries()):
            return False
        position, revision = await self._store.position()
        after = max(position, min(hook.since.log for hook in hooks))
        entries, last = await self._store.entries(after)
        hooks, before = await self._hooks_of_entries(), dict[CommId, _Standing]()  # also those made while the page was read
        for stored in entries:
            state = stored.entry.state
            if state.parent is None:
                await self._queue(await self._steps(stored, hooks, before))
                before[state.comm_id] = _Standing(state.phase, state.turn)
        return last > after and await self._store.move(last, revision)

    async def _hooks_of_entries(self) -> Sequence[Webhook]:
        return [hook for hook in await self._hooks() if _IN_LOG.intersection(hook.events)]

    async def _hooks(self) -> Sequence[Webhook]:
        """Read the webhooks, and remove those whose key is gone."""
        hooks = list[Webhook]()
        async for hook in self._store.all():
            if has_lost_its_key(hook, self._is_valid, self._now()):
                _log.info("webhook_without_key", webhook_id=hook.webhook_id)
                await self._store.erase(hook.webhook_id)
            else:
                hooks.append(hook)
        return hooks

    async def _queue(self, notices: Sequence[Notice]) -> None:
        for start in range(0, len(notices), _QUEUED_AT_ONCE):
            await together(*map(self._queue_one, notices[start : start + _QUEUED_AT_ONCE]))

    async def _queue_one(self, notice: Notice) -> None:
        if await self._store.queue(notice):
            self._full.discard(notice.webhook_id)
            return
        posts.labels("refused").inc()
        if notice.webhook_id not in self._full:
            self._full.add(notice.webhook_id)
            _log.warning("webhooks_full", user=notice.user, webhook_id=notice.webhook_id)

    async def _steps(self, stored: StoredEntry, hooks: Sequence[Webhook], before: dict[CommId, _Standing]) -> Sequence[Notice]:
        """Return the notices of a change of phase or turn. `before` contains what earlier entries of the page have shown."""
        state, at = stored.entry.state, stored.entry.event.at
        name = GoalName(state.user, state.goal_id)
        wanted = [hook for hook in hooks if stored.seq > hook.since.log and hook.is_of(name)]
        if not wanted:
            return ()
        earlier = before.get(state.comm_id) or await self._standing_before(state, stored.seq)
        is_new = {HookEvent.PHASE: earlier.phase != state.phase, HookEvent.TURN: earlier.turn != state.turn}
        return [
            Notice(
                webhook_id=hook.webhook_id,
                message_id=f"{name.goal_id}-{event}-{stored.seq}",
                event=event,
                at=at,
                user=name.owner,
                goal_id=name.goal_id,
                comm_id=state.comm_id,
                seq=stored.seq,
                phase=state.phase,
                turn=state.turn,
                floor=state.floor,
            )
            for hook in (await self._bearing(wanted, name) if any(is_new.values()) else ())
            for event in is_new
            if is_new[event] and event in hook.events
        ]

    async def _standing_before(self, state: GroupState, seq: int) -> _Standing:
        try:
            page = await self._groups.group_entries(state.comm_id, before=seq, limit=1)
        except UnreadableEntryError:
            page = []
        return _Standing(page[0].entry.state.phase, page[0].entry.state.turn) if page else _Standing("", 0)

    async def _bearing(self, hooks: Sequence[Webhook], name: GoalName) -> Sequence[Webhook]:
        """Leave out webhooks whose labels a goal does not have, and all of a goal whose record cannot be read."""
        if not any(hook.labels for hook in hooks):
            return hooks
        try:
            labels = await self._store.labels(name)
        except UnavailableError:
            raise
        except IoaError as error:
            _log.warning("labels_unreadable", goal=str(name), error=error.message)
            return [hook for hook in hooks if not hook.labels]
        return [hook for hook in hooks if bears(labels, hook.labels)]


def notice_of_end(hook: Webhook, result: GoalResult) -> Notice:
    """Return the notice of a goal's end for a webhook."""
    return Notice(
        webhook_id=hook.webhook_id,
        message_id=f"{result.goal_id}-{HookEvent.ENDED}",
        event=HookEvent.ENDED,
        at=result.finished_at,
        user=result.name.owner,
        goal_id=result.goal_id,
        comm_id=result.comm_id,
    )
