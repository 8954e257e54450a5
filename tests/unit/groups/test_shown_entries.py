"""What members come to have of a group in which not all hear all: pushes are lost, answers too, and routers die."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

from ioa.group.events import Entry, Event, Said, Unheard
from ioa.group.requests import SequencedEntry, Sync
from ioa.protocol.ids import AgentId
from ioa.runtime.ledger import GroupLedger
from tests.rig.log_checker import visible
from tests.rig.memory_log import Mishap
from tests.rig.memory_plane import MemoryControlPlane
from tests.unit.group.scenario import COMM, START
from tests.unit.group.test_policy_laws import MEMBERS, cast, run
from tests.unit.protocol.policies import any_scoped_policy


class Hands:
    """A `Clock` that a test sets to any time."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        """Return the instant the clock was last set to."""
        return self.at


class Member:
    """A member that keeps what it is shown as agents do, and asks for what it lacks."""

    def __init__(self, plane: MemoryControlPlane, agent_id: AgentId) -> None:
        self._plane, self._agent_id = plane, agent_id
        self._entries: list[SequencedEntry] = []
        self._cursor = 0

    async def receive(self, entry: SequencedEntry) -> None:
        """Take in what is pushed, or answered; a gap before it is filled from the log."""
        if entry.previous_seq > self._cursor:
            await self.catch_up()
        elif entry.seq > self._cursor:
            self._keep(entry)

    async def catch_up(self) -> None:
        """Ask for what it lacks until there is no more."""
        complete = False
        while not complete:
            page = await self._plane.log_pages.sync(Sync(comm_id=COMM, agent_id=self._agent_id, after=self._cursor))
            for entry in page.entries:
                self._keep(entry)
            complete = page.complete

    def record(self) -> list[tuple[int, Entry]]:
        """What it has on record."""
        return [(one.seq, one.entry) for one in self._entries]

    def _keep(self, entry: SequencedEntry) -> None:
        assert entry.previous_seq == self._cursor, f"{self._agent_id} was shown {entry.seq} behind {entry.previous_seq}"
        self._entries.append(entry)
        self._cursor = entry.seq


async def play(
    log: Sequence[Event], names: Sequence[AgentId], rng: random.Random
) -> tuple[MemoryControlPlane, dict[AgentId, Member]]:
    """Have routers record a log and show it to its members; every fifth push is lost, and many a router dies."""
    clock = Hands(START)
    plane = MemoryControlPlane(clock, renew_every=timedelta(seconds=1), task_lease=timedelta(seconds=30))
    members = {name: Member(plane, name) for name in names}
    pushed: list[tuple[AgentId, SequencedEntry]] = []

    def keep(agent_id: AgentId, entry: SequencedEntry) -> Sequence[SequencedEntry]:
        pushed.append((agent_id, entry))
        return ()

    plane.inboxes.push_as = keep
    ledger = plane.ledgers[0]
    for event in log:
        clock.at = event.at
        if rng.random() < 0.2:  # another router, which remembers nothing
            ledger = GroupLedger(plane.log, plane.timers, plane.inboxes, plane.results, plane.open_groups, clock)
        if rng.random() < 0.1:
            plane.log.fail_next_append(Mishap.STORED_UNANSWERED)
        if isinstance(event, Said):
            sender, answer = event.message.header.sender, await ledger.say(COMM, event.message)
            if answer.entry is not None and rng.random() < 0.8:
                entry = SequencedEntry(seq=answer.seq, previous_seq=answer.previous_seq, entry=answer.entry.entry)
                await members[sender].receive(entry)
        else:
            await ledger.record(COMM, event)
        for agent_id, entry in pushed:
            if rng.random() < 0.8:
                await members[agent_id].receive(entry)
        pushed.clear()
    return plane, members


async def test_each_member_has_exactly_what_it_may_see_in_order() -> None:
    """However many pushes and answers are lost and routers die, and whenever it has joined; and nobody else is told anything."""
    shown = hidden = joined = 0
    for seed in range(40):
        rng = random.Random(seed)
        *_, last = run(cast(any_scoped_policy(rng.choice), rng.choice), rng.choice)
        assert last.policy is not None
        names = [member.agent_id for member in last.state.members]
        plane, members = await play(last.log, names, rng)
        log = await plane.log.read(COMM, after=0, limit=10_000)
        for agent_id, member in members.items():
            await member.catch_up()
            views = [(one.seq, one.entry) for one in visible(log, agent_id)]
            assert member.record() == views
            unheard = sum(isinstance(entry.event, Unheard) for _, entry in views)
            shown, hidden = shown + len(views) - unheard, hidden + unheard
            joined += agent_id not in MEMBERS
    assert shown and hidden and joined
