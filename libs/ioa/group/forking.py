"""Forking a group: the same events through the same machine, as the beginning of another group.

What is copied is stepped again, so that what was changed is held to the rules, and the copy is a log like any other. What happened
keeps its time and its place in the order. A task that runs goes on in the copy, and is begun anew by its assignee; so of a nested
team that works at one only that it was there is copied, and those that had ended are copied with their parents.

What happened is held as it is encoded, and decoded one event at a time, for each step: decoded a log would take ten to thirty times
as much. What is held decoded are where each group stands, and its policy, those that are alike once, until it has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from weakref import WeakValueDictionary

from ioa.errors import ConflictError, InvalidInputError
from ioa.group.events import (
    Event,
    GroupLaunched,
    LaunchAbandoned,
    MemberJoined,
    QuestionAnswered,
    Said,
    SubgroupClosed,
    SubgroupOpened,
    TimerFired,
)
from ioa.group.machine import Transition, step
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.renaming import members_asked, renamed
from ioa.group.state import Charter, GroupState
from ioa.protocol.cards import AgentCard, as_drafter
from ioa.protocol.codec import decode, encode, validate
from ioa.protocol.goals import Fork, Goal, RepetitionRule
from ioa.protocol.ids import AgentId, CommId, comm_id_of_task
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    Decision,
    InformTaskResult,
    Payload,
    SyncTaskAssignment,
    TaskQuestion,
)
from ioa.protocol.model import Model
from ioa.protocol.policy import Policy
from ioa.protocol.team import is_seat

Sketch = Callable[[Payload], tuple[str, ...]]
"""What tells a message that is said again."""


class _Happened(Model):
    event: Event


class Past(NamedTuple):
    """Something that happened in a group of the goal that is forked.

    Attributes:
        comm_id: The group.
        seq: Its place in the order.
        data: The event, encoded.
        ended: The nested team that it is the end of.
    """

    comm_id: CommId
    seq: int
    data: bytes
    ended: CommId | None = None

    @classmethod
    def of(cls, comm_id: CommId, seq: int, event: Event) -> Past:
        """Return an event as it is held."""
        ended = event.subgroup if isinstance(event, SubgroupClosed) else None
        return cls(comm_id, seq, encode(_Happened(event=event)), ended)

    @property
    def event(self) -> Event:
        """The event, decoded anew."""
        return decode(_Happened, self.data).event


class Copied(NamedTuple):
    """Something that happened, in the copy.

    Attributes:
        comm_id: The group of the copy.
        source_seq: The sequence of what it copies.
        event: What happened there; what it says it was said behind is still a sequence of the original.
        transition: What it led to.
        policy: What leads the group.
    """

    comm_id: CommId
    source_seq: int
    event: Event
    transition: Transition
    policy: Policy | None


@dataclass(frozen=True)
class Original:
    """What is forked.

    Attributes:
        root: The group of the goal.
        past: What happened in it and in its nested teams that had ended, up to the entry, by sequence.
        charter: What the group of the goal was set up with.
        cards: The cards of all who are in the group of the goal, those who joined included.
    """

    root: CommId
    past: Sequence[Past]
    charter: Charter
    cards: Mapping[AgentId, AgentCard]


def original_of(root: CommId, logs: Mapping[CommId, Sequence[Past]], joined: Sequence[AgentCard] = ()) -> Original:
    """Choose what is copied of a group and its nested teams: those that had ended, as their parents knew.

    Args:
        root: The group of the goal.
        logs: What happened in each, by sequence; more than is needed does no harm.
        joined: The cards of those who joined the group of the goal.

    Raises:
        ConflictError: No group was opened.
    """
    past, due = list[Past](), [root]
    while due:
        log = logs.get(due.pop(), ())
        due += sorted({one.ended for one in log if one.ended is not None})
        past += log
    past.sort(key=lambda one: one.seq)
    first = past[0].event if past else None
    if not isinstance(first, GroupLaunched):
        raise ConflictError("No group was opened for the goal: there is nothing to fork.")
    return Original(root, past, first.charter, {card.agent_id: card for card in (*first.charter.team_members, *joined)})


@dataclass
class Forking:
    """The steps of a fork. All that differs from one fork to another is given, so that the same fork is the same copy.

    Args:
        original: What is forked.
        fork: Where it goes on from, and what it changes.
        goal: The goal that the copy works for.
        charter: What its group is set up with, but for how much is copied.
        cards: How the agents describe themselves now, as for `charter_of`.
        sketch: Sketches a message that is changed.
        counts: How many entries each group of the copy has besides its first; None while that is to be found out.
    """

    original: Original
    fork: Fork
    goal: Goal
    charter: Charter
    cards: Mapping[AgentId, AgentCard]
    sketch: Sketch
    counts: Mapping[CommId, int] | None = None
    _states: dict[CommId, GroupState] = field(default_factory=dict)
    _policies: dict[CommId, Policy | None] = field(default_factory=dict)
    _same: WeakValueDictionary[str, Policy] = field(default_factory=WeakValueDictionary)
    """The policies by their digests: many nested teams may be led by one."""
    _over: set[CommId] = field(default_factory=set)
    """The nested teams that have ended."""
    _names: dict[str, str] = field(default_factory=dict)
    _agents: dict[str, str] = field(default_factory=dict)

    def steps(self) -> Iterator[Copied]:
        """Step through all that is copied, by the order of the original.

        Raises:
            InvalidInputError: What was changed cannot be said there.
            ConflictError: What came after does not follow from it any more, or there is nothing to go on from.
        """
        self._names[self.original.root] = self.goal.comm_id
        self._agents = {one.old: one.new for one in self.fork.replace}
        if unknown := self._agents.keys() - self.original.cards.keys():
            raise InvalidInputError(f"{', '.join(sorted(unknown))}: no member of {self.fork.goal_id}'s group to be replaced.")
        if seats := [one.new for one in self.fork.replace if is_seat(one.new)]:
            told = f"{', '.join(seats)}: a person stands in for nobody, whose words would be the person's."
            raise InvalidInputError(told, hint="Replace it by an agent.")
        changed = self.fork.say is None
        for one in self.original.past:
            is_changed = one.seq == self.fork.at and self.fork.say is not None
            if is_changed and one.comm_id != self.original.root:
                raise InvalidInputError(
                    f"Entry {one.seq} is of the nested team {one.comm_id}.", hint="Change a message of the goal's own group."
                )
            event = self._moved(one)
            if is_changed:
                assert self.fork.say is not None
                self._check_whose(event)
                event, changed = reworded(event, self.fork.say, self._sketch_in(event)), True
            if (copied := self._step(one, event, is_changed=is_changed)) is not None:
                yield copied
        if not changed:
            raise InvalidInputError(
                f"{self.fork.goal_id} has no entry {self.fork.at} in its own group, whose words could be others."
            )
        state = self._states.get(self.goal.comm_id)
        if state is not None and (people := self._people() & set(self._agents.values())):
            replaced = ", ".join(sorted(old for old, new in self._agents.items() if new in people))
            raise InvalidInputError(f"{replaced}: nobody stands in for a person.", hint="Fork it with the same people.")
        if state is None or state.phase.is_terminal:
            raise ConflictError(
                f"{self.fork.goal_id} has ended with entry {self.fork.at}: nothing goes on from there.",
                hint="Fork it at an earlier entry.",
            )

    def _people(self) -> set[str]:
        """Return the people of the copy's group so far; who stands in for one counts as one."""
        state = self._states.get(self.goal.comm_id)
        return set() if state is None else {member.agent_id for member in state.members if member.human}

    def _check_whose(self, event: Event) -> None:
        """Refuse to put into other words what a person said in the group: what is asked out of it the goal's own user answers."""
        if isinstance(event, Said) and event.message.header.sender in self._people():
            raise InvalidInputError(
                f"Entry {self.fork.at} is what a person said, whose words nobody else puts.",
                hint="Fork it at the entry before, so that the person is asked again.",
            )

    def _step(self, one: Past, event: Event, *, is_changed: bool) -> Copied | None:
        comm_id = CommId(self._names[one.comm_id])
        if isinstance(event, GroupLaunched):
            self._policies[comm_id] = event.charter.policy
        try:
            if comm_id in self._over:
                raise IllegalEventError(RejectionCode.GROUP_ENDED, f"The group {comm_id} has ended.")
            transition = step(self._states.get(comm_id), event, self._policies.get(comm_id))
        except IllegalEventError as refused:
            if is_changed:
                raise InvalidInputError(f"This cannot be said there: {refused.message}") from None
            if isinstance(event, TimerFired):
                return None  # it may have lost its object
            raise ConflictError(
                f"Entry {one.seq} does not follow any more from what was changed: {refused.message}",
                hint="Fork at an earlier entry, or with the same limits.",
            ) from None
        self._states[comm_id], policy = transition.state, self._policies.get(comm_id)
        if transition.state.phase.is_terminal and comm_id != self.goal.comm_id:
            self._over.add(comm_id)
            self._states.pop(comm_id)
            self._policies.pop(comm_id, None)
        return Copied(comm_id, one.seq, event, transition, policy)

    def _moved(self, one: Past) -> Event:
        """Return what happened as it happens in the copy."""
        event = one.event
        match event:
            case GroupLaunched():
                return event.model_copy(update={"charter": self._chartered(one.comm_id, event.charter)})
            case LaunchAbandoned():
                told = {"goal_id": self.goal.goal_id, "user": self.goal.user}
                event = event.model_copy(update=told)
            case SubgroupOpened(task_id=task_id, subgroup=subgroup):
                self._names[subgroup] = comm_id_of_task(CommId(self._names[one.comm_id]), task_id)
        names = self._names | (self._agents if one.comm_id == self.original.root else {})
        comm_id = CommId(self._names[one.comm_id])
        event = renamed(event, names, members_asked(self._states.get(comm_id), self._policies.get(comm_id)))
        if isinstance(event, MemberJoined) and one.comm_id == self.original.root:
            event = event.model_copy(update={"card": _card_now(event.card, self.cards)})
        return event

    def _chartered(self, comm_id: CommId, charter: Charter) -> Charter:
        """Return what a group of the copy is set up with."""
        target = CommId(self._names[comm_id])
        if comm_id == self.original.root:
            moved = self.charter
        else:
            assert charter.parent is not None, "only the root has no parent"
            parent = charter.parent.model_copy(update={"comm_id": self._names[charter.parent.comm_id]})
            whose = {"goal_id": self.goal.goal_id, "user": self.goal.user, "traceparent": self.goal.traceparent}
            moved = charter.model_copy(update={"comm_id": target, "parent": parent, **whose})
        count = len(self.original.past) + 1 if self.counts is None else self.counts[target]
        policy = None if moved.policy is None else self._same.setdefault(moved.policy.digest, moved.policy)
        drawn_as = None if charter.policy is None else charter.drawn_as or charter.comm_id
        told = {"forked_from": self.fork.origin, "copied": count, "drawn_as": drawn_as}
        return moved.model_copy(update={"policy": policy, **told})

    def _sketch_in(self, event: Event) -> Sketch:
        compared = self.charter.limits.repetition is RepetitionRule.VERBATIM
        return self.sketch if compared and isinstance(event, Said) else lambda _payload: ()


