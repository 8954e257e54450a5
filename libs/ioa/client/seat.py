"""Seat of a person in groups: its open turns, and its answers. No process has to run between question and answer.

A seat reads the log as a member. The id of an answer is derived from the answer, so the same answer again is the same message.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from ioa.agent.groups.group_history import GroupHistory
from ioa.client.shown_questions import parse_item
from ioa.client.waiting import Awaited, open_turn
from ioa.errors import ConflictError, InvalidInputError, NotFoundError
from ioa.group.events import name_of
from ioa.group.legality import Offer, check_decision, legal_kinds
from ioa.group.policy.forms import read_value
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.requests import ListMemberships, Rejected, Sync
from ioa.group.state import GroupState
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.clock import Clock
from ioa.protocol.codec import encode_value, validate
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.ids import AgentId, CommId, MessageId, is_token
from ioa.protocol.messages import Conclusion, Decision, Discussion, Message, Pass, PassCause, Payload
from ioa.protocol.teams.team_file import seat_of

_TOO_LATE = (RejectionCode.STALE_TURN, RejectionCode.NOT_YOUR_FLOOR, RejectionCode.GROUP_ENDED, RejectionCode.WRONG_PHASE)


@dataclass(frozen=True)
class PersonReply:
    """Answer of a person.

    Attributes:
        text: The words, sent unchanged.
        choose: The chosen option, exit or next speaker; several speakers are separated by commas.
        fields: Values of the form, as text.
        passes: Whether the person passes its turn, or leaves a decision to its default; `text` is then the reason.
    """

    text: str = ""
    choose: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    passes: bool = False


class TooLateError(ConflictError):
    """The turn is over, or has another answer.

    Attributes:
        legal: The kinds of message that the seat can send now.
    """

    def __init__(self, message: str, legal: Sequence[str]) -> None:
        super().__init__(message, hint="`ioa waiting` lists your open turns.")
        self.legal = legal


class PersonSeat:
    """One person's seat, on one connection.

    Args:
        network: Access to the system with the rights of the seat.
        person: The name after `human-`.
        clock: Source of the time of messages.

    Raises:
        InvalidInputError: The name is not valid.
    """

    def __init__(self, network: AgentNetwork, person: str, clock: Clock) -> None:
        self.me = named(person)
        self._network = network
        self._clock = clock

    async def awaited(self) -> AsyncIterator[Awaited]:
        """Yield the open turns of this person.

        Raises:
            UnavailableError: The system does not answer.
        """
        after, complete = 0, False
        while not complete:
            page = await self._network.memberships(ListMemberships(agent_id=self.me, after=after))
            for membership in page.memberships:
                after = membership.number
                try:
                    awaited = self.awaited_in(await self.heard(membership.comm_id))
                except NotFoundError:
                    continue  # the group has ended, or is not open yet
                if awaited is not None:
                    yield awaited
            complete = page.complete

    async def heard(self, comm_id: CommId) -> GroupHistory:
        """Return what this person has received in a group. If the group has ended, the person leaves it.

        Raises:
            NotFoundError: There is no such group, or this person is not a member.
        """
        history, complete = GroupHistory(comm_id), False
        after = 0
        while not complete:
            page = await self._network.sync(Sync(comm_id=comm_id, agent_id=self.me, after=after))
            for entry in page.entries:
                history.apply(entry)
            after, complete = history.cursor, page.complete
        if not history.is_launched:
            raise NotFoundError(f"The group {comm_id} is not open yet.")
        if history.state.phase.is_terminal:
            await self._network.sync(Sync(comm_id=comm_id, agent_id=self.me, after=after))
        return history

    def awaited_in(self, history: GroupHistory) -> Awaited | None:
        """Return the open turn of this person in a group; None if it has none."""
        return open_turn(history.charter, history.state, self.me, next(reversed(history.messages()), None))

    async def answer(self, item: str, reply: PersonReply, *, message_id: MessageId | None = None) -> int:
        """Send an answer and return its sequence in the log. The same answer again has the same sequence.

        Args:
            item: The item of the turn.
            reply: The answer.
            message_id: Id of the answer, for a sender that does not know the turn: an answer with the same id is the same answer.

        Raises:
            TooLateError: The turn is over, or has another answer.
            InvalidInputError: The answer is not legal; the message contains the legal alternatives.
            NotFoundError: There is no such group, or this person is not a member.
        """
        comm_id, turn, task_id = parse_item(item)
        if task_id is not None:
            raise InvalidInputError(f"{item} is a question to the user of the goal, and no turn of a person.")
        history = await self.heard(comm_id)
        content = [turn, reply.text, reply.choose, sorted(reply.fields.items()), reply.passes]
        message_id = message_id or _digest([self.me, comm_id, *content])
        message = self._sent(history, message_id)
        if message is None:
            awaited = self.awaited_in(history)
            if awaited is None or awaited.state.turn != turn:
                raise self._too_late(history, turn)
            said, by = self._payload(awaited, reply, history), DecidedBy(kind="human")
            message = history.message(self.me, said, turn, message_id, self._clock.now(), decided_by=by)
        answer = await self._network.say(message)
        if isinstance(answer, Rejected):
            if answer.code in _TOO_LATE:
                raise self._too_late(await self.heard(comm_id), turn)
            raise InvalidInputError(answer.message, hint=f"`ioa waiting` shows what {item} asks for.")
        return answer.seq

    def _payload(self, awaited: Awaited, reply: PersonReply, history: GroupHistory) -> Payload:
        if not awaited.offer.again:
            return reply_payload(awaited.offer, awaited.state, reply)
        if reply != PersonReply():
            raise InvalidInputError("Your draft was passed and is sent again unchanged: answer with the item alone.")
        draft = history.draft(self.me, awaited.offer.again)
        assert draft is not None, "a passed draft was sent by this member"
        return draft[1]

    def _sent(self, history: GroupHistory, message_id: MessageId) -> Message | None:
        own = (one for one in history.messages() if one.header.sender == self.me)
        return next((one for one in own if one.header.message_id == message_id), None)

    def _too_late(self, history: GroupHistory, turn: int) -> TooLateError:
        legal = [name_of(kind) for kind in legal_kinds(history.state, self.me, self._clock.now(), history.charter.policy)]
        return TooLateError(why_too_late(history.state, turn), legal)


def named(person: str) -> AgentId:
    """Return the seat of a person.

    Raises:
        InvalidInputError: The name is not valid.
    """
    seat = seat_of(person)
    if not person or not is_token(seat):
        raise InvalidInputError(
            f"{person!r} is no valid name of a person.", hint="A person is what `human` names in the team file, or the role."
        )
    return seat


def why_too_late(state: GroupState, turn: int) -> str:
    """Return why an answer does not count."""
    why = f"Turn {turn} of {state.comm_id} is not open to you"
    if state.phase.is_terminal:
        why = f"The group {state.comm_id} has ended ({state.phase})"
    elif turn < state.turn:
        why = f"Turn {turn} of {state.comm_id} is over"
    return f"{why}: nothing that you say now counts in it."


def _digest(content: object) -> MessageId:
    return MessageId(f"h{hashlib.sha256(encode_value(content)).hexdigest()[:32]}")


def reply_payload(offered: Offer, state: GroupState, reply: PersonReply) -> Payload:
    """Return the message of a reply. The state machine checks whether it is legal.

    Raises:
        InvalidInputError: The reply does not fit the kind of turn, or a decision is not legal: a wrong one would use up a try.
    """
    if reply.passes:
        if offered.concluding or reply.choose or reply.fields:
            raise InvalidInputError("A pass has no choice and no fields, and a conclusion cannot be passed.")
        return validate(Pass, {"cause": PassCause.NOTHING_TO_ADD, "content": reply.text})
    if offered.options:
        return _decision(offered.options, state, reply)
    if offered.concluding:
        if not reply.text.strip():
            raise InvalidInputError("The conclusion is empty; it is the result of the goal.")
        return validate(Conclusion, {"content": reply.text, **({"reason": reply.choose} if reply.choose else {})})
    kinds = {blank.name: blank.kind for blank in offered.form}
    fields = {name: read_value(kinds.get(name, "text"), written) for name, written in reply.fields.items()}
    writes = dict.fromkeys(offered.writes, "") if len(offered.writes) == 1 else {}
    return validate(Discussion, {"content": reply.text, "fields": fields, "writes": writes, **_chosen(offered, reply.choose)})


def _decision(options: Sequence[str], state: GroupState, reply: PersonReply) -> Decision:
    if reply.choose not in options:
        wrong = f"{reply.choose!r} is none of the options: " if reply.choose else "This is to be decided: "
        raise InvalidInputError(f"{wrong}choose one of {', '.join(options)}.")
    members = _names(reply.fields.get("members"))
    decided = validate(Decision, {"choice": reply.choose, "content": reply.text, "members": members})
    try:
        check_decision(state, decided)
    except IllegalEventError as error:
        raise InvalidInputError(error.message) from None
    return decided


def _chosen(offered: Offer, choose: str | None) -> Mapping[str, object]:
    names = _names(choose)
    if len(names) > 1:
        return {"next_speakers": names}
    return {"go" if choose in offered.go else "next_speaker": choose}


def _names(written: str | None) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, (written or "").split(","))))
