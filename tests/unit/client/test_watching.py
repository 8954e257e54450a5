"""A watcher receives each entry of the log once and in order, also with late, missing or bursty hints."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import accumulate
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ioa.client import history, watching
from ioa.client.client import Client
from ioa.client.history import conversation, read_back, read_on
from ioa.client.watching import watch
from ioa.concurrency import beside
from ioa.errors import UnavailableError
from ioa.group.events import CancelRequested, Entry, Event, SubgroupClosed, SubgroupOpened
from ioa.group.requests import GroupSnapshot
from ioa.ports.group_log import GroupListener, StoredEntry
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.messages import Phase

ROOT = CommId("root")
_AT = datetime(2026, 1, 1, tzinfo=UTC)
_TASK = TaskId("t1-a")
_NOTHING = CancelRequested(at=_AT)


def stored(seq: int, comm_id: CommId, event: Event, nested: Sequence[CommId], *, ends: bool = False, size: int = 0) -> StoredEntry:
    """An entry with as much of its state as a reader looks at; by default some are ten times as large as others."""
    state = SimpleNamespace(comm_id=comm_id, phase=Phase.CONCLUDED if ends else Phase.DISCUSSING, nested=tuple(nested))
    state.name = SimpleNamespace(comm_id=ROOT)
    return StoredEntry(seq, cast(Entry, SimpleNamespace(event=event, state=state)), size or 100 * (seq % 10 + 1))


def happenings(random: Random) -> Iterator[StoredEntry]:
    """The log of a goal: groups that talk, open teams and close them, in any order; some are open still when the root ends."""
    parent_of: dict[CommId, CommId] = {}
    living, ended, closed, seq = [ROOT], list[CommId](), list[CommId](), 0

    def named(parent: CommId) -> list[CommId]:
        """As in a state: every open nested group, and the last that ended."""
        below = [one for one, of in parent_of.items() if of == parent]
        return [one for one in below if one not in closed] + [one for one in closed if one in below][-1:]

    for number in range(random.randrange(1, 40)):
        seq += random.choice((1, 1, 2, 7))
        comm_id = random.choice(living)
        match random.randrange(6):
            case 0 if len(parent_of) < 6:
                nested = CommId(f"team-{number}")
                parent_of[nested] = comm_id
                living.append(nested)
                opened = SubgroupOpened(at=_AT, task_id=_TASK, by=AgentId("ada"), subgroup=nested)
                yield stored(seq, comm_id, opened, named(comm_id))
            case 1 if comm_id != ROOT and not any(parent_of[one] == comm_id for one in (*living[1:], *ended)):
                living.remove(comm_id)
                ended.append(comm_id)
                yield stored(seq, comm_id, _NOTHING, named(comm_id), ends=True)
            case 2 if ended:
                subgroup = ended.pop(0)
                closed.append(subgroup)
                over = SubgroupClosed(at=_AT, task_id=_TASK, subgroup=subgroup, reason=Reason.CONCLUDED, content="")
                yield stored(seq, parent_of[subgroup], over, named(parent_of[subgroup]))
            case _:
                yield stored(seq, comm_id, _NOTHING, named(comm_id))
    yield stored(seq + 1, ROOT, _NOTHING, named(ROOT), ends=True)
    for number, comm_id in enumerate(living[1:]):
        yield stored(seq + 2 + number, comm_id, _NOTHING, named(comm_id))


class Log:
    """Group logs with late or missing hints. They offer only the methods for reading and listening."""

    def __init__(self, entries: Sequence[StoredEntry], random: Random) -> None:
        self._coming, self._stored = [*entries], list[StoredEntry]()
        self._random = random
        self._listeners: list[tuple[CommId, GroupListener]] = []

    async def group_entries(
        self,
        comm_id: CommId,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> Sequence[StoredEntry]:
        """Read stored entries; some requests after a sequence fail."""
        if before is not None:
            assert limit is not None
            return _reaching([one for one in self._of(comm_id) if one.seq < before][: -limit - 1 : -1], max_bytes)[::-1]
        await self._pass()
        if self._random.random() < 0.02:
            raise UnavailableError("The log does not answer.")
        page = _reaching([one for one in self._of(comm_id) if one.seq > after][:limit], max_bytes)
        await self._pass()
        return page

    async def heads(self, comm_ids: Sequence[CommId], *, at: int) -> Mapping[CommId, GroupSnapshot]:
        """Return the states of groups; some requests fail."""
        if self._random.random() < 0.02:
            raise UnavailableError("The log does not answer.")
        heads = {one: [stored for stored in self._of(one) if stored.seq <= at] for one in comm_ids}
        return {one: _standing(found[-1]) for one, found in heads.items() if found}

    def store(self, entry: StoredEntry) -> None:
        """Store an entry without a hint."""
        self._stored.append(entry)

    def look(self) -> None:
        """Let all listeners read."""
        for _, listener in self._listeners:
            listener.look()

    @asynccontextmanager
    async def listen(self, comm_id: CommId, listener: GroupListener) -> AsyncIterator[None]:
        """Listen to one group."""
        self._listeners.append((comm_id, listener))
        yield
        self._listeners.remove((comm_id, listener))

    async def happen(self) -> None:
        """Store all entries, with hints of most; then let all listeners read."""
        for entry in self._coming:
            for comm_id, listener in self._listeners:
                if comm_id == ROOT and self._random.random() < 0.8:
                    listener.hint()
            await self._pass()
            self._stored.append(entry)
            await self._pass()
        while True:
            self.look()
            await asyncio.sleep(0)

    def _of(self, comm_id: CommId) -> Sequence[StoredEntry]:
        return [one for one in self._stored if one.entry.state.comm_id == comm_id]

    async def _pass(self) -> None:
        for _ in range(self._random.choice((0, 0, 1, 5))):
            await asyncio.sleep(0)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), behind=st.integers(0, 60))
def test_watcher_receives_the_log(seed: int, behind: int) -> None:
    """All entries, or the entries after a sequence, up to the root's last entry: each once, by rising sequences."""
    random = Random(seed)
    entries = [*happenings(random)]
    last = next(one.seq for one in entries if one.entry.state.comm_id == ROOT and one.entry.state.phase.is_terminal)
    log = Log(entries, random)

    async def follow() -> list[StoredEntry]:
        async with beside(log.happen()), watch(cast(Client, log), ROOT, after=behind) as news:
            return [one async for one in news if isinstance(one, StoredEntry)]

    with pytest.MonkeyPatch.context() as patch, capture_logs():
        patch.setattr(watching, "_AGAIN_SECONDS", 0.001)
        patch.setattr(history, "_PAGE_BYTES", random.choice((1, 1_000, 5_000, 250_000)))
        patch.setattr(history, "_PAGE", random.choice((1, 3, 256)))
        seen = asyncio.run(follow())
    assert seen == [one for one in entries if behind < one.seq <= last]


