"""Input files of a goal: files on this machine, and files that are received in parts."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
import tempfile
from collections.abc import AsyncIterable
from pathlib import Path

from ioa.errors import InvalidInputError
from ioa.protocol.codec import validate
from ioa.protocol.goals import Announced, Artifact
from ioa.protocol.setup.files import PIECE_BYTES, PutPiece, put_announced, put_in_pieces


def read_input(file: Path) -> bytes:
    """Read an input of a goal; this blocks.

    Raises:
        InvalidInputError: The file cannot be read.
    """
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"The input {file} cannot be read: {error.strerror}.") from None


async def put_data(name: str, data: bytes | AsyncIterable[bytes], media_type: str | None, put: PutPiece) -> Artifact:
    """Store a file from bytes or from a stream.

    The digest is sent before the first piece. Therefore a stream is first written to a temporary file, not to memory.

    Args:
        name: A plain file name.
        data: The content.
        media_type: Default: guessed from the name.
        put: Stores one piece.

    Raises:
        InvalidInputError: The name is not a plain file name.
    """
    fields = {"name": name, "media_type": media_type or mimetypes.guess_type(name)[0] or "application/octet-stream"}
    described = validate(Announced, {**fields, "size_bytes": 0, "sha256": hashlib.sha256().hexdigest()})
    if isinstance(data, bytes):
        return await put_in_pieces(described.name, data, described.media_type, put)
    with tempfile.SpooledTemporaryFile(max_size=PIECE_BYTES) as gathered:
        digest, size = hashlib.sha256(), 0
        async for part in data:
            digest.update(part)
            size += len(part)
            await asyncio.to_thread(gathered.write, part)

        async def read(at: int) -> bytes:
            gathered.seek(at)
            return await asyncio.to_thread(gathered.read, PIECE_BYTES)

        announced = described.model_copy(update={"size_bytes": size, "sha256": digest.hexdigest()})
        return await put_announced(announced, read, put)