def charter_of(original: Charter, goal: Goal, cards: Mapping[AgentId, AgentCard], deadline: datetime) -> Charter:
    """Return what the group of a fork is set up with: as the original, with its own budget and time.

    Those who stand in others' places have their patience, and speak as they did as far as rules go, so that all that happened still
    follows.

    Args:
        original: Of the group that is forked.
        goal: What the fork works for.
        cards: How the agents describe themselves now, those in others' places included; who is not among them is as before.
        deadline: When the fork ends at the latest.
    """
    assert goal.forked_from is not None
    names: dict[str, str] = {one.old: one.new for one in goal.forked_from.replace}

    limits = {
        "max_turns": goal.max_turns,
        "max_tokens": goal.max_tokens,
        "max_cost_micros": goal.max_cost_micros,
        "deadline": deadline,
    }
    moved = {
        "comm_id": goal.comm_id,
        "goal_id": goal.goal_id,
        "user": goal.user,
        "traceparent": goal.traceparent,
        "labels": goal.labels,
        "limits": original.limits.model_copy(update=limits),
        "opened_by": as_drafter(original.opener),
    }
    here = renamed(original, names)
    return validate(Charter, {**dict(here), **moved, "team_members": tuple([_card_now(one, cards) for one in here.team_members])})


def _card_now(known: AgentCard, cards: Mapping[AgentId, AgentCard]) -> AgentCard:
    """Return a member's card as it is now. Its group knows its patience, and how it speaks, as they were, see `charter_of`."""
    card = cards.get(known.agent_id)
    return known if card is None else card.model_copy(update={"patience": known.patience, "speaks": known.speaks})


def reworded(event: Event | None, text: str, sketch: Sketch) -> Event:
    """Return what was said, in other words: the words that are its kind's own, whatever else it says or decides.

    Raises:
        InvalidInputError: It says nothing, or not this.
    """
    if isinstance(event, QuestionAnswered):
        return validate(QuestionAnswered, {**dict(event), "answer": text})
    if not isinstance(event, Said):
        raise InvalidInputError("Nobody says anything in that entry.", hint="Give the sequence of a message.")
    payload = event.message.payload
    match payload:
        case SyncTaskAssignment(tasks=[one]) | AsyncTaskAssignment(tasks=[one]):
            words: dict[str, object] = {"tasks": [{**dict(one), "task_desc": text, "task_abstract": ""}]}
        case InformTaskResult():
            words = {"task_conclusion": text}
        case Decision():
            words = {"choice": text}
        case AskUser() | TaskQuestion():
            words = {"text": text}
        case _ if "content" in type(payload).model_fields:
            words = {"content": text}
        case _:
            raise InvalidInputError(f"{payload.type} has no words that could be others.")
    said = validate(type(payload), {**dict(payload), **words})
    message = event.message.model_copy(update={"payload": said})
    return event.model_copy(update={"message": message, "sketches": sketch(said)})
