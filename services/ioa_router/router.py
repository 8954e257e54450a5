"""The router: checks messages, orders them and acts on deadlines.

Its only state outside the groups' logs is the time of the last progress report of each task. Leases survive the loss of this state.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

import structlog

from ioa.adapters.nats.delivery.nats_delivery import NatsProgress
from ioa.errors import ForbiddenError, InvalidInputError, IoaError, UnavailableError
from ioa.group.events import Event, MessageRefused, RepetitionRefused, Said, TimerFired
from ioa.group.machine import needs_entry
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.requests import Accepted, Rejected, SayReply, encode_accepted, no_group
from ioa.group.state import GroupState
from ioa.ports.group_log import UnreadableEntryError
from ioa.protocol.codec import MAX_MESSAGE_BYTES, check_size, encode, receive
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.messages import InformTaskProgress, Message
from ioa.protocol.setup.open_groups import OpenGroup
from ioa.protocol.subjects import parse_comm, parse_say
from ioa.runtime.group_metrics import rejections
from ioa.runtime.group_stores import GroupStores
from ioa.telemetry import log_context
from ioa.telemetry.fault_points import fault_point
from ioa_router.report_times import ReportTimes

MAX_PROGRESS_BYTES = 16_000
"""Maximum size of a progress report: the status and the draft of an agent, at most 4 kB each, and the header."""
ROUTER_NAME = AgentId("router")

_log = structlog.get_logger(__name__)


class Router:
    """Answer `say` requests and act on deadlines. Any replica can serve any group."""

    def __init__(self, ports: GroupStores, progress: NatsProgress) -> None:
        self._ports = ports
        self._progress = progress
        self._reports = ReportTimes(ports.clock.now())

    async def say(self, subject: str, data: bytes) -> bytes:
        """Append a member's message to its group's log, or reject it; return an encoded `SayReply`.

        A duplicate of an accepted message is accepted with the same sequence. A progress report is appended only if it is the first
        of its task, or if it contains usage that a budget is charged with.

        Raises:
            ForbiddenError: The payload names another sender or group than the subject.
            InvalidInputError: The payload is not a message, or a progress report is too large.
            SupersededError: Another process has taken over the sender's id.
            UnavailableError: The log does not answer. The same message may be sent again.
        """
        comm_id, agent_id = parse_say(subject)
        message = receive(Message, data, max_payload_bytes=MAX_MESSAGE_BYTES)
        if isinstance(message.payload, InformTaskProgress):
            check_size(data, MAX_PROGRESS_BYTES, "A progress report")
        header = message.header
        if header.session is not None:  # the log does not contain sessions
            message = message.model_copy(update={"header": header.model_copy(update={"session": None})})
        if header.sender != agent_id or header.comm_id != comm_id:
            raise ForbiddenError(f"{agent_id} may not speak as {header.sender} in {header.comm_id}.")
        await self._ports.sessions.check(agent_id, header.session)
        try:
            return await self._judge(message)
        except IoaError:
            # Bound only now, because it costs every message a microsecond: the line that reports the error contains these fields.
            log_context.bind({"comm_id": comm_id, "agent_id": agent_id, "traceparent": header.traceparent})
            raise

    async def fire_timer(self, comm_id: CommId, fired_at: datetime | None = None, *, again: bool = False) -> None:
        """Act on the deadlines of a group that have passed, and schedule the next one.

        Missing timers, results and entries of the open index are written again: a power failure can remove acknowledged writes.

        Args:
            comm_id: The group.
            fired_at: Time at which the timer fired, by the clock of JetStream. If this machine's clock is slow, the
                deadline has passed all the same; otherwise the timer would be scheduled in the past and fire repeatedly.
            again: The timer was delivered before, to a router that may have stopped before it pushed the head to the members.

        Raises:
            UnavailableError: The timer must be delivered again.
        """
        log_context.bind({"comm_id": comm_id})
        head, now = await self._ports.ledger.head(comm_id), self._ports.clock.now()
        at = max(now, fired_at or now)
        if again and head is not None:
            await self._ports.ledger.push_again(head)
        if head is None:
            await self._expire_goal(comm_id, at)
        elif head.entry.state.phase.is_terminal:
            await self._ports.ledger.settle(head.entry.state)
        else:
            state = await self._advance(comm_id, head.entry.state, at)
            await self._ports.ledger.rearm(comm_id, state)
            await self._ports.ledger.settle(state)
            if not state.phase.is_terminal:
                await self._index(state)

    async def end_unreadable(self, error: UnreadableEntryError, fired_at: datetime) -> None:
        """Publish a failed result for the goal of an unreadable group at its deadline; before, schedule the timer again.

        The log gets no entry, because nothing can follow an unreadable entry. A nested group has no accepted goal; its task ends in
        the parent group, by the deadline of the task or of the goal.

        Raises:
            UnavailableError: The timer must be delivered again.
        """
        record = await self._ports.goals.find(error.comm_id)
        if record is None:
            return
        now = max(self._ports.clock.now(), fired_at)
        if now < record.deadline:
            await self._ports.timers.schedule(error.comm_id, record.deadline)
            return
        result = GoalResult(
            goal_id=record.goal.goal_id,
            user=record.goal.user,
            reason=Reason.FAILED,
            content=f"The group could not go on: {error.message}",
            comm_id=error.comm_id,
            turns=0,
            finished_at=now,
        )
        if await self._ports.results.publish(result):
            _log.error("goal_ended_unread", goal_id=result.goal_id, comm_id=result.comm_id, seq=error.seq)

    async def check_removable(self, subject: str) -> None:
        """Check that a timer whose handling failed repeatedly may become a dead letter.

        Raises:
            UnavailableError: The timer must stay: its group is open and readable, and would not continue without it.
        """
        try:
            comm_id = parse_comm(subject)
            head = await self._ports.ledger.head(comm_id)
        except (InvalidInputError, UnreadableEntryError):
            return
        if head is not None and not head.entry.state.phase.is_terminal:
            raise UnavailableError(f"The timer of the group {comm_id} stays: the group is open.")

    def add_report(self, said: Said) -> None:
        """Record a progress report that another router accepted."""
        payload = said.message.payload
        if isinstance(payload, InformTaskProgress):
            self._reports.add(said.message.header.comm_id, payload.task_id, said.at)

    def restart_reports(self) -> None:
        """Record that reports accepted by other routers may have been missed until now."""
        self._reports.restart(self._ports.clock.now())

    async def _index(self, state: GroupState) -> None:
        """Store the open index's entry and the memberships of an open group, unless they are stored: a bucket may be lost."""
        comm_id = state.comm_id
        if await self._ports.open_groups.add(state.user, comm_id, OpenGroup(goal_id=state.goal_id, deadline=state.limits.deadline)):
            head = await self._ports.ledger.head(comm_id)  # the entry is missing also if the group has just ended
            if head is not None and head.entry.state.phase.is_terminal:
                await self._ports.ledger.settle(head.entry.state)
                return
        await self._ports.memberships.add(state.hearing, comm_id)

    async def _judge(self, message: Message) -> bytes:
        comm_id = message.header.comm_id
        try:
            if isinstance(message.payload, InformTaskProgress):
                accepted = await self._accept_report(message, message.payload)
                if accepted is not None:
                    return encode(SayReply(answer=accepted))
                message = message.model_copy(update={"payload": message.payload.model_copy(update={"draft": ""})})
            recorded = await self._ports.ledger.say(comm_id, message)
        except IllegalEventError as refusal:
            return encode(SayReply(answer=await self._answer_rejected(message, refusal)))
        fault_point("router.before_answer")
        if recorded.entry is None:
            return encode(SayReply(answer=Accepted(seq=recorded.seq)))
        return encode_accepted(recorded.entry, seq=recorded.seq, previous_seq=recorded.previous_seq)

    async def _accept_report(self, message: Message, report: InformTaskProgress) -> Accepted | None:
        """Accept a progress report without an entry; return None if the report needs an entry or is not legal."""
        comm_id, said = message.header.comm_id, Said(at=self._ports.clock.now(), message=message)
        seen = await self._ports.ledger.seen(comm_id)
        if seen is None or needs_entry(seen.entry.state, said, report):
            return None
        if self._reports.is_too_soon(seen.entry.state, report.task_id, said.at):
            return Accepted(seq=seen.seq)
        self.add_report(said)
        await self._progress.publish(said, seen.entry.state.name)
        return Accepted(seq=seen.seq)

    async def _answer_rejected(self, message: Message, refusal: IllegalEventError) -> Accepted | Rejected:
        """Return the sequence of a message that is in the log, or the rejection. The log is not searched for progress reports.

        Raises:
            NotFoundError: The group does not exist, or the sender is not a member.
        """
        seen = await self._ports.ledger.seen(message.header.comm_id)
        if seen is None or not seen.entry.state.is_member(message.header.sender):
            rejections.labels(refusal.code).inc()
            raise no_group(message.header.comm_id)
        if not isinstance(message.payload, InformTaskProgress):
            seq = await self._ports.ledger.accepted_before(message)
            if seq is not None:
                return Accepted(seq=seq)
            await self._record_rejection(message, refusal)
        if message.header.sender not in seen.entry.state.hearing:  # a removed member does not learn the turn or the speakers
            why = f"{message.header.sender} was removed from {message.header.comm_id}."
            refusal = IllegalEventError(RejectionCode.NOT_A_MEMBER, why)
        return _rejected(refusal)

    async def _advance(self, comm_id: CommId, state: GroupState, at: datetime) -> GroupState:
        try:
            return (await self._ports.ledger.record(comm_id, TimerFired(at=at, heard=self._reports.evidence(state, at)))).state
        except IllegalEventError as refusal:
            if refusal.code in (RejectionCode.NOTHING_DUE, RejectionCode.GROUP_ENDED):
                return state
            raise

    async def _record_rejection(self, message: Message, refusal: IllegalEventError) -> None:
        """Append a repetition or a wrong decision, so that the next one is counted. A message is counted once."""
        header, at = message.header, self._ports.clock.now()
        about = {"at": at, "by": header.sender, "turn": header.turn, "message_id": header.message_id}
        refused: Event
        if refusal.repeats_turn is not None:
            refused = RepetitionRefused.model_validate({**about, "repeats_turn": refusal.repeats_turn})
        elif refusal.code is RejectionCode.BAD_DECISION:
            refused = MessageRefused.model_validate({**about, "code": refusal.code})
        else:
            return
        try:
            await self._ports.ledger.record(header.comm_id, refused)
        except IllegalEventError:
            # The rejection is in the log already, or the turn has ended.
            return

    async def _expire_goal(self, comm_id: CommId, now: datetime) -> None:
        """End a goal that no agent took before its deadline, and remove ended goals and expired launches from the open index.

        An ended goal without a log is old: its log was removed.
        """
        record = await self._ports.goals.find(comm_id)
        if record is None:
            noted = await self._ports.open_groups.find(comm_id)  # a nested group that was never launched
            if noted is not None and noted.deadline < now:
                await self._ports.open_groups.remove(comm_id)
        elif await self._ports.results.ending(record.goal.name) is not None:
            await self._ports.open_groups.remove(comm_id)
        elif now < record.deadline:
            await self._ports.timers.schedule(comm_id, record.deadline)
        else:
            why = "No agent took the goal before its deadline."
            with suppress(IllegalEventError):  # a group was launched just before the deadline; its own timers handle its deadlines
                await self._ports.ledger.abandon(record.goal.name, ROUTER_NAME, Reason.DEADLINE, why, at=now)


def _rejected(refusal: IllegalEventError) -> Rejected:
    rejections.labels(refusal.code).inc()
    return Rejected(code=refusal.code, message=refusal.message, legal=refusal.legal)
