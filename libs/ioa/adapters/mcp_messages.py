"""What gets from an MCP server to the protocol's library: messages that it reads in a moment, and few to be answered.

It holds each part of a message to each form that such a part may have, and remembers why it has none of them. So a message with
many parts does not get to it: who asked for it is told so, and what nobody asked for is left out, and a notice of numbers that are
none. Nor does more of a tool than is shown of it, and what its answers are like, which the library would remember.

What a server asks it answers in a task of its own, and those wait for each other, and for the server to hear them. So no more than
a few are left to wait, and of what is asked comes a name alone: agents offer nothing that a server could ask for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

from ioa.adapters.mcp_server import MAX_DESCRIPTION_CHARS
from ioa.errors import MissingExtraError

try:
    from mcp.shared.message import SessionMessage
    from mcp_types import PARSE_ERROR
    from mcp_types.jsonrpc import ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
except ImportError as error:
    raise MissingExtraError.of("What speaks to MCP servers", "mcp") from error

if TYPE_CHECKING:
    from mcp.client import Transport
    from mcp.client._transport import ReadStream, TransportStreams, WriteStream

_MOST_PARTS = 10_000
_MOST_WAITING = 3
"""How many answers may wait for their turn before a server's next question is left out."""
_ANYTHING = frozenset({"structuredContent", "_meta"})
"""What of an answer or a notice is held to no form."""
_NOTHING = "none"
"""The name of no method."""


@asynccontextmanager
async def bounded(transport: Transport) -> AsyncIterator[TransportStreams]:
    """Open a transport that hands on no more than the library reads, and answers, in a moment."""
    async with transport as (read, write):
        answered = _Write(write)
        yield _Read(read, answered), answered


class _Write(AbstractAsyncContextManager["_Write"]):
    """The stream of what a server is sent; `waiting` is how many answers to what it has asked are not on their way yet."""

    def __init__(self, stream: WriteStream[SessionMessage]) -> None:
        self._stream = stream
        self.waiting = 0

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message once all before it are on their way."""
        is_answer = isinstance(item.message, JSONRPCResponse | JSONRPCError)
        self.waiting += is_answer
        try:
            await self._stream.send(item)
        finally:
            self.waiting -= is_answer

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._stream.__aexit__(*error)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()


class _Read(AbstractAsyncContextManager["_Read"]):
    """The stream of what a server sends."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], answered: _Write) -> None:
        self._stream = stream
        self._answered = answered

    @property
    def last_context(self) -> object:
        """The context of whoever has sent the last message, for the library."""
        return getattr(self._stream, "last_context", None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._short(await self._stream.__anext__())

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        return self._short(await self._stream.receive())

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._stream.__aexit__(*error)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    def _short(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        """Return a message, or what stands in the place of one that asks, or has too many parts."""
        if isinstance(item, Exception):
            return item
        message = item.message
        if isinstance(message, JSONRPCRequest):
            if self._answered.waiting >= _MOST_WAITING:
                return ValueError("It asks more than it hears answers.")
            method = "ping" if message.method == "ping" else _NOTHING
            return SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=message.id, method=method))
        told = (message.result if isinstance(message, JSONRPCResponse) else getattr(message, "params", None)) or {}
        if isinstance(message, JSONRPCNotification) and not (_is_number(told.get("progress")) and _is_number(told.get("total"))):
            return ValueError("It tells numbers that are none.")
        if isinstance(tools := told.get("tools"), list):
            told["tools"] = [_cut_tool(tool) for tool in tools]
        if not _has_many(_held(told)):
            return item
        why = f"It has more than {_MOST_PARTS:,} parts."
        if not isinstance(message, JSONRPCResponse):
            return ValueError(why)
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.id, error=ErrorData(code=PARSE_ERROR, message=why)))


def _is_number(told: object) -> bool:
    """Whether the library takes it for one, or for nothing: all that is a number has to be one that it can count with."""
    try:
        return not isinstance(told, int) or float(told) is not None
    except OverflowError:
        return False


def _cut_tool(tool: object) -> object:
    if not isinstance(tool, dict):
        return tool
    kept = {name: part for name, part in tool.items() if name != "outputSchema"}
    if isinstance(description := kept.get("description"), str):
        kept["description"] = description[:MAX_DESCRIPTION_CHARS]
    return kept


def _held(told: dict[str, Any]) -> dict[str, Any]:
    """Return what of an answer or a notice the library holds to forms. Names tell that only where they mean what is called so."""
    held = {name: part for name, part in told.items() if name not in _ANYTHING}
    if isinstance(tools := held.get("tools"), list):
        held["tools"] = [_held_tool(tool) for tool in tools]
    return held


def _held_tool(tool: object) -> object:
    if not isinstance(tool, dict):
        return tool
    return {name: _held_schema(part) if name == "inputSchema" else part for name, part in tool.items()}


def _held_schema(schema: object) -> object:
    """Return what of a schema is held to a form: what is required, and that something is said of each property."""
    if not isinstance(schema, dict):
        return schema
    properties = schema.get("properties")
    return [schema.get("required"), [*properties] if isinstance(properties, dict) else None]


def _has_many(value: object) -> bool:
    left, seen = [value], 0
    while left and seen <= _MOST_PARTS:
        parts = left.pop()
        if isinstance(parts, dict):
            parts = [*parts.values()]
        if isinstance(parts, list):
            left += parts[: _MOST_PARTS + 1]
            seen += len(parts)
    return seen > _MOST_PARTS
