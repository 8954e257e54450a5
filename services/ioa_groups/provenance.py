"""Who was rightly told of a file: by who wrote it for the group, by its goal, or by somebody who had been told of it before.

A reference is not a secret that opens a file: whoever learned one elsewhere could name it in an entry of its own, and so have the
file told to itself or to an accomplice. What an entry names opens a file only if the way by which it came there can be followed.

It begins in the group that the file was put into, since whoever wrote it repeats what strangers name: it gets what a task is to
use, and names in its answer what results name. Where it only has written the file, for others, it is told of it as all are.

To follow it takes the logs of groups from their beginnings. What was read of them is remembered, and what of it was judged, so that
another request reads only what is new, whatever it asks for and whether it is refused. It is read an entry at a time, since decoded
the state of each may take 3 MB.

A fork may be one of a fork, and so on: each step of a way that waits for another one is on a list, however many there are. And
where several such ways are longer than what is remembered, each makes the others begin anew, for each entry of each fork: so one
request has no more read than a bound, and goes on from there when it is made again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar, cast

from ioa.errors import RateLimitedError
from ioa.group.events import GroupLaunched, Said, SubgroupClosed, files_of
from ioa.group.state import ParentTask
from ioa.ports.group_log import GroupLog, StoredEntry
from ioa.protocol.ids import AgentId, CommId, UserId
from ioa.protocol.object_names import folder_in, folder_of

_T = TypeVar("_T")

Way = Generator["Way[Any] | Awaitable[Any]", Any, _T]
"""A part of a way that is followed: it waits for others, or for what is read, and comes to something."""

_END = 2**63 - 1
"""Behind every sequence."""
_MAX_ENTRIES, _MAX_GROUPS, _MAX_NAMES = 1_024, 1_024, 200_000
"""The maximum of remembered entries, groups, and names of files and agents of all groups.
The group that was asked for last is remembered whole: its log is bounded."""


_MOST_READ = 5_000
"""How many entries one request has read: two seconds of a core."""
_AGAIN = timedelta(seconds=1)
_STEPS_IN_A_TURN = 256
"""How many steps of a way are gone in one turn of the loop: a few milliseconds, if nothing is read."""


@dataclass
class _Reading:
    """How many more entries one request may have read."""

    left: int = _MOST_READ

    def take(self) -> None:
        """Count one.

        Raises:
            RateLimitedError: They are used up. What was read and judged is remembered, if there is room for it.
        """
        if not self.left:
            raise RateLimitedError(
                "The way by which this file came here is long, and is followed on when it is asked for again.", retry_after=_AGAIN
            )
        self.left -= 1


_reading: ContextVar[_Reading] = ContextVar("reading")


@contextmanager
def _one_request() -> Iterator[None]:
    """Bound what is read in the block."""
    token = _reading.set(_Reading())
    try:
        yield
    finally:
        _reading.reset(token)


def owner_of(agent_id: AgentId) -> str:
    """Return how the store calls an agent whose files they are."""
    return f"agent-{agent_id}"


def digest_of(object_name: str, sha256: str) -> bytes:
    """Return what stands for a file in what is remembered, however long its name is."""
    return hashlib.sha256(f"{sha256}{object_name}".encode()).digest()


@dataclass(frozen=True)
class TrackedFile:
    """A file whose way is followed.

    Attributes:
        digest: Which it is, see `digest_of`.
        owner: Whose it is, as the store says.
        folder: Where it lies, by its name: agents' files lie in that of the group that they were put into.
    """

    digest: bytes
    owner: str
    folder: str

    @classmethod
    def of(cls, object_name: str, sha256: str, owner: str) -> TrackedFile:
        """Return a file by its reference."""
        return cls(digest_of(object_name, sha256), owner, folder_in(object_name))

    def is_written_by(self, agent_id: AgentId, comm_id: CommId) -> bool:
        """Whether an agent has written it for a group."""
        return self.owner == owner_of(agent_id) and self.folder == folder_of(comm_id)


@dataclass(frozen=True)
class _ByMember:
    """A member said it."""

    agent_id: AgentId


@dataclass(frozen=True)
class _ByTeam:
    """A nested team ended with it."""

    comm_id: CommId


@dataclass(frozen=True)
class _Launch:
    """A group was launched with it, by the first of its team."""

    opener: AgentId
    user: UserId
    parent: ParentTask | None


@dataclass(frozen=True)
class FileTelling:
    """What an entry says of files.

    Attributes:
        seq: Its place in the log.
        audience: Whom it was told to.
        files: Which it names, see `digest_of`.
    """

    seq: int
    audience: frozenset[AgentId]
    files: frozenset[bytes]
    by: _ByMember | _ByTeam | _Launch | None


@dataclass
class _Known:
    """Who was rightly told of a file in a group, and since which sequence; and which of the entries that name it rightly do."""

    judged: list[bool] = field(default_factory=list)
    since: dict[AgentId, int] = field(default_factory=dict)


@dataclass
class _Room:
    """How many names of files and agents are remembered together."""

    names: int = 0


class _Group:
    """What is remembered of a group's log: all that names files, up to a sequence.

    Args:
        room: Counts the names.
    """

    def __init__(self, room: _Room) -> None:
        self._room = room
        self.reading = asyncio.Lock()
        self.read_up_to = 0
        self.launch: _Launch | None = None
        self.told: dict[bytes, list[FileTelling]] = {}
        self.known: dict[TrackedFile, _Known] = {}
        self._names = 0

    def learn(self, stored: StoredEntry) -> None:
        """Take in the next entry."""
        self.read_up_to = stored.seq
        if not files_of(stored.entry.event):
            return
        telling = _telling_of(stored)
        self._count(len(telling.files) + len(telling.audience))
        for file in telling.files:
            self.told.setdefault(file, []).append(telling)

    def judge(self, known: _Known, telling: FileTelling, *, is_right: bool) -> None:
        """Note of the next entry that names a file whether it rightly does."""
        known.judged.append(is_right)
        for agent_id in telling.audience if is_right else ():
            if agent_id not in known.since:
                known.since[agent_id] = telling.seq
                self._count(1)

    def leave(self) -> None:
        """Take up no more room; who has it still may go on with it."""
        self._room.names -= self._names
        self._room = _Room()

    def _count(self, names: int) -> None:
        self._names += names
        self._room.names += names


class Provenance:
    """Follow the ways of files through the groups of their goals.

    Sequences rise over all logs, and only what comes before an entry is asked about it, so that every way ends.

    Args:
        log: Where they are followed. It must never lag behind what it has shown, since what was judged is not judged again.
    """

    def __init__(self, log: GroupLog) -> None:
        self._log = log
        self._entries: OrderedDict[tuple[CommId, int], FileTelling | None] = OrderedDict()
        self._groups: OrderedDict[CommId, _Group] = OrderedDict()
        self._room = _Room()

    def forget(self) -> None:
        """Trust nothing that was read: the server may have come back with other logs."""
        self._entries.clear()
        self._groups.clear()
        self._room = _Room()

    async def telling(self, comm_id: CommId, seq: int) -> FileTelling | None:
        """Return what an entry says of files; None if the group has no such entry.

        Raises:
            UnavailableError: The log cannot be read now.
        """
        key = (comm_id, seq)
        if key not in self._entries:
            found = await self._log.read(comm_id, after=max(0, seq - 1), limit=1)
            if not found:
                return None  # it may come
            self._entries[key] = _telling_of(found[0]) if found[0].seq == seq else None
            if len(self._entries) > _MAX_ENTRIES:
                self._entries.popitem(last=False)
        return self._entries[key]

    async def may_read(self, agent_id: AgentId, file: TrackedFile, comm_id: CommId, by: FileTelling) -> bool:
        """Whether an agent may read a file since an entry, which names it, was told to the agent.

        Raises:
            UnavailableError: The logs cannot be read now.
            RateLimitedError: It takes too much reading; what was read helps the next time.
        """
        with _one_request():
            if file.is_written_by(agent_id, comm_id):
                return True
            if await _followed(self._is_right(file, comm_id, by, _Known())):
                return True  # with no more read than it takes
            return agent_id in await _followed(self._knowing(file, comm_id, before=by.seq + 1))

    async def is_known(self, file: TrackedFile, comm_id: CommId) -> bool:
        """Whether anybody in a group was rightly told of a file by now.

        Raises:
            UnavailableError: The logs cannot be read now.
            RateLimitedError: It takes too much reading; what was read helps the next time.
        """
        with _one_request():
            return bool(await _followed(self._knowing(file, comm_id, before=_END)))

    def _knowing(self, file: TrackedFile, comm_id: CommId, *, before: int) -> Way[frozenset[AgentId]]:
        """Return who was rightly told of a file in a group by then."""
        known: _Known = yield self._judged(file, comm_id, before=before)
        return frozenset(agent_id for agent_id, seq in known.since.items() if seq < before)

    def _judged(self, file: TrackedFile, comm_id: CommId, *, before: int) -> Way[_Known]:
        """Judge what names a file in a group, up to a sequence at least."""
        group: _Group = yield self._read(comm_id, before)
        naming = group.told.get(file.digest, ())
        if not naming:
            return _Known()
        known = group.known.setdefault(file, _Known())
        while (place := len(known.judged)) < len(naming) and naming[place].seq < before:
            is_right: bool = yield self._is_right(file, comm_id, naming[place], known)
            if len(known.judged) == place:  # else another request has judged it meanwhile
                group.judge(known, naming[place], is_right=is_right)
        return known

    def _is_right(self, file: TrackedFile, comm_id: CommId, by: FileTelling, known: _Known) -> Way[bool]:
        """Whether the next entry that names a file may do so, where some know of it already."""
        match by.by:
            case _ByMember(agent_id=teller):
                return file.is_written_by(teller, comm_id) or teller in known.since
            case _ByTeam(comm_id=subgroup):
                return bool((yield self._is_concluded(file, subgroup, by.seq)))
            case _Launch() as launch:
                return bool((yield self._is_given(file, launch, by.seq)))
            case _:
                return False

    def _is_given(self, file: TrackedFile, launch: _Launch, seq: int) -> Way[bool]:
        """Whether a group was rightly given a file: a goal's by its user, who reads all; a nested team's by who opened it."""
        if launch.parent is None or file.is_written_by(launch.opener, launch.parent.comm_id):
            return True
        return launch.opener in (yield self._knowing(file, launch.parent.comm_id, before=seq))

    def _is_concluded(self, file: TrackedFile, subgroup: CommId, seq: int) -> Way[bool]:
        """Whether a nested team rightly ended with a file: nothing comes behind the entry that ended it and named it."""
        known: _Known = yield self._judged(file, subgroup, before=seq)
        return bool(known.judged) and known.judged[-1]

    async def _read(self, comm_id: CommId, before: int) -> _Group:
        """Read on in a group's log, up to a sequence at least; whoever asks meanwhile waits for that."""
        group = self._group(comm_id)
        async with group.reading:
            while group.read_up_to < before - 1:
                _reading.get().take()
                found = await self._log.read(comm_id, after=group.read_up_to, limit=1)
                if not found:
                    break
                group.learn(found[0])
        if not group.read_up_to and self._groups.get(comm_id) is group:
            del self._groups[comm_id]  # nobody has said anything there; whoever asks names what he likes
        return group

    def _group(self, comm_id: CommId) -> _Group:
        """Find what is remembered of a group; what was used longest ago is forgotten."""
        if comm_id not in self._groups:
            self._groups[comm_id] = _Group(self._room)
        self._groups.move_to_end(comm_id)
        while len(self._groups) > 1 and (len(self._groups) > _MAX_GROUPS or self._room.names > _MAX_NAMES):
            self._groups.popitem(last=False)[1].leave()
        return self._groups[comm_id]


