"""The loop of a ReAct agent: ask, run what is asked for, show what it brought, and ask again.

Each call is answered before the next question, whatever becomes of it: what a tool or a model does wrong is an observation, so that
the model can do better. Only an author ends a task, by raising `TaskError` in a tool. Nothing here is resumed: a second attempt
begins anew, and tools that must not act twice go by `ctx.task_key` and the number of the call.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from ioa.agent.chatting import ChatAnswer
from ioa.agent.definition import TaskContext
from ioa.agent.listening import ToolCalled, ToolRefused
from ioa.agent.worker_pool import OutOfTimeError, WorkerPool
from ioa.cancellation import TaskGroup
from ioa.errors import InvalidInputError, TaskError, find_error
from ioa.ports.chat_model import ChatMessage, ToolCall
from ioa.react.tools import Call, Guard, Guarding, ReactTool, as_observation

_SHOWN_CHARS = 120
_CALLS_AT_ONCE = 8
_GRACE = timedelta(seconds=1)
_RULES = """\
- Use the tools for whatever you do not know for certain; never guess what one of them can find out. Ask for one again only with
  other arguments.
- When you can answer, answer in words, without asking for a tool."""
_LAST = "The steps are spent. Answer now."
_CUT = "Your answer was cut at its limit, and nothing of it was run. Say it shorter."
_EMPTY = "Your answer is empty. Ask for a tool, or answer."
_MARK = " […]"


@dataclass(frozen=True)
class Options:
    """How far a ReAct agent goes; see `react_agent`."""

    max_steps: int = 8
    max_tokens: int | None = None
    tool_timeout: timedelta = timedelta(seconds=60)
    max_observation_chars: int = 8_000
    guard: Guard | None = None


class Run:
    """One task of a ReAct agent."""

    def __init__(self, tools: Sequence[ReactTool], options: Options, ctx: TaskContext) -> None:
        self._tools = {one.name: one for one in tools}
        self._offered = tuple(one.offered for one in tools)
        self._options = options
        self._ctx = ctx
        self._workers = WorkerPool("a tool", _CALLS_AT_ONCE, _GRACE)
        self._step = self._calls = 0
        self._guards = () if options.guard is None else (Guarding(options.guard),)
        self._guarding = asyncio.Lock()
        self._approved: list[Call] = []
        self._refusals: Counter[Guarding] = Counter()

    async def answer(self, about: str, instructions: str, task: str) -> str:
        """Return what the model answers in the end.

        Raises:
            TaskError: There is no whole answer within the steps, or a tool has ended the task.
            IoaError: The model cannot be asked; see `TaskContext.chat`.
        """
        from ioa.agent.model.task import messages_of  # what only a model needs

        messages = await messages_of("\n\n".join(filter(None, (about, instructions))), task, self._ctx, _RULES)
        is_told = False
        while True:
            is_last = self._step == self._options.max_steps
            asked = [*messages, ChatMessage("user", _LAST)] if is_last else messages
            room = self._options.max_tokens
            answer = await self._ctx.chat(asked, tools=self._offered, max_tokens=room, may_call=not is_last, stream=True)
            self._trace_answer(answer)
            if answer.complete and answer.tool_calls:
                if is_last:
                    raise TaskError(
                        f"There is no answer within {self._options.max_steps} steps.", hint="Allow more, or ask for less."
                    )
                self._step += 1
                messages.append(ChatMessage("assistant", answer.text, answer.tool_calls))
                messages += await self._observe(answer.tool_calls)
            elif answer.complete and answer.text.strip():
                return answer.text.strip()
            elif is_told:
                raise TaskError("The model gave no whole answer.", hint="Ask for less at once, or raise max_tokens.")
            else:
                is_told = True
                messages.append(ChatMessage("assistant", answer.text or "(nothing)"))
                messages.append(ChatMessage("user", _EMPTY if answer.complete else _CUT))

    async def _observe(self, calls: Sequence[ToolCall]) -> list[ChatMessage]:
        """Run the calls of one answer, side by side where all may, and answer each of them."""
        beside = all(call.name in self._tools and self._tools[call.name].parallel for call in calls)
        if not beside:
            return [await self._answered(call) for call in calls]
        try:
            async with TaskGroup() as group:
                running = [group.create_task(self._answered(call)) for call in calls]
        except BaseExceptionGroup as errors:
            raise find_error(TaskError, errors) or errors from None
        return [one.result() for one in running]

    async def _answered(self, call: ToolCall) -> ChatMessage:
        text = await self._run(call)
        if len(text) > self._options.max_observation_chars:
            text = text[: max(0, self._options.max_observation_chars - len(_MARK))] + _MARK
        self._ctx.trace(
            {"gen_ai.operation.name": "execute_tool", **_named(call), "gen_ai.tool.call.result": text, "step": self._step}
        )
        return ChatMessage("tool", text, tool_call_id=call.call_id)

    async def _run(self, call: ToolCall) -> str:
        """Return what a call brings, or what went wrong with it."""
        wanted = self._tools.get(call.name)
        if wanted is None:
            return f"Error: there is no tool {call.name!r}. There are: {', '.join(self._tools) or 'none'}."
        try:
            arguments = wanted.read(call.arguments)
        except InvalidInputError as error:
            return f"Error: {error.message}"
        if (why := await self._refusal(wanted, arguments)) is not None:
            return f"Refused: {why}"
        text = await self._call(wanted, arguments, call)
        self._ctx.tell(ToolCalled, tool=call.name, arguments=arguments, brought=text)
        return text

    async def _call(self, wanted: ReactTool, arguments: dict[str, Any], call: ToolCall) -> str:
        """Run an approved call."""
        shown = ", ".join(f"{value!r}" for value in arguments.values())[:_SHOWN_CHARS]
        step, most = self._step, self._options.max_steps
        self._ctx.progress(f"step {step} of {most}: {call.name}({shown})", step / (most + 1))
        try:
            brought = as_observation(await self._within(partial(wanted.call, arguments, self._ctx)))
            for path in brought.files:
                data = await asyncio.to_thread(path.read_bytes)
                await asyncio.to_thread(self._ctx.artifact, path.name, data)
        except TaskError:
            raise
        except Exception as error:  # noqa: BLE001 - an author's tool may raise anything; the model is told
            self._ctx.trace({"error.type": type(error).__name__, "exception.stacktrace": traceback.format_exc(), **_named(call)})
            return f"Error: {type(error).__name__}: {error}"
        return brought.text

    async def _refusal(self, wanted: ReactTool, arguments: dict[str, Any]) -> str | None:
        """Ask the guards, one call after the other, so that each is looked at with all those in sight that were approved before.

        Raises:
            TaskError: Calls were refused more often than they may be.
        """
        async with self._guarding:
            self._calls += 1
            schema = None if wanted.is_checked else wanted.offered.parameters
            call = Call(wanted.name, arguments, self._calls, tuple(self._approved), schema)
            for guarding in (*wanted.guards, *self._guards):
                if (why := await self._asked(guarding.guard, call)) is not None:
                    self._refusals[guarding] += 1
                    self._ctx.tell(ToolRefused, tool=call.name, arguments=arguments, why=why)
                    if guarding.retries is not None and self._refusals[guarding] > guarding.retries:
                        raise TaskError(
                            f"A guard has refused {self._refusals[guarding]} calls. The last one, of {call.name}: {why}"
                        )
                    return why
            self._approved.append(call)
            return None

    async def _asked(self, guard: Guard, call: Call) -> str | None:
        """Ask a guard; what it raises refuses as well."""
        try:
            why: str | None = await self._within(partial(guard, call, self._ctx))
        except Exception as error:  # noqa: BLE001 - an author's guard may raise anything, which refuses
            return f"{type(error).__name__}: {error}"
        return why

    async def _within(self, function: Callable[[], Any]) -> Any:
        """Call an author's function in a thread, and await what an async one returns, for no longer than it may take."""
        timeout = self._options.tool_timeout
        async with self._workers.slot(timeout / 2) as slot:
            try:
                return await slot.call(function, (), timeout)
            except OutOfTimeError:  # which ends the call, and not the task
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
