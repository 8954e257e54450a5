"""What the protocol's library speaks to an MCP server through over HTTP: plain, a little at a time, and each request for itself.

The library reads whatever comes, and takes all events of one piece in without a pause; and what goes wrong with one exchange ends
its transport, and so the calls of all. So nothing that is packed gets to it, pieces are small and others have their turns between,
and of an exchange that has come to nothing it gets an answer that says so: proxies and balancers end those that take them too long.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import httpx2
from mcp_types import PARSE_ERROR

from ioa.adapters.http_answers import UnfitAnswerError, check_plain, counted
from ioa.json_text import check_mostly_texts

EXCHANGE_BROKEN = -31_000
"""The code of the answer in the place of one that never came; those up to -32000 are the protocol's, and its servers'."""

_MOST_BYTES = 28_000_000
"""How much one answer may hold: files of 20 MB in base64, and a text."""
_AT_ONCE_BYTES = 4_000


class McpHttp(httpx2.AsyncClient):
    """A client that answers a message by itself where its server does not, or where it answers what is not fit to be read."""

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """Send a request. All of its answer is read but for events, which come one after another.

        Raises:
            httpx2.TransportError: What is no message has not been answered.
            UnfitAnswerError: Its answer is not fit to be read.
        """
        try:
            return await _fit(await super().send(request, **how))
        except (httpx2.TransportError, UnfitAnswerError) as error:
            if request.method != "POST":
                raise
            return _instead(request, json.loads(await request.aread()), error)


async def _fit(response: httpx2.Response) -> httpx2.Response:
    """Have an answer read within bounds, and as UTF-8: what another charset makes of it may be as much as if it were packed.

    Raises:
        UnfitAnswerError: It is packed, has too many bytes, or is JSON that takes long to read.
    """
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream, response.encoding = _LittleByLittle(response.stream), "utf-8"
    try:
        check_plain(response.headers)
    except UnfitAnswerError:
        await response.aclose()
        raise
    kind: str = response.headers.get("content-type", "").lower()
    if response.is_success and kind.startswith("text/event-stream"):
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
    if "id" not in message or "method" not in message:
        return httpx2.Response(HTTPStatus.ACCEPTED, request=request)
    why = f"{error}" or type(error).__name__
    if isinstance(error, UnfitAnswerError):
        told = {"code": PARSE_ERROR, "message": f"The answer cannot be read: {why}"}
    else:
        told = {"code": EXCHANGE_BROKEN, "message": why}
    return httpx2.Response(HTTPStatus.OK, json={"jsonrpc": "2.0", "id": message["id"], "error": told}, request=request)


class _LittleByLittle(httpx2.AsyncByteStream):
    """An answer in pieces of which each is taken in at once."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in counted(self._stream, _MOST_BYTES):
            for start in range(0, len(piece), _AT_ONCE_BYTES):
                yield piece[start : start + _AT_ONCE_BYTES]
                await asyncio.sleep(0)

    async def aclose(self) -> None:
        """Close the answer."""
        await self._stream.aclose()
