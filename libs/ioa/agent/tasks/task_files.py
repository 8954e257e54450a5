"""The files of one member in a group: downloads, workspaces of tasks, uploads."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
from collections.abc import AsyncIterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from ioa.agent.send import MAX_TEXT_BYTES, until_answered
from ioa.agent.task_context import InputFile
from ioa.disk import remove_folder
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.brain_types import WholeConclusion
from ioa.protocol.goals import Artifact, plain_file_name
from ioa.protocol.ids import AgentId, CommId, SessionId, TaskId
from ioa.protocol.messages import MAX_ARTIFACTS, Conclusion
from ioa.protocol.setup.file_requests import whole
from ioa.protocol.texts import shortened

ANSWER_FILE = "answer.md"
"""Name of the file with a conclusion that is longer than a message."""
TRACE_FILE = "trace.jsonl"
_READ_ONLY = 0o444
_DIGEST_CHARS = 16


@dataclass
class GroupFiles:
    """A group's files, as one member reads and writes them. Each file is downloaded once into the group's folder.

    Args:
        network: Access to the file store.
        me: The member.
        comm_id: The group.
        folder: Folder for downloads and workspaces of the group.
        session: The session of this process.
    """

    network: AgentNetwork
    me: AgentId
    comm_id: CommId
    folder: Path
    session: SessionId

    def __post_init__(self) -> None:
        self._fetching = asyncio.Lock()

    async def fetch(self, artifacts: Sequence[Artifact]) -> tuple[InputFile, ...]:
        """Download files that the group's folder lacks.

        Raises:
            NotFoundError: A file is not in the store.
            InvalidInputError: A file differs from its SHA-256 digest.
            UnavailableError: The store does not answer.
        """
        async with self._fetching:
            for artifact in artifacts:
                await self._fetch(artifact)
        return self.fetched(artifacts)

    def fetched(self, artifacts: Sequence[Artifact]) -> tuple[InputFile, ...]:
        """Return files that were downloaded, without a check."""
        return tuple([InputFile(artifact.name, self._path(artifact), artifact.media_type) for artifact in artifacts])

    async def get_file(self, artifact: Artifact) -> bytes:
        """Return a file's content; see `FileReader`."""
        return await whole(self.network.stream_file(self.me, artifact))

    async def create_workspace(self, task_id: TaskId, attempt: int) -> Path:
        """Create an empty folder for one attempt at a task."""
        folder = self.folder / "tasks" / f"{task_id}-{attempt}"
        await asyncio.to_thread(_make_empty, folder)
        return folder

    def remove_workspace(self, folder: Path) -> asyncio.Future[None]:
        """Delete the folder of an attempt that has ended, in a thread."""
        return asyncio.get_running_loop().run_in_executor(None, remove_folder, folder)

    def task_key(self, task_id: TaskId) -> str:
        """Return the key that identifies a task in all groups, agents and tenants."""
        path = f"{self.folder / 'tasks'}/{task_id}"
        return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[: 2 * _DIGEST_CHARS]

    async def upload(self, task_id: TaskId, made: Sequence[InputFile]) -> tuple[Artifact, ...]:
        """Store the files that a task made. Another content of the same name is another stored file."""
        stored = []
        for file in made:
            data = await asyncio.to_thread(file.path.read_bytes)
            stored.append(await self._put(task_id, file.name, data, file.media_type))
        return tuple(stored)

    async def upload_trace(self, task_id: TaskId, trace: bytes) -> tuple[Artifact, ...]:
        """Store the trace of a task."""
        return (await self._put(f"{task_id}/traces", TRACE_FILE, trace, "application/jsonl"),) if trace else ()

    async def fit(self, conclusion: Conclusion, turn: int) -> Conclusion:
        """Make a conclusion fit into a message: a longer one is cut, and attached whole as the file `answer.md`."""
        texts = dict(conclusion.texts) if isinstance(conclusion, WholeConclusion) else {}
        content = shortened(conclusion.content, MAX_TEXT_BYTES)
        if len(conclusion.content.encode("utf-8", "replace")) > MAX_TEXT_BYTES:
            texts = {ANSWER_FILE: conclusion.content, **texts}
            note = f"\n\n[… cut here: all {len(conclusion.content):,} characters of this answer are in the file {ANSWER_FILE}]"
            content = shortened(conclusion.content, MAX_TEXT_BYTES - len(note.encode())) + note
        written = [
            await until_answered(self._put, f"conclusion-{turn}", name, text.encode("utf-8", "replace"), _media_type(name))
            for name, text in texts.items()
        ]
        artifacts = (*written, *(file for file in conclusion.artifacts if file.name not in texts))[:MAX_ARTIFACTS]
        return Conclusion(content=content, reason=conclusion.reason, artifacts=artifacts, rejects=conclusion.rejects)

    async def remove(self) -> None:
        """Delete all local copies and workspaces."""
        await asyncio.to_thread(remove_folder, self.folder)

    def _path(self, artifact: Artifact) -> Path:
        return self.folder / "files" / artifact.sha256 / plain_file_name(artifact.name)

    async def _fetch(self, artifact: Artifact) -> None:
        path = self._path(artifact)
        if await asyncio.to_thread(path.exists):
            return
        async with aclosing(self.network.stream_file(self.me, artifact)) as pieces:
            await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
            await _download(pieces, path)

    async def _put(self, folder: str, name: str, data: bytes, media_type: str) -> Artifact:
        place = f"{folder}/{name}/{hashlib.sha256(data).hexdigest()[:_DIGEST_CHARS]}"
        return await self.network.put_file(self.me, self.comm_id, place, name, data, media_type, self.session)


def _media_type(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "text/plain"


def _make_empty(folder: Path) -> None:
    remove_folder(folder)
    folder.mkdir(parents=True)


async def _download(pieces: AsyncIterable[bytes], path: Path) -> None:
    """Write a file; the network verifies its SHA-256 digest after the last piece."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            async for piece in pieces:
                await asyncio.to_thread(file.write, piece)
        part.chmod(_READ_ONLY)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
