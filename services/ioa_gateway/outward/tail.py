"""The one replica that tells others: it reads what has ended, and what was said if anybody asks, and queues who is told what.

A record (`ioa.adapters.nats.streams.gateway_tail`) names that replica, which renews the record every few seconds. Another replica
takes over if the record does not change for longer. Two replicas may read at once; a message that both queue is stored once.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from ioa.adapters.nats.stores.webhooks import NatsWebhooks
from ioa.adapters.nats.streams.gateway_tail import NatsTail, TailRecord
from ioa.beside import beside, together
from ioa.cancellation import fail_after
from ioa.client.client import Client
from ioa.errors import IoaError, UnavailableError
from ioa.group.state import GroupState
from ioa.ports.group_log import StoredEntry, UnreadableEntryError
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import CommId, GoalName, UserId
from ioa.protocol.labels import Labels, bears
from ioa.protocol.webhooks import HookEvent, Notice, Webhook
from ioa_gateway.outward.room import Room
from ioa_gateway.outward.webhooks import has_lost_its_key, posts

HELD_FOR = timedelta(seconds=10)
_WRITTEN_EVERY, _LOOK = timedelta(seconds=3), timedelta(seconds=1)
_REMEMBERED = 10_000
_QUEUED_AT_ONCE = 32
_IN_LOG = {HookEvent.PHASE, HookEvent.TURN}

_log = structlog.get_logger(__name__)


class _NotHeldError(Exception):
    """Another replica holds it."""


@dataclass(frozen=True)
class _Stood:
    """Where a group stood."""

    phase: str
    turn: int


class Tail:
    """One replica's part.

    Args:
        place: The record, and the streams.
        store: Which webhooks there are.
        groups: Where logs are read.
        stands: Whether a key, as they were read last, lets anybody in.
        now: The time.
        me: This replica.
        clock: Seconds of a clock that never goes back.
        ended: Told of each result that was read.
    """

    def __init__(
        self,
        place: NatsTail,
        store: NatsWebhooks,
        groups: Client,
        stands: Callable[[str], bool],
        now: Callable[[], datetime],
        me: str,
        clock: Callable[[], float],
        ended: Callable[[GoalResult], None],
    ) -> None:
        self._place = place
        self._store = store
        self._groups = groups
        self._stands, self._now = stands, now
        self._me = me
        self._clock = clock
        self._ended = ended
        self._record = TailRecord(holder=me, results=0)
        self._stood: OrderedDict[CommId, _Stood] = OrderedDict()
        self._labels: OrderedDict[CommId, Labels] = OrderedDict()
        self._room = Room()
        self._refused = Counter[UserId]()

    async def keep(self) -> None:
        """Tell whenever nobody else does, for ever."""
        seen, since = 0, self._clock()
        while True:
            try:
                record, revision = await self._place.read()
                if revision != seen:
                    seen, since = revision, self._clock()
                if record is None or not record.holder or self._clock() - since > HELD_FOR.total_seconds():
                    await self._take(record, revision)
            except IoaError as error:
                _log.warning("tail_not_taken", error=error.message)
            await asyncio.sleep(_WRITTEN_EVERY.total_seconds())

    async def _take(self, record: TailRecord | None, onto: int) -> None:
        start = record or TailRecord(holder="", results=(await self._store.ends()).results)
        self._record = start.model_copy(update={"holder": self._me})
        revision = await self._place.write(self._record, onto)
        if revision is None:
            return
        _log.info("tail_taken", results=self._record.results)
        self._stood.clear()
        self._labels.clear()
        written = _Written(self._place, revision)
        try:
            async with beside(self._count(), self._read(self._look_at_results), self._read(self._look_at_entries)):
                await self._keep_writing(written)
        except _NotHeldError:
            _log.info("tail_lost")
        finally:
            with suppress(IoaError, TimeoutError):
                async with fail_after(1):
                    await written.write(self._record.model_copy(update={"holder": ""}))

    async def _keep_writing(self, written: _Written) -> None:
        """Say that this replica holds it and how far it is, until that is not so or cannot be said in time.

        Raises:
            _NotHeldError: It is not so.
        """
        last = self._clock()
        while True:
            await asyncio.sleep(_WRITTEN_EVERY.total_seconds())
            try:
                if not await written.write(self._record):
                    raise _NotHeldError
                last = self._clock()
            except UnavailableError:
                if self._clock() - last > HELD_FOR.total_seconds() / 2:
                    raise _NotHeldError from None

    async def _count(self) -> None:
        """Count now and then what waits, for ever, and log of whom there was too much."""
        is_counted = True
        while True:
            self._room.ask()
            try:
                self._room.count(await self._store.waiting())
                is_counted = True
            except UnavailableError as error:
                self._room.count(None)
                if is_counted:
                    _log.warning("webhooks_not_counted", error=error.message, hint="Has the gateway its new permissions?")
                is_counted = False
            for user, notices in self._refused.items():
                _log.warning("webhooks_full", user=user, notices=notices)
            self._refused.clear()
            await asyncio.sleep(_LOOK.total_seconds())

    async def _read(self, look: Callable[[], Awaitable[bool]]) -> None:
        """Tell of what is next in one stream, for ever, whatever holds up the other; `look` returns True if there is more."""
        while True:
            has_more = False
            try:
                has_more = await look()
            except IoaError as error:
                _log.warning("tail_behind", error=error.message)
            if not has_more:
                await asyncio.sleep(_LOOK.total_seconds())

    async def _look_at_results(self) -> bool:
        results, upto = await self._place.results(self._record.results)
        hooks = await self._hooks() if results else ()  # read after the results, to include all webhooks that are older
        for seq, result in results:
            await self._queue(await self._readable(self._ends(seq, result, hooks), result.comm_id))
            self._labels.pop(result.comm_id, None)
            self._ended(result)
            self._record = self._record.model_copy(update={"results": seq})
        self._record = self._record.model_copy(update={"results": upto})
        return bool(results)

    async def _look_at_entries(self) -> bool:
        asked = await self._asked()
        if not asked:
            return False
        # What was told of is not told again, where a replica that lags did not know for a moment who asks.
        after = max(self._record.log or 0, min(hook.since.log for hook in asked))
        if after != self._record.log:
            self._stood.clear()
        entries, upto = await self._place.entries(after)
        if entries:
            asked = await self._asked()  # behind the entries, for the same reason as above
        for stored in entries:
            state = stored.entry.state
            if state.parent is None:
                await self._queue(await self._readable(self._steps(stored, asked), state.comm_id))
                self._remember(state)
            self._record = self._record.model_copy(update={"log": stored.seq})
        self._record = self._record.model_copy(update={"log": upto})
        return bool(entries)

    async def _asked(self) -> Sequence[Webhook]:
        return [hook for hook in await self._hooks() if _IN_LOG.intersection(hook.events)]

    async def _hooks(self) -> Sequence[Webhook]:
        """Read the webhooks, and remove those whose key is gone."""
        hooks = [hook async for hook in self._store.all()]
        gone = {hook.webhook_id for hook in hooks if has_lost_its_key(hook, self._stands, self._now())}
        for webhook_id in gone:
            _log.info("webhook_without_key", webhook_id=webhook_id)
            await self._store.erase(webhook_id)
        standing = [hook for hook in hooks if hook.webhook_id not in gone]
        self._room.see(standing)
        return standing

    async def _readable(self, notices: Awaitable[Sequence[Notice]], comm_id: CommId) -> Sequence[Notice]:
        """Leave out what nobody can tell of, since what it is told by is garbage."""
        try:
            return await notices
        except UnavailableError:
            raise
        except IoaError as error:
            _log.warning("not_told", comm_id=comm_id, error=error.message)
            return ()

    async def _queue(self, notices: Sequence[Notice]) -> None:
        """Queue what there is room for, many at a time: one thing may be told to all webhooks of a user."""
        for start in range(0, len(notices), _QUEUED_AT_ONCE):
            await together(*map(self._queue_one, notices[start : start + _QUEUED_AT_ONCE]))

    async def _queue_one(self, notice: Notice) -> None:
        if not (self._room.take(notice) and await self._store.queue(notice)):
            posts.labels("refused").inc()
            self._refused[notice.user] += 1

    async def _ends(self, seq: int, result: GoalResult, hooks: Sequence[Webhook]) -> Sequence[Notice]:
        wanted = [hook for hook in hooks if seq > hook.since.results and hook.is_of(result.name) and HookEvent.ENDED in hook.events]
        return [notice_of_end(hook, result) for hook in await self._bearing(wanted, result.name)]

    async def _steps(self, stored: StoredEntry, hooks: Sequence[Webhook]) -> Sequence[Notice]:
        state, at = stored.entry.state, stored.entry.event.at
        name = GoalName(state.user, state.goal_id)
        wanted = [hook for hook in hooks if stored.seq > hook.since.log and hook.is_of(name)]
        if not wanted:
            return ()
        before, now = await self._before(state, stored.seq), _Stood(state.phase, state.turn)
        changed = [event for event, is_new in _changes(before, now) if is_new]
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
            for hook in (await self._bearing(wanted, name) if changed else ())
            for event in changed
            if event in hook.events
        ]

    def _remember(self, state: GroupState) -> None:
        """Keep where a group stands, once it was told of: what fails before is told again."""
        self._stood[state.comm_id] = _Stood(state.phase, state.turn)
        self._stood.move_to_end(state.comm_id)
        if len(self._stood) > _REMEMBERED:
            self._stood.popitem(last=False)
        if state.phase.is_terminal:
            self._labels.pop(state.comm_id, None)

    async def _before(self, state: GroupState, seq: int) -> _Stood:
        """Return where a group stood before an entry."""
        if state.comm_id in self._stood:
            return self._stood[state.comm_id]
        try:
            page = await self._groups.group_entries(state.comm_id, before=seq, limit=1)
        except UnreadableEntryError:
            page = []
        return _Stood(page[0].entry.state.phase, page[0].entry.state.turn) if page else _Stood("", 0)

    async def _bearing(self, hooks: Sequence[Webhook], name: GoalName) -> Sequence[Webhook]:
        """Leave out webhooks whose labels a goal does not bear."""
        if not any(hook.labels for hook in hooks):
            return hooks
        labels = await self._labels_of(name)
        return [hook for hook in hooks if bears(labels, hook.labels)]

    async def _labels_of(self, name: GoalName) -> Labels:
        """Return a goal's labels, which never change: of a goal that goes on they are read once, and not for each turn."""
        labels = self._labels.get(name.comm_id)
        if labels is None:
            labels = self._labels[name.comm_id] = await self._place.labels(name)
            if len(self._labels) > _REMEMBERED:
                self._labels.popitem(last=False)
        else:
            self._labels.move_to_end(name.comm_id)
        return labels


@dataclass
class _Written:
    """The record as this replica wrote it last."""

    place: NatsTail
    revision: int

    async def write(self, record: TailRecord) -> bool:
        """Write it anew; False if somebody else has."""
        revision = await self.place.write(record, self.revision)
        self.revision = revision or self.revision
        return revision is not None


def notice_of_end(hook: Webhook, result: GoalResult) -> Notice:
    """Say that a webhook is to tell how a goal ended."""
    return Notice(
        webhook_id=hook.webhook_id,
        message_id=f"{result.goal_id}-{HookEvent.ENDED}",
        event=HookEvent.ENDED,
        at=result.finished_at,
        user=result.name.owner,
        goal_id=result.goal_id,
        comm_id=result.comm_id,
    )


def _changes(before: _Stood, now: _Stood) -> Sequence[tuple[HookEvent, bool]]:
    return (HookEvent.PHASE, before.phase != now.phase), (HookEvent.TURN, before.turn != now.turn)
