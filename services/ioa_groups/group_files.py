"""Files: agents and users store them in pieces and read them by reference; quotas per owner.

A reference (object name and digest) is the permission to read a file. An object name is an HMAC of owner and place: unguessable,
and the same for a repeated upload. A file never changes.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import structlog

from ioa.adapters.nats.stores.goal_files import StoredFile
from ioa.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    OverQuotaError,
    PayloadTooLargeError,
    reason_of,
)
from ioa.protocol.goals import Announced, Artifact
from ioa.protocol.ids import AgentId, CommId, GoalName, UserId
from ioa.protocol.setup.file_requests import (
    PIECE_BYTES,
    AskStored,
    FilePiece,
    GetFile,
    OwnerBytes,
    PutFile,
    PutStanding,
    PutUpload,
    Stored,
    StoredBytes,
    folder_of,
    put_in_pieces,
)
from ioa.protocol.setup.tickets import is_seal
from ioa_groups.group_ports import GroupServicePorts

INTERRUPTED_AFTER = timedelta(hours=1)
"""Age at which an incomplete upload is removed."""
SWEEP_EVERY = timedelta(minutes=10)
_NAMED_OWNERS = 10
_MAX_FILES = 60_000
"""Maximum files per owner: nats-server lists the names of all files of an owner in one message, at most 100,000 names."""
_HMAC_DIGITS = 32
"""128 bits."""

_log = structlog.get_logger(__name__)


class FileService:
    """Requests for files.

    Args:
        ports: Stores and services.
        agent_bytes, user_bytes: Maximum stored bytes per agent and per user.
    """

    def __init__(self, ports: GroupServicePorts, agent_bytes: int, user_bytes: int) -> None:
        self._ports = ports
        self._store = ports.files
        self._agent_bytes = agent_bytes
        self._user_bytes = user_bytes

    async def get(self, request: GetFile) -> FilePiece:
        """Read a piece of a file by its reference.

        Raises:
            NotFoundError: No file is stored by this reference.
        """
        stored = await self._store.find(request.object_name)
        if stored is None or stored.artifact.sha256 != request.sha256:
            raise NotFoundError("No file is stored by this reference.")
        return await self._store.read(stored, request.after)

    async def put(self, request: PutFile) -> Stored:
        """Store the next piece of an agent's file.

        Raises:
            NotFoundError: The agent is not a member of the group, or the group does not exist.
            SupersededError: Another process has taken the agent's id over.
            ConflictError: The group has ended, another file has this place, or the upload was dropped.
            InvalidInputError: The piece has another length than announced.
            PayloadTooLargeError: The file exceeds the quota of an agent.
            OverQuotaError: The agent's files would exceed its quota.
            StoreFullError: The store is full.
        """
        await self._ports.sessions.check(request.agent_id, request.session)
        if request.standing is None:
            await self._check_member(request.comm_id, request.agent_id)
        file = _artifact(request.file, await self._object_name(request.comm_id, request.agent_id, request.place))
        return await self._store_piece(f"agent-{request.agent_id}", file, request.standing, request.data, self._agent_bytes)

    async def put_upload(self, user: UserId, request: PutUpload) -> Stored:
        """Store the next piece of a user's file for a goal.

        Raises:
            ConflictError: Another file has this place, or the upload was dropped.
            InvalidInputError: The piece has another length than announced.
            PayloadTooLargeError: The file exceeds the quota of a user.
            OverQuotaError: The user's files would exceed the quota.
            StoreFullError: The store is full.
        """
        goal = GoalName(user, request.goal_id)
        file = _artifact(request.file, await self._object_name(goal.key, user, request.place))
        return await self._store_piece(f"user-{user}", file, request.standing, request.data, self._user_bytes)

    async def keep(self, goal: GoalName, position: int, name: str, data: bytes, media_type: str) -> Artifact:
        """Store an inline input of a goal; it counts as an upload of the goal's user.

        Raises:
            ConflictError: Another text is stored for this input.
            PayloadTooLargeError: The file exceeds the quota of a user.
            OverQuotaError: The user's files would exceed the quota.
        """
        stored_as = await self._object_name(goal.key, str(position), name)

        async def put(file: Announced, standing: PutStanding | None, piece: bytes) -> Stored:
            return await self._store_piece(f"user-{goal.user}", _artifact(file, stored_as), standing, piece, self._user_bytes)

        return await put_in_pieces(name, data, media_type, put)

    async def stored(self, _request: AskStored) -> StoredBytes:
        """Return the owners with most stored bytes, and the sum of all."""
        owners = sorted((await self._store.owners()).values(), key=lambda own: own.size_bytes, reverse=True)
        return StoredBytes(owners=tuple(owners[:_NAMED_OWNERS]), size_bytes=sum(own.size_bytes for own in owners))

    async def sweep(self, every: timedelta = SWEEP_EVERY) -> None:
        """Remove interrupted uploads periodically until cancelled."""
        while True:
            try:
                dropped = await self._store.drop_interrupted(self._ports.clock.now() - INTERRUPTED_AFTER)
                if dropped:
                    _log.info("uploads_dropped", count=len(dropped))  # an object name is a permission and must not be logged
            except Exception as error:  # noqa: BLE001 - the sweep continues after any error
                _log.warning("sweep_failed", error=reason_of(error))
            await asyncio.sleep(every.total_seconds())

    async def _object_name(self, owner: str, *place: str) -> str:
        hmac = await self._ports.tickets.seal(json.dumps(["file", owner, *place]))
        return f"{folder_of(owner)}/{hmac[:_HMAC_DIGITS]}"

    async def _check_member(self, comm_id: CommId, agent_id: AgentId) -> None:
        """Check that an agent is a member of a group that has not ended."""
        head = await self._ports.ledger.head(comm_id)
        if head is None or agent_id not in head.entry.state.hearing:
            raise NotFoundError(f"{agent_id} is in no group {comm_id}.")
        if head.entry.state.phase.is_terminal:
            raise ConflictError(f"The group {comm_id} has ended; it accepts no files.")

    async def _store_piece(self, owner: str, artifact: Artifact, standing: PutStanding | None, piece: bytes, most: int) -> Stored:
        """Store a piece; the last one makes the file readable. A file that is already stored is returned at the first piece."""
        if artifact.size_bytes > most:
            raise PayloadTooLargeError(f"{artifact.name!r} has {artifact.size_bytes:,} bytes; the quota is {most:,} bytes.")
        stored_bytes = 0 if standing is None else standing.size_bytes
        left = artifact.size_bytes - stored_bytes
        if len(piece) != min(PIECE_BYTES, left):
            raise InvalidInputError(
                f"A piece of {len(piece):,} bytes does not fit: {left:,} bytes are missing, at most {PIECE_BYTES:,} in one piece."
            )
        if standing is None:
            found = await self._store.find(artifact.object_name)
            if found is not None:
                return Stored(artifact=_the_same(found, artifact))
            upload, seq = await self._begin(owner, artifact, piece, most)
        else:
            if not is_seal(standing.seal, await self._seal(owner, artifact, standing)):
                raise ForbiddenError("This is another caller's upload.")
            upload, seq = standing.upload, await self._store.append(standing.upload, piece, standing.seq)
        if len(piece) < left:
            now = PutStanding(upload=upload, seq=seq, size_bytes=stored_bytes + len(piece), seal="")
            return Stored(standing=now.model_copy(update={"seal": await self._seal(owner, artifact, now)}))
        if not await self._store.complete(upload, artifact):
            return Stored(artifact=_the_same(await self._store.find(artifact.object_name), artifact))
        return Stored(artifact=artifact)

    async def _begin(self, owner: str, artifact: Artifact, piece: bytes, most: int) -> tuple[str, int]:
        """Begin an upload and store its first piece; return the upload's id and the sequence of the piece.

        From now on the size of the whole file counts for the owner's quota.

        Raises:
            OverQuotaError: The file does not fit into the quota.
        """
        none = OwnerBytes(owner=owner, size_bytes=0, files=0)
        stored = (await self._store.owners(owner)).get(owner, none)
        if stored.files >= _MAX_FILES or stored.size_bytes + artifact.size_bytes > most:
            stores = f"{owner} stores {stored.size_bytes:,} of {most:,} bytes in {stored.files:,} of {_MAX_FILES:,} files"
            raise OverQuotaError(
                f"{stores}: no room for {artifact.name!r} with {artifact.size_bytes:,}.",
                hint="Files go with their goals; an operator can remove old goals (`ioa goals prune`) or raise the quota.",
            )
        upload = await self._store.begin(owner, artifact.object_name, artifact.size_bytes, self._ports.clock.now())
        return upload, await self._store.append(upload, piece, 0)

    async def _seal(self, owner: str, artifact: Artifact, standing: PutStanding) -> str:
        said = (standing.upload, standing.seq, standing.size_bytes)
        words = [owner, artifact.object_name, artifact.size_bytes, artifact.sha256, *said]
        return await self._ports.tickets.seal(json.dumps(words))


def _artifact(file: Announced, stored_as: str) -> Artifact:
    return Artifact(object_name=stored_as, **file.model_dump())


def _the_same(found: StoredFile | None, announced: Artifact) -> Artifact:
    """Return the stored file if its bytes are the announced bytes."""
    if found is None or (found.artifact.sha256, found.artifact.size_bytes) != (announced.sha256, announced.size_bytes):
        raise ConflictError(f"Another file is stored in the place of {announced.name!r}; a stored file never changes.")
    return found.artifact
