"""What is pushed to members that cannot apply it yet: no more of it is held than there is room for, and nothing is lost."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from ioa.agent.catching_up import CatchingUp
from ioa.agent.heard_room import HeardRoom
from ioa.agent.history import GroupHistory
from ioa.agent.session import GroupSession
from ioa.group.requests import Entries, SequencedEntry, Sync
from ioa.protocol.ids import AgentId
from ioa.testing.manual_clock import ManualClock
from tests.contract.agent_store.stories import message, sequenced
from tests.rig.deadline import eventually
from tests.unit.group.scenario import COMM, START


class _Member:
    """A member whose memory takes entries in when it is let."""

    def __init__(self, log: Sequence[SequencedEntry], room: HeardRoom) -> None:
        self.may_remember, self.syncs = asyncio.Event(), 0
        self._log = log
        network, store = SimpleNamespace(sync=self._sync), SimpleNamespace(append=self._append, entries=self._nothing)
        outbox: Any = SimpleNamespace(
            me=AgentId("bob"),
            store=store,
            network=network,
            session=None,
            catching_up=CatchingUp(),
            pending=self._nothing,
            clock=ManualClock(START),
        )
        runner: Any = SimpleNamespace(clock=ManualClock(START))
        files: Any = SimpleNamespace()
        self.session = GroupSession(runner, outbox, GroupHistory(COMM), files, room)

    async def _nothing(self, *_: object, **__: object) -> Sequence[SequencedEntry]:
        return []

    async def _append(self, _entry: SequencedEntry) -> bool:
        await self.may_remember.wait()
        return True

    async def _sync(self, asked: Sync) -> Entries:
        self.syncs += 1
        behind = [one for one in self._log if one.seq > asked.after][:10]
        head = self._log[-1].seq
        up_to = behind[-1].seq if behind else head
        return Entries(entries=tuple(behind), complete=up_to == head, head=head, up_to=up_to)


def _log(count: int, size: int) -> list[SequencedEntry]:
    first = sequenced()[0]
    said = [
        SequencedEntry(
            seq=number,
            previous_seq=number - 1,
            entry=first.entry.model_copy(
                update={"event": sequenced()[1].entry.event.model_copy(update={"message": message(f"m{number}", "x" * size)})}
            ),
        )
        for number in range(2, count + 1)
    ]
    return [first.model_copy(update={"seq": 1, "previous_seq": 0}), *said]


async def _held(count: int, size: int) -> tuple[int, int, int]:
    """Push a log to a member that is busy; returns how much is held, where it is in the end, and how often it asked the log."""
    log, room = _log(count, size), HeardRoom()
    member = _Member(log, room)
    running = asyncio.create_task(member.session.run())
    alive = list[weakref.ref[SequencedEntry]]()
    try:
        await asyncio.sleep(0)
        for one in log:
            pushed = one.model_copy()
            alive.append(weakref.ref(pushed))
            member.session.receive(pushed)
            del pushed
            await asyncio.sleep(0)
        held = sum(one() is not None for one in alive)
        member.may_remember.set()
        await eventually(lambda: member.session.cursor, lambda cursor: cursor == count)
        return held, member.session.cursor, member.syncs
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_of_what_comes_too_fast_little_is_held_and_the_rest_is_read_from_the_log() -> None:
    """A stranger may lead a group at 3 MB/s for as long as a member catches up with others: each entry was held, decoded."""
    held, cursor, _ = await _held(200, 60_000)
    assert (held * 60_000 < 1_500_000, cursor) == (True, 200)


async def test_honest_bursts_are_held_and_the_log_is_not_asked() -> None:
    """Where all 63 other members report at the same moment, a member applies what came as it came."""
    assert await _held(64, 2_000) == (64, 64, 0)


async def test_what_comes_for_a_member_that_has_left_takes_no_room() -> None:
    """Its client may hand it something between its end and the moment when it is forgotten."""
    log, room = _log(3, 100_000), HeardRoom()
    members = [_Member(log, room).session for _ in range(20)]
    for session in members:
        running = asyncio.create_task(session.run())
        await asyncio.sleep(0)
        session.receive(log[0])
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        session.receive(log[1])
    assert room.lets_wait(members[0], 100_000_000), "nothing waits"


async def test_what_waits_is_counted_for_all_members_of_a_process_and_given_back() -> None:
    """Four that flood have no more together; whose session ends gives back what it held."""
    room = HeardRoom()
    members = [_Member([], room).session for _ in range(6)]
    taken = [sum(room.lets_wait(one, 100_000) for _ in range(100)) for one in members]
    room.waits_no_more(members[0])
    assert (sum(taken), max(taken), taken[-1]) == (41, 10, 0)
    assert sum(room.lets_wait(members[-1], 100_000) for _ in range(100)) == 10
    assert HeardRoom().lets_wait(members[0], 50_000_000), "who has nothing that waits is given what is large"
