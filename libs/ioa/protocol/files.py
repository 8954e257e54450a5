"""Files on their way into the store and out of it, piece by piece: nobody but group setup reads or writes the store.

A file is announced with its size and its digest and comes in pieces, one request each, which any replica takes. Between the pieces
no replica keeps anything: where a put stands is told to whoever puts, sealed, and comes back with the next piece. Readers find the
whole when its last piece is there, and never before.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from typing import Annotated

from pydantic import Field

from ioa.errors import InvalidInputError, NotFoundError
from ioa.protocol.goals import Artifact, FileName, ObjectName
from ioa.protocol.ids import AgentIdField, CommIdField, GoalIdField, SessionIdField
from ioa.protocol.model import Carrier, Model
from ioa.protocol.usage import MAX_COUNT

PIECE_BYTES = 512 * 1024
"""What goes with one request; the last piece of a file has less."""
MAX_PUT_BYTES = PIECE_BYTES + 16_384
"""What a request that puts a piece may have, with what is told of it."""
MAX_ASKING_BYTES = 8_192
"""What a request for a piece may have."""

Place = Annotated[str, Field(min_length=1, max_length=512)]
"""What a file is called among those that its writer put into the same group, or for the same goal."""
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Size = Annotated[int, Field(ge=0, le=MAX_COUNT)]


class Announced(Model):
    """A file as its writer announces it. No byte beyond `size_bytes` is taken; readers hold it to the digest."""

    name: FileName
    size_bytes: _Size
    sha256: _Digest
    media_type: Annotated[str, Field(max_length=200)] = "application/octet-stream"


class PutStanding(Model):
    """How far a put has come. It means nothing to whoever puts; the seal tells group setup that it is its own word.

    Attributes:
        upload: Where the bytes lie.
        seq: The number of the last piece in its stream.
        size_bytes: How many bytes lie there.
    """

    upload: Annotated[str, Field(max_length=200)]
    seq: _Size
    size_bytes: _Size
    seal: Annotated[str, Field(max_length=64, repr=False)]


class PutFile(Carrier):
    """Put the next piece of a file into an open group that the agent is in; the first one has no `standing`.

    `session` is the process that puts it; None is of a version that does not say.
    """

    agent_id: AgentIdField
    comm_id: CommIdField
    place: Place
    file: Announced
    standing: PutStanding | None = None
    session: SessionIdField | None = None


class PutUpload(Carrier):
    """Put the next piece of a file that the caller is about to send with a goal."""

    goal_id: GoalIdField
    place: Place
    file: Announced
    standing: PutStanding | None = None


class Stored(Model):
    """Where a put stands. With `artifact` the file is there, and that is how it is referred to; else the next piece is awaited."""

    standing: PutStanding | None = None
    artifact: Artifact | None = None


class GetFile(Model):
    """Request a piece of a file. The reference (object name and digest) is the permission to read it.

    `after` is the number of the piece before, 0 for the first one.
    """

    object_name: ObjectName
    sha256: _Digest
    after: _Size = 0


class FilePiece(Carrier):
    """Bytes of a file, and from where to go on; no bytes if there are no more."""

    after: _Size


PutPiece = Callable[[Announced, PutStanding | None, bytes], Awaitable[Stored]]
"""Puts the next piece of a file."""

GetPiece = Callable[[int], Awaitable[FilePiece]]
"""Gets the piece of a file that follows one."""


class AskStored(Model):
    """Ask who stores most."""


class OwnerBytes(Model):
    """What somebody stores: `agent-` or `user-` and a name."""

    owner: str
    size_bytes: _Size
    files: _Size


class StoredBytes(Model):
    """Who stores most, and what all files have together that have an owner."""

    owners: tuple[OwnerBytes, ...]
    size_bytes: _Size


async def put_in_pieces(name: str, data: bytes, media_type: str, put: PutPiece) -> Artifact:
    """Put a whole file by as many requests as it needs, one after the other.

    Args:
        name: What people call it.
        data: The file.
        media_type: What it is.
        put: Makes one request.
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
    """Join the bytes of a file that comes in pieces, for whoever needs all of it at once."""
    return b"".join([piece async for piece in pieces])


async def stream_in_pieces(
    artifact: Artifact, get: GetPiece, *, start: int = 0, stop: int | None = None
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a file from `start` up to `stop`, as they come.

    Of the whole file the digest is checked when the last byte has been yielded; of a part of it nothing can be checked. What lies
    before `start` is read and left out.

    Raises:
        NotFoundError: It is gone, or not all of it is there.
        InvalidInputError: It is not the file that was referenced.
    """
    end = artifact.size_bytes if stop is None else min(stop, artifact.size_bytes)
    digest, at, after = hashlib.sha256(), 0, 0
    while True:
        piece = await get(after)
        if wanted := piece.data[max(0, start - at) : max(0, end - at)]:
            yield wanted
        digest.update(piece.data)
        at, after = at + len(piece.data), piece.after
        if at >= end:
            break
        if not piece.data:
            raise NotFoundError(f"Of the file {artifact.name!r} only {at:,} of {artifact.size_bytes:,} bytes are stored.")
    if start == 0 and end == artifact.size_bytes and (at != end or digest.hexdigest() != artifact.sha256):
        raise InvalidInputError(f"The file {artifact.name!r} has changed since it was referenced.")
