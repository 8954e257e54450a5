"""Transfer of files in pieces. Only group setup reads and writes the store.

A file is announced with its size and digest, and each piece is a request to any replica. No replica stores the progress: the
sender receives it with a seal and returns it with the next piece. Readers find the file after its last piece.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from typing import Annotated

from pydantic import Field

from ioa.errors import InvalidInputError, NotFoundError
from ioa.protocol.goals import Announced, Artifact, ObjectName
from ioa.protocol.ids import AgentIdField, CommIdField, GoalIdField, SessionIdField
from ioa.protocol.model import Carrier, Digest, Model
from ioa.protocol.usage import Count

PIECE_BYTES = 512 * 1024
"""Size of a piece; the last one of a file is smaller."""
MAX_PUT_BYTES = PIECE_BYTES + 16_384
"""Maximum size of a request with a piece."""
MAX_ASKING_BYTES = 8_192
"""Maximum size of a request for a piece."""

Place = Annotated[str, Field(min_length=1, max_length=512)]
"""Name of a file, unique for its writer and its group or goal."""


class PutStanding(Model):
    """Progress of a put, for group setup only; the seal proves that group setup created it.

    Attributes:
        upload: Place of the bytes.
        seq: Sequence of the last piece in its stream.
        size_bytes: Number of bytes there.
    """

    upload: Annotated[str, Field(max_length=200)]
    seq: Count
    size_bytes: Count
    seal: Annotated[str, Field(max_length=64, repr=False)]


class PutFile(Carrier):
    """Put the next piece of a file into an open group that the agent is in; the first one has no `standing`.

    `session` is the process that sends it.
    """

    agent_id: AgentIdField
    comm_id: CommIdField
    place: Place
    file: Announced
    standing: PutStanding | None = None
    session: SessionIdField | None = None


class PutUpload(Carrier):
    """Put the next piece of a file for a goal of the caller."""

    goal_id: GoalIdField
    place: Place
    file: Announced
    standing: PutStanding | None = None


class Stored(Model):
    """Progress of a put. With `artifact`, the reference, the file is complete; otherwise the next piece is expected."""

    standing: PutStanding | None = None
    artifact: Artifact | None = None


class GetFile(Model):
    """Request a piece of a file. The reference (object name and digest) is the permission to read it.

    `after` is the number of the piece before, 0 for the first one.
    """

    object_name: ObjectName
    sha256: Digest
    after: Count = 0


class FilePiece(Carrier):
    """Bytes of a file, and the number of the piece; no bytes at the end."""

    after: Count


PutPiece = Callable[[Announced, PutStanding | None, bytes], Awaitable[Stored]]
"""Puts the next piece of a file."""

GetPiece = Callable[[int], Awaitable[FilePiece]]
"""Gets the piece of a file that follows one."""


class AskStored(Model):
    """Read the owners of most stored bytes."""


class OwnerBytes(Model):
    """Stored bytes of an owner: `agent-` or `user-` and a name."""

    owner: str
    size_bytes: Count
    files: Count


class StoredBytes(Model):
    """The owners of most stored bytes, and the total of all owners."""

    owners: tuple[OwnerBytes, ...]
    size_bytes: Count


async def put_in_pieces(name: str, data: bytes, media_type: str, put: PutPiece) -> Artifact:
    """Put a whole file, one piece after the other.

    Args:
        name: Name of the file.
        data: The file.
        media_type: Media type.
        put: Sends one request.
    """
    announced = Announced(name=name, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest(), media_type=media_type)

    async def read(at: int) -> bytes:
        return data[at : at + PIECE_BYTES]

    return await put_announced(announced, read, put)


async def put_announced(announced: Announced, read: Callable[[int], Awaitable[bytes]], put: PutPiece) -> Artifact:
    """Put a file whose size and digest are known; `read` returns the piece that begins at a place."""
    standing: PutStanding | None = None
    while True:
        stored = await put(announced, standing, await read(0 if standing is None else standing.size_bytes))
        if stored.artifact is not None:
            return stored.artifact
        standing = stored.standing


async def whole(pieces: AsyncIterable[bytes]) -> bytes:
    """Join the pieces of a file."""
    return b"".join([piece async for piece in pieces])


async def stream_in_pieces(
    artifact: Artifact, get: GetPiece, *, start: int = 0, stop: int | None = None
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a file from `start` up to `stop`.

    The last piece is yielded when all are read, and the digest is right; the digest of a part is not checked. Bytes before `start`
    are read and skipped.

    Raises:
        NotFoundError: The file, or a part of it, is missing.
        InvalidInputError: The file differs from its reference.
    """
    end = artifact.size_bytes if stop is None else min(stop, artifact.size_bytes)
    digest, at, after, wanted = hashlib.sha256(), 0, 0, b""
    while True:
        piece = await get(after)
        if not piece.data and at < end:
            raise NotFoundError(f"Of the file {artifact.name!r} only {at:,} of {artifact.size_bytes:,} bytes are stored.")
        if wanted:
            yield wanted
        wanted = piece.data[max(0, start - at) : max(0, end - at)]
        digest.update(piece.data)
        at, after = at + len(piece.data), piece.after
        if at >= end:
            break
    if start == 0 and end == artifact.size_bytes and (at != end or digest.hexdigest() != artifact.sha256):
        raise InvalidInputError(f"The file {artifact.name!r} has changed since it was referenced.")
    if wanted:
        yield wanted


_DIGITS = 32


def folder_of(owner: str) -> str:
    """Return the folder of the files of a goal (by its key) or of a group (by its `comm_id`). It does not reveal the owner."""
    return hashlib.sha256(f"files of {owner}".encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
