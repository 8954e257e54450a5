"""Tools that MCP servers bring: connected when their agent starts, and offered to its model beside those of its author.

What a server says of its tools is text of somebody else, so it is bounded, and cannot pass for a part of the prompt. Which
arguments are right is for the server to say; that they are an object is checked here.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from ioa.adapters.mcp_server import MAX_DESCRIPTION_CHARS, McpAddress, McpServer, McpTool, open_mcp_server
from ioa.errors import InvalidInputError
from ioa.fences import defused
from ioa.json_text import parse_json
from ioa.ports.chat_model import Tool
from ioa.react.tools import MAX_NAME_CHARS, Guarding, ReactTool

MAX_TOOLS = 32
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Mcp:
    """A server whose tools an agent may use; made by `mcp`."""

    address: McpAddress
    allow: frozenset[str] | None
    name: str
    guards: tuple[Guarding, ...] = ()


def mcp(
    target: str,
    *,
    allow: Sequence[str] | None = None,
    name: str = "",
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Mcp:
    """Have an agent use the tools of an MCP server, as `<server>__<tool>`; it needs the extra `mcp`.

    The server is connected when the agent starts, and once more by a call that finds the connection lost. Its tools are those that
    it has then, 32 at most.

    Args:
        target: A command, which the agent starts and speaks to over stdin and stdout; or the URL of a server of streamable HTTP.
        allow: Which tools the model is offered, by the server's own names; all by default.
        name: What the server is called before the names of its tools; what it calls itself by default.
        env: What a command gets besides PATH, HOME and the like. It is given nothing else of the agent's environment.
        headers: What requests to a URL carry, such as `Authorization`.

    Raises:
        InvalidInputError: The target is empty, or cannot be read as a command.
    """
    return Mcp(McpAddress(target, dict(env or {}), dict(headers or {})), None if allow is None else frozenset(allow), name)


@asynccontextmanager
async def open_servers(tools: Sequence[ReactTool | Mcp]) -> AsyncIterator[list[ReactTool]]:
    """Open the servers among the tools, and give all tools in their order.

    Raises:
        InvalidInputError: A server lacks a tool that is allowed, or has too many.
        MissingExtraError: The extra is not installed.
        UnavailableError: A server cannot be reached.
    """
    opened: list[ReactTool] = []
    async with AsyncExitStack() as stack:
        for one in tools:
            if isinstance(one, Mcp):
                opened += _tools_of(one, await stack.enter_async_context(open_mcp_server(one.address)))
            else:
                opened.append(one)
        yield opened


def _tools_of(wanted: Mcp, server: McpServer) -> list[ReactTool]:
    there = {tool.name: tool for tool in server.tools}
    if missing := sorted((wanted.allow or frozenset()) - there.keys()):
        raise InvalidInputError(
            f"The MCP server {wanted.address.shown} has no tool {', '.join(missing)}.",
            hint=f"It has: {', '.join(there) or 'none'}.",
        )
    chosen = [tool for name, tool in there.items() if wanted.allow is None or name in wanted.allow]
    if len(chosen) > MAX_TOOLS:
        raise InvalidInputError(
            f"The MCP server {wanted.address.shown} has {len(chosen)} tools, and a model is offered {MAX_TOOLS} at most.",
            hint="Choose some: mcp(…, allow=[…]).",
        )
    return [_as_tool(wanted.name or server.name or wanted.address.shown, tool, server, wanted.guards) for tool in chosen]


def _as_tool(prefix: str, tool: McpTool, server: McpServer, guards: tuple[Guarding, ...]) -> ReactTool:
    async def call(**arguments: Any) -> str:
        answer = await server.call(tool, arguments)
        return f"Error: {answer.text or 'the tool does not say which'}" if answer.is_error else answer.text

    name = _UNFIT.sub("_", f"{prefix}__{tool.name}")[:MAX_NAME_CHARS]
    offered = Tool(name, _told(tool.description), _bounded(tool.parameters))
    return ReactTool(call, offered, partial(_read, name), takes_context=False, guards=guards, is_checked=False)


def _read(name: str, arguments: str) -> dict[str, Any]:
    try:
        read = parse_json(arguments or "{}")
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise InvalidInputError(f"{name} cannot take these arguments: they are no JSON object.")
    return read


def _bounded(schema: Any) -> Any:
    """Bound what a schema says in prose, wherever in it."""
    if isinstance(schema, list):
        return [_bounded(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _told(one) if key == "description" and isinstance(one, str) else _bounded(one) for key, one in schema.items()}


def _told(description: str) -> str:
    return defused(description[:MAX_DESCRIPTION_CHARS])
