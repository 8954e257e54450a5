"""Files: agents and users store them in pieces and read them by reference; quotas per owner.

A reference (object name and digest) is the permission to read a file. An object name is an HMAC of owner and place: unguessable,
and the same for a repeated upload. A file never changes.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from weakref import WeakValueDictionary

import structlog

from ioa.adapters.nats.sessions import NatsSessions
from ioa.adapters.nats.tickets import NatsTickets
from ioa.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    OverQuotaError,
    PayloadTooLargeError,
    reason_of,
)
from ioa.ports.clock import Clock
from ioa.ports.file_store import FileStore, StoredFile, counts_as
from ioa.ports.group_log import StoredEntry
from ioa.protocol.codec import validate
from ioa.protocol.files import (
    PIECE_BYTES,
    Announced,
    AskStored,
    FilePiece,
    GetFile,
    OwnerBytes,
    PutFile,
    PutStanding,
    PutUpload,
    Stored,
    StoredBytes,
    put_in_pieces,
)
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, CommId, GoalName, UserId
from ioa.protocol.object_names import folder_of
from ioa.protocol.tickets import is_seal
from ioa.runtime.ledger import GroupLedger

INTERRUPTED_AFTER = timedelta(hours=1)
"""After which time an upload counts as interrupted that is not complete."""
SWEEP_EVERY = timedelta(minutes=10)
_COUNTED_FOR = timedelta(seconds=10)
"""How long it is believed how much an owner stores; what this replica takes from him meanwhile is added."""
_MEMBER_FOR = timedelta(seconds=1)
"""How long it is believed that an agent may put files into a group, or may not: the end of the group's log is read for it, which
may be a megabyte, and the file one byte."""
_REST = 20
"""So many times as long as it takes to look at files what was found is told again."""
_REMEMBERED = 4_096
_NAMED_OWNERS = 10
_MOST_FILES = 60_000
"""How many files one may store: to count them the server lists their names in one message, up to 100,000 of them, and cuts off whom
more than 8 MB wait for. An agent has no room for many more of the smallest; a user has for as many of 17 kB."""
_HMAC_DIGITS = 32
"""128 bits."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Counted:
    """What an owner stores.

    Attributes:
        size_bytes: How much.
        files: In how many files.
        until: How long it is believed while it leaves room.
        rests_until: Until when it is not counted again in any case, since counting takes the longer the more files there are.
        removed: What the store said then of what it has removed: until that changes, nobody stores less.
    """

    size_bytes: int
    files: int
    until: datetime
    rests_until: datetime
    removed: int

    def has_room(self, artifact: Artifact, most: int) -> bool:
        """Whether there is room for one more file, of so many bytes in all."""
        return self.files < _MOST_FILES and self.size_bytes + artifact.size_bytes <= most

    def with_one_more(self, artifact: Artifact) -> _Counted:
        """Add a file."""
        return replace(self, size_bytes=self.size_bytes + counts_as(artifact.size_bytes), files=self.files + 1)


@dataclass(frozen=True)
class _Membership:
    """Whether an agent may put files into a group, and until when this is believed."""

    until: datetime
    refusal: NotFoundError | ConflictError | None


