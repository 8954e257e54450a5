"""The store of files, as group setup works with it; nobody else does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ioa.protocol.goals import Artifact


@dataclass(frozen=True)
class StoredFile:
    """A file that is whole: its reference, and where its bytes lie."""

    artifact: Artifact
    bucket: str
    upload: str

    @property
    def owner(self) -> str:
        """Whose it is, with which the name of each upload begins; what was put by other means is nobody's."""
        owner, mark, _ = self.upload.partition(".")
        return owner if mark else ""


@dataclass(frozen=True)
class Page:
    """Bytes of a file, and from where to go on; none if there are no more."""

    data: bytes
    after: int


_LEAST_BYTES = 4_096
"""What a file counts at least: an empty one takes its place in the store too."""


def counts_as(size_bytes: int) -> int:
    """Return as how many bytes a file of so many counts for its owner."""
    return max(size_bytes, _LEAST_BYTES)


@dataclass(frozen=True)
class OwnBytes:
    """What an owner stores: how many bytes, in how many files."""

    size_bytes: int = 0
    files: int = 0


class FileStore(Protocol):
    """Files that are written once, piece by piece, and seen when they are whole.

    Raises:
        UnavailableError: From every method; a `StoreFullError`, if there is no room.
    """

    async def find(self, object_name: str, sha256: str) -> StoredFile | None:
        """Find a whole file by its name and its digest, wherever it lies.

        Raises:
            InvalidInputError: What the store says of it cannot be read.
        """

    async def named(self, object_name: str) -> Artifact | None:
        """Tell which whole file the system stores under a name."""

    async def describe(self, object_name: str) -> Artifact:
        """Build the reference of an object that somebody stored by other means, among those of users only.

        Raises:
            NotFoundError: There is no such object.
            InvalidInputError: What the store says of it cannot be read.
        """

    async def read(self, stored: StoredFile, after: int) -> Page:
        """Read on, behind the piece with the number `after`; as much as fits into a message."""

    async def begin(self, owner: str, object_name: str, size_bytes: int, at: datetime) -> str:
        """Begin an upload and drop what an earlier one of this name has left; returns where the bytes go.

        Args:
            owner: Whose it is.
            object_name: What the file is to be called.
            size_bytes: What the owner is counted for it, from now on.
            at: The time, by which it is told later that an upload was interrupted.
        """

    async def append(self, upload: str, data: bytes, after: int) -> int:
        """Store a piece behind the one with the number `after`, 0 for the first; returns its number.

        Raises:
            ConflictError: That is not the last one: the upload was dropped, or goes on elsewhere.
        """

    async def complete(self, upload: str, artifact: Artifact, pieces: int) -> bool:
        """Let everybody see the file. False, and the upload is dropped, if another one has the name."""

    async def stored_by(self, owner: str) -> OwnBytes:
        """Tell what counts as an owner's, uploads under way with their whole size."""

    async def owners(self) -> Mapping[str, OwnBytes]:
        """Tell what each owner stores."""

    async def drop_interrupted(self, begun_before: datetime) -> Sequence[str]:
        """Remove what uploads have left that were begun before a time and are not complete; returns the names."""

    async def remove(self, object_name: str) -> None:
        """Remove a file that the system stores, never one that users put into the store by other means."""
