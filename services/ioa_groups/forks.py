"""Goals that go on from another goal of their user: the log of that one up to an entry, copied, and what was changed in it.

The copy is made entry by entry, and its last entry has it go on: until then nobody may say anything in it. Each entry follows from
the original and from the record of the new goal alone, so whoever goes on with a copy that was interrupted writes what is missing,
and two who copy at once write the same. Of the log no more is held than its events, encoded (see `ioa.group.forking`).
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence, Set
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog

from ioa.errors import InvalidInputError, NoAgentError, NotFoundError, NotYetError
from ioa.fair_semaphore import FairSemaphore
from ioa.group.events import (
    CancelRequested,
    Event,
    GroupLaunched,
    MemberJoined,
    MemberReturned,
    Said,
    TimerFired,
    Unheard,
    encode_entry,
)
from ioa.group.forking import Copied, Forking, Original, Past, charter_of, original_of
from ioa.group.rejection import IllegalEventError
from ioa.group.state import MAX_MEMBERS, Charter, GroupState
from ioa.ports.clock import Clock
from ioa.ports.delivery import GoalRecords, Memberships
from ioa.ports.group_log import AppendConflictError, GroupLog, StoredEntry
from ioa.ports.registry_store import LivenessView
from ioa.protocol.cards import AgentCard, abridged, as_drafter, why_not_drafted
from ioa.protocol.goals import Fork, Goal, GoalRecord
from ioa.protocol.ids import AgentId, CommId, GoalName
from ioa.repetition import sketches_of
from ioa.runtime.ledger import GroupLedger, entry_of
from ioa.telemetry.fault_points import fault_point
from ioa_groups.launching import CARDS_BYTES, check_launch_size
from ioa_groups.presence import check_online

_AGAIN = timedelta(milliseconds=100)
_KEPT = ("goal", "inputs", "agent", "team", "repetition")
"""What a fork has in common with the goal that it comes from."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class ForkPorts:
    """What goals are forked with.

    Attributes:
        ledger: Has a copy go on.
        log: Where originals are read, and copies written.
        goals: The goals on record.
        registry: Who is there to go on.
        memberships: Where those are put into the copy.
        clock: Says when it goes on.
    """

    ledger: GroupLedger
    log: GroupLog
    goals: GoalRecords
    registry: LivenessView
    memberships: Memberships
    clock: Clock


@dataclass
class _Written:
    """What there is of a group of the copy.

    Attributes:
        head: Its last entry; None if there is none, or it has ended.
        placed: The sequences of what was copied, and those that it has now, both in order.
        is_searched: Whether nothing more can be there.
    """

    head: StoredEntry | None = None
    placed: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    is_searched: bool = False

    def place_of(self, seq: int) -> int:
        """Return where a member of the copy was that had applied the original so far."""
        sources, placed = self.placed
        before = bisect_right(sources, seq)
        return placed[before - 1] if before else 0

    def note(self, source_seq: int, stored: StoredEntry, state: GroupState) -> None:
        """Take in an entry. Nothing is kept of its event, which may be a launch with a policy, and the state is held once."""
        self.placed[0].append(source_seq)
        self.placed[1].append(stored.seq)
        if state.phase.is_terminal:
            self.head = None
            return
        entry = stored.entry.model_copy(update={"event": Unheard(at=stored.entry.event.at), "state": state})
        self.head = replace(stored, entry=entry)