@dataclass(frozen=True)
class FileQuotas:
    """How many bytes may be stored at a time: of one agent, and of one user."""

    agent_bytes: int
    user_bytes: int

    def within(self, files: int, artifacts: int) -> FileQuotas:
        """Leave to others half of what all agents' files, and half of what all users' files, may take together."""
        return FileQuotas(min(self.agent_bytes, files // 2), min(self.user_bytes, artifacts // 2))


class FileService:
    """Answer the requests for files.

    Args:
        store: Where they lie.
        ledger: Tells who is in which group.
        tickets: Computes the HMACs of object names and of seals of uploads.
        clock: Says when an upload began.
        quotas: How much may be stored.
        sessions: Tells which process holds an agent's id.
    """

    def __init__(
        self,
        store: FileStore,
        ledger: GroupLedger,
        tickets: NatsTickets,
        clock: Clock,
        quotas: FileQuotas,
        sessions: NatsSessions,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._tickets = tickets
        self._clock = clock
        self._quotas = quotas
        self._sessions = sessions
        self._opened: OrderedDict[tuple[str, str], StoredFile] = OrderedDict()
        """Recently read files by object name and digest."""
        self._members: OrderedDict[tuple[CommId, AgentId], _Membership] = OrderedDict()
        self._counted: OrderedDict[str, _Counted] = OrderedDict()
        self._counting: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._told: tuple[StoredBytes, datetime] | None = None
        self._telling = asyncio.Lock()

    def forget(self) -> None:
        """Trust nothing that was read: the server may have come back with another store."""
        self._opened.clear()
        self._members.clear()
        self._counted.clear()

    async def get(self, request: GetFile) -> FilePiece:
        """Read a piece of a file by its reference.

        Raises:
            NotFoundError: No file is stored by this reference.
        """
        key = request.object_name, request.sha256
        stored = self._opened.get(key)
        if stored is None:
            stored = self._opened[key] = await self._find(*key)
            if len(self._opened) > _REMEMBERED:
                self._opened.popitem(last=False)
        page = await self._store.read(stored, request.after)
        return FilePiece(data=page.data, after=page.after)

    async def put(self, request: PutFile) -> Stored:
        """Take the next piece of an agent's file.

        Raises:
            NotFoundError: The group is not there, or the agent is not in it.
            SupersededError: Another process has taken the agent's id over.
            ConflictError: The group has ended, another file has this place, or the upload was dropped.
            InvalidInputError: The piece does not fit to what was announced.
            PayloadTooLargeError: No agent may store that much.
            OverQuotaError: The agent stores too much at present.
            StoreFullError: The store has no room.
        """
        await self._sessions.check(request.agent_id, request.session, may_be_silent=True)
        if request.standing is None:
            await self._check_member(request.comm_id, request.agent_id)
        file = _artifact(request.file, await self._object_name(request.comm_id, request.agent_id, request.place))
        owner, most = f"agent-{request.agent_id}", self._quotas.agent_bytes
        return await self._take(owner, file, request.standing, request.data, most)

    async def put_upload(self, request: PutUpload) -> Stored:
        """Take the next piece of a file that a user sends with a goal.

        Raises:
            ConflictError: Another file has this place, or the upload was dropped.
            InvalidInputError: The piece does not fit to what was announced.
            PayloadTooLargeError: No user may store that much.
            OverQuotaError: The user stores too much at present.
            StoreFullError: The store has no room.
        """
        goal = GoalName(request.user, request.goal_id)
        file = _artifact(request.file, await self._object_name(goal.key, request.user, request.place))
        return await self._take(_owner_of(request.user), file, request.standing, request.data, self._quotas.user_bytes)

    async def keep(self, goal: GoalName, position: int, name: str, data: bytes, media_type: str) -> Artifact:
        """Store an inline input of a goal; it counts as an upload of the goal's user.

        Raises:
            ConflictError: Another text is stored for this input.
            PayloadTooLargeError: No user may store that much.
            OverQuotaError: The user stores too much at present.
        """
        stored_as = await self._object_name(goal.key, str(position), name)

        async def put(file: Announced, standing: PutStanding | None, piece: bytes) -> Stored:
            return await self._take(_owner_of(goal.owner), _artifact(file, stored_as), standing, piece, self._quotas.user_bytes)

        return await put_in_pieces(name, data, media_type, put)

    async def describe(self, name: str) -> Artifact:
        """Return a reference to an object in the users' store. Its object name is the HMAC of the name, followed by the name.

        Raises:
            NotFoundError: There is no such object.
            InvalidInputError: The name is too long.
        """
        described = (await self._store.describe(name)).model_dump()
        return validate(Artifact, described | {"object_name": f"{await self._hmac('object', name)}/{name}"})

    async def stored(self, _request: AskStored) -> StoredBytes:
        """Tell who stores most. All files are looked at for it, so whoever asks meanwhile, or soon, is told the same."""
        async with self._telling:
            began = self._clock.now()
            if self._told is None or self._told[1] <= began:
                owners = await self._store.owners()
                largest = sorted(owners.items(), key=lambda item: item[1].size_bytes, reverse=True)[:_NAMED_OWNERS]
                told = StoredBytes(
                    owners=tuple(OwnerBytes(owner=name, size_bytes=own.size_bytes, files=own.files) for name, own in largest),
                    size_bytes=sum(own.size_bytes for own in owners.values()),
                )
                ended = self._clock.now()
                self._told = told, ended + _REST * (ended - began)
            return self._told[0]

    async def sweep(self, every: timedelta = SWEEP_EVERY) -> None:
        """Remove what interrupted uploads have left, and look again `every` so often, for ever."""
        while True:
            try:
                dropped = await self._store.drop_interrupted(self._clock.now() - INTERRUPTED_AFTER)
                if dropped:
                    _log.info("uploads_dropped", count=len(dropped))  # an object name is a permission and must not be logged
            except Exception as error:  # noqa: BLE001 - the sweep goes on after any error
                _log.warning("sweep_put_off", error=reason_of(error))
            await asyncio.sleep(every.total_seconds())

    async def _find(self, object_name: str, sha256: str) -> StoredFile:
        """Find a file of the system, or an object in the users' store by a name that `describe` has returned."""
        mark, _, name = object_name.partition("/")
        is_object = is_seal(mark, await self._hmac("object", name))
        stored = await self._store.find(name if is_object else object_name, sha256)
        if stored is None or is_object == bool(stored.owner):
            raise NotFoundError("No file is stored by this reference.")
        return stored

    async def _object_name(self, owner: str, *place: str) -> str:
        return f"{folder_of(owner)}/{await self._hmac('file', owner, *place)}"

    async def _hmac(self, *words: str) -> str:
        return (await self._tickets.seal(json.dumps(words)))[:_HMAC_DIGITS]

    async def _check_member(self, comm_id: CommId, agent_id: AgentId) -> None:
        """Check that an agent is a member of a group that has not ended."""
        key = (comm_id, agent_id)
        known = self._members.get(key)
        if known is None or known.until <= self._clock.now():
            head = await self._ledger.head(comm_id)
            refusal = _why_not_put(comm_id, agent_id, head)
            known = self._members[key] = _Membership(self._clock.now() + _MEMBER_FOR, refusal)
            self._members.move_to_end(key)
            if len(self._members) > _REMEMBERED:
                self._members.popitem(last=False)
        if known.refusal is not None:
            raise known.refusal.with_traceback(None)

    async def _take(
        self,
        owner: str,
        artifact: Artifact,
        standing: PutStanding | None,
        piece: bytes,
        most: int,
    ) -> Stored:
        """Take a piece, and with the last one let everybody see the file. The same file again is there already."""
        if artifact.size_bytes > most:
            raise PayloadTooLargeError(
                f"{artifact.name!r} has {artifact.size_bytes:,} bytes; {most:,} is what one may store here in all."
            )
        stored_bytes = 0 if standing is None else standing.size_bytes
        if len(piece) != min(PIECE_BYTES, artifact.size_bytes - stored_bytes):
            raise InvalidInputError(
                f"A piece of {len(piece):,} bytes does not fit: {artifact.size_bytes - stored_bytes:,} bytes are to come,"
                f" {PIECE_BYTES:,} at a time."
            )
        if standing is None:
            found = await self._store.named(artifact.object_name)
            if found is not None:
                return Stored(artifact=_the_same(found, artifact))
            upload, seq = await self._begin(owner, artifact, piece, most)
        else:
            seal = await self._seal(owner, artifact, standing)
            if not is_seal(standing.seal, seal):
                raise ForbiddenError("This upload is not yours to go on with.")
            upload, seq = standing.upload, await self._store.append(standing.upload, piece, standing.seq)
        pieces = 1 if standing is None else standing.pieces + 1
        if stored_bytes + len(piece) < artifact.size_bytes:
            now = PutStanding(upload=upload, seq=seq, size_bytes=stored_bytes + len(piece), pieces=pieces, seal="")
            return Stored(standing=now.model_copy(update={"seal": await self._seal(owner, artifact, now)}))
        if not await self._store.complete(upload, artifact, pieces):
            found = await self._store.named(artifact.object_name)
            return Stored(artifact=_the_same(found, artifact))
        return Stored(artifact=artifact)

    async def _begin(self, owner: str, artifact: Artifact, piece: bytes, most: int) -> tuple[str, int]:
        """Begin an upload unless its owner stores too much; the first piece stores with it how large the whole will be."""
        lock = self._counting.setdefault(owner, asyncio.Lock())
        async with lock:
            await self._check_room(owner, artifact, most)
            upload = await self._store.begin(owner, artifact.object_name, artifact.size_bytes, self._clock.now())
            seq = await self._store.append(upload, piece, 0)
            if (counted := self._counted.get(owner)) is not None:
                self._counted[owner] = counted.with_one_more(artifact)
        return upload, seq

    async def _check_room(self, owner: str, artifact: Artifact, most: int) -> None:
        counted = self._counted.get(owner)
        if counted is None or not await self._is_to_be_believed(counted, artifact, most):
            counted = self._counted[owner] = await self._count(owner)
            self._counted.move_to_end(owner)
            if len(self._counted) > _REMEMBERED:
                self._counted.popitem(last=False)
        if counted.has_room(artifact, most):
            return
        stores = f"{owner} stores {counted.size_bytes:,} of {most:,} bytes in {counted.files:,} of {_MOST_FILES:,} files"
        raise OverQuotaError(
            f"{stores}: no room for {artifact.name!r} with {artifact.size_bytes:,}.",
            hint="Files go with their goals; an operator can remove old goals (`ioa goals prune`) or raise the quota.",
        )

    async def _is_to_be_believed(self, counted: _Counted, artifact: Artifact, most: int) -> bool:
        """Whether what was counted tells enough: who has no room has none until something is removed."""
        now = self._clock.now()
        if counted.has_room(artifact, most):
            return now < counted.until
        return now < counted.rests_until or counted.removed == await self._store.removed()

    async def _count(self, owner: str) -> _Counted:
        began, removed = self._clock.now(), await self._store.removed()
        stored = await self._store.stored_by(owner)
        ended = self._clock.now()
        return _Counted(stored.size_bytes, stored.files, began + _COUNTED_FOR, ended + _REST * (ended - began), removed)

    async def _seal(self, owner: str, artifact: Artifact, standing: PutStanding) -> str:
        said = (standing.upload, standing.seq, standing.size_bytes, standing.pieces)
        return await self._tickets.seal(json.dumps([owner, artifact.object_name, artifact.size_bytes, artifact.sha256, *said]))


def _why_not_put(comm_id: CommId, agent_id: AgentId, head: StoredEntry | None) -> NotFoundError | ConflictError | None:
    if head is None or agent_id not in head.entry.state.hearing:
        return NotFoundError(f"{agent_id} is in no group {comm_id}.")
    if head.entry.state.phase.is_terminal:
        return ConflictError(f"The group {comm_id} has ended; it takes no more files.")
    return None


def _owner_of(user: UserId) -> str:
    """Return how the store calls a user whose uploads they are."""
    return f"user-{user}"


def _artifact(file: Announced, stored_as: str) -> Artifact:
    return Artifact(object_name=stored_as, **file.model_dump())


def _the_same(found: Artifact | None, announced: Artifact) -> Artifact:
    """Return the file that is there if it is the one that was announced."""
    if found is None or (found.sha256, found.size_bytes) != (announced.sha256, announced.size_bytes):
        raise ConflictError(f"Another file is stored in the place of {announced.name!r}: what is stored never changes.")
    return found
