"""Files in a dictionary."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ioa.adapters.nats.stores.goal_files import NatsFileStore, StoredFile, counts_as
from ioa.errors import ConflictError, InvalidInputError, NotFoundError
from ioa.protocol.goals import Artifact
from ioa.protocol.setup.file_requests import FilePiece, OwnerBytes
from ioa.testing.manual_clock import NEW_YEAR


@dataclass
class _Upload:
    owner: str
    object_name: str
    size_bytes: int
    begun: datetime
    pieces: list[bytes] = field(default_factory=list)
    complete: bool = False


class MemoryFileStore(NatsFileStore):
    """`FileStore` for unit tests. False in this: files are lost with the process, and nothing is ever out of reach or full.

    A file of `put` counts for no owner.
    """

    def __init__(self) -> None:
        self._uploads: dict[str, _Upload] = {}
        self._files: dict[str, StoredFile] = {}
        self._number = 0

    async def find(self, object_name: str) -> StoredFile | None:
        """Find a file."""
        return self._files.get(object_name)

    async def read(self, stored: StoredFile, after: int) -> FilePiece:
        """Read a piece."""
        upload = self._uploads.get(stored.upload)
        if upload is None or after >= len(upload.pieces):
            return FilePiece(data=b"", after=after)
        return FilePiece(data=upload.pieces[after], after=after + 1)

    async def begin(self, owner: str, object_name: str, size_bytes: int, at: datetime) -> str:
        """Begin an upload."""
        self._forget(object_name)
        self._number += 1
        upload = f"{owner}.{self._number}"
        self._uploads[upload] = _Upload(owner, object_name, size_bytes, at)
        return upload

    async def append(self, upload: str, data: bytes, after: int) -> int:
        """Store a piece."""
        begun = self._uploads.get(upload)
        if begun is None or begun.complete or len(begun.pieces) != after:
            raise ConflictError("The upload has been dropped, or goes on elsewhere.")
        begun.pieces.append(data)
        return after + 1

    async def complete(self, upload: str, artifact: Artifact) -> bool:
        """Let everybody see the file."""
        if artifact.object_name in self._files:
            self._forget(artifact.object_name)
            return False
        self._uploads[upload].complete = True
        self._files[artifact.object_name] = StoredFile(artifact=artifact, upload=upload)
        return True

    async def owners(self, owner: str = "*") -> Mapping[str, OwnerBytes]:
        """Add up sizes, by owner."""
        counted: dict[str, list[int]] = {}
        for one in self._uploads.values():
            if one.owner:
                counted.setdefault(one.owner, []).append(counts_as(one.size_bytes))
        return {name: OwnerBytes(owner=name, size_bytes=sum(sizes), files=len(sizes)) for name, sizes in counted.items()}

    async def drop_interrupted(self, begun_before: datetime) -> Sequence[str]:
        """Remove what is not complete."""
        names = [one.object_name for one in self._uploads.values() if not one.complete and one.begun < begun_before]
        for name in names:
            self._forget(name)
        return names

    async def remove(self, object_name: str) -> None:
        """Remove a file, as retention does."""
        found = self._files.get(object_name)
        if found is not None:
            del self._files[object_name]
            self._uploads.pop(found.upload)

    async def put(self, object_name: str, name: str, data: bytes, media_type: str) -> Artifact:
        """Put a file at once; the same name again replaces it."""
        sha256 = hashlib.sha256(data).hexdigest()
        artifact = Artifact(name=name, object_name=object_name, size_bytes=len(data), sha256=sha256, media_type=media_type)
        self._uploads[f"by hand {object_name}"] = _Upload("", object_name, len(data), NEW_YEAR, [data], complete=True)
        self._files[object_name] = StoredFile(artifact=artifact, upload=f"by hand {object_name}")
        return artifact

    async def get(self, artifact: Artifact) -> bytes:
        """Read a whole file by its reference."""
        found = self._files.get(artifact.object_name)
        if found is None:
            raise NotFoundError(f"There is no object {artifact.object_name!r} in the store of files.")
        if found.artifact.sha256 != artifact.sha256:
            raise InvalidInputError(f"The file {artifact.name!r} has changed since it was referenced.")
        return b"".join(self._uploads[found.upload].pieces)

    def stored(self) -> Sequence[str]:
        """Return the names of all objects."""
        return list(self._files)

    def _forget(self, object_name: str) -> None:
        for place in [at for at, one in self._uploads.items() if one.object_name == object_name and not one.complete]:
            del self._uploads[place]
