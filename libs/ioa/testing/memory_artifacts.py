"""Files in a dictionary."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ioa.errors import InvalidInputError, NotFoundError
from ioa.protocol.goals import Artifact


class MemoryArtifacts:
    """`Artifacts` for unit tests. False in this: they are lost with the process, and nothing is ever out of reach."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[Artifact, bytes]] = {}

    async def put(self, object_name: str, name: str, data: bytes, media_type: str) -> Artifact:
        """Store a file."""
        artifact = Artifact(
            name=name,
            object_name=object_name,
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            media_type=media_type,
        )
        self._files[object_name] = artifact, data
        return artifact

    async def get(self, artifact: Artifact) -> bytes:
        """Fetch a file and check it."""
        stored, data = self._find(artifact.object_name)
        if stored.sha256 != artifact.sha256:
            raise InvalidInputError(f"The file {artifact.name!r} has changed since it was referenced.")
        return data

    def remove(self, object_name: str) -> None:
        """Remove a file, as retention does."""
        self._files.pop(object_name, None)

    def stored(self) -> Sequence[str]:
        """Return the names of all objects."""
        return list(self._files)

    async def describe(self, object_name: str) -> Artifact:
        """Build the reference of an object."""
        stored, _ = self._find(object_name)
        return stored

    def _find(self, object_name: str) -> tuple[Artifact, bytes]:
        if object_name not in self._files:
            raise NotFoundError(f"There is no object {object_name!r} in the artifact store.")
        return self._files[object_name]
