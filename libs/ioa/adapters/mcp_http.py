"""What the protocol's library speaks to an MCP server through over HTTP: plain, a little at a time, and each request for itself.

The library reads whatever comes, and takes all events of one piece in without a pause, and each message in one step; and what goes
wrong with one exchange ends its transport, and so the calls of all. So nothing that is packed gets to it, nor a message that takes
long to read, pieces are small and others have their turns between, and of an exchange that has come to nothing it gets an answer
that says so: proxies and balancers end those that take them too long. It sends what is no request one after another, before all
requests that come later: so it waits for none of them longer than a moment. And events that end it asks for again, as soon as
their server says and within itself each time: so they last for a second at least, and are asked for so often for one call.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from io import IncrementalNewlineDecoder
from typing import Any
from weakref import WeakKeyDictionary

from ioa.adapters.http_answers import PLAINLY, FewCookies, UnfitAnswerError, check_plain, counted
from ioa.cancellation import fail_after
from ioa.errors import MissingExtraError
from ioa.json_text import check_mostly_texts

try:
    import httpx2
    from mcp_types import PARSE_ERROR
except ImportError as error:
    raise MissingExtraError.of("What speaks to MCP servers", "mcp") from error

EXCHANGE_BROKEN = -31_000
"""The code of the answer in the place of one that never came; those up to -32000 are the protocol's, and its servers'."""

_MOST_BYTES = 28_000_000
"""How much one answer may hold: files of 20 MB in base64, and a text."""
_AT_ONCE_BYTES = 4_000
_MOST_SIGNS = 100_000
"""How many of `[`, `{` and `,` a message may have outside of its texts: there is one for each of its parts, or more."""
_HEARD_WITHIN = timedelta(seconds=3)
"""How long a server may take to hear what it has nothing to say to: a notice, our own answer, or that a session ends."""
_LASTING = timedelta(seconds=1)
"""How long events last that are asked for again when they end. The library waits as long by itself if a server does not say."""
_MOST_RESUMED = 500
"""How often events are asked for again that were to bring one answer. The library fails at some more."""
_LONG_PAUSE = re.compile(r"^retry:.{10}", re.MULTILINE)
"""The line by which a server says when it is asked for more events, in milliseconds, where that is in more than a day."""
_BEGINNING = 20
"""How much of a line is kept that goes on in the next piece: enough to see the pause in it."""


@dataclass
class _Awaited:
    """An answer that is waited for, and how often its events were asked for again; `is_left` once nobody waits any more."""

    message_id: object
    resumed: int = 0
    is_left: bool = False


class McpHttp(httpx2.AsyncClient):
    """A client that answers a message by itself where its server does not, or where it answers what is not fit to be read.

    Args:
        headers: What each request carries.
        how: What else `httpx2` takes.
    """

    def __init__(self, headers: Mapping[str, str], **how: Any) -> None:
        super().__init__(headers={**headers, **PLAINLY}, cookies=FewCookies(), **how)
        self._awaited = WeakKeyDictionary[asyncio.Task[Any], _Awaited]()
        """By the task of the library that has sent a request: it asks for the events of its answer again as well."""

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """Send a request. All of its answer is read but for events, which come one after another.

        Raises:
            httpx2.TransportError: What is no message has not been answered.
            TimeoutError: That a session ends has not been heard.
            UnfitAnswerError: Its answer is not fit to be read.
        """
        message = json.loads(await request.aread()) if request.method == "POST" else {}
        self._follow(request, message)
        waits = request.method == "GET" or _is_request(message)
        began = asyncio.get_running_loop().time()
        try:
            async with fail_after(None if waits else _HEARD_WITHIN.total_seconds()):
                return await _fit(await super().send(request, **how), began)
        except (TimeoutError, httpx2.TransportError, UnfitAnswerError) as error:
            if request.method != "POST":
                raise
            return _instead(request, message, error)

    def _follow(self, request: httpx2.Request, message: dict[str, Any]) -> None:
        """Follow what becomes of an answer.

        Raises:
            httpx2.TransportError: Its events were asked for again too often, or nobody waits for it any more.
        """
        task = asyncio.current_task()
        assert task is not None
        if _is_request(message):
            self._awaited[task] = _Awaited(message["id"])
        elif message.get("method") == "notifications/cancelled":
            for awaited in self._awaited.values():
                awaited.is_left |= awaited.message_id == message["params"]["requestId"]
        elif request.method == "GET" and task in self._awaited:
            awaited = self._awaited[task]
            awaited.resumed += 1
            if awaited.is_left or awaited.resumed > _MOST_RESUMED:
                raise httpx2.TransportError("nobody waits for these events any more")


def _is_request(message: dict[str, Any]) -> bool:
    """Whether an answer to it is waited for, by whoever has sent it and nobody else."""
    return "id" in message and "method" in message


async def _fit(response: httpx2.Response, began: float) -> httpx2.Response:
    """Have an answer read within bounds, and as UTF-8: what another charset makes of it may be as much as if it were packed.

    Args:
        response: It.
        began: When it was asked for, by the loop's time.

    Raises:
        UnfitAnswerError: It is packed, has too many bytes, or is JSON that takes long to read.
    """
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    kind: str = response.headers.get("content-type", "").lower()
    are_events = response.is_success and kind.startswith("text/event-stream")
    lasts_until = began + _LASTING.total_seconds() if are_events and response.request.method == "GET" else began
    response.stream, response.encoding = _LittleByLittle(response.stream, lasts_until, are_events=are_events), "utf-8"
    try:
        check_plain(response.headers)
    except UnfitAnswerError:
        await response.aclose()
        raise
    if are_events:
        return response
    content = await response.aread()
    if kind.startswith("application/json"):
        try:
            check_mostly_texts(content)
        except ValueError as error:
            raise UnfitAnswerError(f"{error}") from None
    return response


def _instead(request: httpx2.Request, message: dict[str, Any], error: Exception) -> httpx2.Response:
    """Return what the library takes for an answer: to a request that it has failed, and to all else that it has arrived."""
    if not _is_request(message):
        return httpx2.Response(HTTPStatus.ACCEPTED, request=request)
    why = f"{error}" or type(error).__name__
    if isinstance(error, UnfitAnswerError):
        told = {"code": PARSE_ERROR, "message": f"The answer cannot be read: {why}"}
    else:
        told = {"code": EXCHANGE_BROKEN, "message": why}
    return httpx2.Response(HTTPStatus.OK, json={"jsonrpc": "2.0", "id": message["id"], "error": told}, request=request)


class _LittleByLittle(httpx2.AsyncByteStream):
    """An answer in pieces of which each is taken in at once, up to where one of its messages takes long to read.

    An event is looked at before the library has all of it, and in the lines that the library finds: their ends are made alike here.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, lasts_until: float, *, are_events: bool) -> None:
        self._stream = stream
        self._lasts_until = lasts_until
        self._are_events = are_events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        lines, signs, begun = IncrementalNewlineDecoder(None, translate=True), _Signs(has_many=self._are_events), ""
        async for piece in counted(self._stream, _MOST_BYTES):
            for start in range(0, len(piece), _AT_ONCE_BYTES):
                text = lines.decode(piece[start : start + _AT_ONCE_BYTES].decode("latin-1"))
                if signs.after(text) > _MOST_SIGNS:
                    why = f"it has more than {_MOST_SIGNS:,} parts"
                    raise httpx2.SSEError(why) if self._are_events else UnfitAnswerError(why)
                if self._are_events and _LONG_PAUSE.search(begun + text):
                    raise httpx2.SSEError("it has a pause of more than a day")
                begun = (begun + text).rpartition("\n")[2][:_BEGINNING]
                yield text.encode("latin-1")
                await asyncio.sleep(0)
        yield lines.decode("", final=True).encode("latin-1")
        await asyncio.sleep(max(0.0, self._lasts_until - asyncio.get_running_loop().time()))

    async def aclose(self) -> None:
        """Close the answer."""
        await self._stream.aclose()


class _Signs:
    """Counts what stands before the parts of a message, outside of texts, of which none goes on in another line.

    Args:
        has_many: Whether an empty line ends a message.
    """

    def __init__(self, *, has_many: bool) -> None:
        self._has_many = has_many
        self._found = 0
        self._is_text = self._is_line = False
        self._escape = ""

    def after(self, text: str) -> int:
        """Return the most that one message has had, with what comes now. Lines end in LF alone."""
        most = 0
        for number, part in enumerate(text.split("\n")):
            if number:
                if self._has_many and not self._is_line:
                    self._found = 0
                self._is_text, self._is_line, self._escape = False, False, ""
            self._look_at(part)
            most = max(most, self._found)
        return most

    def _look_at(self, part: str) -> None:
        if not part:
            return
        whole = (self._escape + part).replace(r"\\", "")
        self._is_line, self._escape = True, "\\" if whole.endswith("\\") else ""
        pieces = whole.replace(r"\"", "").split('"')
        outside = "".join(pieces[self._is_text :: 2])
        self._found += sum(map(outside.count, "[{,"))
        self._is_text ^= len(pieces) % 2 == 0
