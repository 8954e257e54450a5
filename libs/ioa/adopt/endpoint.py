"""A server of somebody else that does tasks: how it is asked over HTTP, and what its failures are to a task."""

from __future__ import annotations

import asyncio
import base64
import functools
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from ioa.adopt.membership import as_object, failure
from ioa.agent.definition import InputFile, TaskContext
from ioa.cancellation import fail_after
from ioa.errors import InvalidInputError, TaskError
from ioa.foreign_text import shown_in_line
from ioa.json_text import parse_texts
from ioa.protocol.texts import MAX_TEXT_CHARS
from ioa.retry import pauses

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_TRIES = 4
_BUSY = frozenset({429, 502, 503, 504})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 3.0
LOOKS = (0.1, 5.0)
"""After how many seconds it is looked at first, and at the latest each time, whether a server is done; see `ioa.retry.pauses`."""
_CONNECTING = timedelta(seconds=10)
_LEAVING = timedelta(seconds=3)
"""How long a task that was cancelled is wound up."""
_MAX_SAID_CHARS = 500
MAX_FILES_BYTES = 20_000_000
"""How much the files of a task may hold that go along in an object."""
MAX_ANSWER_BYTES = MAX_FILES_BYTES * 4 // 3 + MAX_TEXT_CHARS * 6
"""How much an answer may hold: as many files, in base64, and a text, of which JSON may write each character as `\\uXXXX`."""
MAX_URL_CHARS = 8_000
"""How long an address may be to which a server leads; most servers take no longer ones."""
_AT_ONCE_BYTES = 64_000


@dataclass(frozen=True)
class Endpoint:
    """Where a server is, and how patiently it is asked.

    Attributes:
        url: Its address.
        headers: What each request carries, such as `Authorization`.
        timeout: How long one answer may take.

    Raises:
        InvalidInputError: The address is none of HTTP.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise InvalidInputError(f"{shown_in_line(self.url)!r} is no address of HTTP.", hint="Write https://…")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Calls]:
        """Open what calls of one task go through."""
        import httpx  # what an agent without an endpoint does without

        from ioa.adapters.http_answers import create_client

        timeout = httpx.Timeout(self.timeout.total_seconds(), connect=_CONNECTING.total_seconds())
        trusted = await asyncio.to_thread(_trusted)
        async with create_client(self.headers, base_url=self.url, timeout=timeout, verify=trusted) as http:
            yield Calls(http, shown_host(self.url), self.timeout)


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Read the certificates of this machine, which takes longer than a loop may be held up."""
    return ssl.create_default_context()


def shown_host(url: str) -> str:
    """Return what errors call a server: its host, without user, path and query."""
    return url.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2]