async def _followed(way: Way[_T]) -> _T:
    """Follow a way until it comes to something. What is remembered of it is gone through with turns for others between."""
    waiting, found = list[Way[Any]]([way]), cast(Any, None)
    steps = 0
    while waiting:
        steps += 1
        if steps % _STEPS_IN_A_TURN == 0:
            await asyncio.sleep(0)
        try:
            needed = waiting[-1].send(found)
        except StopIteration as ended:
            waiting.pop()
            found = ended.value
            continue
        if isinstance(needed, Generator):
            waiting.append(needed)
            found = None
        else:
            found = await needed
    return cast(_T, found)


def _telling_of(stored: StoredEntry) -> FileTelling:
    entry = stored.entry
    by: _ByMember | _ByTeam | _Launch | None = None
    match entry.event:
        case Said(message=message):
            by = _ByMember(message.header.sender)
        case SubgroupClosed(subgroup=subgroup):
            by = _ByTeam(subgroup)
        case GroupLaunched() as launched:
            by = _launch_of(launched)
    return FileTelling(
        seq=stored.seq,
        audience=frozenset(entry.audience),
        files=frozenset(digest_of(file.object_name, file.sha256) for file in files_of(entry.event)),
        by=by,
    )


def _launch_of(event: GroupLaunched) -> _Launch:
    charter = event.charter
    return _Launch(charter.team_members[0].agent_id, charter.user, charter.parent)
