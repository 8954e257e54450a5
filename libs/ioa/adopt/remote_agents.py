"""An agent of another system, reached by the Agent2Agent protocol (https://a2a-protocol.org) with the protocol's own client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Self, Unpack
from urllib.parse import urljoin

import httpx

from ioa.adopt.endpoint import POLL_SECONDS, Endpoint, ServerClient, check_size, finished
from ioa.adopt.membership import Card, failure, with_results
from ioa.agent.definition import TaskContext
from ioa.agent.workspace import MAX_ARTIFACT_BYTES, check_names
from ioa.errors import DeclinedError, InvalidInputError, IoaError, MissingExtraError, TaskError
from ioa.hosting.agent import Agent
from ioa.retry import pauses

try:
    from a2a.client import Client, ClientConfig, ClientFactory
    from a2a.client.card_resolver import parse_agent_card
    from a2a.client.client import ClientCallContext
    from a2a.helpers import get_data_parts
    from a2a.types.a2a_pb2 import (
        AgentCard,
        CancelTaskRequest,
        GetTaskRequest,
        Message,
        Part,
        Role,
        SendMessageRequest,
        Task,
        TaskState,
    )
except ImportError as error:
    raise MissingExtraError.of("Adopting an agent by A2A", "a2a") from error

_CARDS = (".well-known/agent-card.json", ".well-known/agent.json")
_THIS_MACHINE = ("localhost", "127.0.0.1", "0.0.0.0", "::1", "::")  # noqa: S104 - names in cards, at which nothing listens
"""Hosts in a card that name the agent's own server."""
_MAX_EXAMPLES = 20
_MAX_QUESTION_CHARS = 2_000
_NO_ANSWER = "There is no answer. Decide yourself."


def a2a(
    agent_id: str,
    url: str,
    *,
    description: str,
    headers: Mapping[str, str] | None = None,
    timeout: timedelta = timedelta(minutes=10),
    **card: Unpack[Card],
) -> Agent:
    """Adopt an agent that speaks A2A 1.0 or 0.3 by JSON-RPC or HTTP+JSON; this needs the extra `a2a`.

    A task is a message to the agent. The words of its status are reported as progress. Its artifacts are the result: texts and data
    are the text, files are attached, files on another server stay links. Its questions are asked with `ctx.ask`. A task that it
    rejects is declined. Cancelling cancels its task. The agent's card is read at the start, and for each task.

    Args:
        agent_id: As for `ioa.Agent`.
        url: The address of the card, without `/.well-known/agent-card.json`.
        description: What the agent does.
        headers: Headers of each request to this server, such as `Authorization`.
        timeout: Timeout for one answer.
        card: More fields of the card.

    Raises:
        InvalidInputError: The address is not an HTTP URL, or the card is not valid.
    """
    endpoint = Endpoint(url.removesuffix("/") + "/", dict(headers or {}), timeout)
    return _RemoteAgent(agent_id, description, remote=_Remote(endpoint), **card)


async def said_of_itself(url: str, headers: Mapping[str, str]) -> tuple[str, Sequence[str]]:
    """Return the description and examples of an agent's card.

    Raises:
        TaskError: The card cannot be read, or has no description.
    """
    endpoint = Endpoint(url.removesuffix("/") + "/", headers)
    async with _Remote(endpoint).connected() as (card, _, _):
        examples = [example for skill in card.skills for example in skill.examples or [skill.name] if example]
        if not card.description:
            raise TaskError(f"The card of {endpoint.host} has no description.", hint="Write one with --description.")
        return card.description, examples[:_MAX_EXAMPLES]