class Forks:
    """Check goals that are forked from others, and open their groups."""

    def __init__(self, ports: ForkPorts) -> None:
        self._ports = ports
        self._reading = FairSemaphore(1)
        """One original is held in memory at a time. Users are served round-robin."""

    async def check(self, goal: Goal) -> None:
        """Refuse a fork that cannot be.

        Raises:
            NotFoundError: Its user has no such goal, or no group was opened for it, or it was removed.
            InvalidInputError: What was changed cannot be said there, or it is another goal in more than that.
            ConflictError: What came after does not follow from it any more, or nothing goes on from there.
            PayloadTooLargeError: Its first entry would be too large.
            UnavailableError: It has to come back.
        """
        fork = _fork_of(goal)
        if fork.at > await self._ports.log.newest():  # a copy is the same whenever it is made
            raise NotFoundError(f"There is no entry {fork.at} yet.", hint="Give the sequence of one.")
        async with self._reading.slot(goal.name.owner):
            original = await self._original(goal, fork)
            cards = self._known_cards(original, fork)
            charter = charter_of(original.charter, goal, cards, self._ports.clock.now() + goal.timeout)
            await self._rehearse(Forking(original, fork, goal, charter, cards, sketches_of))

    async def carry_out(self, record: GoalRecord) -> None:
        """Copy what a goal goes on from, and have it go on. What was begun before is finished.

        Raises:
            NoAgentError: A required member is offline.
            UnavailableError: It has to come back; a `NotYetError`, if another process copies the goal.
            IoaError: It cannot be copied any more, as in `check`.
        """
        goal = record.goal
        head = await self._ports.ledger.head(goal.comm_id)
        if head is not None and not head.entry.state.copying:
            await self._tell_again(head)
            await self._take_back(head)
            return
        fork = _fork_of(goal)
        async with self._reading.slot(goal.name.owner):
            original = await self._original(goal, fork)
            cards = self._known_cards(original, fork)
            begun = None if head is None else await self._charter(goal.comm_id)
            charter = begun or charter_of(original.charter, goal, cards, record.deadline)
            state, counts = await self._rehearse(Forking(original, fork, goal, charter, cards, sketches_of))
            if begun is None:
                self._check_there(state, charter, fork)
            await self._copy(Forking(original, fork, goal, charter, cards, sketches_of, counts))
        await self._go_on(charter, original.past[-1].event.at)
        _log.info("goal_forked", goal_id=goal.goal_id, of=fork.goal_id, at=fork.at, entries=sum(counts.values()))

    async def give_up(self, goal: Goal, why: str) -> bool:
        """End a copy that cannot be finished; False if none was begun."""
        head = await self._ports.ledger.head(goal.comm_id)
        if head is None:
            return False
        if not head.entry.state.phase.is_terminal:
            await self._record_if_legal(goal.comm_id, CancelRequested(at=self._ports.clock.now(), why=why))
        return True

    async def _original(self, goal: Goal, fork: Fork) -> Original:
        """Read what is forked, of the same user's."""
        name = GoalName(goal.user, fork.goal_id)
        record = await self._ports.goals.find(name.comm_id)
        if record is None or record.goal.name.owner != name.owner:
            raise NotFoundError(f"There is no goal {name} to fork: it is somebody else's, or was removed.")
        if [getattr(goal, field) for field in _KEPT] != [getattr(record.goal, field) for field in _KEPT]:
            raise InvalidInputError(f"A fork of {fork.goal_id} has the goal, the files and the team of that one.")
        root, logs, due = name.comm_id, dict[CommId, Sequence[Past]](), [name.comm_id]
        joined = list[AgentCard]()
        while due:
            comm_id = due.pop()
            past = list[Past]()
            async with aclosing(self._stored(comm_id, fork.at)) as stored:
                async for one in stored:
                    event = one.entry.event
                    past.append(Past.of(comm_id, one.seq, event))
                    if comm_id == root and isinstance(event, MemberJoined):
                        joined.append(event.card)
            logs[comm_id] = past
            due += [one.ended for one in past if one.ended is not None]
        if not logs[root]:
            raise NotFoundError(f"{name} had no group yet at {fork.at}.", hint="Give the sequence of an entry.")
        for comm_id in logs:  # a log goes all at once, and what was read of one that is going may be a part
            if not await self._ports.log.read(comm_id, after=0, limit=1):
                raise NotFoundError(f"There is no goal {name} to fork any more: it is being removed.")
        original = original_of(root, logs, joined)
        origin = await self._origin(original.charter)
        return replace(original, charter=original.charter.model_copy(update={"opened_by": origin.opener}))

    async def _origin(self, charter: Charter) -> Charter:
        """Return what the first group was set up with that a group comes from, or one that notes who opened that.

        Each was there before who comes from it; one whose log is gone tells nothing any more.
        """
        while charter.opened_by is None and charter.forked_from is not None:
            name = GoalName(charter.user, charter.forked_from.goal_id)
            found = await self._ports.log.read(name.comm_id, after=0, limit=1)
            first = found[0].entry.event if found and found[0].seq <= charter.forked_from.at else None
            if not isinstance(first, GroupLaunched):
                break
            charter = first.charter
        return charter

    async def _stored(self, comm_id: CommId, up_to: int) -> AsyncGenerator[StoredEntry]:
        """Read a log up to a sequence, one entry at a time, because the state of an entry may be large."""
        after = 0
        while found := await self._ports.log.read(comm_id, after=after, limit=1):
            after = found[0].seq
            if after > up_to:
                return
            yield found[0]

    def _known_cards(self, original: Original, fork: Fork) -> Mapping[AgentId, AgentCard]:
        """Return the cards of all who may be in the copy, as they are now; where one joins, as small as for joining."""
        names = {*original.cards, *(one.new for one in fork.replace)}
        known = {name: record.card for name in names if (record := self._ports.registry.card(name)) is not None}
        has_grown = len(original.cards) > len(original.charter.team_members)
        most = CARDS_BYTES // (MAX_MEMBERS if has_grown else len(names))
        return {name: abridged(card, most) for name, card in known.items()}

    async def _rehearse(self, forking: Forking) -> tuple[GroupState, Mapping[CommId, int]]:
        """Step through the whole copy and write nothing. Return where it ends, and how many entries each of its groups has."""
        counts, state, goal = defaultdict[CommId, int](int), None, forking.goal
        async with aclosing(self._steps(forking)) as steps:
            async for copied in steps:
                if isinstance(copied.event, GroupLaunched):
                    check_launch_size(copied.event)
                else:
                    counts[copied.comm_id] += 1
                if copied.comm_id == goal.comm_id:
                    state = copied.transition.state
        assert state is not None, "a fork that can be has a group"
        counts[goal.comm_id] += 1  # has it go on
        return state, counts

    async def _steps(self, forking: Forking) -> AsyncGenerator[Copied]:
        """Step through a fork, and let other tasks run after each step."""
        for copied in forking.steps():
            yield copied
            await asyncio.sleep(0)

    def _check_there(self, state: GroupState, charter: Charter, fork: Fork) -> None:
        """Refuse to go on without those who took part, and with who would not.

        Who was lost at the entry is not missed, but hears of the copy, where its tasks are open: it is asked by what it has left.

        Raises:
            NoAgentError: A member is gone, or its card does not accept the team's pool.
            UnavailableError: Somebody is away for a moment.
        """
        registry, drafters = self._ports.registry, self._drafters(charter)
        needed = {*state.living(), *(one.new for one in fork.replace)}
        people = {member.agent_id for member in state.members if member.human}
        for agent_id in {*state.hearing, *needed} - people:
            record, is_needed = registry.card(agent_id), agent_id in needed
            if record is None and is_needed:
                raise NoAgentError(f"{agent_id} cannot go on: it is not registered.", hint="Replace it by another one.")
            if record is None:
                continue
            if why := _why_not_drafted(drafters, record.card):
                raise NoAgentError(f"{agent_id} cannot join: {why}.", hint="Replace it by another one.")
            if is_needed:
                check_online(registry, agent_id)

    def _drafters(self, charter: Charter) -> Sequence[AgentCard]:
        """Return the cards of those whose team a copy is: of who opened the first group, as it is now, and of who leads the copy.

        Its user says who leads it: by that one alone he would have others serve whom they do not accept.
        """
        opener = charter.opener
        known = self._ports.registry.card(opener.agent_id)
        return as_drafter(opener if known is None else known.card), charter.team_members[0]

    def _left_out(self, state: GroupState, charter: Charter) -> Set[AgentId]:
        """Return who was lost at the entry and stays lost: who would not take part by its card of now, or has none any more."""
        drafters, left_out = self._drafters(charter), set[AgentId]()
        for member in state.members:
            if member.lost and not member.human:
                record = self._ports.registry.card(member.agent_id)
                if record is None or _why_not_drafted(drafters, record.card):
                    left_out.add(member.agent_id)
        return left_out

    async def _copy(self, forking: Forking) -> None:
        """Write what is missing of the copy, in the order of the original."""
        written = dict[CommId, _Written]()
        async with aclosing(self._steps(forking)) as steps:
            async for copied in steps:
                group = written.setdefault(copied.comm_id, _Written())
                found = await self._left(copied.comm_id, group)
                if found is not None:
                    if found.entry.state.copying != copied.transition.state.copying:
                        raise NotYetError(f"The group {copied.comm_id} has ended meanwhile.", retry_after=_AGAIN)
                    group.note(copied.source_seq, found, copied.transition.state)
                else:
                    group.note(copied.source_seq, await self._append(group, copied), copied.transition.state)

    async def _left(self, comm_id: CommId, group: _Written) -> StoredEntry | None:
        """Return the next entry that an earlier attempt has left of a group of the copy."""
        if group.is_searched:
            return None
        found = await self._ports.log.read(comm_id, after=group.placed[1][-1] if group.placed[1] else 0, limit=1)
        group.is_searched = not found
        return found[0] if found else None

    async def _append(self, group: _Written, copied: Copied) -> StoredEntry:
        head, event = group.head, _said_behind(copied.event, group)
        entry = encode_entry(entry_of(head, event, copied.transition, copied.policy))
        expected, log_bytes = (head.seq, head.log_bytes) if head else (0, 0)
        fault_point("groups.before_copied_entry")
        try:
            seq = await self._ports.log.append(copied.comm_id, entry, expected_seq=expected, log_bytes=log_bytes)
        except AppendConflictError:
            raise NotYetError(f"The group {copied.comm_id} is copied, or was cancelled.", retry_after=_AGAIN) from None
        fault_point("groups.after_copied_entry")
        return StoredEntry(seq, entry.entry, len(entry.data), log_bytes + len(entry.data))

    async def _go_on(self, charter: Charter, copied_until: datetime) -> None:
        """Put its members into the group and have it go on."""
        comm_id = charter.comm_id
        head = await self._ports.ledger.head(comm_id)
        assert head is not None, "it was copied"
        left_out = self._left_out(head.entry.state, charter)
        await self._ports.memberships.add([one for one in head.entry.state.hearing if one not in left_out], comm_id)
        fault_point("groups.before_copy_goes_on")
        await self._record_if_legal(comm_id, TimerFired(at=self._ports.clock.now(), copied_until=copied_until))
        await self._take_back(head)

    async def _take_back(self, head: StoredEntry) -> None:
        """Have members that were lost when it was forked, and are there, be back: nobody else would tell the copy."""
        state = head.entry.state
        lost = [one.agent_id for one in state.members if one.lost and self._ports.registry.is_online(one.agent_id)]
        if state.phase.is_terminal or not lost:
            return
        left_out = self._left_out(state, await self._charter(state.comm_id))
        for agent_id in lost:
            if agent_id not in left_out:
                await self._record_if_legal(state.comm_id, MemberReturned(at=self._ports.clock.now(), agent_id=agent_id))

    async def _tell_again(self, head: StoredEntry) -> None:
        """Show members that a copy goes on: who had it go on may have died before."""
        if isinstance(head.entry.event, TimerFired) and head.entry.event.copied_until is not None:
            await self._ports.ledger.push_again(head)

    async def _record_if_legal(self, comm_id: CommId, event: Event) -> None:
        try:
            await self._ports.ledger.record(comm_id, event)
        except IllegalEventError as refused:
            _log.debug("fork_went_on_already", comm_id=comm_id, event_type=event.type, code=refused.code)

    async def _charter(self, comm_id: CommId) -> Charter:
        [first] = await self._ports.log.read(comm_id, after=0, limit=1)
        assert isinstance(first.entry.event, GroupLaunched), "a copy that is under way begins so"
        return first.entry.event.charter


def _fork_of(goal: Goal) -> Fork:
    assert goal.forked_from is not None, "only forks are asked about"
    return goal.forked_from


def _why_not_drafted(drafters: Sequence[AgentCard], card: AgentCard) -> str:
    """Say why an agent may not be in a team that is several others'; empty if it may."""
    return next(filter(None, (why_not_drafted(drafter, card) for drafter in drafters)), "")


def _said_behind(event: Event, group: _Written) -> Event:
    """Have a message say behind which entry of the copy it was said."""
    if not isinstance(event, Said):
        return event
    changed = {"after": group.place_of(event.message.header.after), "session": None}
    header = event.message.header.model_copy(update=changed)
    return event.model_copy(update={"message": event.message.model_copy(update={"header": header})})
