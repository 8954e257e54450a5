"""A server of the Model Context Protocol (MCP), by the protocol's own Python library: https://modelcontextprotocol.io.

The library closes a connection only in the task that has opened it, so one task holds it for as long as it lasts. A connection that
is found lost is opened again, once a call; so is one whose session the server has forgotten, which it says with the status 404 (MCP
2025-11-25, "Session Management"). A call is repeated only if the server says that this does no harm: nobody knows whether one whose
answer is missing has had its effect.

One connection is for all that an agent works on. So what is wrong with one call, in what is asked or what is answered, or with the
one request of HTTP that carries it (`mcp_http`), is no loss of it: that would end the calls of all others. Nor is an answer held to
what the server says of its answers: nobody here reads what that is about, and an expression of twenty letters would hold up all
that the process does.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ioa.beside import beside
from ioa.cancellation import fail_after, heeding_cancellation
from ioa.errors import InvalidInputError, IoaError, TaskError, UnavailableError
from ioa.foreign_text import shown_in_line
from ioa.protocol.texts import check_texts

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp_types import CallToolResult, ContentBlock

_OPENING = timedelta(seconds=60)
"""How long a server may take to start; one that a package runner has to fetch first takes its time."""
_ASKED_WITHIN = timedelta(seconds=5)
"""How long it may take a server to say that it is there, of whom a call has shown that it may not be."""
_MOST_PAGES = 100
MAX_DESCRIPTION_CHARS = 1_000
"""How much is read of what a tool says that it does."""
_MAX_TOLD_CHARS = 500
_SESSION = "mcp-session-id"
_DEEPEST = 100
"""How deep arguments may be nested; the library fails at some more."""


@dataclass(frozen=True)
class McpAddress:
    """Where a server is.

    Attributes:
        target: A command, which is started and spoken to over its stdin and stdout; or a URL of streamable HTTP.
        environment: What a command gets besides PATH, HOME and the like; nothing else of this process's environment.
        headers: What each request to a URL carries, such as `Authorization`.
    """

    target: str
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        try:
            is_there = self.is_url or shlex.split(self.target)
        except ValueError as error:
            raise InvalidInputError(f"{self.target!r} is no command: {error}.", hint="Quote it as for a shell.") from None
        if not is_there:
            raise InvalidInputError("An MCP server needs a command or a URL.", hint='Write mcp("command") or mcp("https://…").')

    @property
    def is_url(self) -> bool:
        """Whether it is reached over HTTP."""
        return self.target.startswith(("https://", "http://"))

    @property
    def shown(self) -> str:
        """What errors call it: the program without its arguments, or the URL without user and query."""
        if not self.is_url:
            return Path(shlex.split(self.target)[0]).name
        scheme, _, rest = self.target.partition("://")
        host, slash, path = rest.partition("?")[0].partition("/")
        return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


@dataclass(frozen=True)
class McpTool:
    """A tool as its server describes it; `is_repeatable` says that calling it twice is like calling it once."""

    name: str
    description: str
    parameters: dict[str, Any]
    is_repeatable: bool


@dataclass(frozen=True)
class McpAnswer:
    """What a tool brought.

    Attributes:
        text: What of it can be read, and of the rest what it is.
        is_error: Whether the tool says that it has failed.
        files: What of it is no text: name, content, media type.
    """

    text: str
    is_error: bool = False
    files: tuple[tuple[str, bytes, str], ...] = ()


@dataclass(eq=False)
class _Connection:
    """What the library opens; `is_forgotten` once the server has said that it knows the session no more."""

    client: Client
    is_forgotten: bool = False


class McpServer:
    """An open server; made by `open_mcp_server`.

    Attributes:
        name: What it calls itself; empty if it does not say.
        tools: What it had when it was opened, in its order.
    """

    def __init__(self, address: McpAddress) -> None:
        self.name = ""
        self.tools: Sequence[McpTool] = ()
        self._address = address
        self._open: asyncio.Future[_Connection] = asyncio.get_running_loop().create_future()
        self._is_lost = asyncio.Event()

    async def hold(self) -> None:
        """Keep a connection open, and open another one when it is found lost. Never returns; why none opens is told to callers."""
        while True:
            opened = self._open
            try:
                with heeding_cancellation():  # in its place the library raises that an answer came while it closed
                    async with AsyncExitStack() as stack:
                        async with fail_after(_OPENING.total_seconds()):
                            opened.set_result(await _connect(self._address, stack))
                        await self._is_lost.wait()
            except Exception as error:  # noqa: BLE001 - whoever waits for the server is told
                if not opened.done():
                    opened.set_exception(_why_closed(self._address, error))
                    opened.exception()  # whoever calls is told; nobody may
                await self._is_lost.wait()
            self._is_lost.clear()

    async def look(self) -> None:
        """Learn its name and its tools.

        Raises:
            UnavailableError: It cannot be reached, does not tell them in time, or tells too much of them.
        """
        try:
            async with fail_after(_OPENING.total_seconds()):
                client = (await asyncio.shield(self._open)).client
                self.name = client.server_info.name[:_MAX_TOLD_CHARS] if client.server_info is not None else ""
                self.tools = await _tools_of(client)
        except UnavailableError:
            raise
        except Exception as error:
            raise _why_closed(self._address, error) from error

    async def call(
        self,
        tool: McpTool,
        arguments: dict[str, Any],
        *,
        hear: Callable[[str, float | None], None] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> McpAnswer:
        """Call a tool and return what it brings.

        Args:
            tool: The tool.
            arguments: What it is called with.
            hear: Told how far it is, in words and as a fraction, by a server that says so.
            about: What the server may know besides, as the request's `_meta`.

        Raises:
            InvalidInputError: The arguments cannot be written.
            TaskError: The answer cannot be read.
            UnavailableError: The connection is lost, and cannot be opened again, or the call cannot be repeated.
            mcp.MCPError: The server refuses the call.
        """
        _check(tool, arguments)
        first = await self._connected()
        try:
            return await _called(first.client, tool, arguments, hear, about)
        except Exception as error:
            is_open = not first.is_forgotten and (not _is_loss(error) or await _is_there(first.client))
            if is_open and not _is_broken(error):
                raise self._told(error) from error
        if not is_open:
            self._reopen(first)
        again = await asyncio.shield(self._open)
        if not tool.is_repeatable:
            raise UnavailableError(
                f"The connection to {self._address.shown} was lost during the call, and is open again.",
                hint="Nobody knows whether the call has had its effect; look before it is repeated.",
            )
        try:
            return await _called(again.client, tool, arguments, hear, about)
        except Exception as error:
            raise (_why_closed(self._address, error) if _is_loss(error) else self._told(error)) from error

    def _told(self, error: Exception) -> Exception:
        """Return what a call has come to that was not lost: the server's own refusal, or that nobody can read its answer."""
        from mcp import MCPError

        if isinstance(error, MCPError | IoaError):
            return error
        why = shown_in_line(f"{error}"[:_MAX_TOLD_CHARS]) or type(error).__name__
        return TaskError(f"What {self._address.shown} has answered cannot be read: {why}.")

    async def _connected(self) -> _Connection:
        """Return the connection; one that could not be opened is tried once more."""
        if self._open.done() and self._open.exception() is not None:
            self._renew()
        return await asyncio.shield(self._open)

    def _reopen(self, lost: _Connection) -> None:
        """Have another connection opened, unless somebody else has found this one lost before."""
        if self._open.done() and self._open.exception() is None and self._open.result() is lost:
            self._renew()

    def _renew(self) -> None:
        self._open = asyncio.get_running_loop().create_future()
        self._is_lost.set()


