"""An agent that is reached by the Agent2Agent protocol (A2A), in its version 1.0 or 0.3: https://a2a-protocol.org.

Three of its calls are enough for a task, so they are made here by JSON-RPC. The protocol's library brings 34 packages, which
whoever adopts an agent does without.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Unpack
from urllib.parse import urljoin

from ioa.adopt.endpoint import LOOKS, MAX_FILES_BYTES, Calls, Endpoint, finished, read_object
from ioa.adopt.membership import Card, adopted, failure, with_results
from ioa.agent.definition import InputFile, TaskContext
from ioa.agent.workspace import MAX_ARTIFACT_BYTES, check_names
from ioa.errors import DeclinedError, InvalidInputError, TaskError
from ioa.hosting.agent import Agent
from ioa.retry import pauses

CARD = ".well-known/agent-card.json"
_MOST_EXAMPLES = 20
_OPEN = ("submitted", "working")


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
                while remote.dialect.state(said) in _OPEN:
                    if (words := _words(said.get("status", {}).get("message"))) and words != told:
                        told = words
                        ctx.progress(words)
                    await asyncio.sleep(next(pause))
                    said = await remote.ask("get", {"id": said["id"]})
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

    @staticmethod
    def state(task: Mapping[str, Any]) -> str:
        """Return the state of a task by its name in 0.3; a message that came in the place of a task is the answer."""
        state = task.get("status", {}).get("state", "completed") if "status" in task else "completed"
        return str(state).removeprefix("TASK_STATE_").lower().replace("_", "-")


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


@dataclass(frozen=True)
class _Remote:
    """An agent as its card describes it."""

    calls: Calls
    url: str
    dialect: _Dialect

    async def ask(self, what: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Call a method, and return the task or the message that it answers with."""
        call = {"jsonrpc": "2.0", "id": 1, "method": self.dialect.methods[what], "params": params}
        version = {"A2A-Version": self.dialect.version}
        said = await read_object(await self.calls.send("POST", self.url, is_repeatable=what != "send", json=call, headers=version))
        if isinstance(error := said.get("error"), dict):
            raise failure(self.calls.whose, str(error.get("message", "")))
        result = said.get("result")
        result = next((result[key] for key in ("task", "message") if key in result), result) if isinstance(result, dict) else None
        if not isinstance(result, dict):
            raise TaskError(f"{self.calls.whose} has answered with neither a task nor a message of A2A.")
        return result

    async def cancel(self, task: Mapping[str, Any]) -> None:
        """Cancel a task that is open."""
        if self.dialect.state(task) in _OPEN:
            call = {"jsonrpc": "2.0", "id": 1, "method": self.dialect.methods["cancel"], "params": {"id": task["id"]}}
            await self.calls.leave("POST", self.url, json=call, headers={"A2A-Version": self.dialect.version})


async def _find(calls: Calls, url: str) -> _Remote:
    """Read an agent's card.

    Raises:
        TaskError: It speaks no JSON-RPC of a version that is spoken here, or on another server, which the headers are not for.
    """
    card = await read_object(await calls.send("GET", CARD))
    places = [
        (one.get("url"), one.get("protocolVersion"), one.get("protocolBinding"))
        for one in [*card.get("supportedInterfaces", ()), *card.get("additionalInterfaces", ())]
    ]
    places.append((card.get("url"), card.get("protocolVersion"), card.get("preferredTransport", "JSONRPC")))
    for place, version, binding in places:
        dialect = next((one for one in (_ONE, _BEFORE) if str(version).startswith(one.version)), None)
        if dialect is not None and binding == "JSONRPC" and str(place).startswith(urljoin(url, "/")):
            return _Remote(calls, str(place), dialect)
    raise TaskError(
        f"{calls.whose} has no card of an agent that speaks A2A 1.0 or 0.3 by JSON-RPC on this server.",
        hint="Adopt it by the address that its card names.",
    )


async def _result(remote: _Remote, task: Mapping[str, Any], ctx: TaskContext) -> str:
    """Return what came of a task.

    Raises:
        DeclinedError: The agent has rejected it.
        TaskError: It failed, or there is no text.
    """
    whose, state, said = remote.calls.whose, remote.dialect.state(task), _words(task.get("status", {}).get("message"))
    if state == "rejected":
        raise DeclinedError(f"{whose} has rejected the task: {said or 'it does not say why'}")
    if state != "completed":
        raise failure(whose, f"{state}, {said}" if said else state)
    made = [part for artifact in task.get("artifacts", ()) for part in artifact.get("parts", ())]
    files: list[tuple[str, Any, str, Any]] = []
    links = []
    for number, part in enumerate(made):
        told = {"bytes": part.get("raw"), "uri": part.get("url"), "name": part.get("filename"), "mimeType": part.get("mediaType")}
        file = part.get("file", told)
        name, data, place = str(file.get("name") or f"file-{number}"), file.get("bytes"), str(file.get("uri") or "")
        if isinstance(data, str) or place.startswith(urljoin(remote.url, "/")):
            files.append((name, data, place, file.get("mimeType")))
        elif place:  # of another server, which the headers are not for, and which nobody here has chosen
            links.append(f"{name}: {place}")
    check_names([name for name, *_ in files])
    for name, data, place, kind in files:
        if isinstance(data, str):
            content = await asyncio.to_thread(_decoded, data, whose)
        else:
            content = (await remote.calls.send("GET", place, max_bytes=MAX_ARTIFACT_BYTES)).content
        await asyncio.to_thread(ctx.artifact, name, content, kind)
    text = "\n".join([*_texts(made), *links]) or said or "\n".join(_texts(task.get("parts", ())))
    if not text:
        raise TaskError(f"{whose} has answered without any text.")
    return text


def _words(message: object) -> str:
    return "\n".join(_texts(message.get("parts", ()))) if isinstance(message, dict) else ""


def _texts(parts: Any) -> Iterator[str]:
    return (part["text"] for part in parts if isinstance(part.get("text"), str))


def _decoded(data: str, whose: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        raise TaskError(f"{whose} has sent a file that cannot be read.") from None
