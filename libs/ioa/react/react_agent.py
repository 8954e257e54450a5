"""ReAct agent: call the model, run the tools that it calls, return their results to it, and repeat until it answers.

Errors of tools and of the model's calls are returned to the model. Only an author ends a task, by raising `TaskError` in a tool. A
second attempt at a task starts from the beginning: actions that must not happen twice use `ctx.task_key` and the call's number.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Self

from ioa.agent.task_context import TaskContext
from ioa.agent.tasks.chat_question import ChatAnswer
from ioa.agent.tasks.worker_pool import OutOfTimeError, WorkerPool
from ioa.errors import InvalidInputError, TaskError
from ioa.hosting.agent import Agent
from ioa.ports.chat_model import ChatMessage, ToolCall
from ioa.react.mcp_servers import Mcp, open_servers
from ioa.react.tools import Call, Guard, ReactTool, as_observation, check_names

MAX_OBSERVATION_CHARS = 8_000
"""Maximum characters of a tool's result in the prompt."""
_SHOWN_CHARS = 120
_RULES = """\
- Use the tools for whatever you do not know for certain; never guess what one of them can find out. Ask for one again only with
  other arguments.
- When you can answer, answer in words, without asking for a tool."""
_MARK = " […]"

OpenTools = Callable[[TaskContext], AbstractAsyncContextManager[Sequence[ReactTool]]]
"""Opens the tools of one task, for resources of that task such as a browser page."""


@dataclass
class ReactAgent(Agent):
    """An agent whose model calls tools until it can answer; `Agent` documents the other arguments.

    Args:
        tools: Tools made by `@tool`, and MCP servers by `mcp`; or `open_tools(ctx)`, an async context manager that returns the
            tools of one task.
        max_steps: Maximum answers of the model that call tools; then it must answer.
        tool_timeout: Timeout of one call.

    Raises:
        InvalidInputError: The card is invalid, two tools have the same name, or `max_steps` is below 1.
    """

    _: KW_ONLY
    tools: Sequence[ReactTool | Mcp] | OpenTools = ()
    max_steps: int = 8
    tool_timeout: timedelta = timedelta(seconds=60)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_steps < 1:
            raise InvalidInputError(f"An agent cannot act in {self.max_steps} steps.", hint="Give max_steps of 1 or more.")
        if not callable(self.tools):
            check_names([one for one in self.tools if isinstance(one, ReactTool)])
        self.task(self._reason_and_act)

    @property
    def needs_model(self) -> bool:
        """Always true."""
        return True

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        """Connect the MCP servers, and return an agent with their tools."""
        if callable(self.tools):
            yield self
            return
        async with open_servers(self.tools) as tools:
            yield self.with_card(tools=tools)

    async def _reason_and_act(self, task: str, ctx: TaskContext) -> str:
        async with self.tools(ctx) if callable(self.tools) else open_servers(self.tools) as tools:
            check_names(tools)
            return await _Run(self, tools, ctx).answer(task)