def answering(entries: Sequence[StoredEntry]) -> Log:
    """Logs that hold all of it, and always answer."""
    log = Log([], Random(0))
    log._stored = [*entries]
    log._random.random = lambda: 1.0  # type: ignore[method-assign]
    return log


def readable(entries: Sequence[StoredEntry]) -> Client:
    """The same, as those see them who read them."""
    return cast(Client, answering(entries))


async def _all(reading: AsyncIterator[StoredEntry]) -> list[StoredEntry]:
    return [one async for one in reading]


def _reaching(found: Sequence[StoredEntry], max_bytes: int | None) -> list[StoredEntry]:
    """Return the first entries, up to the entry that reaches a number of bytes."""
    sizes = accumulate((one.size_bytes for one in found), initial=0)
    return [one for one, size in zip(found, sizes, strict=False) if max_bytes is None or size < max_bytes]


def test_a_page_is_read_from_anywhere_in_either_direction() -> None:
    """The first entries after a sequence, or the last entries before it, of all groups, as if all had been read."""
    for seed in range(80):
        random = Random(seed)
        entries = [*happenings(random)]
        groups, place, limit = readable(entries), random.randrange(0, entries[-1].seq + 3), random.randrange(1, 12)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(history, "_PAGE_BYTES", random.choice((1, 1_000, 5_000, 250_000)))
            assert asyncio.run(conversation(groups, ROOT)) == entries  # also the entries of a nested group after the root's end
            behind = asyncio.run(_all(read_on(groups, ROOT, after=place, page_size=limit)))
            assert behind == [one for one in entries if one.seq > place]
            before = asyncio.run(_all(read_back(groups, ROOT, before=place, page_size=limit)))
            assert before == [one for one in entries if one.seq < place][::-1]


def _standing(stored: StoredEntry) -> GroupSnapshot:
    return GroupSnapshot.model_construct(seq=stored.seq, state=stored.entry.state, charter=None)
