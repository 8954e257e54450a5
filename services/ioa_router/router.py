"""Deciding about messages and deadlines. The router owns nothing: whatever it knows can be read from the group's log.

All it remembers is when progress was last reported on tasks, which is no entry; a lease outlasts the loss of that.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from ioa.errors import ForbiddenError, IoaError, UnavailableError
from ioa.group.events import Event, LaunchAbandoned, MessageRefused, RepetitionRefused, Said, TimerFired
from ioa.group.progress import check_progress, is_news
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.requests import Accepted, Rejected, SayReply, encode_accepted, no_group
from ioa.group.state import GroupState
from ioa.ports.clock import Clock
from ioa.ports.delivery import GoalRecords, ProgressFeed, Timers
from ioa.ports.open_groups import OpenGroups
from ioa.ports.registry_store import Sessions
from ioa.protocol.codec import MAX_MESSAGE_BYTES, check_size, encode, receive
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, MessageId
from ioa.protocol.messages import InformTaskProgress, Message
from ioa.protocol.subjects import parse_say
from ioa.runtime.endings import Endings
from ioa.runtime.group_metrics import count_progress, count_rejection
from ioa.runtime.ledger import GroupLedger
from ioa.telemetry import log_context
from ioa.telemetry.fault_points import fault_point
from ioa_router.heard import HeardProgress

MAX_PROGRESS_BYTES = 16_000
"""Agents of ours say 4 kB of how far they are, and show as much of a draft."""
ROUTER_NAME = AgentId("router")


@dataclass
class _Look:
    """A look at a group that a timer began. Timers that fire meanwhile have it look once more, with the latest of their times."""

    fired_at: datetime | None
    again: bool = False

    def join(self, fired_at: datetime | None) -> None:
        """Have the group looked at once more."""
        self.again = True
        if fired_at is not None:
            self.fired_at = max(fired_at, self.fired_at or fired_at)


@dataclass(frozen=True, kw_only=True)
class RouterPorts:
    """What messages and deadlines are decided with.

    Attributes:
        ledger: Takes events into the groups' logs.
        goals: The goals on record.
        open_groups: Which groups and goals are noted as open.
        timers: What brings deadlines back.
        progress: Tells the other routers of reports that are no entries.
        endings: Tells which goals have ended, however long ago.
        clock: Stamps events.
        sessions: Who may speak for an agent.
    """

    ledger: GroupLedger
    goals: GoalRecords
    open_groups: OpenGroups
    timers: Timers
    progress: ProgressFeed
    endings: Endings
    clock: Clock
    sessions: Sessions


class Router:
    """Answer `say` requests and act on deadlines. Any replica is right for any group."""

    def __init__(self, ports: RouterPorts) -> None:
        self._ports = ports
        self._heard = HeardProgress(ports.clock.now())
        self._looks: dict[CommId, _Look] = {}
        self._handled: dict[tuple[CommId, AgentId, MessageId], asyncio.Future[bytes] | None] = {}
        """The messages that are being handled, and where the answer is waited for by copies that came meanwhile."""

    async def say(self, subject: str, data: bytes) -> bytes:
        """Take a member's message into its group's log, or say why not, in an encoded `SayReply`.

        A message that is in the log already is accepted with the same sequence again, however often it comes; a copy of one that is
        being handled gets the same answer. A report of progress is taken into the log only if it is the first on its task, or tells
        of usage that a budget is charged with.

        Raises:
            ForbiddenError: The payload names another sender or group than the subject it came on.
            InvalidInputError: The payload is no message, or a report of progress that is too large.
            SupersededError: Another process has taken the sender's id over.
            UnavailableError: The log cannot be reached; the same message may be sent again.
        """
        comm_id, agent_id = parse_say(subject)
        message = receive(Message, data, max_payload_bytes=MAX_MESSAGE_BYTES)
        if isinstance(message.payload, InformTaskProgress):
            check_size(data, MAX_PROGRESS_BYTES, "A report of progress")
        header = message.header
        if header.session is not None:  # the log does not contain sessions
            message = message.model_copy(update={"header": header.model_copy(update={"session": None})})
        if header.sender != agent_id or header.comm_id != comm_id:
            raise ForbiddenError(f"{agent_id} may not speak as {header.sender} in {header.comm_id}.")
        await self._ports.sessions.check(agent_id, header.session)
        key = (comm_id, agent_id, header.message_id)
        if key in self._handled:
            waited_for = self._handled[key] or asyncio.get_running_loop().create_future()
            self._handled[key] = waited_for
            return await asyncio.shield(waited_for)
        self._handled[key] = None
        try:
            answer = await self._judge(message)
        except IoaError as error:
            # Only now, since it would cost every message a microsecond: the line that reports this says what it is about.
            log_context.bind({"comm_id": comm_id, "agent_id": agent_id, "traceparent": header.traceparent})
            self._tell_copies(key, error)
            raise
        except BaseException:
            self._tell_copies(key, UnavailableError(f"The message {header.message_id} was not handled to its end."))
            raise
        self._tell_copies(key, answer)
        return answer

    async def fire_timer(self, comm_id: CommId, fired_at: datetime | None = None, *, again: bool = False) -> None:
        """Look at a group whose deadline may have passed, act on it, and arm the next one.

        While a group is looked at, further timers of it only have it looked at once more and return: a group with many timers does
        not keep those of others waiting. The look that fails comes back for all of them.

        Args:
            comm_id: The group.
            fired_at: When the timer fired by the clock that fires timers. Where the clock of this machine lags behind that one, the
                deadline has passed all the same; else the timer would be armed for the past, and fire, again and again.
            again: Whether the timer was given to a router before, which may have died before it told the members what it did.

        Raises:
            UnavailableError: The timer has to come back later.
        """
        log_context.bind({"comm_id": comm_id})
        look = self._looks.get(comm_id)
        if look is not None:
            look.join(fired_at)
            return
        look = self._looks[comm_id] = _Look(fired_at)
        try:
            await self._look(comm_id, look, again=again)
            while look.again:
                look.again = False
                await self._look(comm_id, look)
        finally:
            del self._looks[comm_id]

    def hear(self, said: Said) -> None:
        """Note a report of progress that another router has accepted."""
        payload = said.message.payload
        if isinstance(payload, InformTaskProgress):
            self._heard.note(said.message.header.comm_id, payload.task_id, said.at)

    def listen_anew(self) -> None:
        """Note that reports which other routers accepted may have been missed until now."""
        self._heard.listen_anew(self._ports.clock.now())

    async def look_at(self, comm_id: CommId) -> None:
        """Arm the next deadline of a group that is noted as open again, or pay again what it owes if it has ended.

        A power cut can cost the server timers and results that it had acknowledged.

        Raises:
            UnavailableError: The group has to be looked at again.
        """
        head = await self._ports.ledger.head(comm_id)
        if head is None:
            await self._look_at_unlaunched(comm_id)
        elif head.entry.state.phase.is_terminal:
            await self._ports.ledger.settle(head.entry.state)
        else:
            await self._ports.ledger.rearm(comm_id, head.entry.state)

    async def _look_at_unlaunched(self, comm_id: CommId) -> None:
        """Arm the deadline of a goal that waits to be launched; forget what has ended, and nested teams that came to nothing."""
        record, noted = await self._ports.goals.find(comm_id), await self._ports.open_groups.find(comm_id)
        if record is not None and await self._ports.endings.of(record.goal.name) is None:
            await self._ports.timers.schedule(comm_id, record.deadline)
        elif record is not None or noted is None or noted.deadline < self._ports.clock.now():
            await self._ports.open_groups.remove(comm_id)

    async def _judge(self, message: Message) -> bytes:
        comm_id = message.header.comm_id
        try:
            if isinstance(message.payload, InformTaskProgress):
                accepted = await self._hear(message, message.payload)
                if accepted is not None:
                    return encode(SayReply(answer=accepted))
                message = message.model_copy(update={"payload": message.payload.model_copy(update={"draft": ""})})
            recorded = await self._ports.ledger.say(comm_id, message)
        except IllegalEventError as refusal:
            return encode(SayReply(answer=await self._answer_to_refused(message, refusal)))
        fault_point("router.before_answer")
        if recorded.entry is None:
            return encode(SayReply(answer=Accepted(seq=recorded.seq)))
        return encode_accepted(recorded.entry, seq=recorded.seq, previous_seq=recorded.previous_seq)

    async def _hear(self, message: Message, report: InformTaskProgress) -> Accepted | None:
        """Take a report of progress in without an entry; None if it has to be one. What memory refuses is judged again on the log.

        Raises:
            IllegalEventError: The report is not legal now.
        """
        header, said = message.header, Said(at=self._ports.clock.now(), message=message)
        seen, is_fresh = await self._ports.ledger.seen(header.comm_id)
        if seen is None or is_news(seen.entry.state, said, report):
            return None
        try:
            check_progress(seen.entry.state, said, report)
        except IllegalEventError:
            if is_fresh:
                raise
            seen, _ = await self._ports.ledger.seen(header.comm_id, fresh=True)
            if seen is None or is_news(seen.entry.state, said, report):
                return None
            check_progress(seen.entry.state, said, report)
        if self._heard.is_too_soon(seen.entry.state, report.task_id, said.at):
            return Accepted(seq=seen.seq)
        self.hear(said)
        await self._ports.progress.publish(said)
        count_progress()
        return Accepted(seq=seen.seq)

    async def _answer_to_refused(self, message: Message, refusal: IllegalEventError) -> Accepted | Rejected:
        """Accept a message that is in the log already. A report of progress is not looked for: nobody needs to know.

        Raises:
            NotFoundError: There is no such group, or its sender is no member.
        """
        seen, _ = await self._ports.ledger.seen(message.header.comm_id)
        if seen is None or not seen.entry.state.is_member(message.header.sender):
            count_rejection(refusal.code)
            raise no_group(message.header.comm_id)
        if not isinstance(message.payload, InformTaskProgress):
            seq = await self._ports.ledger.accepted_before(message)
            if seq is not None:
                return Accepted(seq=seq)
            await self._note_refusal(message, refusal)
        if (
            message.header.sender not in seen.entry.state.hearing
        ):  # it learns no more of the turn, of who speaks and of what is legal
            why = f"{message.header.sender} was removed from {message.header.comm_id}."
            refusal = IllegalEventError(RejectionCode.NOT_A_MEMBER, why)
        return _rejected(refusal)

    def _tell_copies(self, key: tuple[CommId, AgentId, MessageId], answer: bytes | IoaError) -> None:
        waited_for = self._handled.pop(key)
        if waited_for is None:
            return
        if isinstance(answer, bytes):
            waited_for.set_result(answer)
        else:
            waited_for.set_exception(answer)
            waited_for.exception()  # those who asked may have been cancelled, and then nobody else takes it

    async def _look(self, comm_id: CommId, look: _Look, *, again: bool = False) -> None:
        head, now = await self._ports.ledger.head(comm_id), self._ports.clock.now()
        at = max(now, look.fired_at or now)
        if again and head is not None:
            await self._ports.ledger.push_again(head)
        if head is None:
            await self._expire_goal(comm_id, at)
        elif head.entry.state.phase.is_terminal:
            self._heard.forget(comm_id)
            await self._ports.ledger.settle(head.entry.state)
        else:
            state = await self._advance(comm_id, head.entry.state, at)
            await self._ports.ledger.rearm(comm_id, state)
            await self._ports.ledger.settle(state)

    async def _advance(self, comm_id: CommId, state: GroupState, at: datetime) -> GroupState:
        try:
            return (await self._ports.ledger.record(comm_id, TimerFired(at=at, heard=self._heard.evidence(state, at)))).state
        except IllegalEventError as refusal:
            if refusal.code in (RejectionCode.NOTHING_DUE, RejectionCode.GROUP_ENDED):
                return state
            raise

    async def _note_refusal(self, message: Message, refusal: IllegalEventError) -> None:
        """Put a repetition or a wrong decision on record, so that the next one counts as such; a message counts once."""
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
            # It is on record, or the group has moved on: there is no turn left that it could count in.
            return

    async def _expire_goal(self, comm_id: CommId, now: datetime) -> None:
        """End a goal that nobody took before its deadline. One without a log that has ended is old, and its log was removed."""
        record = await self._ports.goals.find(comm_id)
        if record is None:
            return
        if await self._ports.endings.of(record.goal.name) is not None:
            await self._ports.open_groups.remove(comm_id)
            return
        if now < record.deadline:
            await self._ports.timers.schedule(comm_id, record.deadline)
            return
        expired = LaunchAbandoned(
            at=now,
            comm_id=comm_id,
            goal_id=record.goal.goal_id,
            user=record.goal.user,
            by=ROUTER_NAME,
            reason=Reason.DEADLINE,
            content="No agent took the goal before its deadline.",
        )
        try:
            await self._ports.ledger.record(comm_id, expired)
        except IllegalEventError:
            # A group was launched at the last moment: its own timers look after it.
            return


def _rejected(refusal: IllegalEventError) -> Rejected:
    count_rejection(refusal.code)
    return Rejected(code=refusal.code, message=refusal.message, legal=refusal.legal)
