"""The seat of a person in groups: what is up to it, and one answer, with no process in between.

The grant or the ask in a group's log is the request for input, and stays it however long nobody answers. Who looks reads the log as
the member it is; who answers says one message, whose id follows from what it says, so that saying it again is the same answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from ioa.agent.groups.group_history import GroupHistory
from ioa.errors import ConflictError, InvalidInputError, NotFoundError
from ioa.group.events import name_of
from ioa.group.forms import Blank, read_value
from ioa.group.machine import legal_kinds
from ioa.group.policy.offer import TO_CONCLUDE, Offer, offer
from ioa.group.policy.part import Part, part_of
from ioa.group.policy.watching import check_step
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.requests import ListMemberships, Rejected, Sync
from ioa.group.state import Asking, Charter, Concluding, Discussing, Gathering, GroupState
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.clock import Clock
from ioa.protocol.codec import encode_value, validate
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, MessageId, is_token
from ioa.protocol.messages import (
    Conclusion,
    Decision,
    Discussion,
    Header,
    Message,
    Pass,
    PassCause,
    Payload,
)
from ioa.protocol.policy import FieldValue
from ioa.protocol.team import seat_of
from ioa.protocol.trace import span_of_message

_TURN = re.compile(r"[0-9]{1,9}")
_TOO_LATE = (RejectionCode.STALE_TURN, RejectionCode.NOT_YOUR_FLOOR, RejectionCode.GROUP_ENDED, RejectionCode.WRONG_PHASE)


@dataclass(frozen=True)
class Awaited:
    """Something that is up to a person.

    Attributes:
        me: The person's seat.
        kind: Whether it is to say something, to decide, or to state the conclusion.
        charter: What the group is there for, and by which policy.
        offer: What it may say or choose.
        part: What it plays, and is told.
        last: What it has heard last, as far as it was asked for.
    """

    me: AgentId
    kind: Literal["say", "decide", "conclude"]
    charter: Charter
    state: GroupState
    offer: Offer
    part: Part
    last: Message | None = None

    @property
    def item(self) -> str:
        """By which it is answered: the group and the turn."""
        return f"{self.state.comm_id}.{self.state.turn}"

    @property
    def goal(self) -> str:
        """What the group is to reach."""
        return self.charter.goal

    @property
    def until(self) -> datetime | None:
        """When it is too late."""
        stage = self.state.stage
        if isinstance(stage, Gathering):
            return next((seat.until for seat in stage.seats if seat.agent_id == self.me), None)
        return stage.until if isinstance(stage, Discussing | Asking | Concluding) else None


@dataclass(frozen=True)
class PersonReply:
    """What a person answers.

    Attributes:
        text: Its words, taken as they are.
        choose: The option, the way out or the next speaker that it chooses; several who speak side by side with commas between.
        fields: What it fills in, as it is written.
        passes: Whether it has nothing to say, or leaves it to the default; its words then say why.
    """

    text: str = ""
    choose: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    passes: bool = False


class TooLateError(ConflictError):
    """The turn is over, or another answer was taken.

    Attributes:
        legal: The kinds of message that the seat could send now.
    """

    def __init__(self, message: str, legal: Sequence[str]) -> None:
        super().__init__(message, hint="`ioa waiting` shows what is up to you.")
        self.legal = legal


class PersonSeat:
    """One person's seat, on one connection.

    Args:
        network: The system as the seat sees it.
        person: The name behind `human-`.
        clock: Stamps what is said.

    Raises:
        InvalidInputError: Nobody can be called so.
    """

    def __init__(self, network: AgentNetwork, person: str, clock: Clock) -> None:
        self.me = named(person)
        self._network = network
        self._clock = clock

    async def awaited(self) -> AsyncIterator[Awaited]:
        """Yield all that is up to this person now.

        Raises:
            UnavailableError: The system does not answer.
        """
        after, complete = 0, False
        while not complete:
            page = await self._network.memberships(ListMemberships(agent_id=self.me, after=after))
            for membership in page.memberships:
                after = membership.number
                try:
                    awaited = await self._look(membership.comm_id)
                except NotFoundError:
                    continue  # it is over, or not open yet
                if awaited is not None:
                    yield awaited
            complete = page.complete

    async def find(self, item: str) -> Awaited:
        """Return what is up to this person under the item of `Awaited`.

        Raises:
            TooLateError: It is not any more, or not yet; the message says why.
            NotFoundError: There is no such group, or this person is not in it.
        """
        comm_id, turn = item_of(item)
        history = await self._history(comm_id)
        return self._awaited_as(history, turn)

    async def heard(self, comm_id: CommId) -> GroupHistory:
        """Return what this person has heard in a group: of much the last, as for all that this seat reads of a log.

        Raises:
            NotFoundError: There is no such group, or this person is not in it.
        """
        return await self._history(comm_id)

    def awaited_in(self, history: GroupHistory) -> Awaited | None:
        """Say what is up to this person, by what it has heard; None if nothing is."""
        return _awaited_in(history, self.me)

    async def follow(self, comm_id: CommId, *, every: timedelta = timedelta(seconds=0.5)) -> AsyncIterator[Message | Awaited]:
        """Yield what this person hears of others in a group, and what is up to it, each once and in order, until the group ends.

        A group that is not open yet, or that this person is not in, is waited for.
        """
        history, seen, asked = GroupHistory(comm_id), 0, ""
        while history.state is None or not history.state.phase.is_terminal:
            with suppress(NotFoundError):
                await self._catch_up(history)
            messages = history.messages()
            for message in messages[seen:]:
                if message.header.sender != self.me:
                    yield message
            seen = len(messages)
            awaited = None if history.state is None else _awaited_in(history, self.me)
            if awaited is not None and awaited.item != asked:
                asked = awaited.item
                yield awaited
            else:
                await asyncio.sleep(every.total_seconds())

    async def answer(self, item: str, reply: PersonReply, *, key: str | None = None) -> int:
        """Say an answer and return its place in the log; the same answer again has the same place.

        Args:
            item: What is answered.
            reply: What is said.
            key: Names the answer, for who cannot say to which turn it was sent: one of the same key is the same, whatever it says.

        Raises:
            TooLateError: The turn is over, or another answer was taken.
            InvalidInputError: It is not what is asked for; the message says what is.
            NotFoundError: There is no such group, or this person is not in it.
        """
        comm_id, turn = item_of(item)
        history = await self._history(comm_id)
        message = _said_before(history, self.me, turn, reply) if key is None else self._said_under(key, history)
        if message is None:
            payload = _payload(self._awaited_as(history, turn), reply, history)
            message = self._message(history, payload, turn, key)
        answer = await self._network.say(message)
        if isinstance(answer, Rejected):
            if answer.code in _TOO_LATE:
                raise self._too_late(await self._history(comm_id), turn)
            raise InvalidInputError(answer.message, hint=f"`ioa waiting` shows what {item} asks for.")
        return answer.seq

    async def has_said(self, comm_id: CommId, key: str) -> bool:
        """Whether an answer of this key was taken.

        Raises:
            NotFoundError: There is no such group, or this person is not in it.
        """
        return self._said_under(key, await self._history(comm_id)) is not None

    def _said_under(self, key: str, history: GroupHistory) -> Message | None:
        message_id = id_under(self.me, history.comm_id, key)
        own = (one for one in history.messages() if one.header.sender == self.me)
        return next((one for one in own if one.header.message_id == message_id), None)

    async def _look(self, comm_id: CommId) -> Awaited | None:
        """Return the open request to this person in a group. Without a request only the last entry is read."""
        page = await self._network.sync(Sync(comm_id=comm_id, agent_id=self.me, only="last"))
        state = page.entries[0].entry.state if page.entries else None
        if state is not None and state.phase.is_terminal:
            await self._network.sync(Sync(comm_id=comm_id, agent_id=self.me, after=page.head))
        if state is not None and (state.phase.is_terminal or self.me not in state.floor):
            return None
        return _awaited_in(await self._history(comm_id), self.me)

    async def _history(self, comm_id: CommId) -> GroupHistory:
        """Read a group's log as this member."""
        history = GroupHistory(comm_id)
        await self._catch_up(history)
        if history.state is None:
            raise NotFoundError(f"The group {comm_id} is not open yet.")
        return history

    async def _catch_up(self, history: GroupHistory) -> None:
        """Read the new entries of a group's log. A member that knows the end leaves the group."""
        after, complete = history.cursor, False
        while not complete:
            page = await self._network.sync(Sync(comm_id=history.comm_id, agent_id=self.me, after=after))
            for entry in page.entries:
                history.apply(entry)
            after, complete = max(page.up_to, history.cursor), page.complete
        if history.state is not None and history.state.phase.is_terminal:
            await self._network.sync(Sync(comm_id=history.comm_id, agent_id=self.me, after=after))

    def _awaited_as(self, history: GroupHistory, turn: int) -> Awaited:
        awaited = _awaited_in(history, self.me)
        if awaited is None or awaited.state.turn != turn:
            raise self._too_late(history, turn)
        return awaited

    def _too_late(self, history: GroupHistory, turn: int) -> TooLateError:
        state, charter = history.state, history.charter
        assert state is not None and charter is not None
        legal = [name_of(kind) for kind in legal_kinds(state, self.me, self._clock.now(), charter.policy)]
        return TooLateError(why_too_late(state, turn), legal)

    def _message(self, history: GroupHistory, payload: Payload, turn: int, key: str | None) -> Message:
        assert history.state is not None and history.charter is not None
        comm_id = history.comm_id
        message_id = _id_of(self.me, comm_id, turn, payload) if key is None else id_under(self.me, comm_id, key)
        header = Header(
            message_id=message_id,
            comm_id=comm_id,
            sender=self.me,
            state=history.state.phase,
            turn=turn,
            after=history.cursor,
            traceparent=span_of_message(history.charter.traceparent, self.me, message_id),
            sent_at=self._clock.now(),
            decided_by=DecidedBy(kind="human"),
        )
        return Message(header=header, payload=payload)


