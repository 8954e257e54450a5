"""The files of tasks: downloads of a group, the workspace of a task, and its artifacts."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from ioa.agent.asking import until_answered
from ioa.agent.chatting import Ask, Chatting, question
from ioa.agent.conversation import GivenOut, Heard, Teammate
from ioa.agent.definition import InputFile, UpstreamResult, report, spent, trace_line
from ioa.agent.history import GroupHistory
from ioa.agent.inquiring import WITHIN, Inquire, Inquiring, Inquiry
from ioa.agent.listening import TaskEvent
from ioa.agent.outbox import MAX_TEXT_BYTES
from ioa.agent.searching import Searching
from ioa.agent.under_way import UnderWay
from ioa.disk import check_free_space, remove_folder
from ioa.errors import InvalidInputError, NotFoundError, TaskError
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.chat_model import ChatMessage, Tool
from ioa.ports.meter import Meter
from ioa.protocol.codec import encode
from ioa.protocol.files import whole
from ioa.protocol.goals import Artifact, plain_file_name
from ioa.protocol.ids import AgentId, CommId, GoalId, SessionId, TaskId
from ioa.protocol.messages import MAX_ARTIFACTS, Conclusion
from ioa.protocol.search import Need
from ioa.protocol.texts import shortened

MAX_ARTIFACT_BYTES = 64 * 1024 * 1024
MAX_GROUP_BYTES = 4_000_000_000
"""Maximum bytes of the files that one member downloads in a group."""
_READ_ONLY = 0o444
MAX_ARTIFACTS_BYTES = 1_000_000_000
"""What all files may hold that a task attaches."""
ANSWER_FILE = "answer.md"
"""What the whole of a conclusion is called that is longer than a message."""
TRACE_FILE = "trace.jsonl"
MAX_TRACE_BYTES = 4_000_000
_MAX_MEDIA_TYPE_CHARS = 200
_PLACE_DIGITS = 16
_FILES_BYTES = 100_000
"""Maximum bytes of the file references in a conclusion; its log entry contains them twice."""
_KEY_CHARS = 32

T = TypeVar("T")


@dataclass(frozen=True)
class MadeFile:
    """A file that a task attached to its result."""

    name: str
    path: Path
    media_type: str
    size_bytes: int


class GroupFiles:
    """A group's files, as one member reads and writes them. Each file is downloaded once into the group's folder.

    Args:
        network: Access to the file store.
        me: The member.
        history: The group's entries, by which downloads are authorised.
        folder: Folder for downloads and workspaces of the group.
        session: The session of this process.
    """

    def __init__(self, network: AgentNetwork, me: AgentId, history: GroupHistory, folder: Path, session: SessionId) -> None:
        self._network = network
        self._me = me
        self._session = session
        self.history = history
        self._folder = folder
        self._fetching = asyncio.Lock()
        self._fetched_bytes = 0

    async def fetch(self, artifacts: Sequence[Artifact]) -> tuple[InputFile, ...]:
        """Download files that the group's folder lacks.

        Raises:
            NotFoundError: A file is gone from the store.
            TaskError: The disk has no room, or the group's files would exceed `MAX_GROUP_BYTES`.
            UnavailableError: The store does not answer.
        """
        async with self._fetching:
            for artifact in artifacts:
                await self._fetch(artifact)
        return self.fetched(artifacts)

    def fetched(self, artifacts: Sequence[Artifact]) -> tuple[InputFile, ...]:
        """Return files that were downloaded, without a check."""
        return tuple([InputFile(artifact.name, self._path(artifact), artifact.media_type) for artifact in artifacts])

    async def lacking(self, artifacts: Sequence[Artifact]) -> Sequence[tuple[Artifact, str]]:
        """Download files; return the files that are missing or differ from their reference, with the reason.

        Raises:
            UnavailableError: The store does not answer.
        """
        found: list[tuple[Artifact, str]] = []
        for artifact in artifacts:
            try:
                await self.fetch([artifact])
            except (NotFoundError, InvalidInputError) as error:
                found.append((artifact, error.message))
        return found

    async def get_file(self, artifact: Artifact) -> bytes:
        """Fetch a file.

        Raises:
            NotFoundError: The store has no such file, or no entry of the group references it.
            UnavailableError: The store does not answer.
        """
        return await whole(self._stream(artifact))

    async def create_workspace(self, task_id: TaskId, attempt: int) -> Path:
        """Make an empty folder for one attempt at a task."""
        folder = self._folder / "tasks" / f"{task_id}-{attempt}"
        await asyncio.to_thread(_make_empty, folder)
        return folder

    async def remove_workspace(self, folder: Path) -> None:
        """Delete the folder of an attempt that has ended, with the copies of files that its function has made in it."""
        await asyncio.to_thread(remove_folder, folder)

    def remove_workspace_later(self, folder: Path) -> None:
        """Delete the folder in a thread, without waiting."""
        asyncio.get_running_loop().run_in_executor(None, remove_folder, folder)

    async def upload(self, task_id: TaskId, made: Sequence[MadeFile]) -> tuple[Artifact, ...]:
        """Store what a task made. What another attempt made of the same name lies elsewhere: a stored file never changes."""
        stored = []
        for file in made:
            data = await asyncio.to_thread(file.path.read_bytes)
            stored.append(await self._put(f"{task_id}/{file.name}", file.name, data, file.media_type))
        return tuple(stored)

    async def upload_trace(self, task_id: TaskId, trace: bytes) -> tuple[Artifact, ...]:
        """Store what a task noted of its steps, apart from the files that it made."""
        return (await self._put(f"{task_id}/traces/{TRACE_FILE}", TRACE_FILE, trace, "application/jsonl"),) if trace else ()

    async def fitting(self, conclusion: Conclusion, turn: int) -> Conclusion:
        """Make a conclusion fit into a message: the whole of a longer one goes with it as the file `answer.md`, which it names.

        Others made the files that it names, and called them what they liked: beyond what fits, those with the longest names are
        left out, and the text tells of that.
        """
        text = shortened(conclusion.content, len(conclusion.content.encode("utf-8", "replace")))
        files, data, said = conclusion.artifacts, text.encode(), ""
        named = _short_named(files)
        if len(named) < len(files):
            said = f"\n\n[… {len(files) - len(named)} files with long names are not named here; their tasks' results name them]"
        if len(data) + len(said.encode()) > MAX_TEXT_BYTES:
            place, comm_id = f"conclusion-{turn}/{ANSWER_FILE}", self.history.comm_id
            whole = await until_answered(lambda: self._put(place, ANSWER_FILE, data, "text/markdown"), comm_id=comm_id)
            said = f"\n\n[… cut here: all {len(text):,} characters of this answer are in the file {ANSWER_FILE}]{said}"
            text = data[: MAX_TEXT_BYTES - len(said.encode())].decode("utf-8", "ignore")
            named = (whole, *(file for file in named if file.name != ANSWER_FILE))[:MAX_ARTIFACTS]
        return Conclusion(content=text + said, reason=conclusion.reason, artifacts=named, rejects=conclusion.rejects)

    async def remove(self) -> None:
        """Delete all local copies."""
        await asyncio.to_thread(remove_folder, self._folder)

    def _stream(self, artifact: Artifact) -> AsyncGenerator[bytes, None]:
        return self._network.stream_file(self._me, artifact)

    def _path(self, artifact: Artifact) -> Path:
        return self._folder / "files" / artifact.sha256 / plain_file_name(artifact.name)

    async def _fetch(self, artifact: Artifact) -> None:
        path = self._path(artifact)
        if await asyncio.to_thread(path.exists):
            return
        size = artifact.size_bytes
        if self._fetched_bytes + size > MAX_GROUP_BYTES:
            raise TaskError(f"{artifact.name!r} has {size:,} bytes; the files of a group may have {MAX_GROUP_BYTES:,} together.")
        async with aclosing(self._stream(artifact)) as pieces:
            await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
            await asyncio.to_thread(check_free_space, path.parent, size, f"{artifact.name!r} with {size:,} bytes")
            await _download(pieces, path)
        self._fetched_bytes += size

    async def _put(self, place: str, name: str, data: bytes, media_type: str) -> Artifact:
        digest = hashlib.sha256(data).hexdigest()[:_PLACE_DIGITS]
        place, comm_id = f"{place}/{digest}", self.history.comm_id
        return await self._network.put_file(self._me, comm_id, place, name, data, media_type, self._session)


Seek = Callable[[Sequence[str | Need], int | None], Searching]
"""Asks discovery for needs, with the budget of the merged list."""


@dataclass(frozen=True)
class Circumstances:
    """In which group a task was given, how, and what had been said there; see `TaskContext`."""

    goal: str
    goal_id: GoalId
    comm_id: CommId
    given: GivenOut
    conversation: tuple[Heard, ...] = ()
    team: tuple[Teammate, ...] = ()
    inputs: Sequence[InputFile] = ()


class RunningTask:
    """The `TaskContext` of a task that runs. Its members may be used from any thread."""

    def __init__(  # noqa: PLR0913 - what its client gives it
        self,
        task_id: TaskId,
        attempt: int,
        around: Circumstances,
        results: Sequence[UpstreamResult],
        workspace: Path,
        meter: Meter,
        seek: Seek,
        ask: Ask,
        inquire: Inquire,
        tell: Callable[[type[TaskEvent], Mapping[str, Any]], None],
    ) -> None:
        self.task_id = task_id
        self.task_key = _key_of(workspace, task_id)
        self.attempt = attempt
        self.goal = around.goal
        self.goal_id = around.goal_id
        self.comm_id = around.comm_id
        self.asked_by = around.given.asked_by
        self.reason = around.given.reason
        self.rejected = around.given.rejected
        self.conversation = around.conversation
        self.team = around.team
        self.inputs = around.inputs
        self.results = results
        self.workspace = workspace
        self._meter = meter
        self._seek = seek
        self._ask = ask
        self._inquire = inquire
        self._tell = tell
        self._under_way: set[UnderWay[Any]] = set()
        self._trace = bytearray()
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._latest: tuple[str, float | None] | None = None
        self.draft = ""
        """What the model has written of an answer so far, while it writes one that may be shown."""
        self._made: dict[str, MadeFile] = {}
        self._attaching = threading.Lock()
        """Apart from the other, which the agent's loop takes: a file may be large."""

    @property
    def cancelled(self) -> bool:
        """Whether the task was cancelled."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Tell the task's function to stop, and give up what it has asked for."""
        self._cancelled.set()
        with self._lock:
            under_way = tuple(self._under_way)
        for asked in under_way:
            asked.cancel()

    def progress(self, content: str, fraction: float | None = None) -> None:
        """Keep the latest report; it is sent with the next renewal of the lease, or within a second."""
        latest = report(content, fraction)
        with self._lock:
            self._latest = latest

    def search(self, *needs: str | Need, budget: int | None = None) -> Searching:
        """Ask discovery which agents fit."""
        return self._followed(self._seek(needs, budget))

    def chat(
        self,
        messages: str | Sequence[ChatMessage],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        max_tokens: int | None = None,
        may_call: bool = True,
        stream: bool = False,
    ) -> Chatting:
        """Ask the agent's language model."""
        asked = question(messages, tools, schema, max_tokens, may_call=may_call, stream=stream)
        chatting = self._followed(self._ask(asked, self._hear))
        if stream:
            chatting.when_done(lambda _: self._hear(""))
        return chatting

    def ask(
        self,
        text: str,
        *,
        default: str,
        options: Sequence[str] = (),
        within: timedelta = WITHIN,
        role: str | None = None,
    ) -> Inquiring:
        """Ask who gave out the task, or the user of the goal."""
        return self._followed(self._inquire(Inquiry(text, default, tuple(options), role, within)))

    def _hear(self, draft: str) -> None:
        self.draft = draft

    def _followed(self, asked: UnderWay[T]) -> UnderWay[T]:
        """Give up what is asked for when the task is cancelled, before or after."""
        with self._lock:
            self._under_way.add(asked)
        asked.when_done(self._under_way.discard)
        if self.cancelled:
            asked.cancel()
        return asked

    def tell(self, kind: type[TaskEvent], /, **what: Any) -> None:
        """Tell the agent's listeners."""
        self._tell(kind, what)

    def trace(self, event: Mapping[str, Any]) -> None:
        """Note a step as a line of the trace; what does not fit any more is left out."""
        line = trace_line(event).encode("utf-8", "replace") + b"\n"
        with self._lock:
            if len(self._trace) + len(line) <= MAX_TRACE_BYTES:
                self._trace += line

    def spend(self, *, tokens: int = 0, answer_tokens: int = 0, cost: float = 0.0) -> None:
        """Count what the task has used up; the group hears of it with the next report."""
        self._meter.add(spent(tokens, answer_tokens, cost))

    def take_progress(self) -> tuple[str, float | None] | None:
        """Return the latest report that was not taken yet."""
        with self._lock:
            latest, self._latest = self._latest, None
        return latest

    def artifact(self, name: str, data: bytes | str, media_type: str | None = None) -> Path:
        """Attach a file to the result; the same name again replaces it."""
        path = self.workspace / "artifacts" / name
        with self._attaching:
            sizes = {made.name: made.size_bytes for made in self.made}
            content, kind = checked_artifact(name, data, media_type, sizes)
            size = len(content)
            check_free_space(self.workspace, size, f"{name!r} with {size:,} bytes")
            _write(path, content)
            with self._lock:
                self._made[name] = MadeFile(name, path, kind, size)
        return path

    @property
    def traced(self) -> bytes:
        """The trace so far, as JSON lines."""
        with self._lock:
            return bytes(self._trace)

    @property
    def made(self) -> tuple[MadeFile, ...]:
        """What was attached so far, in order."""
        with self._lock:
            return tuple(self._made.values())


