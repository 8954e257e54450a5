"""The files of a group in memory, for tests of what reads them."""

from __future__ import annotations

from ioa.protocol.goals import Artifact
from tests.rig.memory_file_store import MemoryFileStore


class MemoryFiles(MemoryFileStore):
    """A `FileReader`. False in that nothing is ever out of reach, and that whoever has it can also put files into it."""

    async def get_file(self, artifact: Artifact) -> bytes:
        """Fetch a file."""
        return await self.get(artifact)
