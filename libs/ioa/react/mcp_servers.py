"""Tools of MCP servers, connected when their agent starts.

Descriptions come from the server, so they are limited and cannot pass for a part of the prompt. The server validates arguments.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import mimetypes
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from ioa.adapters.mcp_client import McpAddress, McpServer, open_mcp_server
from ioa.agent.task_context import TaskContext
from ioa.foreign_text import defused
from ioa.ports.chat_model import Tool
from ioa.protocol.goals import plain_file_name
from ioa.react.tools import MAX_NAME_CHARS, Guard, ReactTool, parse_arguments

_MAX_DESCRIPTION_CHARS = 1_000
"""Maximum length of the description of a tool in a prompt."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Mcp:
    """An MCP server whose tools an agent may use; made by `mcp`."""

    address: McpAddress
    allow: frozenset[str] | None
    name: str
    guards: tuple[Guard, ...] = ()


def mcp(
    target: str,
    *,
    allow: Sequence[str] | None = None,
    name: str = "",
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Mcp:
    """Give an agent the tools of an MCP server, as `<server>__<tool>`; it needs the extra `mcp`.

    The server is connected when the agent starts, and again by a call that finds the connection lost. Files that a tool returns,
    such as pictures, are attached to the task's result.

    Args:
        target: A command, which the agent starts and calls over stdin and stdout; or a URL of streamable HTTP.
        allow: Tools that the model may call, by the server's names; default all.
        name: Prefix of the tools' names; default the server's own name.
        env: Environment of a command, apart from PATH, HOME and the like. Nothing else of the agent's environment is passed.
        headers: HTTP headers of requests to a URL, such as `Authorization`.

    Raises:
        InvalidInputError: The target is empty, or is not a valid command.
    """
    return Mcp(McpAddress(target, dict(env or {}), dict(headers or {})), None if allow is None else frozenset(allow), name)


@asynccontextmanager
async def open_servers(tools: Sequence[ReactTool | Mcp]) -> AsyncIterator[list[ReactTool]]:
    """Connect the servers among the tools, and return all tools in their order.

    Raises:
        InvalidInputError: A server lacks an allowed tool.
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


async def attach_files(files: Sequence[tuple[str, bytes, str]], tool: str, ctx: TaskContext) -> list[str]:
    """Attach the files of an MCP answer to the task's result, and return their names."""
    names: list[str] = []
    for uri, data, kind in files:
        made = f"{tool}-{hashlib.sha256(data).hexdigest()[:8]}{mimetypes.guess_extension(kind) or ''}"
        names.append(plain_file_name(PurePosixPath(uri).name or made))
        await asyncio.to_thread(ctx.artifact, names[-1], data, kind)
    return names


def _tools_of(wanted: Mcp, server: McpServer) -> list[ReactTool]:
    chosen = server.tools if wanted.allow is None else [server.find_tool(name) for name in sorted(wanted.allow)]
    return [_as_tool(wanted.name or server.name or wanted.address.shown, tool, server, wanted.guards) for tool in chosen]


def _as_tool(prefix: str, tool: Tool, server: McpServer, guards: tuple[Guard, ...]) -> ReactTool:
    async def call(arguments: dict[str, Any], ctx: TaskContext) -> str:
        answer = await server.call(tool, arguments)
        if answer.is_error:
            return f"Error: {answer.text or 'the tool does not state which'}"
        names = await attach_files(answer.files, tool.name, ctx)
        return f"{answer.text}\nAttached to the result: {', '.join(names)}" if names else answer.text

    name = _NOT_IN_NAMES.sub("_", f"{prefix}__{tool.name}")[:MAX_NAME_CHARS]
    parameters = json.loads(defused(json.dumps(tool.parameters, ensure_ascii=False)))
    offered = Tool(name, defused(tool.description[:_MAX_DESCRIPTION_CHARS]), parameters)
    return ReactTool(offered, partial(parse_arguments, name), call, guards=guards)