class Calls:
    """The calls of one task to one server.

    Attributes:
        whose: What errors call the server.
    """

    def __init__(self, http: httpx.AsyncClient, whose: str, timeout: timedelta) -> None:
        self._http = http
        self._timeout = timeout
        self.whose = whose

    async def send(
        self, method: str, url: str, *, is_repeatable: bool = True, max_bytes: int = MAX_ANSWER_BYTES, **said: Any
    ) -> httpx.Response:
        """Send a request, again while the server is away or busy, four times at most.

        Args:
            method: The method.
            url: Where to; relative to the endpoint's address.
            is_repeatable: Whether it does no harm if it has arrived before. Otherwise one whose answer is lost has failed.
            max_bytes: How much its answer may hold.
            said: What else `httpx` takes.

        Raises:
            TaskError: The server cannot be reached, refuses, or answers with more, or it has named an address that is none.
        """
        import httpx

        pause, trouble = pauses(_FIRST_PAUSE, _LONGEST_PAUSE), ""
        for tried in range(_TRIES):
            if tried:
                await asyncio.sleep(next(pause))
            try:
                async with fail_after(self._timeout.total_seconds()):
                    answer = await self._answer(method, url, max_bytes, said)
            except httpx.InvalidURL as error:
                raise failure(self.whose, f"it leads to an address that is none: {error}") from None
            except (httpx.TransportError, TimeoutError) as error:
                trouble = str(error) or type(error).__name__
                if is_repeatable or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                    continue
                break
            if answer.status_code not in _BUSY:
                return await self._accepted(answer)
            trouble = f"status {answer.status_code}"
        raise TaskError(f"{self.whose} cannot be reached: {trouble}.", hint="Is it there, and is its address right?")

    async def _answer(self, method: str, url: str, max_bytes: int, said: Mapping[str, Any]) -> httpx.Response:
        from ioa.adapters.http_answers import UnfitAnswerError, whole_answer

        async with self._http.stream(method, url, **said) as answer:
            try:
                return await whole_answer(answer, max_bytes)
            except UnfitAnswerError as error:
                raise failure(self.whose, str(error)) from None

    async def _accepted(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_success:
            return answer
        said = await read_object(answer)
        why = next((said[key] for key in ("error", "detail", "message", "title") if isinstance(said.get(key), str)), answer.text)
        raise failure(self.whose, f"status {answer.status_code}, {why[:_MAX_SAID_CHARS]}")

    async def leave(self, method: str, url: str, **said: Any) -> None:
        """Tell the server that a task is not wanted any more. Whether it hears of it changes nothing."""
        import httpx

        try:
            async with fail_after(_LEAVING.total_seconds()), self._http.stream(method, url, **said):
                return
        except (httpx.TransportError, TimeoutError):
            return


async def finished(asked: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[None]]) -> T:
    """Wait for an answer that starts something on the other side; if this is cancelled before it is there, undo what it started.

    The answer is waited for a moment longer then, since nobody else knows how what was started is called.
    """
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


async def read_object(answer: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of an answer; an empty one if it has none."""
    said = await read_json(answer)
    return said if isinstance(said, dict) else {}


async def read_json(answer: httpx.Response) -> Any:
    """Return the JSON of an answer; None if it has none, or more of it than texts."""
    return await read_by(answer, lambda said: said)


async def read_by(answer: httpx.Response, read: Callable[[Any], T]) -> T:
    """Return what is made of the JSON of an answer, see `read_json`: of a large one in the thread that parses it."""
    if len(answer.content) <= _AT_ONCE_BYTES:
        return read(_parsed(answer.content))
    return await asyncio.to_thread(lambda: read(_parsed(answer.content)))


def _parsed(data: bytes) -> Any:
    try:
        return parse_texts(data)
    except ValueError:
        return None


async def with_files(task: str, ctx: TaskContext) -> dict[str, Any]:
    """Say a task as an object whose files hold their content as `data`, in base64.

    Raises:
        InvalidInputError: They hold more than 20 MB.
    """
    return await asyncio.to_thread(as_object, task, ctx, functools.partial(_encoded, []))


def _encoded(sizes: list[int], file: InputFile) -> dict[str, str]:
    sizes.append(file.path.stat().st_size)
    if sum(sizes) > MAX_FILES_BYTES:
        raise InvalidInputError(f"The files of this task hold more than {MAX_FILES_BYTES:,} bytes.")
    return {"data": base64.b64encode(file.path.read_bytes()).decode()}


def attach(ctx: TaskContext, files: object, whose: str) -> None:
    """Attach the files of an answer: a list of `{"name": …, "data": base64}`.

    Raises:
        TaskError: They are none.
        InvalidInputError: One of them is not taken.
    """
    for one in files if isinstance(files, Sequence) else ():
        try:
            name, data = str(one["name"]), base64.b64decode(one["data"], validate=True)
        except (TypeError, KeyError, ValueError):
            raise TaskError(f"{whose} has sent a file that cannot be read.", hint="Send name, and data in base64.") from None
        ctx.artifact(name, data, one.get("media_type"))
