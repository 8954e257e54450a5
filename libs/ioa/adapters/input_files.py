"""Input files of a goal: files on this machine, and files that are received in parts."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
import tempfile
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ioa.errors import InvalidInputError
from ioa.protocol.codec import validate
from ioa.protocol.goals import Announced, Artifact
from ioa.protocol.setup.file_requests import PIECE_BYTES, PutPiece, put_announced, put_in_pieces


@dataclass(frozen=True)
class InputData:
    """An input file. `place` is its name in the store, unique among the files of the goal; `name` is shown to users."""

    place: str
    name: str
    data: bytes
    media_type: str


async def read_inputs(files: Sequence[Path]) -> AsyncIterator[InputData]:
    """Read the inputs of a goal in order; the media type is guessed from each name.

    Raises:
        InvalidInputError: A file cannot be read, or two have the same name.
    """
    names = [file.name for file in files]
    if len(set(names)) != len(names):
        raise InvalidInputError("Two inputs have the same file name.", hint="Rename one of them.")
    for number, file in enumerate(files):
        yield await asyncio.to_thread(_read, number, file)


def _read(number: int, file: Path) -> InputData:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"The input {file} cannot be read: {error.strerror}.") from None
    media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    return InputData(f"{number}/{file.name}", file.name, data, media_type)


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