@asynccontextmanager
async def open_mcp_server(address: McpAddress) -> AsyncIterator[McpServer]:
    """Connect to a server, starting it if it is a command, and close it in the end.

    Raises:
        MissingExtraError: The library is not installed.
        UnavailableError: It does not start, cannot be reached, or does not speak the protocol.
    """
    for needed in ("mcp_messages", "mcp_http"):
        await asyncio.to_thread(import_module, f"ioa.adapters.{needed}")  # which takes longer than a loop may be held up
    server = McpServer(address)
    async with beside(server.hold()):
        await server.look()
        yield server


async def _connect(address: McpAddress, stack: AsyncExitStack) -> _Connection:
    from mcp import Client, StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    from ioa.adapters.mcp_messages import bounded

    transport: Transport
    if address.is_url:
        import httpx2

        from ioa.adapters.mcp_http import McpHttp

        async def look_at(response: httpx2.Response) -> None:
            request = response.request  # by POST: a server without a stream of its own may know no other method
            if response.status_code == HTTPStatus.NOT_FOUND and request.method == "POST" and _SESSION in request.headers:
                opened.is_forgotten = True

        # Reading has no end by itself: one answer that is late would end the library's whole transport. Who waits ends a call.
        limits = httpx2.Timeout(_OPENING.total_seconds(), read=None)
        asked = McpHttp(address.headers, timeout=limits, event_hooks={"response": [look_at]})
        http = await stack.enter_async_context(asked)
        transport = streamable_http_client(address.target, http_client=http)
    else:
        command, *arguments = shlex.split(address.target)
        started = StdioServerParameters(command=command, args=arguments, env=dict(address.environment))
        transport = stdio_client(started, errlog=sys.stderr)
    client = Client(bounded(transport), cache=None)  # whoever asks whether a server is there has it answer
    opened = _Connection(client)
    await stack.enter_async_context(client)
    client.session.validate_tool_result = _take_as_it_is  # type: ignore[method-assign]
    return opened


