"""What gets from an MCP server to the protocol's library: messages that it reads in a moment.

It holds each part of a message to each form that such a part may have, and remembers why it has none of them. So a message with
many parts does not get to it: who asked for it is told so, and what nobody asked for is left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR
from mcp_types.jsonrpc import ErrorData, JSONRPCError, JSONRPCResponse

if TYPE_CHECKING:
    from mcp.client import Transport
    from mcp.client._transport import ReadStream, TransportStreams

_MOST_PARTS = 10_000
_ANYTHING = frozenset({"structuredContent", "inputSchema", "outputSchema", "_meta"})
"""What is held to no form."""


@asynccontextmanager
async def with_few_parts(transport: Transport) -> AsyncIterator[TransportStreams]:
    """Open a transport that hands on no message with more parts than the library reads in a moment."""
    async with transport as (read, write):
        yield _Read(read), write


class _Read(AbstractAsyncContextManager["_Read"]):
    """The stream of what a server sends."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception]) -> None:
        self._stream = stream

    @property
    def last_context(self) -> object:
        """The context of whoever has sent the last message, for the library."""
        return getattr(self._stream, "last_context", None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return _short(await self._stream.__anext__())

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        return _short(await self._stream.receive())

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._stream.__aexit__(*error)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()


def _short(item: SessionMessage | Exception) -> SessionMessage | Exception:
    """Return a message, or what stands in the place of one that has too many parts."""
    if isinstance(item, Exception):
        return item
    message = item.message
    told = message.result if isinstance(message, JSONRPCResponse) else getattr(message, "params", None)
    if not _has_many(told):
        return item
    why = f"It has more than {_MOST_PARTS:,} parts."
    if not isinstance(message, JSONRPCResponse):
        return ValueError(why)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.id, error=ErrorData(code=PARSE_ERROR, message=why)))


def _has_many(value: object) -> bool:
    left, seen = [value], 0
    while left and seen <= _MOST_PARTS:
        parts = left.pop()
        if isinstance(parts, dict):
            parts = [part for name, part in parts.items() if name not in _ANYTHING]
        if isinstance(parts, list):
            left += parts[: _MOST_PARTS + 1]
            seen += len(parts)
    return seen > _MOST_PARTS
