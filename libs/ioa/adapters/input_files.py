"""Files on this machine that go along with a goal."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ioa.errors import InvalidInputError


@dataclass(frozen=True)
class InputData:
    """A file as it is stored: in a place of its own among the goal's, shown as `name`."""

    place: str
    name: str
    data: bytes
    media_type: str


async def read_inputs(files: Sequence[Path]) -> AsyncIterator[InputData]:
    """Read the inputs of a goal, one after the other; the media type is guessed from each name.

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
