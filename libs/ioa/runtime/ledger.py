"""Taking a group one step further: read the head, ask the machine, append, tell everybody.

The append is the only write that matters (architecture, section 3). Everything after it can be done again by whoever looks at
the group next: pushes are repaired from the log, effects are idempotent and follow from the state alone, and a timer that was
armed before the append brings the routers back to a group whatever dies in between.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from ioa.errors import UnavailableError
from ioa.fault_points import reach
from ioa.group.effects import CancelSubgroup, Effect, PublishResult, ReportToParent, settle
from ioa.group.events import CancelRequested, EncodedEntry, Entry, Event, LaunchAbandoned, Said, SubgroupClosed, encode_entry
from ioa.group.machine import step
from ioa.group.rejection import IllegalEventError
from ioa.group.state import GroupState
from ioa.ports.clock import Clock
from ioa.ports.delivery import Inboxes, Results, Timers
from ioa.ports.group_log import AppendConflictError, GroupLog, StoredEntry
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId
from ioa.runtime.group_metrics import conflicts, count_entry

SETTLING_DELAY = timedelta(seconds=2)
"""When to look again at a group that has just ended, in case its router died before it paid what the group owed."""

_ARMING_MARGIN = timedelta(seconds=1)
"""A timer that fires sooner may fire, and find nothing due, before the append it was to watch over."""

_LEDGER = AgentId("ledger")
_MAX_ATTEMPTS = 50
_READ_PAGE = 64
_MAX_CACHED_GROUPS = 10_000

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Recorded:
    """An event that is in the log, and where the group stands since.

    Attributes:
        entry: What was appended; None if the event was there before.
        previous_seq: What the entry follows.
    """

    seq: int
    state: GroupState
    entry: EncodedEntry | None = None
    previous_seq: int = 0


@dataclass
class _Group:
    """What this process remembers of a group: its head, which may be stale, and the earliest timer it has armed."""

    lock: asyncio.Lock
    head: StoredEntry | None = None
    armed: datetime | None = None


class GroupLedger:
    """Record events in group logs. Any number of ledgers may work on the same group; the log arbitrates."""

    def __init__(self, log: GroupLog, timers: Timers, inboxes: Inboxes, results: Results, clock: Clock) -> None:
        self._log = log
        self._timers = timers
        self._inboxes = inboxes
        self._results = results
        self._clock = clock
        self._groups: OrderedDict[CommId, _Group] = OrderedDict()
        self._latest = clock.now()

    async def record(self, comm_id: CommId, event: Event, *, asked_by: AgentId | None = None) -> Recorded:
        """Take the group one step further and do what follows.

        Args:
            comm_id: The group.
            event: What happened.
            asked_by: A member that is given the entry as an answer, so that it need not be pushed there.

        Raises:
            IllegalEventError: The event is not legal in the group's present state, read afresh.
            UnavailableError: The log cannot be reached; the event may or may not be recorded, and may be sent again.
        """
        group = self._group(comm_id)
        async with group.lock:
            recorded, effects = await self._append(comm_id, group, event, asked_by)
        await self.perform(effects, recorded.state)
        return recorded

    async def head(self, comm_id: CommId) -> StoredEntry | None:
        """Read where the group stands, from the log's leader."""
        return await self._log.last(comm_id)

    async def without_log(self, comm_ids: Sequence[CommId]) -> Sequence[CommId]:
        """Those of the groups in which nothing has happened yet."""
        known = set(await self._log.comm_ids()) if comm_ids else set()
        return [comm_id for comm_id in comm_ids if comm_id not in known]

    async def find(self, comm_id: CommId, event: Event, *, after: int) -> StoredEntry | None:
        """Look for an event behind `after` in the log; a message is the same if its id is."""
        while True:
            page = await self._log.read(comm_id, after=after, limit=_READ_PAGE)
            for stored in page:
                if _same(stored.entry.event, event):
                    return stored
            if len(page) < _READ_PAGE:
                return None
            after = page[-1].seq

    async def settle(self, state: GroupState) -> None:
        """Do again what a group owes the world, in case it was never done."""
        await self.perform(settle(state), state)

    async def rearm(self, comm_id: CommId, state: GroupState) -> None:
        """Arm the group's next deadline, forgetting what was armed before."""
        group = self._group(comm_id)
        async with group.lock:
            group.armed = None
            await self._arm(comm_id, group, state)

    async def perform(self, effects: tuple[Effect, ...], state: GroupState) -> None:
        """Carry out effects; each may be carried out any number of times."""
        for effect in effects:
            match effect:
                case PublishResult(result=result):
                    if await self._results.publish(result):
                        _log.info("goal_ended", goal_id=result.goal_id, comm_id=result.comm_id, reason=result.reason)
                case ReportToParent():
                    await self._record_if_legal(
                        effect.parent.comm_id,
                        SubgroupClosed(
                            at=self._clock.now(),
                            task_id=effect.parent.task_id,
                            subgroup=effect.subgroup,
                            reason=effect.reason,
                            content=effect.content,
                            artifacts=effect.artifacts,
                            turns=effect.turns,
                            usage=effect.usage,
                        ),
                    )
                case CancelSubgroup():
                    await self._cancel_subgroup(effect)

    async def _cancel_subgroup(self, effect: CancelSubgroup) -> None:
        """Cancel a nested team; one whose launch is still on its way is kept from being launched."""
        now = self._clock.now()
        head = await self._log.last(effect.subgroup)
        if head is not None and head.entry.state.phase.is_terminal:
            return
        if head is None:
            abandoned = LaunchAbandoned(
                at=now,
                comm_id=effect.subgroup,
                goal_id=effect.goal_id,
                by=_LEDGER,
                reason=Reason.CANCELLED,
                content=effect.why,
                parent=effect.task,
            )
            await self._record_if_legal(effect.subgroup, abandoned)
        await self._record_if_legal(effect.subgroup, CancelRequested(at=now, why=effect.why))

    async def _record_if_legal(self, comm_id: CommId, event: Event) -> None:
        try:
            await self.record(comm_id, event)
        except IllegalEventError as refusal:
            _log.debug("effect_already_done", comm_id=comm_id, event_type=event.type, code=refusal.code)

    async def _append(
        self, comm_id: CommId, group: _Group, event: Event, asked_by: AgentId | None
    ) -> tuple[Recorded, tuple[Effect, ...]]:
        head, fresh = group.head, False
        for _ in range(_MAX_ATTEMPTS):
            if head is None:
                head, fresh = await self._log.last(comm_id), True
            try:
                transition = step(head.entry.state if head else None, event)
            except IllegalEventError:
                if fresh:
                    group.head = head
                    raise
                head = None
                continue
            audience = tuple(member.agent_id for member in transition.state.members)
            entry = encode_entry(Entry.model_construct(event=event, state=transition.state, audience=audience))
            await self._arm(comm_id, group, transition.state)
            expected = head.seq if head else 0
            reach("router.before_append")
            try:
                seq = await self._log.append(comm_id, entry, expected_seq=expected)
            except (AppendConflictError, UnavailableError) as failure:
                conflicts.inc(isinstance(failure, AppendConflictError))
                group.head = head = None
                found = await self.find(comm_id, event, after=expected)
                if found is not None:
                    return Recorded(found.seq, found.entry.state), settle(found.entry.state)
                if isinstance(failure, UnavailableError):
                    raise
                continue
            reach("router.after_append")
            count_entry(head.entry.state if head else None, event, transition.state)
            group.head = StoredEntry(seq, entry.entry)
            await self._arm_again(comm_id, group, transition.state)
            others = [agent_id for agent_id in audience if agent_id != asked_by]
            await self._inboxes.push(others, entry, seq=seq, previous_seq=expected)
            return Recorded(seq, transition.state, entry, expected), transition.effects
        raise UnavailableError(f"Group {comm_id} is contended: {_MAX_ATTEMPTS} appends lost their race.")

    async def _arm(self, comm_id: CommId, group: _Group, state: GroupState) -> None:
        """Arm a timer unless one is armed that fires in time. An early timer only looks and arms the next."""
        now = self._now()
        at = state.next_deadline() or now + SETTLING_DELAY
        if group.armed is None or not now + _ARMING_MARGIN < group.armed <= at:
            await self._timers.schedule(comm_id, at)
            group.armed = at

    async def _arm_again(self, comm_id: CommId, group: _Group, state: GroupState) -> None:
        """Arm another timer if the append took so long that the one before it may have fired on the state of before."""
        if group.armed is not None and group.armed <= self._clock.now():
            group.armed = None
            try:
                await self._arm(comm_id, group, state)
            except UnavailableError as error:
                _log.warning("not_armed_again", comm_id=comm_id, error=error.message)

    def _now(self) -> datetime:
        """Read the clock. If it was set back, timers that have fired may seem to lie ahead: forget all that were armed."""
        now = self._clock.now()
        if now < self._latest:
            for group in self._groups.values():
                group.armed = None
        self._latest = now
        return now

    def _group(self, comm_id: CommId) -> _Group:
        """Find what is remembered of a group, to be locked at once; what was used longest ago is forgotten."""
        group = self._groups.get(comm_id)
        if group is None:
            group = self._groups[comm_id] = _Group(asyncio.Lock())
            oldest = next(iter(self._groups))
            if len(self._groups) > _MAX_CACHED_GROUPS and not self._groups[oldest].lock.locked():
                del self._groups[oldest]
        self._groups.move_to_end(comm_id)
        return group


def _same(stored: Event, event: Event) -> bool:
    if isinstance(stored, Said) and isinstance(event, Said):
        return stored.message.header.message_id == event.message.header.message_id
    return stored == event
