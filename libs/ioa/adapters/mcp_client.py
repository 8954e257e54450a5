"""Client of a server of the Model Context Protocol (https://modelcontextprotocol.io), by the protocol's own library.

One connection serves all tasks of an agent. When it breaks, its open calls fail, and the next call uses another connection. No call
is repeated, because the effect of a lost call is unknown.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ioa.concurrency import beside, fail_after, heeding_cancellation
from ioa.errors import InvalidInputError, MissingExtraError, UnavailableError
from ioa.foreign_text import shown_in_line
from ioa.ports.chat_model import Tool
from ioa.protocol.texts import check_texts

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.client import Transport
    from mcp_types import CallToolResult, ContentBlock

_OPENING = timedelta(seconds=60)
"""Timeout for the start of a server, which a package runner may have to download first."""
_SILENCE = timedelta(minutes=10)
"""Timeout for the next bytes of an answer over HTTP."""
_CLOSING = timedelta(seconds=3)
_MAX_ANSWER_BYTES = 28_000_000
"""Maximum size of an answer over HTTP: files of 20 MB in base64, and a text."""
_MAX_PAGES = 100
_MAX_SHOWN_CHARS = 500


@dataclass(frozen=True)
class McpAddress:
    """The location of a server.

    Attributes:
        target: A command, which is started and uses stdin and stdout; or the URL of a server with streamable HTTP.
        environment: Environment variables of a command, in addition to PATH, HOME and similar ones.
        headers: Headers of each request to a URL, such as `Authorization`.
    """

    target: str
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        try:
            is_named = self.is_url or shlex.split(self.target)
        except ValueError as error:
            raise InvalidInputError(f"{self.target!r} is not a command: {error}.", hint="Quote it as for a shell.") from None
        if not is_named:
            raise InvalidInputError("An MCP server needs a command or a URL.", hint='Write mcp("command") or mcp("https://…").')

    @property
    def is_url(self) -> bool:
        """Whether the server is reached over HTTP."""
        return self.target.startswith(("https://", "http://"))

    @property
    def shown(self) -> str:
        """The name of the server in errors: the program without arguments, or the URL without user and query."""
        if not self.is_url:
            return Path(shlex.split(self.target)[0]).name
        return re.sub(r"^(https?://)[^/]*@", r"\1", self.target.partition("?")[0])


@dataclass(frozen=True)
class McpAnswer:
    """The result of a tool.

    Attributes:
        text: Its texts, and a description of its other parts.
        is_error: Whether the tool reports a failure.
        files: Its other parts: name, content, media type.
    """

    text: str
    is_error: bool = False
    files: tuple[tuple[str, bytes, str], ...] = ()


class McpServer:
    """An open server; made by `open_mcp_server`.

    Attributes:
        name: The server's name; empty if it has none.
        tools: The server's tools when it was connected.
    """

    def __init__(self, address: McpAddress) -> None:
        self.name = ""
        self.tools: Sequence[Tool] = ()
        self._address = address
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._is_lost = asyncio.Event()

    def find_tool(self, name: str) -> Tool:
        """Return a tool by its name.

        Raises:
            InvalidInputError: The server has no such tool.
        """
        found = {tool.name: tool for tool in self.tools}
        if name not in found:
            raise InvalidInputError(
                f"The MCP server {self._address.shown} has no tool {name!r}.", hint=f"It has: {', '.join(found) or 'none'}."
            )
        return found[name]

    async def hold(self) -> None:
        """Keep a connection open until cancelled, and open another when it is lost. The library needs one task for both."""
        while True:
            opened = self._client
            try:
                with heeding_cancellation():
                    async with AsyncExitStack() as stack:
                        async with fail_after(_OPENING.total_seconds()):
                            client = await _connect(self._address, stack)
                            self.name = client.server_info.name[:_MAX_SHOWN_CHARS] if client.server_info is not None else ""
                            self.tools = await _list_tools(client)
                        opened.set_result(client)
                        await self._is_lost.wait()
            except Exception as error:  # noqa: BLE001 - callers receive it
                if not opened.done():
                    opened.set_exception(_unreachable(self._address, error))
                    opened.exception()  # there may be no caller
                await self._is_lost.wait()
            self._is_lost.clear()

    async def connected(self) -> Client:
        """Return the connection as soon as it is open.

        Raises:
            UnavailableError: The server cannot be reached, or does not answer in time.
        """
        return await asyncio.shield(self._client)

    async def call(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        *,
        hear: Callable[[str, float | None], None] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> McpAnswer:
        """Call a tool and return its result.

        Args:
            tool: The tool.
            arguments: Its arguments.
            hear: Receives the progress: a text, and a fraction if the server sends a total.
            about: More for the server, as the request's `_meta`.

        Raises:
            InvalidInputError: The arguments are not valid Unicode.
            UnavailableError: The connection is lost.
            mcp.MCPError: The server rejects the call.
            ValueError: The answer cannot be read.
        """
        check_texts(arguments, tool.name)  # a failure while the library writes them would break the connection
        if self._client.done() and self._client.exception() is not None:
            self._reopen(self._client)
        opened = self._client
        client = await self.connected()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            if hear is not None:
                hear(message or "", min(progress / total, 1.0) if total and total > 0 and progress >= 0 else None)

        meta: Any = about  # typed as the protocol's own names
        try:
            return _read(await client.call_tool(tool.name, arguments, progress_callback=hear and on_progress, meta=meta))
        except Exception as error:
            if not _is_loss(error):
                raise
            self._reopen(opened)
            raise UnavailableError(
                f"The connection to {self._address.shown} was lost during the call.",
                hint="The effect of the call is unknown; check it before you repeat the call.",
            ) from error

    def _reopen(self, lost: asyncio.Future[Client]) -> None:
        """Open another connection, unless another call has already replaced the lost one."""
        if self._client is lost:
            self._client = asyncio.get_running_loop().create_future()
            self._is_lost.set()


@asynccontextmanager
async def open_mcp_server(address: McpAddress) -> AsyncIterator[McpServer]:
    """Connect to a server, starting it if it is a command, and close it at the end.

    Raises:
        MissingExtraError: The library is not installed.
        UnavailableError: The server does not start, cannot be reached, or does not speak the protocol.
    """
    await asyncio.to_thread(_import_library)
    server = McpServer(address)
    async with beside(server.hold()):
        await server.connected()
        yield server


def _import_library() -> None:
    try:
        import mcp.client.streamable_http  # noqa: F401
    except ImportError as error:
        raise MissingExtraError.of("The client of MCP servers", "mcp") from error


async def _connect(address: McpAddress, stack: AsyncExitStack) -> Client:
    from mcp import Client, StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    transport: Transport
    if address.is_url:
        import httpx2

        async def prepare(request: httpx2.Request) -> None:
            if request.method == "DELETE":  # the end of the session, which must not delay the end of the agent
                request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), _CLOSING.total_seconds())

        http = httpx2.AsyncClient(
            headers={**address.headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(_OPENING.total_seconds(), read=_SILENCE.total_seconds()),
            event_hooks={"request": [prepare], "response": [_limit]},
        )
        await stack.enter_async_context(http)
        transport = streamable_http_client(address.target, http_client=http, max_sse_event_size=_MAX_ANSWER_BYTES)
    else:
        command, *arguments = shlex.split(address.target)
        started = StdioServerParameters(command=command, args=arguments, env=dict(address.environment))
        transport = stdio_client(started, errlog=sys.stderr)
    client = await stack.enter_async_context(Client(transport, cache=None))

    async def accept(name: str, result: CallToolResult) -> None:
        """Accept a result without its server's schema: a regular expression in it could block the event loop."""

    client.session.validate_tool_result = accept  # type: ignore[method-assign]
    return client


