"""The ledger: appends events to group logs, delivers the entries and carries out the effects.

The append is the only write that decides (architecture, section 3). All later steps can be repeated by any process: members read
missed entries from the log, effects are idempotent and derived from the state, and a timer, scheduled before the append, brings a
router back to the group if a process stops in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from ioa.adapters.nats.stores.open_group_store import NatsOpenGroups
from ioa.errors import UnavailableError
from ioa.group.deadlines import next_deadline
from ioa.group.events import (
    CancelRequested,
    EncodedEntry,
    Entry,
    Event,
    GroupLaunched,
    LaunchAbandoned,
    Said,
    SubgroupClosed,
    encode_entry,
)
from ioa.group.limits import DEFAULT_GROUP_LIMITS, GroupLimits
from ioa.group.machine import CancelSubgroup, Effect, PublishResult, ReportToParent, owed_effects, step
from ioa.group.policy.hearing import is_withheld
from ioa.group.policy.visibility import shares_view, view_for
from ioa.group.rejection import IllegalEventError
from ioa.group.state import GroupState
from ioa.ports.clock import Clock
from ioa.ports.delivery import Inboxes, Results, Timers
from ioa.ports.group_log import AppendConflictError, GroupLog, StoredEntry
from ioa.protocol.goals import Reason, RepetitionRule
from ioa.protocol.ids import AgentId, CommId, GoalName
from ioa.protocol.messages import Message
from ioa.protocol.policy import Policy
from ioa.protocol.texts import shortened
from ioa.repetition import sketches_of
from ioa.runtime.group_metrics import conflicts, count_entry
from ioa.runtime.known_groups import KnownGroup, KnownGroups
from ioa.telemetry.fault_points import fault_point

SETTLING_DELAY = timedelta(seconds=2)
"""Delay of the check after the end of a group, in case its router stopped before it carried out the effects."""

_ARMING_MARGIN = timedelta(seconds=1)
"""Minimum time until a timer fires. An earlier timer could fire before the append and find nothing due."""

MAX_REASON_BYTES = 8_000
"""Maximum bytes of the recorded reason for the end of a goal without a group, or of a cancellation."""

_LEDGER = AgentId("ledger")
_MAX_ATTEMPTS = 50
_SEARCHED_ENTRIES = 64
"""Maximum entries after the sender's cursor that are searched for a duplicate of its message."""

_log = structlog.get_logger(__name__)


class Recorded(NamedTuple):
    """An event in the log, with the state after it.

    Attributes:
        entry: The appended entry as its sender may see it; None if the event was in the log before.
        previous_seq: Sequence of the previous entry of the log.
    """

    seq: int
    state: GroupState
    entry: EncodedEntry | None = None
    previous_seq: int = 0