@dataclass
class _RemoteAgent(Agent):
    """An agent whose tasks another system does."""

    remote: _Remote = field(kw_only=True, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.task(self.remote.do)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        """Check that the agent can be reached with a supported binding."""
        async with self.remote.connected():
            pass
        yield self


@dataclass(frozen=True)
class _Remote:
    """The other system's agent."""

    endpoint: Endpoint

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[tuple[AgentCard, Client, ServerClient]]:
        """Read the agent's card, and open a client for its preferred interface.

        Raises:
            InvalidInputError: The card names no supported interface.
            TaskError: The card cannot be read.
        """
        async with self.endpoint.open(_without_nulls) as http:
            card = await self._read_card(http)
            config = ClientConfig(
                streaming=False, polling=True, httpx_client=http, supported_protocol_bindings=["JSONRPC", "HTTP+JSON"]
            )
            try:
                client = ClientFactory(config).create(card)
            except ValueError:
                offers = (
                    ", ".join(f"{one.protocol_binding} {one.protocol_version}" for one in card.supported_interfaces) or "nothing"
                )
                needed = "A2A 1.0 or 0.3 by JSON-RPC or HTTP+JSON"
                raise InvalidInputError(f"{self.endpoint.host} does not offer {needed}; its card names {offers}.") from None
            yield card, client, http

    async def _read_card(self, http: ServerClient) -> AgentCard:
        for place in _CARDS:
            try:
                content = (await http.get(place)).content
                break
            except TaskError as error:
                if place == _CARDS[-1] or f"status {HTTPStatus.NOT_FOUND:d}" not in error.message:
                    raise
        try:
            card = parse_agent_card(json.loads(content))
            for one in card.supported_interfaces:
                one.protocol_binding = one.protocol_binding.upper()
                one.url = self._own_address(urljoin(self.endpoint.url, one.url))
                if one.protocol_version.startswith("0.2"):  # the messages of 0.3
                    one.protocol_version = "0.3.0"
        except Exception as error:  # noqa: BLE001 - of the library and of its parsers
            raise failure(self.endpoint.host, f"its card cannot be read: {error}") from None
        return card

    def _own_address(self, url: str) -> str:
        """Return the address of an interface. Cards of servers that do not know their own name contain `localhost`."""
        own, named = httpx.URL(self.endpoint.url), httpx.URL(url)
        if named.host in _THIS_MACHINE:
            named = named.copy_with(scheme=own.scheme, host=own.host, port=own.port)
        return str(named)

    async def do(self, task: str, ctx: TaskContext) -> str:
        """Do a task.

        Raises:
            DeclinedError: The agent rejects the task.
            TaskError: The agent fails, or answers without a text.
        """
        async with self.connected() as (_, client, http):
            conversation = _Conversation(client, http, self.endpoint, ctx)
            answer = await finished(conversation.send(await asyncio.to_thread(_request, task, ctx)), conversation.cancel)
            questions = list[str]()
            while not isinstance(answer, Message):
                answer = await conversation.until_done(answer)
                state, text = answer.status.state, conversation.text(answer.status.message.parts)
                if state == TaskState.TASK_STATE_REJECTED:
                    raise DeclinedError(f"{self.endpoint.host} has rejected the task: {text or 'it gives no reason'}")
                if state == TaskState.TASK_STATE_INPUT_REQUIRED and text and text not in questions:
                    questions.append(text)
                    answer = await conversation.ask(answer, text, len(questions))
                    continue
                if state not in (TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_UNSPECIFIED):
                    name = TaskState.Name(state).removeprefix("TASK_STATE_").lower().replace("_", "-")
                    raise failure(self.endpoint.host, f"{name}, {text}" if text else name)
                break
            return await conversation.result(answer)


@dataclass(frozen=True)
class _Conversation:
    """The calls of one task."""

    client: Client
    http: ServerClient
    endpoint: Endpoint
    ctx: TaskContext

    async def send(self, request: SendMessageRequest) -> Task | Message:
        """Send a message, and return the task that it starts or continues, or the message that answers it."""
        try:
            async for response in self.client.send_message(request):
                return response.message if response.HasField("message") else response.task
        except IoaError:
            raise
        except Exception as error:  # noqa: BLE001 - of the library and of its parsers
            raise failure(self.endpoint.host, str(error)) from None
        raise TaskError(f"{self.endpoint.host} has not answered.")

    async def until_done(self, task: Task) -> Task:
        """Poll a task while it is open, and report the words of its status."""
        pause, told = pauses(*POLL_SECONDS), ""
        context = ClientCallContext(service_parameters={"Idempotency-Key": self.ctx.task_key})
        try:
            while task.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING):
                if (text := self.text(task.status.message.parts)) not in ("", told):
                    told = text
                    self.ctx.progress(text)
                await asyncio.sleep(next(pause))
                try:
                    task = await self.client.get_task(GetTaskRequest(id=task.id), context=context)
                except IoaError:
                    raise
                except Exception as error:  # noqa: BLE001 - of the library and of its parsers
                    raise failure(self.endpoint.host, str(error)) from None
        except asyncio.CancelledError:
            await self.cancel(task)
            raise
        return task

    async def ask(self, task: Task, question: str, number: int) -> Task | Message:
        """Ask a question of the agent, and send it the answer."""
        try:
            answer = await self.ctx.ask(question[:_MAX_QUESTION_CHARS], default=_NO_ANSWER)
        except asyncio.CancelledError:
            await self.cancel(task)
            raise
        message = Message(
            message_id=f"{self.ctx.task_key}-{number}", role=Role.ROLE_USER, parts=[Part(text=answer)],
            task_id=task.id, context_id=task.context_id,
        )  # fmt: skip
        return await finished(self.send(SendMessageRequest(message=message)), self.cancel)

    async def cancel(self, answer: Task | Message) -> None:
        """Cancel a task; a message needs no cancellation."""
        if not isinstance(answer, Message):
            await self.http.leave(self.client.cancel_task(CancelTaskRequest(id=answer.id)))

    def text(self, parts: Sequence[Part]) -> str:
        """Return the texts, data and links of parts, one per line."""
        lines = []
        for part in parts:
            kind = part.WhichOneof("content")
            if kind == "text":
                lines.append(part.text)
            elif kind == "data":
                lines += map(_as_json, get_data_parts([part]))
            elif kind == "url" and not self.endpoint.is_own(part.url):
                lines.append(f"{part.filename or 'file'}: {part.url}")
        return "\n".join(lines)

    async def result(self, answer: Task | Message) -> str:
        """Attach the files of an answer, and return its text.

        Raises:
            TaskError: There is no text.
        """
        if isinstance(answer, Message):
            parts, others = list(answer.parts), []
        else:
            parts = [part for artifact in answer.artifacts for part in artifact.parts]
            others = [answer.status.message, *(one for one in reversed(answer.history) if one.role == Role.ROLE_AGENT)]
        files = [part for part in parts if part.WhichOneof("content") == "raw" or (part.url and self.endpoint.is_own(part.url))]
        names = [part.filename or f"file-{number}" for number, part in enumerate(files)]
        check_names(names)
        for name, part in zip(names, files, strict=True):
            content = part.raw
            if part.url:
                content = (await self.http.get(part.url, extensions={"max_bytes": MAX_ARTIFACT_BYTES})).content
            await asyncio.to_thread(self.ctx.artifact, name, content, part.media_type or None)
        for text in (self.text(parts), *(self.text(message.parts) for message in others)):
            if text:
                return text
        raise TaskError(f"{self.endpoint.host} has answered without any text.")