def check_names(names: Collection[str]) -> None:
    """Check what files are called that a task is to attach, and how many there are, before any of them is there.

    Raises:
        InvalidInputError: Such files are not taken.
    """
    if len(names) > MAX_ARTIFACTS:
        raise InvalidInputError(f"A task may attach {MAX_ARTIFACTS} files.", hint="Pack them into one archive.")
    for name in names:
        if plain_file_name(name) != name:
            raise InvalidInputError(f"{name!r} is no plain file name.", hint="Use a short name without folders.")


def checked_artifact(name: str, data: bytes | str, media_type: str | None, made: Mapping[str, int]) -> tuple[bytes, str]:
    """Return the content and the media type of a file that a task attaches.

    Args:
        name: What the task calls it.
        data: Its content; text becomes UTF-8.
        media_type: What the task says it is; None guesses by the name.
        made: How many bytes each file has that was attached before.

    Raises:
        InvalidInputError: Such a file is not taken.
    """
    check_names({*made, name})
    content = data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data)
    kind = media_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
    if len(kind) > _MAX_MEDIA_TYPE_CHARS:
        raise InvalidInputError(f"{kind[:50]}… is no media type.")
    if len(content) > MAX_ARTIFACT_BYTES:
        raise InvalidInputError(f"{name} has {len(content):,} bytes; {MAX_ARTIFACT_BYTES:,} are allowed.")
    left = MAX_ARTIFACTS_BYTES - sum(made.values()) + made.get(name, 0)
    if len(content) > left:
        raise InvalidInputError(f"{name} has {len(content):,} bytes; {left:,} of {MAX_ARTIFACTS_BYTES:,} are left to its task.")
    return content, kind


def _key_of(workspace: Path, task_id: TaskId) -> str:
    """Tell a task from those of all groups, by the folder of its group, which is another one for each agent and tenant, too."""
    return hashlib.sha256(f"{workspace.parent}/{task_id}".encode("utf-8", "surrogateescape")).hexdigest()[:_KEY_CHARS]


def _short_named(files: Sequence[Artifact]) -> tuple[Artifact, ...]:
    """Return those of these files that a conclusion has room to name, in their order; of the others the longest are left out."""
    room, kept = _FILES_BYTES, set[int]()
    sizes = sorted((len(encode(file)), at) for at, file in enumerate(files))
    for size, at in sizes[:MAX_ARTIFACTS]:
        room -= size
        if room < 0:
            break
        kept.add(at)
    return tuple(file for at, file in enumerate(files) if at in kept)


def _make_empty(folder: Path) -> None:
    remove_folder(folder)
    folder.mkdir(parents=True)


async def _download(pieces: AsyncIterable[bytes], path: Path) -> None:
    """Write a file that the network verifies against its SHA-256 digest after the last piece. Tasks of the group share the copy."""
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


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(exist_ok=True)  # of a task that has ended its folder is gone, and stays so
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(data)
    temporary.replace(path)