class GroupLedger:
    """Append events to group logs. Several ledgers may append to the same group; the expected sequence of the append decides.

    Args:
        log: Logs of groups.
        timers: Scheduled deadlines.
        inboxes: Delivers entries to members.
        results: Stores results of goals.
        open_groups: Index of open groups.
        clock: Time of messages.
        limits: Limits of each group.
    """

    def __init__(
        self,
        log: GroupLog,
        timers: Timers,
        inboxes: Inboxes,
        results: Results,
        open_groups: NatsOpenGroups,
        clock: Clock,
        limits: GroupLimits = DEFAULT_GROUP_LIMITS,
    ) -> None:
        self._log = log
        self._timers = timers
        self._inboxes = inboxes
        self._results = results
        self._open = open_groups
        self._clock = clock
        self._limits = limits
        self._known = KnownGroups()
        self._latest = clock.now()

    async def record(self, comm_id: CommId, event: Event) -> Recorded:
        """Append an event of the control plane and carry out its effects.

        Args:
            comm_id: The group.
            event: A deadline, a cancellation, or another event of the control plane.

        Raises:
            IllegalEventError: The event is not legal in the group's present state, read from the log.
            PayloadTooLargeError: The entry does not fit into one message; nothing is appended.
            UnavailableError: The log does not answer. The event may have been appended, and may be sent again.
        """
        return await self._append_and_perform(comm_id, event)

    async def abandon(self, goal: GoalName, by: AgentId, reason: Reason, content: str, **more: object) -> None:
        """End a goal without a group, or with `comm_id` and `parent` a task without a nested group.

        Args:
            goal: The goal.
            by: Agent or service that ends the goal.
            reason: Reason of the end.
            content: Explanation for the user.
            more: Further fields of the event, such as usage and model calls of the decision.

        Raises:
            IllegalEventError: The group was opened, or has ended.
            UnavailableError: As in `record`.
        """
        fields = {
            "comm_id": goal.comm_id,
            "goal_id": goal.goal_id,
            "user": goal.user,
            "by": by,
            "reason": reason,
            "content": shortened(content, MAX_REASON_BYTES),
        }
        event = LaunchAbandoned.model_validate({"at": self._clock.now(), **fields, **more})
        await self.record(event.comm_id, event)

    async def say(self, comm_id: CommId, message: Message) -> Recorded:
        """Append a message and carry out its effects. The sender gets the entry as the reply, not in its inbox.

        The time of the message is the time of this check, so a message that waited until a deadline has passed is too late.

        Raises:
            IllegalEventError: As in `record`.
            UnavailableError: As in `record`.
        """
        return await self._append_and_perform(comm_id, message, asked_by=message.header.sender)

    async def head(self, comm_id: CommId) -> StoredEntry | None:
        """Read the last entry from the leader of the log."""
        head = await self._log.last(comm_id)
        known = self._known.find(comm_id)
        if head is not None and known is not None and known.head is not None and known.head.seq < head.seq:
            known.remember(head)
        return head

    async def seen(self, comm_id: CommId) -> StoredEntry | None:
        """Return the last entry that this process knows of a group; it is read if none is cached."""
        group = self._known.of(comm_id)
        head = group.head
        if head is None:
            async with group.lock:
                head = group.head or await self._log.last(comm_id)
                group.remember(head)
        return head

    async def push_again(self, stored: StoredEntry) -> None:
        """Push an entry to all members again, because the process that appended it may have stopped before it pushed.

        The previous sequence is not known here. A member that has the directly preceding sequence misses nothing; other members
        detect a gap and read the log.
        """
        await self._push(await self.policy(stored), stored.seq, encode_entry(stored.entry), previous_seq=stored.seq - 1)

    def forget(self) -> None:
        """Clear cached entries and timers: after a reconnect, the server may have lost some of them."""
        self._known.forget(heads=True)

    async def accepted_before(self, message: Message) -> int | None:
        """Return the sequence of a rejected message if a copy of it is in the log; None otherwise.

        At most one page after the sender's cursor is searched. The sender of a rejected message reads the log in any case.

        Raises:
            UnavailableError: The log does not answer.
        """
        header, comm_id = message.header, message.header.comm_id
        seq = await self._log.find_message(
            comm_id, header.message_id, sender=header.sender, after=header.after, limit=_SEARCHED_ENTRIES
        )
        head = None if seq is None else await self._log.last(comm_id)
        if head is not None:
            if head.seq == seq:
                await self.push_again(head)  # its router may have stopped before it pushed the entry
            await self.settle(head.entry.state)
        return seq

    async def settle(self, state: GroupState) -> None:
        """Carry out the effects that follow from a state again; see `perform`."""
        await self.perform(owed_effects(state), state)

    async def rearm(self, comm_id: CommId, state: GroupState) -> None:
        """Schedule the group's next deadline again."""
        group = self._known.of(comm_id)
        async with group.lock:
            group.armed = None
            await self._schedule(comm_id, group, state)

    async def perform(self, effects: tuple[Effect, ...], state: GroupState) -> None:
        """Carry out effects. Each effect is idempotent; one that fails permanently does not stop the others.

        A group that has ended is removed from the open index afterwards.

        Raises:
            UnavailableError: Not all effects are carried out; they may be repeated.
        """
        for effect in effects:
            try:
                await self._carry_out(effect)
            except UnavailableError:
                raise
            except Exception:  # noqa: BLE001 - a bug in one effect must not stop the others
                _log.exception("effect_failed", comm_id=state.comm_id, goal_id=state.goal_id, effect=type(effect).__name__)
        if state.phase.is_terminal:
            await self._open.remove(state.comm_id)

    async def _carry_out(self, effect: Effect) -> None:
        match effect:
            case PublishResult(result=result):
                if await self._results.publish(result):
                    _log.info("goal_ended", goal_id=result.goal_id, comm_id=result.comm_id, reason=result.reason)
            case ReportToParent(parent=task):
                report = {name: value for name, value in vars(effect).items() if name != "parent"}
                closed = SubgroupClosed.model_validate({"at": self._clock.now(), "task_id": task.task_id, **report})
                await self._record_if_legal(task.comm_id, closed)
            case CancelSubgroup():
                await self._cancel_subgroup(effect)

    async def _cancel_subgroup(self, effect: CancelSubgroup) -> None:
        """Cancel a nested group, or prevent its launch."""
        head = await self._log.last(effect.subgroup)
        if head is not None and head.entry.state.phase.is_terminal:
            return
        if head is None:
            with suppress(IllegalEventError):  # launched meanwhile
                more = {"comm_id": effect.subgroup, "parent": effect.task}
                await self.abandon(effect.goal, _LEDGER, Reason.CANCELLED, effect.why, **more)
        await self._record_if_legal(effect.subgroup, CancelRequested(at=self._clock.now(), why=effect.why))

    async def _record_if_legal(self, comm_id: CommId, event: Event) -> None:
        try:
            await self.record(comm_id, event)
        except IllegalEventError as refusal:
            _log.debug("effect_already_done", comm_id=comm_id, event_type=event.type, code=refusal.code)

    async def _append_and_perform(self, comm_id: CommId, what: Event | Message, *, asked_by: AgentId | None = None) -> Recorded:
        group = self._known.of(comm_id)
        async with group.lock:
            recorded, effects = await self._append(comm_id, group, what, asked_by)
        if effects or recorded.state.phase.is_terminal:
            await self.perform(effects, recorded.state)
        return recorded

    async def _append(
        self, comm_id: CommId, group: KnownGroup, what: Event | Message, asked_by: AgentId | None
    ) -> tuple[Recorded, tuple[Effect, ...]]:
        head, fresh = group.head, False
        for _ in range(_MAX_ATTEMPTS):
            if head is None:
                head, fresh = await self._log.last(comm_id), True
            event = self._said(what, head) if isinstance(what, Message) else what
            try:
                policy = await self.policy(head, event)
                state = None if head is None else head.entry.state
                transition = step(state, event, policy, self._limits._replace(used_bytes=head.log_bytes if head else 0))
                event = transition.event
            except IllegalEventError:
                now = head if fresh else await self._log.last(comm_id)
                if _seq_of(now) == _seq_of(head):  # the same state gives the same rejection
                    group.remember(now)
                    raise
                head, fresh = now, True
                continue
            entry = encode_entry(Entry.of_valid(event=event, audience=transition.audience, state=transition.state))
            await self._schedule(comm_id, group, transition.state)
            expected, log_bytes = (head.seq, head.log_bytes) if head else (0, 0)
            fault_point("router.before_append")
            try:
                seq = await self._log.append(comm_id, entry, expected_seq=expected, log_bytes=log_bytes)
            except AppendConflictError:
                conflicts.inc()
                group.remember(None)
                head = None
                continue
            except UnavailableError:
                group.remember(None)
                head, stored = None, await self._log.read(comm_id, after=expected, limit=1)
                if not stored:
                    raise
                if _same(stored[0].entry.event, event):  # the append succeeded without an acknowledgement
                    await self.push_again(stored[0])
                    return Recorded(stored[0].seq, stored[0].entry.state), owed_effects(stored[0].entry.state)
                continue  # another entry has this sequence, so the log rejects this entry
            fault_point("router.after_append")
            count_entry(state, event, transition.state)
            group.remember(StoredEntry(seq, entry.entry, len(entry.data), log_bytes + len(entry.data)))
            await self._reschedule_late(comm_id, group, transition.state)
            await self._push(policy, seq, entry, previous_seq=expected, before=state, but=asked_by)
            if policy is not None and policy.is_scoped and asked_by is not None:
                entry = encode_entry(view_for(policy, entry.entry, asked_by))
            return Recorded(seq, transition.state, entry, expected), transition.effects
        raise UnavailableError(f"Group {comm_id} is contended: {_MAX_ATTEMPTS} appends lost their race.")

    async def _push(
        self,
        policy: Policy | None,
        seq: int,
        entry: EncodedEntry,
        *,
        previous_seq: int,
        before: GroupState | None = None,
        but: AgentId | None = None,
    ) -> None:
        """Push to each member its view of an entry, also to a member that the entry removes."""
        told = entry.entry
        members = (*told.audience, *told.state.hearing, *(before.hearing if before is not None else ()))
        alike: defaultdict[Hashable, list[AgentId]] = defaultdict(list)
        for agent_id in dict.fromkeys(members):
            if agent_id == but or (policy is not None and is_withheld(policy, told.state, told.event, agent_id)):
                continue
            alike[shares_view(policy, told, agent_id)].append(agent_id)
        for agents in alike.values():
            view = view_for(policy, told, agents[0])
            pushed = entry if view is told else encode_entry(view)
            await self._inboxes.push(agents, pushed, seq=seq, previous_seq=previous_seq)

    async def policy(self, head: StoredEntry | None, event: Event | None = None) -> Policy | None:
        """Return the policy of a group: from its launch event, the cache, or the first entry of its log.

        Raises:
            UnavailableError: The log does not answer.
        """
        if head is None:
            return event.charter.policy if isinstance(event, GroupLaunched) else None
        state = head.entry.state
        if state.course is None:
            return None
        group = self._known.of(state.comm_id)
        if group.policy is None or group.policy.digest != state.course.policy:
            first = await self._log.read(state.comm_id, after=0, limit=1)
            launch = first[0].entry.event if first else None
            if not isinstance(launch, GroupLaunched):
                raise UnavailableError(f"The log of {state.comm_id} does not show how the group was launched.")
            group.policy = launch.charter.policy
        return group.policy

    def _said(self, message: Message, head: StoredEntry | None) -> Said:
        compared = head is not None and head.entry.state.limits.repetition is RepetitionRule.VERBATIM
        return Said.of_valid(at=self._clock.now(), message=message, sketches=sketches_of(message.payload) if compared else ())

    async def _schedule(self, comm_id: CommId, group: KnownGroup, state: GroupState) -> None:
        """Schedule a timer, unless a scheduled timer fires in time. A timer that fires early schedules the next one."""
        now = self._now()
        at = next_deadline(state) or now + SETTLING_DELAY
        if group.armed is None or not now + _ARMING_MARGIN < group.armed <= at:
            await self._timers.schedule(comm_id, at)
            group.armed = at

    async def _reschedule_late(self, comm_id: CommId, group: KnownGroup, state: GroupState) -> None:
        """Schedule another timer if the append took so long that the scheduled one may have fired for the state before it."""
        if group.armed is not None and group.armed <= self._clock.now():
            group.armed = None
            try:
                await self._schedule(comm_id, group, state)
            except UnavailableError as error:
                _log.warning("timer_not_scheduled", comm_id=comm_id, error=error.message)

    def _now(self) -> datetime:
        """Return the time. If the clock was set back, remove all cached timers, which may have fired already."""
        now = self._clock.now()
        if now < self._latest:
            self._known.forget(heads=False)
        self._latest = now
        return now


def _seq_of(head: StoredEntry | None) -> int:
    return 0 if head is None else head.seq


def _same(stored: Event, event: Event) -> bool:
    """Return whether two events are equal; messages are compared by id and sender, because ids are chosen by senders."""
    if not isinstance(stored, Said) or not isinstance(event, Said):
        return stored == event
    before, header = stored.message.header, event.message.header
    return (before.sender, before.message_id) == (header.sender, header.message_id)