def _request(task: str, ctx: TaskContext) -> SendMessageRequest:
    """Return the message of a task, with its files."""
    files = [*ctx.inputs, *(file for result in ctx.results for file in result.artifacts)]
    check_size(files)
    parts = [Part(raw=file.path.read_bytes(), filename=file.name, media_type=file.media_type) for file in files]
    message = Message(message_id=ctx.task_key, role=Role.ROLE_USER, parts=[Part(text=with_results(task, ctx)), *parts])
    return SendMessageRequest(message=message)


def _as_json(data: object) -> str:
    """Return data as JSON, with whole numbers as integers: the protocol's types contain only floats."""

    def number(text: str) -> float:
        return int(value) if (value := float(text)).is_integer() else value

    return json.dumps(json.loads(json.dumps(data), parse_float=number), ensure_ascii=False)


def _without_nulls(content: bytes) -> bytes:
    """Return JSON without members that are null, which many servers write for absent values; other content unchanged."""
    try:
        return json.dumps(_present(json.loads(content))).encode()
    except (ValueError, RecursionError):
        return content


def _present(value: Any) -> Any:
    if isinstance(value, list):
        return [_present(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: one if key in ("data", "metadata") else _present(one) for key, one in value.items() if one is not None}
    if "artifactId" in kept or "messageId" in kept:
        kept.setdefault("parts", [])
    return kept
