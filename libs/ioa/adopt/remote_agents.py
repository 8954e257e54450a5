"""An agent that is reached by the Agent2Agent protocol (A2A), in its version 1.0 or 0.3: https://a2a-protocol.org.

Three of its calls are enough for a task, so they are made here by JSON-RPC. The protocol's library brings 34 packages, which
whoever adopts an agent does without.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Unpack
from urllib.parse import urljoin

from ioa.adopt.endpoint import LOOKS, MAX_FILES_BYTES, MAX_URL_CHARS, Calls, Endpoint, finished, read_by, read_object
from ioa.adopt.membership import Card, adopted, failure, with_results
from ioa.agent.definition import InputFile, TaskContext
from ioa.agent.workspace import MAX_ARTIFACT_BYTES, check_names
from ioa.errors import DeclinedError, InvalidInputError, TaskError
from ioa.hosting.agent import Agent
from ioa.retry import pauses

CARD = ".well-known/agent-card.json"
_MOST_EXAMPLES = 20
_OPEN = ("submitted", "working")
_MOST_PARTS = 10_000
"""Of a message, and of all artifacts of a task: servers that tell a text as it comes make one of each piece."""


def a2a(
    agent_id: str,
    url: str,
    *,
    description: str,
    headers: Mapping[str, str] | None = None,
    timeout: timedelta = timedelta(minutes=10),
    **card: Unpack[Card],
) -> Agent:
    """Adopt an agent that speaks A2A by JSON-RPC. A task is a message to it, whose id is the task's.

    Its card is read for each task, and says which version it speaks, and where on the same server. What its status says is
    reported; its artifacts are the result: text as text, files as files, but for those of another server, which stay links.
    Cancelling cancels its task. A task that it rejects is declined, and one for which it wants to know more has failed, with its
    question.

    Args:
        agent_id: As of any agent.
        url: Where its card is, without `/.well-known/agent-card.json`.
        description: What it does.
        headers: What each request carries, such as `Authorization`.
        timeout: How long one answer may take.
        card: What else a card may say.

    Raises:
        InvalidInputError: The address is none of HTTP, or the card cannot be valid.
    """
    endpoint = Endpoint(url.removesuffix("/") + "/", dict(headers or {}), timeout)

    async def send(task: str, ctx: TaskContext) -> str:
        async with endpoint.open() as calls:
            remote = await _find(calls, endpoint.url)
            message = await asyncio.to_thread(remote.dialect.message, task, ctx)
            said = await finished(remote.ask("send", message), remote.cancel)
            try:
                pause, told = pauses(*LOOKS), ""
                while said.is_open:
                    if said.words and said.words != told:
                        told = said.words
                        ctx.progress(told)
                    await asyncio.sleep(next(pause))
                    said = await remote.ask("get", {"id": said.task_id})
            except asyncio.CancelledError:
                await remote.cancel(said)
                raise
            return await _result(remote, said, ctx)

    return adopted(agent_id, description, card, send)


async def said_of_itself(url: str, headers: Mapping[str, str]) -> tuple[str, Sequence[str]]:
    """Read what an agent does, and examples of it, off its card.

    Raises:
        TaskError: It has no card that says so.
    """
    endpoint = Endpoint(url.removesuffix("/") + "/", headers)
    async with endpoint.open() as calls:
        card = await read_object(await calls.send("GET", CARD))
    skills = [skill for skill in card.get("skills", ()) if isinstance(skill, dict)]
    examples = [example for skill in skills for example in skill.get("examples") or [skill.get("name")] if isinstance(example, str)]
    if not isinstance(card.get("description"), str) or not card["description"]:
        raise TaskError(f"The card of {calls.whose} does not say what it does.", hint="Say it by --description.")
    return card["description"], examples[:_MOST_EXAMPLES]


@dataclass(frozen=True)
class _Dialect:
    """How a version of the protocol writes what all of them say."""

    version: str
    methods: Mapping[str, str]
    role: str
    text: Callable[[str], dict[str, Any]]
    file: Callable[[InputFile, str], dict[str, Any]]
    at_once: Mapping[str, bool]

    def message(self, task: str, ctx: TaskContext) -> dict[str, Any]:
        """Make a message of a task, with its files."""
        files = [*ctx.inputs, *(file for result in ctx.results for file in result.artifacts)]
        if sum(file.path.stat().st_size for file in files) > MAX_FILES_BYTES:
            raise InvalidInputError(f"The files of this task hold more than {MAX_FILES_BYTES:,} bytes.")
        sent = [self.file(file, base64.b64encode(file.path.read_bytes()).decode()) for file in files]
        kind = {} if self is _ONE else {"kind": "message"}
        said = {"messageId": ctx.task_key, "role": self.role, "parts": [self.text(with_results(task, ctx)), *sent], **kind}
        return {"message": said, "configuration": self.at_once}


_ONE = _Dialect(
    "1.0",
    {"send": "SendMessage", "get": "GetTask", "cancel": "CancelTask"},
    "ROLE_USER",
    lambda text: {"text": text},
    lambda file, data: {"raw": data, "filename": file.name, "mediaType": file.media_type},
    {"returnImmediately": True},
)
_BEFORE = _Dialect(
    "0.3",
    {"send": "message/send", "get": "tasks/get", "cancel": "tasks/cancel"},
    "user",
    lambda text: {"kind": "text", "text": text},
    lambda file, data: {"kind": "file", "file": {"bytes": data, "name": file.name, "mimeType": file.media_type}},
    {"blocking": False},
)


class _File(NamedTuple):
    """A file of an artifact: its content in base64, or where on the server it is."""

    name: str
    data: str | None
    place: str
    media_type: Any


@dataclass(frozen=True)
class _Said:
    """What an agent says of a task, or the message that came in its place, which is the answer.

    Attributes:
        task_id: Which task.
        state: How it stands, by its name in 0.3.
        words: What it says of that.
        files: What is to be attached.
        text: What has come of it.
    """

    task_id: Any
    state: str
    words: str
    files: Sequence[_File]
    text: str

    @property
    def is_open(self) -> bool:
        """Whether the task goes on."""
        return self.state in _OPEN


@dataclass(frozen=True)
class _Remote:
    """An agent as its card describes it.

    Attributes:
        root: How all addresses on its server begin.
    """

    calls: Calls
    url: str
    root: str
    dialect: _Dialect

    async def ask(self, what: str, params: Mapping[str, Any]) -> _Said:
        """Call a method, and return what is said of the task."""
        call = {"jsonrpc": "2.0", "id": 1, "method": self.dialect.methods[what], "params": params}
        version = {"A2A-Version": self.dialect.version}
        answer = await self.calls.send("POST", self.url, is_repeatable=what != "send", json=call, headers=version)
        return await read_by(answer, self._read)

    async def cancel(self, said: _Said) -> None:
        """Cancel a task that is open."""
        if said.is_open:
            call = {"jsonrpc": "2.0", "id": 1, "method": self.dialect.methods["cancel"], "params": {"id": said.task_id}}
            await self.calls.leave("POST", self.url, json=call, headers={"A2A-Version": self.dialect.version})

    def _read(self, answer: Any) -> _Said:
        """Read an answer. It may be large, and is read where it was parsed.

        Raises:
            TaskError: It is an error, says nothing of a task, or has too many parts.
        """
        said = answer if isinstance(answer, dict) else {}
        if isinstance(error := said.get("error"), dict):
            raise failure(self.calls.whose, str(error.get("message", "")))
        task = said.get("result")
        task = next((task[key] for key in ("task", "message") if key in task), task) if isinstance(task, dict) else None
        if not isinstance(task, dict):
            raise TaskError(f"{self.calls.whose} has answered with neither a task nor a message of A2A.")
        status = task.get("status", {})
        words = self._words(status.get("message"))
        files, links = list[_File](), list[str]()
        made = self._parts(part for artifact in task.get("artifacts", ()) for part in artifact.get("parts", ()))
        for number, part in enumerate(made):
            file = _file_of(part, number)
            if file.data is not None or file.place.startswith(self.root):
                files.append(file)
            elif file.place:  # of another server, which the headers are not for, and which nobody here has chosen
                links.append(f"{file.name}: {file.place}")
        text = "\n".join([*_texts(made), *links]) or words or self._words(task)
        return _Said(task.get("id"), _state(status), words, files, text)

    def _words(self, message: Any) -> str:
        return "\n".join(_texts(self._parts(message.get("parts", ())))) if isinstance(message, dict) else ""

    def _parts(self, told: Iterable[Any]) -> Sequence[Any]:
        """Return parts, once it is known that there are not too many to look at."""
        parts = [*islice(told, _MOST_PARTS + 1)]
        if len(parts) > _MOST_PARTS:
            raise TaskError(f"{self.calls.whose} has answered with more than {_MOST_PARTS:,} parts.")
        return parts


async def _find(calls: Calls, url: str) -> _Remote:
    """Read an agent's card.

    Raises:
        TaskError: It speaks no JSON-RPC of a version that is spoken here, or on another server, which the headers are not for.
    """
    root = urljoin(url, "/")
    found = await read_by(await calls.send("GET", CARD), partial(_spoken, root))
    if found is not None:
        place, dialect = found
        return _Remote(calls, place, root, dialect)
    raise TaskError(
        f"{calls.whose} has no card of an agent that speaks A2A 1.0 or 0.3 by JSON-RPC on this server.",
        hint="Adopt it by the address that its card names.",
    )


def _spoken(root: str, card: Any) -> tuple[str, _Dialect] | None:
    """Return where on its server an agent speaks which version, by its card; None if it does not."""
    card = card if isinstance(card, dict) else {}
    places = [
        (one.get("url"), one.get("protocolVersion"), one.get("protocolBinding"))
        for one in [*card.get("supportedInterfaces", ()), *card.get("additionalInterfaces", ())]
    ]
    places.append((card.get("url"), card.get("protocolVersion"), card.get("preferredTransport", "JSONRPC")))
    for place, version, binding in places:
        dialect = next((one for one in (_ONE, _BEFORE) if str(version).startswith(one.version)), None)
        is_here = isinstance(place, str) and len(place) <= MAX_URL_CHARS and place.startswith(root)
        if dialect is not None and binding == "JSONRPC" and is_here:
            return place, dialect
    return None


async def _result(remote: _Remote, said: _Said, ctx: TaskContext) -> str:
    """Return what came of a task.

    Raises:
        DeclinedError: The agent has rejected it.
        TaskError: It failed, or there is no text.
    """
    whose = remote.calls.whose
    if said.state == "rejected":
        raise DeclinedError(f"{whose} has rejected the task: {said.words or 'it does not say why'}")
    if said.state != "completed":
        raise failure(whose, f"{said.state}, {said.words}" if said.words else said.state)
    check_names([file.name for file in said.files])
    for file in said.files:
        if file.data is not None:
            content = await asyncio.to_thread(_decoded, file.data, whose)
        else:
            content = (await remote.calls.send("GET", file.place, max_bytes=MAX_ARTIFACT_BYTES)).content
        await asyncio.to_thread(ctx.artifact, file.name, content, file.media_type)
    if not said.text:
        raise TaskError(f"{whose} has answered without any text.")
    return said.text


def _state(status: Mapping[str, Any]) -> str:
    """Return how a task stands by its name in 0.3; what does not say so has ended."""
    return str(status.get("state", "completed")).removeprefix("TASK_STATE_").lower().replace("_", "-")


def _file_of(part: Mapping[str, Any], number: int) -> _File:
    """Return the file that a part is; one that is none has neither content nor place."""
    told = {"bytes": part.get("raw"), "uri": part.get("url"), "name": part.get("filename"), "mimeType": part.get("mediaType")}
    file = part.get("file", told)
    data = file.get("bytes")
    name = str(file.get("name") or f"file-{number}")
    return _File(name, data if isinstance(data, str) else None, str(file.get("uri") or ""), file.get("mimeType"))


def _texts(parts: Iterable[Any]) -> Iterator[str]:
    return (part["text"] for part in parts if isinstance(part.get("text"), str))


def _decoded(data: str, whose: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        raise TaskError(f"{whose} has sent a file that cannot be read.") from None
