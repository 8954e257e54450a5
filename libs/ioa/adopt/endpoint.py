"""HTTP client for a server that does tasks, whose failures fail the task."""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import httpx

from ioa.adapters.http_answers import PLAINLY, UnfitAnswerError, whole_answer
from ioa.adapters.ssrf import OutsideTransport
from ioa.adopt.adopted_member import failure
from ioa.agent.task_context import InputFile
from ioa.concurrency import fail_after
from ioa.errors import InvalidInputError, TaskError
from ioa.foreign_text import shown_in_line
from ioa.protocol.texts import MAX_TEXT_CHARS
from ioa.retry import pauses

T = TypeVar("T")

POLL_SECONDS = (0.1, 5.0)
"""First and longest pause between questions whether a task is done; see `ioa.retry.pauses`."""
MAX_FILES_BYTES = 20_000_000
"""Maximum size of the files of a task in one object."""
MAX_ANSWER_BYTES = MAX_FILES_BYTES * 4 // 3 + MAX_TEXT_CHARS * 6
"""Maximum size of an answer: as many files in base64, and a text, of which JSON may write each character as `\\uXXXX`."""
_ATTEMPTS = 4
_BUSY = frozenset({429, 502, 503, 504})
_RETRY_SECONDS = (0.2, 3.0)
_CONNECTING = timedelta(seconds=10)
_LEAVING = timedelta(seconds=3)
"""Timeout for the cancellation of a task on its server."""
_MAX_SHOWN_CHARS = 500
_ELSEWHERE = "Another server than the adopted one must have a public address."


@dataclass(frozen=True)
class Endpoint:
    """A server that does tasks.

    Attributes:
        url: The server's address.
        headers: Headers of each request to this server, such as `Authorization`. No other server receives them.
        timeout: Timeout for one answer.

    Raises:
        InvalidInputError: The address is not an HTTP URL.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise InvalidInputError(f"{shown_in_line(self.url)!r} is not an HTTP URL.", hint="Write https://…")

    @property
    def host(self) -> str:
        """The server's name in errors: its host, without user, path and query."""
        return httpx.URL(self.url).netloc.decode()

    def is_own(self, url: str | httpx.URL) -> bool:
        """Return whether a URL has this server's scheme, host and port."""
        own, other = httpx.URL(self.url), httpx.URL(url)
        return (own.scheme, own.host, own.port) == (other.scheme, other.host, other.port)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ServerClient]:
        """Open a client for the calls of a task."""
        trusted = await asyncio.to_thread(_certificates)
        timeout = httpx.Timeout(self.timeout.total_seconds(), connect=_CONNECTING.total_seconds())
        outside = OutsideTransport(_ELSEWHERE, httpx.AsyncHTTPTransport(verify=trusted))
        async with httpx.AsyncClient(transport=outside, timeout=timeout) as others:
            options = {"base_url": self.url, "headers": PLAINLY, "timeout": timeout, "verify": trusted}
            async with ServerClient(self, others, **options) as client:
                yield client


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Read the certificates of this machine, which blocks for some time."""
    return ssl.create_default_context()


class ServerClient(httpx.AsyncClient):
    """Client of a server: reads whole answers up to a limit, and retries while the server is away or busy.

    A request is retried after a lost answer if its method is not POST, or if it has an `Idempotency-Key`. The extension `max_bytes`
    of a request changes the limit of its answer.
    """

    def __init__(self, endpoint: Endpoint, others: httpx.AsyncClient, **options: Any) -> None:
        super().__init__(**options)
        self._endpoint = endpoint
        self._others = others

    async def send(self, request: httpx.Request, **_: Any) -> httpx.Response:
        """Send a request and read its answer.

        Raises:
            TaskError: The server cannot be reached, rejects the request, or its answer is too long.
            InvalidInputError: The request is for another server, whose address is not public.
        """
        is_own = self._endpoint.is_own(request.url)
        if is_own:
            request.headers.update(self._endpoint.headers)
        send = super().send if is_own else self._others.send
        is_repeatable = request.method != "POST" or "Idempotency-Key" in request.headers
        host, pause, trouble = self._endpoint.host, pauses(*_RETRY_SECONDS), ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(next(pause))
            try:
                async with fail_after(self._endpoint.timeout.total_seconds()):
                    response = await send(request, stream=True)
                    try:
                        answer = await whole_answer(response, request.extensions.get("max_bytes", MAX_ANSWER_BYTES))
                    finally:
                        await response.aclose()
            except UnfitAnswerError as error:
                raise failure(host, str(error)) from None
            except (httpx.TransportError, TimeoutError) as error:
                trouble = str(error) or type(error).__name__
                if not is_repeatable and not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                    break
                continue
            if answer.is_success:
                answer.request = request
                return answer
            if answer.status_code not in _BUSY:
                raise failure(host, f"status {answer.status_code}, {answer.text[:_MAX_SHOWN_CHARS]}")
            trouble = f"status {answer.status_code}"
        raise TaskError(f"{host} cannot be reached: {trouble}.", hint="Is it there, and is its address right?")

    async def leave(self, call: Awaitable[object]) -> None:
        """Await a call that cancels a task, for some seconds at most; its failure is ignored."""
        with suppress(TimeoutError, TaskError, httpx.HTTPError):
            async with fail_after(_LEAVING.total_seconds()):
                await call


async def finished(asked: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[None]]) -> T:
    """Await an answer that starts a task on a server. If this is cancelled before, wait a moment longer and undo the start."""
    asking = asyncio.create_task(asked)
    try:
        return await asyncio.shield(asking)
    except asyncio.CancelledError:
        with suppress(TimeoutError, TaskError):
            async with fail_after(_LEAVING.total_seconds()):
                await undo(await asking)
        raise
    finally:
        asking.cancel()


def read_object(answer: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of an answer; empty if the answer is another value."""
    try:
        content = json.loads(answer.content)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def check_size(files: Sequence[InputFile]) -> None:
    """Check that files fit into one object.

    Raises:
        InvalidInputError: They do not.
    """
    if sum(file.path.stat().st_size for file in files) > MAX_FILES_BYTES:
        raise InvalidInputError(f"The files of this task are larger than {MAX_FILES_BYTES:,} bytes.")
