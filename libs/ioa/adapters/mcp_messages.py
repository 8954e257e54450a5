"""What gets from an MCP server to the protocol's library: messages that it reads in a moment, and few to be answered.

It holds each part of a message to each form that such a part may have, and remembers why it has none of them. So a message with
many parts does not get to it: who asked for it is told so, and what nobody asked for is left out, and a notice of numbers that are
none. Nor does more of a tool than is shown of it, and what its answers are like, which the library would remember.

Of each tool that it was ever told of, the library remembers the name and where its parts go, as long as the connection lasts; and
it asks for all tools anew when a call is refused as one of a tool that is another by now. So what all of them say is counted here.

What a server asks it answers in a task of its own, and those wait for each other, and for the server to hear them. So no more than
a few are left to wait, and of what is asked comes a name alone: agents offer nothing that a server could ask for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

from ioa.adapters.mcp_server import MAX_DESCRIPTION_CHARS
from ioa.errors import MissingExtraError
from ioa.json_text import values_in

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
_MOST_TOLD, _PART = 10_000_000, 100
"""How much all tools of a connection may say together, in characters; a part of a schema counts as so many besides."""
_ANYTHING = frozenset({"structuredContent", "_meta"})
"""What of an answer or a notice is held to no form."""
_MANY_PARTS = f"It has more than {_MOST_PARTS:,} parts."
_KEPT = ("name", "title", "description", "inputSchema")
"""What of a tool is kept, by the library or here."""
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
        self._tools = _Tools()

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
            told["tools"] = tools = [_cut_tool(tool) for tool in tools]
        has_many = values_in(_held(told), _MOST_PARTS) > _MOST_PARTS
        if not isinstance(message, JSONRPCResponse):
            return ValueError(_MANY_PARTS) if has_many else item
        if has_many:
            why = _MANY_PARTS
        elif isinstance(tools, list) and not self._tools.are_few(tools):
            why = f"Its tools say more than {_MOST_TOLD:,} characters."
        else:
            return item
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.id, error=ErrorData(code=PARSE_ERROR, message=why)))


class _Tools:
    """How much each tool of a connection has said when it was told last."""

    def __init__(self) -> None:
        self._told = dict[str, int]()
        self._left = _MOST_TOLD

    def are_few(self, tools: list[object]) -> bool:
        """Take in what a page tells; whether all tools say little enough together, but for the page that says more."""
        for tool in tools:
            if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
                continue  # the library takes no page of it
            before = self._told.get(name, 0)
            says = _told_by([tool.get(part) for part in _KEPT], self._left + before)
            if says > self._left + before:
                return False
            self._told[name] = says
            self._left += before - says
        return True


def _told_by(value: object, most: int) -> int:
    """Return how much is told by a value of JSON, or more than most."""
    waiting, told = [value], 0
    while waiting and told <= most:
        part = waiting.pop()
        told += _PART + (len(part) if isinstance(part, str) else 0)
        if isinstance(part, dict):
            told += sum(map(len, part))
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return told


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
    for name in ("title", "description"):
        if isinstance(said := kept.get(name), str):
            kept[name] = said[:MAX_DESCRIPTION_CHARS]
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