def named(person: str) -> AgentId:
    """Return a person's seat.

    Raises:
        InvalidInputError: Nobody can be called so.
    """
    seat = seat_of(person)
    if not person or not is_token(seat):
        raise InvalidInputError(
            f"Nobody is called {person!r}.", hint="A person is what `human` names in the team file, or the role."
        )
    return seat


def awaited_of(charter: Charter, state: GroupState, me: AgentId, last: Message | None = None) -> Awaited | None:
    """Say what is up to a member as a group stands; None if nothing is."""
    policy = charter.policy
    if policy is None or me not in state.floor:
        return None
    part = part_of(policy, state, me)
    if isinstance(state.stage, Concluding):
        return Awaited(me=me, kind="conclude", charter=charter, state=state, offer=TO_CONCLUDE, part=part, last=last)
    offered = offer(policy, state, me)
    assert offered is not None, "who is to speak is offered something"
    return Awaited(
        me=me, kind="decide" if offered.options else "say", charter=charter, state=state, offer=offered, part=part, last=last
    )


def why_too_late(state: GroupState, turn: int) -> str:
    """Say why an answer does not count, by what of the state is seen.

    Who does not see where the group is cannot know whether a turn is over or another's: the words are the same for both.
    """
    why = f"Turn {turn} of {state.comm_id} is not open to you"
    if state.phase.is_terminal:
        why = f"The group {state.comm_id} has ended ({state.phase})"
    elif turn < state.turn:
        why = f"Turn {turn} of {state.comm_id} is over"
    return f"{why}: nothing that you say now counts in it."


