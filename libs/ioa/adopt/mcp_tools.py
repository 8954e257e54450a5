"""A server of the Model Context Protocol as an agent: its tools for a model, or one tool that does each task."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self, Unpack

from ioa import react
from ioa.adapters.mcp_client import McpAddress, McpServer, open_mcp_server
from ioa.adopt.adopted_member import Card, failure
from ioa.agent.task_context import TaskContext
from ioa.agent.view_text import with_results
from ioa.errors import InvalidInputError, TaskError
from ioa.hosting.agent import Agent
from ioa.ports.chat_model import Tool
from ioa.react.mcp_servers import attach_files

_MOST_EXAMPLES = 20
_MAX_EXAMPLE_CHARS, _MAX_DESCRIPTION_CHARS = 200, 1_000


def mcp(
    agent_id: str,
    target: str,
    *,
    description: str,
    tool: str | None = None,
    allow: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    **card: Unpack[Card],
) -> Agent:
    """Adopt an MCP server; this needs the extra `mcp`.

    With `tool`, each task is a call of this tool with the task as its only required text; no model is needed. The request's `_meta`
    contains `ioa/task_id` and `ioa/task_key`. Progress is reported, and the files of the answer are attached. Without `tool`, the
    agent is one of `ioa.react`, whose model calls the server's tools.

    Args:
        agent_id: As for `ioa.Agent`.
        target: A command, which the agent starts and which uses stdin and stdout; or the URL of a server with streamable HTTP.
        description: What the agent does.
        tool: The tool that does the tasks.
        allow: The tools that a model is offered. Default: all.
        env: Environment variables of a command, in addition to PATH, HOME and similar ones.
        headers: Headers of requests to a URL, such as `Authorization`.
        card: More fields of the card.

    Raises:
        InvalidInputError: The target is neither a command nor a URL, or the card is not valid.
    """
    if tool is not None:
        address = McpAddress(target, dict(env or {}), dict(headers or {}))
        return _ToolAgent(agent_id, description, tool=tool, address=address, **card)
    server = react.mcp(target, allow=allow, env=env, headers=headers)
    return react.ReactAgent(agent_id, description, tools=[server], **card)


async def said_of_itself(target: str, tool: str | None, headers: Mapping[str, str]) -> tuple[str, Sequence[str]]:
    """Return a description of a server, and the descriptions of its tools as examples.

    Raises:
        InvalidInputError: The server has no such tool, or no tool.
        UnavailableError: The server cannot be reached.
    """
    async with open_mcp_server(McpAddress(target, {}, dict(headers))) as server:
        tools = [server.find_tool(tool)] if tool is not None else server.tools
    told = [one.description.strip().partition("\n")[0][:_MAX_EXAMPLE_CHARS] for one in tools][:_MOST_EXAMPLES]
    if not told:
        raise InvalidInputError("The MCP server has no tools.", hint="Adopt a server with tools.")
    return f"{server.name or 'Tools'}: {'; '.join(told)}"[:_MAX_DESCRIPTION_CHARS], told


@dataclass
class _ToolAgent(Agent):
    """An agent whose tasks are calls of the same tool."""

    tool: str = field(kw_only=True)
    address: McpAddress = field(kw_only=True, repr=False)
    server: McpServer | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.task(self._call)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        """Connect to the server, and check that it has the tool."""
        async with open_mcp_server(self.address) as server:
            _argument(server.find_tool(self.tool))
            yield self.with_card(server=server)

    async def _call(self, task: str, ctx: TaskContext) -> str:
        assert self.server is not None
        tool = self.server.find_tool(self.tool)
        words = {_argument(tool): with_results(task, ctx)}
        about = {"ioa/task_id": ctx.task_id, "ioa/task_key": ctx.task_key}
        answer = await self.server.call(tool, words, hear=ctx.progress, about=about)
        if answer.is_error:
            raise failure(self.tool, answer.text)
        await attach_files(answer.files, self.tool, ctx)
        if not answer.text:
            raise TaskError(f"The tool {self.tool} has answered without any text.")
        return answer.text


def _argument(tool: Tool) -> str:
    """Return the name of the only text that a tool requires.

    Raises:
        InvalidInputError: The tool requires another value, or several.
    """
    required = tool.parameters.get("required", ())
    kinds = tool.parameters.get("properties", {})
    if len(required) != 1 or kinds.get(required[0], {}).get("type") != "string":
        raise InvalidInputError(
            f"The tool {tool.name!r} does not take one text: it requires {', '.join(required) or 'nothing'}.",
            hint="Leave `tool` out, and let a model call it.",
        )
    return str(required[0])