async def _limit(response: httpx2.Response) -> None:
    """Limit the bytes of an answer. It is never decompressed, because a small answer may become large."""
    import httpx2

    class Limited(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in stream:
                size += len(chunk)
                if size > _MAX_ANSWER_BYTES:
                    raise httpx2.StreamError(f"it has more than {_MAX_ANSWER_BYTES:,} bytes")
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    assert isinstance(response.stream, httpx2.AsyncByteStream)
    stream: httpx2.AsyncByteStream = response.stream
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):  # the library limits each event
        response.stream = Limited()
    response.headers.pop("content-encoding", None)
    if response.status_code == HTTPStatus.NOT_FOUND:  # the session has expired; the library would read the body's own error
        response.headers.pop("content-type", None)


async def _list_tools(client: Client) -> Sequence[Tool]:
    """Read all pages of a server's tools; the last tool of a name counts."""
    found, cursor = dict[str, Tool](), None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        found |= {one.name: Tool(one.name, one.description or one.title or one.name, one.input_schema) for one in page.tools}
        if (cursor := page.next_cursor) is None:
            break
    return list(found.values())


def _read(result: CallToolResult) -> McpAnswer:
    files: list[tuple[str, bytes, str]] = []
    text = "\n".join(_read_part(part, files) for part in result.content)
    if not text and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False)
    return McpAnswer(text, bool(result.is_error), tuple(files))


def _read_part(block: ContentBlock, files: list[tuple[str, bytes, str]]) -> str:
    """Return the text of a part of a result; of a file, which is added to `files`, a description."""
    from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent, TextResourceContents

    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, ResourceLink):
        return f"[{block.uri}]"
    if isinstance(block, EmbeddedResource):
        inner = block.resource
        if isinstance(inner, TextResourceContents):
            return inner.text
        name, data, kind = str(inner.uri), inner.blob, inner.mime_type or "application/octet-stream"
    else:
        assert isinstance(block, ImageContent | AudioContent)
        name, data, kind = "", block.data, block.mime_type
    with suppress(ValueError):  # it is not base64
        files.append((name, base64.b64decode(data), kind))
    return f"[{name or 'file'}: {kind}, which cannot be shown]"


def _is_loss(error: Exception) -> bool:
    """Return whether the connection is lost, in contrast to a rejected call or an unreadable answer."""
    import anyio
    import httpx2
    from mcp import MCPError

    if isinstance(error, MCPError):  # a server may use the library's codes for its own errors
        return str(error) in ("Connection closed", "Session terminated")
    return isinstance(error, OSError | anyio.BrokenResourceError | anyio.ClosedResourceError | httpx2.TransportError)


def _unreachable(address: McpAddress, error: BaseException) -> UnavailableError:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    why = f"it did not answer within {_OPENING.total_seconds():g} s" if isinstance(error, TimeoutError) else str(error)
    return UnavailableError(
        f"The MCP server {address.shown} cannot be reached: {shown_in_line(why[:_MAX_SHOWN_CHARS] or type(error).__name__)}.",
        hint="Does it start by itself, and does it speak MCP over streamable HTTP, or over stdin and stdout?",
    )