class _Run:
    """One task of a ReAct agent."""

    def __init__(self, agent: ReactAgent, tools: Sequence[ReactTool], ctx: TaskContext) -> None:
        self._agent = agent
        self._tools = {one.name: one for one in tools}
        self._offered = tuple(one.offered for one in tools)
        self._ctx = ctx
        self._workers = WorkerPool("a tool", 1)
        self._step = self._calls = 0
        self._approved: list[Call] = []

    async def answer(self, task: str) -> str:
        """Return the model's final answer.

        Raises:
            TaskError: There is no complete answer within the steps, or a tool ended the task.
            IoaError: The model cannot be called; see `TaskContext.chat`.
        """
        from ioa.agent.model.task import READ, converse, messages_of, readable  # only needed with a model

        agent = self._agent
        about = f"You are {agent.agent_id}: {agent.description}"
        messages = await messages_of("\n\n".join(filter(None, (about, agent.fixed_instructions))), task, self._ctx, _RULES)
        if READ.name not in self._tools and readable(task, self._ctx):
            self._offered = (*self._offered, READ)
        max_steps, trace = agent.max_steps, self._trace_answer
        return await converse(messages, self._offered, self._observe, self._ctx, max_steps=max_steps, on_answer=trace)

    async def _observe(self, calls: Sequence[ToolCall]) -> list[ChatMessage]:
        """Run the calls of an answer in their order, and return a message for each call."""
        self._step += 1
        return [await self._answered(call) for call in calls]

    async def _answered(self, call: ToolCall) -> ChatMessage:
        text = await self._run(call)
        if len(text) > MAX_OBSERVATION_CHARS:
            text = text[: MAX_OBSERVATION_CHARS - len(_MARK)] + _MARK
        self._ctx.trace(
            {"gen_ai.operation.name": "execute_tool", **_named(call), "gen_ai.tool.call.result": text, "step": self._step}
        )
        return ChatMessage("tool", text, tool_call_id=call.call_id)

    async def _run(self, call: ToolCall) -> str:
        """Return the result of a call, or its error."""
        wanted = self._tools.get(call.name)
        if wanted is None and call.name == "read":
            from ioa.agent.model.task import read

            return await read(call.arguments, self._ctx)
        if wanted is None:
            return f"Error: there is no tool {call.name!r}. There are: {', '.join(self._tools) or 'none'}."
        try:
            arguments = wanted.read(call.arguments)
        except InvalidInputError as error:
            return f"Error: {error.message}"
        if (why := await self._refusal(wanted, arguments)) is not None:
            return f"Refused: {why}"
        text = await self._call(wanted, arguments, call)
        self._ctx.tell("tool_called", tool=call.name, arguments=arguments, result=text)
        return text

    async def _call(self, wanted: ReactTool, arguments: dict[str, Any], call: ToolCall) -> str:
        shown = ", ".join(f"{value!r}" for value in arguments.values())[:_SHOWN_CHARS]
        step, most = self._step, self._agent.max_steps
        self._ctx.progress(f"step {step} of {most}: {call.name}({shown})", step / (most + 1))
        try:
            brought = as_observation(await self._within(partial(wanted.call, arguments, self._ctx)))
            for path in brought.files:
                data = await asyncio.to_thread(path.read_bytes)
                await asyncio.to_thread(self._ctx.artifact, path.name, data)
        except TaskError:
            raise
        except Exception as error:  # noqa: BLE001 - an author's tool can raise anything; the model reads it
            self._ctx.trace({"error.type": type(error).__name__, "exception.stacktrace": traceback.format_exc(), **_named(call)})
            return f"Error: {type(error).__name__}: {error}"
        return brought.text

    async def _refusal(self, wanted: ReactTool, arguments: dict[str, Any]) -> str | None:
        """Ask the guards about a call; each sees the calls that were approved before."""
        self._calls += 1
        call = Call(wanted.name, arguments, self._calls, tuple(self._approved))
        for guard in wanted.guards:
            if (why := await self._asked(guard, call)) is not None:
                self._ctx.tell("tool_rejected", tool=call.name, arguments=arguments, why=why)
                return why
        self._approved.append(call)
        return None

    async def _asked(self, guard: Guard, call: Call) -> str | None:
        """Ask a guard; an exception, or an answer that is no text, rejects too."""
        try:
            why = await self._within(partial(guard, call, self._ctx))
        except Exception as error:  # noqa: BLE001 - an author's guard can raise anything
            return f"{type(error).__name__}: {error}"
        return why if why is None or isinstance(why, str) else f"the guard returned {type(why).__name__}, not a text"

    async def _within(self, function: Callable[[], Any]) -> Any:
        """Call an author's function in a thread, and await the result of an async one, within the agent's timeout."""
        timeout = self._agent.tool_timeout
        async with self._workers.slot(timeout / 2) as slot:
            try:
                return await slot.call(function, (), timeout)
            except OutOfTimeError:  # ends the call, not the task
                raise TimeoutError(f"it was not done within {timeout.total_seconds():g} s") from None

    def _trace_answer(self, answer: ChatAnswer) -> None:
        self._ctx.trace(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.output.messages": answer.text,
                "gen_ai.tool.calls": [_named(call) for call in answer.tool_calls],
                "gen_ai.usage.input_tokens": answer.usage.tokens_in,
                "gen_ai.usage.output_tokens": answer.usage.tokens_out,
                "complete": answer.complete,
                "step": self._step,
            }
        )


def _named(call: ToolCall) -> dict[str, str]:
    return {"gen_ai.tool.name": call.name, "gen_ai.tool.call.id": call.call_id, "gen_ai.tool.call.arguments": call.arguments}