def people_in(state: GroupState) -> tuple[AgentId, ...]:
    """Return the members that are people, and are not removed."""
    return tuple([one.agent_id for one in state.members if one.human and not one.removed])


def _awaited_in(history: GroupHistory, me: AgentId) -> Awaited | None:
    assert history.charter is not None and history.state is not None
    return awaited_of(history.charter, history.state, me, next(reversed(history.messages()), None))


def _said_before(history: GroupHistory, me: AgentId, turn: int, reply: PersonReply) -> Message | None:
    """Return what a person has said in a turn already, by whichever way, if it is what it says now."""
    own = [one for one in history.messages() if (one.header.sender, one.header.turn) == (me, turn)]
    is_again = reply == PersonReply() and turn in history.said_again
    return next((one for one in own if is_again or (turn not in history.said_again and _is_same(one.payload, reply))), None)


def lacking(awaited: Awaited, reply: PersonReply) -> Sequence[Blank]:
    """Return the fields that have to be filled in and are not."""
    return [blank for blank in awaited.offer.form if blank.required and blank.name not in reply.fields]


def _payload(awaited: Awaited, reply: PersonReply, history: GroupHistory) -> Payload:
    """Make a message of what a person answers."""
    offered = awaited.offer
    if reply.passes:
        return _pass(awaited, reply)
    if awaited.kind == "decide":
        return _decision(awaited, reply)
    if awaited.kind == "conclude":
        if not reply.text.strip():
            raise InvalidInputError("A conclusion says something: it is the result of the goal.")
        return validate(Conclusion, {"content": reply.text, **({"reason": reply.choose} if reply.choose else {})})
    if offered.again:
        if reply != PersonReply():
            raise InvalidInputError("Your draft was passed, and is said again as it is: answer with the item alone.")
        draft = history.draft(awaited.me, offered.again)
        assert draft is not None, "who is to say a draft again has said it"
        return draft[1]
    if missing := lacking(awaited, reply):
        raise InvalidInputError(f"Fill in {', '.join(blank.name for blank in missing)} too.")
    kinds = {blank.name: blank.kind for blank in offered.form}
    filled = {name: read_value(kinds.get(name, "text"), written) for name, written in reply.fields.items()}
    written = dict.fromkeys(offered.writes, "") if len(offered.writes) == 1 else {}
    return validate(Discussion, {"content": reply.text, "fields": filled, "writes": written, **_chosen(offered, reply.choose)})


