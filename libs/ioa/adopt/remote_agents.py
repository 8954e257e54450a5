"""An agent of another system, reached by the Agent2Agent protocol (https://a2a-protocol.org) with the protocol's own client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Self, Unpack

import httpx

from ioa.adopt.adopted_member import Card, failure
from ioa.adopt.endpoint import POLL_SECONDS, Endpoint, ServerClient, check_size, finished
from ioa.agent.task_context import MAX_ARTIFACT_BYTES, TaskContext, check_names
from ioa.agent.view_text import with_results
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

_OPEN = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)
_CARD = ".well-known/agent-card.json"
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
    return _RemoteAgent(agent_id, description, endpoint=endpoint, **card)


async def said_of_itself(url: str, headers: Mapping[str, str]) -> tuple[str, Sequence[str]]:
    """Return the description and examples of an agent's card.

    Raises:
        TaskError: The card cannot be read, or has no description.
    """
    endpoint = Endpoint(url.removesuffix("/") + "/", headers)
    async with _connected(endpoint) as (card, _, _):
        examples = [example for skill in card.skills for example in skill.examples or [skill.name] if example]
        if not card.description:
            raise TaskError(f"The card of {endpoint.host} has no description.", hint="Write one with --description.")
        return card.description, examples[:_MAX_EXAMPLES]


@dataclass
class _RemoteAgent(Agent):
    """An agent whose tasks another system does."""

    endpoint: Endpoint = field(kw_only=True, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.task(self._do)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        """Check that the agent can be reached with a supported binding."""
        async with _connected(self.endpoint):
            pass
        yield self

    async def _do(self, task: str, ctx: TaskContext) -> str:
        """Do a task.

        Raises:
            DeclinedError: The agent rejects the task.
            TaskError: The agent fails, or answers without a text.
        """
        async with _connected(self.endpoint) as (_, client, http):

            async def cancel(started: Task | Message) -> None:
                if isinstance(started, Task):
                    await http.leave(client.cancel_task(CancelTaskRequest(id=started.id)))

            answer = await finished(_send(client, await asyncio.to_thread(_message, task, ctx)), cancel)
            pause, progress, questions = pauses(*POLL_SECONDS), "", list[str]()
            again = ClientCallContext(service_parameters={"Idempotency-Key": ctx.task_key})
            try:
                while isinstance(answer, Task):
                    state, text = answer.status.state, _text(self.endpoint, answer.status.message.parts)
                    if state in _OPEN:
                        if text not in ("", progress):
                            progress = text
                            ctx.progress(text)
                        await asyncio.sleep(next(pause))
                        answer = await client.get_task(GetTaskRequest(id=answer.id), context=again)
                    elif state == TaskState.TASK_STATE_INPUT_REQUIRED and text and text not in questions:
                        questions.append(text)
                        reply = await ctx.ask(text[:_MAX_QUESTION_CHARS], default=_NO_ANSWER)
                        message = Message(
                            message_id=f"{ctx.task_key}-{len(questions)}", role=Role.ROLE_USER, parts=[Part(text=reply)]
                        )
                        message.task_id, message.context_id = answer.id, answer.context_id
                        answer = await _send(client, message)
                    else:
                        _check(self.endpoint.host, state, text)
                        break
            except asyncio.CancelledError:
                await cancel(answer)
                raise
            return await _result(self.endpoint, answer, http, ctx)


@asynccontextmanager
async def _connected(endpoint: Endpoint) -> AsyncIterator[tuple[AgentCard, Client, ServerClient]]:
    """Read an agent's card, and open a client for its preferred interface. Errors of the library are failures of the server.

    Raises:
        InvalidInputError: The card names no supported interface.
        TaskError: The card cannot be read.
    """
    config = ClientConfig(streaming=False, polling=True, supported_protocol_bindings=["JSONRPC", "HTTP+JSON"])
    async with endpoint.open() as http:
        config.httpx_client = http
        with _failures(endpoint.host):
            card = await _read_card(endpoint, http)
            try:
                client = ClientFactory(config).create(card)
            except ValueError:
                offers = ", ".join(f"{one.protocol_binding} {one.protocol_version}" for one in card.supported_interfaces)
                needed = "A2A 1.0 or 0.3 by JSON-RPC or HTTP+JSON"
                raise InvalidInputError(f"{endpoint.host} does not offer {needed}; its card names {offers or 'nothing'}.") from None
            yield card, client, http


async def _read_card(endpoint: Endpoint, http: ServerClient) -> AgentCard:
    card = parse_agent_card((await http.get(_CARD)).json())
    for one in card.supported_interfaces:
        one.protocol_binding = one.protocol_binding.upper()
        url = httpx.URL(endpoint.url).join(one.url)
        if url.host in _THIS_MACHINE:
            own = httpx.URL(endpoint.url)
            url = url.copy_with(scheme=own.scheme, host=own.host, port=own.port)
        one.url = str(url)
    return card


async def _send(client: Client, message: Message) -> Task | Message:
    """Send a message, and return the task that it starts or continues, or the message that answers it."""
    response = await anext(aiter(client.send_message(SendMessageRequest(message=message))))
    return response.message if response.HasField("message") else response.task


def _check(host: str, state: TaskState, text: str) -> None:
    """Raise an error for a state that is not a success."""
    if state == TaskState.TASK_STATE_REJECTED:
        raise DeclinedError(f"{host} has rejected the task: {text or 'it gives no reason'}")
    if state not in (TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_UNSPECIFIED):
        name = TaskState.Name(state).removeprefix("TASK_STATE_").lower().replace("_", "-")
        raise failure(host, f"{name}, {text}" if text else name)


def _text(endpoint: Endpoint, parts: Sequence[Part]) -> str:
    """Return the texts, data and links of parts, one per line."""
    lines = []
    for part in parts:
        kind = part.WhichOneof("content")
        if kind == "text":
            lines.append(part.text)
        elif kind == "data":
            lines += map(_as_json, get_data_parts([part]))
        elif kind == "url" and not endpoint.is_own(part.url):
            lines.append(f"{part.filename or 'file'}: {part.url}")
    return "\n".join(lines)


async def _result(endpoint: Endpoint, answer: Task | Message, http: ServerClient, ctx: TaskContext) -> str:
    """Attach the files of an answer, and return its text: of its artifacts, its status or its last message.

    Raises:
        TaskError: There is no text.
    """
    if isinstance(answer, Message):
        parts, messages = list(answer.parts), []
    else:
        parts = [part for artifact in answer.artifacts for part in artifact.parts]
        messages = [answer.status.message, *(one for one in reversed(answer.history) if one.role == Role.ROLE_AGENT)]
    files = [part for part in parts if part.WhichOneof("content") == "raw" or (part.url and endpoint.is_own(part.url))]
    names = [part.filename or f"file-{number}" for number, part in enumerate(files)]
    check_names(names)
    for name, part in zip(names, files, strict=True):
        content = part.raw
        if part.url:
            content = (await http.get(part.url, extensions={"max_bytes": MAX_ARTIFACT_BYTES})).content
        await asyncio.to_thread(ctx.artifact, name, content, part.media_type or None)
    for found in (parts, *(message.parts for message in messages)):
        if text := _text(endpoint, found):
            return text
    raise TaskError(f"{endpoint.host} has answered without any text.")


@contextmanager
def _failures(host: str) -> Iterator[None]:
    """Raise any error of the library, and of its parsers, as a failure of the server."""
    try:
        yield
    except IoaError:
        raise
    except Exception as error:  # noqa: BLE001 - they are of many kinds
        raise failure(host, str(error)) from None


def _message(task: str, ctx: TaskContext) -> Message:
    """Return the message of a task, with its files."""
    check_size(ctx.files)
    parts = [Part(raw=file.path.read_bytes(), filename=file.name, media_type=file.media_type) for file in ctx.files]
    return Message(message_id=ctx.task_key, role=Role.ROLE_USER, parts=[Part(text=with_results(task, ctx)), *parts])


def _as_json(data: object) -> str:
    """Return data as JSON, with whole numbers as integers: the protocol's types contain only floats."""

    def number(text: str) -> float:
        return int(value) if (value := float(text)).is_integer() else value

    return json.dumps(json.loads(json.dumps(data), parse_float=number), ensure_ascii=False)
