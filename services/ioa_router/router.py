"""Deciding about messages and deadlines. The router owns nothing: whatever it knows can be read from the group's log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ioa import log_context
from ioa.errors import ForbiddenError, IoaError, NotFoundError
from ioa.fault_points import reach
from ioa.group.events import LaunchAbandoned, RepetitionRefused, Said, TimerFired
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.requests import Accepted, Rejected, SayReply, encode_accepted
from ioa.group.state import GroupState
from ioa.ports.clock import Clock
from ioa.ports.delivery import GoalRecords, Timers
from ioa.protocol.codec import MAX_MESSAGE_BYTES, decode, encode
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.messages import Message
from ioa.protocol.subjects import parse_say
from ioa.runtime.group_metrics import count_rejection
from ioa.runtime.ledger import GroupLedger

ROUTER_NAME = AgentId("router")


class Router:
    """Answer `say` requests and act on deadlines. Any replica is right for any group."""

    def __init__(self, ledger: GroupLedger, goals: GoalRecords, timers: Timers, clock: Clock) -> None:
        self._ledger = ledger
        self._goals = goals
        self._timers = timers
        self._clock = clock

    async def say(self, subject: str, data: bytes) -> bytes:
        """Take a member's message into its group's log, or say why not, in an encoded `SayReply`.

        A message that is in the log already is accepted with the same sequence again, however often it comes.

        Raises:
            ForbiddenError: The payload names another sender or group than the subject it came on.
            InvalidInputError: The payload is no message.
            UnavailableError: The log cannot be reached; the same message may be sent again.
        """
        comm_id, agent_id = parse_say(subject)
        message = decode(Message, data, max_payload_bytes=MAX_MESSAGE_BYTES)
        header = message.header
        if header.sender != agent_id or header.comm_id != comm_id:
            raise ForbiddenError(f"{agent_id} may not speak as {header.sender} in {header.comm_id}.")
        try:
            said = Said(at=self._clock.now(), message=message)
            try:
                recorded = await self._ledger.record(comm_id, said, asked_by=agent_id)
            except IllegalEventError as refusal:
                accepted = await self._accepted_before(comm_id, said)
                if accepted is None and refusal.repeats_turn is not None:
                    await self._note_repetition(comm_id, message, refusal.repeats_turn)
                return encode(SayReply(answer=accepted or _rejected(refusal)))
        except IoaError:
            # Only now, since it would cost every message a microsecond: the line that reports this says what it is about.
            log_context.bind({"comm_id": comm_id, "agent_id": agent_id, "traceparent": header.traceparent})
            raise
        reach("router.before_answer")
        if recorded.entry is None:
            return encode(SayReply(answer=Accepted(seq=recorded.seq)))
        return encode_accepted(recorded.entry, seq=recorded.seq, previous_seq=recorded.previous_seq)

    async def fire_timer(self, comm_id: CommId, fired_at: datetime | None = None) -> None:
        """Look at a group whose deadline may have passed, act on it, and arm the next one.

        Args:
            fired_at: When the timer fired by the clock that fires timers. Where the clock of this machine lags behind that one, the
                deadline has passed all the same; else the timer would be armed for the past, and fire, again and again.

        Raises:
            UnavailableError: The timer has to come back later.
        """
        log_context.bind({"comm_id": comm_id})
        head, now = await self._ledger.head(comm_id), self._clock.now()
        if head is None:
            await self._expire_goal(comm_id, max(now, fired_at or now))
        elif head.entry.state.phase.is_terminal:
            await self._ledger.settle(head.entry.state)
        else:
            state = await self._advance(comm_id, head.entry.state, max(now, fired_at or now))
            await self._ledger.rearm(comm_id, state)
            await self._ledger.settle(state)

    async def sweep(self, comm_ids: Sequence[CommId]) -> None:
        """Arm the deadlines of open groups and of goals without a group again, and pay again what ended ones owe.

        A power cut can cost the server timers and results that it had acknowledged.

        Raises:
            UnavailableError: The sweep has to be done again.
        """
        for comm_id in comm_ids:
            head = await self._ledger.head(comm_id)
            if head is None:
                continue
            if head.entry.state.phase.is_terminal:
                await self._ledger.settle(head.entry.state)
            else:
                await self._ledger.rearm(comm_id, head.entry.state)
        for comm_id in await self._ledger.without_log(await self._goals.comm_ids()):
            record = await self._goals.find(comm_id)
            if record is not None:
                await self._timers.schedule(comm_id, record.deadline)

    async def _advance(self, comm_id: CommId, state: GroupState, at: datetime) -> GroupState:
        try:
            return (await self._ledger.record(comm_id, TimerFired(at=at))).state
        except IllegalEventError as refusal:
            if refusal.code in (RejectionCode.NOTHING_DUE, RejectionCode.GROUP_ENDED):
                return state
            raise

    async def _accepted_before(self, comm_id: CommId, said: Said) -> Accepted | None:
        found = await self._ledger.find(comm_id, said, after=said.message.header.after)
        if found is None:
            return None
        head = await self._ledger.head(comm_id)
        if head is not None:
            await self._ledger.settle(head.entry.state)
        return Accepted(seq=found.seq)

    async def _note_repetition(self, comm_id: CommId, message: Message, repeats_turn: int) -> None:
        """Put the refusal on record, so that the next one counts as the second whoever refuses it; a message counts once."""
        header = message.header
        refused = RepetitionRefused(
            at=self._clock.now(), by=header.sender, turn=header.turn, message_id=header.message_id, repeats_turn=repeats_turn
        )
        try:
            await self._ledger.record(comm_id, refused)
        except IllegalEventError:
            # It is on record, or the group has moved on: there is no turn left that it could count in.
            return

    async def _expire_goal(self, comm_id: CommId, now: datetime) -> None:
        """End a goal that nobody took before its deadline."""
        record = await self._goals.find(comm_id)
        if record is None:
            return
        if now < record.deadline:
            await self._timers.schedule(comm_id, record.deadline)
            return
        expired = LaunchAbandoned(
            at=now,
            comm_id=comm_id,
            goal_id=record.goal.goal_id,
            by=ROUTER_NAME,
            reason=Reason.DEADLINE,
            content="No agent took the goal before its deadline.",
        )
        try:
            await self._ledger.record(comm_id, expired)
        except IllegalEventError:
            # A group was launched at the last moment: its own timers look after it.
            return


def _rejected(refusal: IllegalEventError) -> Rejected:
    count_rejection(refusal.code)
    if refusal.code is RejectionCode.NO_GROUP:
        raise NotFoundError(refusal.message)
    return Rejected(code=refusal.code, message=refusal.message, legal=refusal.legal)
