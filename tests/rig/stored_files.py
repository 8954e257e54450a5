"""Whole files in a store, by its own steps."""

from __future__ import annotations

import hashlib

from ioa.adapters.nats.stores.goal_files import NatsFileStore
from ioa.errors import NotFoundError
from ioa.protocol.codec import decode, encode
from ioa.protocol.goals import Artifact
from ioa.protocol.setup.file_requests import PIECE_BYTES, FilePiece, stream_in_pieces, whole
from ioa.testing.manual_clock import NEW_YEAR

OWNER = "agent-ada"


async def store_file(
    store: NatsFileStore, object_name: str, name: str, data: bytes, media_type: str = "text/plain", owner: str = OWNER
) -> Artifact:
    """Put a file into the store; the name must be free."""
    sha256 = hashlib.sha256(data).hexdigest()
    artifact = Artifact(name=name, object_name=object_name, size_bytes=len(data), sha256=sha256, media_type=media_type)
    upload = await store.begin(owner, object_name, len(data), NEW_YEAR)
    pieces = [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)] or [b""]
    after = 0
    for piece in pieces:
        after = await store.append(upload, piece, after)
    assert await store.complete(upload, artifact)
    return artifact


async def fetch_file(store: NatsFileStore, artifact: Artifact) -> bytes:
    """Read a file back and check it."""
    stored = await store.find(artifact.object_name)
    if stored is None:
        raise NotFoundError(f"{artifact.object_name} is not stored.")

    async def get(after: int) -> FilePiece:
        return decode(FilePiece, encode(await store.read(stored, after)))  # as it travels

    return await whole(stream_in_pieces(artifact, get))