async def _tools_of(client: Client) -> Sequence[McpTool]:
    """Ask for all pages of a server's tools; of those of one name the last one is it."""
    found, cursor = dict[str, McpTool](), None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        for one in page.tools:
            hints = one.annotations
            harmless = hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)
            found[one.name] = McpTool(one.name, one.description or one.title or one.name, one.input_schema, harmless)
        if (cursor := page.next_cursor) is None:
            break
    return list(found.values())


async def _take_as_it_is(name: str, result: CallToolResult) -> None:
    """Hold an answer to nothing."""


def _check(tool: McpTool, arguments: dict[str, Any]) -> None:
    """See that arguments can be written, which the library learns while it writes to the connection of all.

    Raises:
        InvalidInputError: They cannot.
    """
    if _is_deeper(arguments, _DEEPEST):
        raise InvalidInputError(f"The arguments of {tool.name} are nested more than {_DEEPEST} deep.")
    check_texts(arguments, tool.name)


def _is_deeper(value: object, most: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return most < 0 or any(_is_deeper(one, most - 1) for one in inner)


async def _called(
    client: Client,
    tool: McpTool,
    arguments: dict[str, Any],
    hear: Callable[[str, float | None], None] | None,
    about: Mapping[str, Any] | None,
) -> McpAnswer:
    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        if hear is not None:
            hear(message or "", min(progress / total, 1.0) if total and total > 0 and progress >= 0 else None)

    meta: Any = dict(about) if about else None  # typed as the names that the protocol itself has
    result = await client.call_tool(tool.name, arguments, progress_callback=on_progress if hear else None, meta=meta)
    read = list(map(_read, result.content))
    return McpAnswer("\n".join(text for text, _ in read), bool(result.is_error), tuple(file for _, file in read if file))


def _read(block: ContentBlock) -> tuple[str, tuple[str, bytes, str] | None]:
    """Return what can be read of an answer, and of what is no text what it is, with its content if it is here."""
    from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent, TextResourceContents

    if isinstance(block, TextContent):
        return block.text, None
    if isinstance(block, EmbeddedResource):
        inner = block.resource
        if isinstance(inner, TextResourceContents):
            return inner.text, None
        kind = inner.mime_type or "application/octet-stream"
        return f"[{inner.uri}: {inner.mime_type or 'no text'}]", _file(str(inner.uri), inner.blob, kind)
    if isinstance(block, ResourceLink):
        return f"[{block.uri}]", None
    assert isinstance(block, ImageContent | AudioContent)
    return f"[{block.mime_type}, which cannot be shown]", _file("", block.data, block.mime_type)


def _file(name: str, data: str, kind: str) -> tuple[str, bytes, str] | None:
    """Return a file; None if it is not in base64."""
    try:
        return name, base64.b64decode(data), kind
    except (binascii.Error, ValueError):
        return None


def _is_loss(error: Exception) -> bool:
    """Whether the connection is gone, as opposed to a call that was refused, or an answer that is none."""
    import anyio
    import httpx2
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED

    if isinstance(error, MCPError):
        return error.code == CONNECTION_CLOSED or _is_broken(error)
    gone = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, httpx2.TransportError)
    return isinstance(error, gone)


def _is_broken(error: Exception) -> bool:
    """Whether a call was sent and its answer never came, which says nothing of the calls of others."""
    from mcp import MCPError

    from ioa.adapters.mcp_http import EXCHANGE_BROKEN

    return isinstance(error, MCPError) and error.code == EXCHANGE_BROKEN


async def _is_there(client: Client) -> bool:
    """Whether a server answers of whom a call has shown that it may not: what says that it is closed may be a code of its own."""
    from mcp import MCPError

    try:
        async with fail_after(_ASKED_WITHIN.total_seconds()):
            await client.list_tools()  # newer servers know no ping any more
    except Exception as error:  # noqa: BLE001 - whatever it is, there is no answer
        return isinstance(error, MCPError) and not _is_loss(error)
    return True


def _why_closed(address: McpAddress, error: BaseException) -> UnavailableError:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    why = f"it did not answer within {_OPENING.total_seconds():g} s" if isinstance(error, TimeoutError) else str(error)
    return UnavailableError(
        f"The MCP server {address.shown} cannot be reached: {shown_in_line(why[:_MAX_TOLD_CHARS] or type(error).__name__)}.",
        hint="Does it start by itself, and does it speak MCP over streamable HTTP, or over stdin and stdout?",
    )