def _pass(awaited: Awaited, reply: PersonReply) -> Pass:
    if awaited.kind == "conclude" or awaited.offer.again or reply.choose or reply.fields:
        raise InvalidInputError("Whoever passes chooses nothing; a conclusion, and a draft that was passed, cannot be passed over.")
    return validate(Pass, {"cause": PassCause.NOTHING_TO_ADD, "content": reply.text})


def _decision(awaited: Awaited, reply: PersonReply) -> Decision:
    """Make a decision that can be: a wrong one would cost a try."""
    stage, options = awaited.state.stage, awaited.offer.options
    assert isinstance(stage, Asking)
    if reply.choose is None:
        raise InvalidInputError(f"This is to be decided: choose one of {', '.join(options)}.")
    if reply.choose not in options:
        raise InvalidInputError(f"{reply.choose!r} is none of the options: {', '.join(options)}.")
    members = _names(reply.fields.get("members"))
    decided = validate(Decision, {"choice": reply.choose, "content": reply.text, "members": members})
    try:
        check_step(awaited.state, stage, decided)
    except IllegalEventError as error:
        raise InvalidInputError(error.message) from None
    return decided


def _chosen(offered: Offer, choose: str | None) -> Mapping[str, object]:
    names = _names(choose)
    choices = (*offered.go, *offered.next_speakers)
    if names and not choices:
        raise InvalidInputError(f"Nothing is to be chosen here, so that {choose!r} cannot be: the policy leads on by itself.")
    if wrong := [one for one in names if one not in choices]:
        raise InvalidInputError(f"{', '.join(wrong)} cannot be chosen here: there are {', '.join(choices)}.")
    if len(names) > 1:
        return {"next_speakers": names}
    return {"go": choose} if choose in offered.go else {"next_speaker": choose}


def _names(written: str | None) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, (written or "").split(","))))


def _is_same(payload: Payload, reply: PersonReply) -> bool:
    """Whether a message is what a person answers now."""
    if reply.passes:
        return isinstance(payload, Pass) and payload.content == reply.text
    match payload:
        case Decision(choice=choice, content=content, members=members):
            return (choice, content, members) == (reply.choose, reply.text, _names(reply.fields.get("members")))
        case Discussion(content=content, fields=fields):
            chosen = payload.next_speakers or _names(payload.go or payload.next_speaker)
            told = {name: _reads_as(written, fields.get(name)) for name, written in reply.fields.items()}
            return (content, chosen, fields) == (reply.text, _names(reply.choose), told)
        case Conclusion(content=content, reason=reason):
            return (content, reason) == (reply.text, reply.choose or Reason.CONCLUDED)
        case _:
            return False


def _reads_as(written: str, value: FieldValue | None) -> FieldValue:
    """Read what is written into a field as the kind of value that stands there."""
    return read_value("yes_no" if isinstance(value, bool) else "number" if isinstance(value, int) else "text", written)


def item_of(item: str) -> tuple[CommId, int]:
    """Read which group and which turn an item is of.

    Raises:
        InvalidInputError: It is none.
    """
    comm_id, _, turn = item.rpartition(".")
    if not is_token(comm_id) or not _TURN.fullmatch(turn):
        raise InvalidInputError(f"{item!r} is nothing that `ioa waiting` shows.", hint="An item is a group and a turn: GROUP.TURN.")
    return CommId(comm_id), int(turn)


def _id_of(me: AgentId, comm_id: CommId, turn: int, payload: Payload) -> MessageId:
    return _digest([me, comm_id, turn, payload.model_dump(mode="json")])


def id_under(me: str, comm_id: CommId, key: str) -> MessageId:
    """Return the id of what a person, or the user of a goal, answers, where whoever sends it names it by a key of his own."""
    return _digest([me, comm_id, {"key": key}])


def _digest(said: object) -> MessageId:
    return MessageId(f"h{hashlib.sha256(encode_value(said)).hexdigest()[:32]}")
