"""Agents of ten frameworks, each adopted by one expression.

Each function takes the id, the description and the card of the agent as `ioa.Agent` does. No framework is imported here. An adapter
calls the methods that the framework documents. In place of a framework's agent, each function takes a function of the task's
context that makes it, for a tool that needs the task. An agent that keeps its conversation must be made for each task.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import mimetypes
from base64 import b64decode
from collections.abc import Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Unpack

from ioa.adopt.adopted_member import Card, adopted
from ioa.agent.task_context import TaskContext
from ioa.agent.view_text import with_results
from ioa.errors import InvalidInputError, TaskError
from ioa.hosting.agent import Agent

Thing = Any
"""An agent of a framework, or a function of the task's context that makes it."""
_SHOWN_CHARS = 200


def langgraph(
    agent_id: str,
    graph: Thing,
    *,
    description: str,
    state: Callable[[str], Any] = lambda words: {"messages": [("user", words)]},
    answer: Callable[[Any], object] = lambda last: last["messages"][-1].text,
    **card: Unpack[Card],
) -> Agent:
    """Adopt a compiled LangGraph graph. Its `thread_id` is the task's key: a graph with a checkpointer continues after a restart.

    `state` returns the graph's first state for a task. Default: a message of the user.
    `answer` returns the answer in the graph's last state. Default: the text of the last message. Files are in `files`.
    """

    async def run(task: str, ctx: TaskContext) -> str:
        last: Any = {}
        config = {"configurable": {"thread_id": ctx.task_key}}
        modes = ["updates", "custom", "values"]
        async for mode, part in _made(graph, ctx).astream(state(with_results(task, ctx)), config, stream_mode=modes):
            if mode == "values":
                last = part
            else:
                ctx.progress(", ".join(part)[:_SHOWN_CHARS] if isinstance(part, dict) else str(part)[:_SHOWN_CHARS])
        messages = last.get("messages", ()) if isinstance(last, dict) else ()
        for message in messages:
            _spend(ctx, getattr(message, "usage_metadata", None), "input_tokens", "output_tokens")
        for name, data in (last.get("files") or {}).items() if isinstance(last, dict) else ():
            ctx.artifact(name, data)
        return _text(answer(last), "The graph")

    return adopted(agent_id, description, card, run)


def pydantic_ai(
    agent_id: str,
    agent: Thing,
    *,
    description: str,
    deps: Callable[[TaskContext], Any] = lambda ctx: ctx,
    **card: Unpack[Card],
) -> Agent:
    """Adopt an agent of Pydantic AI. Its `conversation_id` is the task's key, and its tools receive the task's context as `deps`.

    `deps` returns the dependencies for a task's context.
    """

    async def run(task: str, ctx: TaskContext) -> str:
        async with _made(agent, ctx).iter(with_results(task, ctx), deps=deps(ctx), conversation_id=ctx.task_key) as running:
            try:
                async for node in running:
                    for part in getattr(getattr(node, "model_response", None), "parts", ()):
                        _tell(ctx, getattr(part, "tool_name", None) or getattr(part, "content", None))
            finally:
                _spend(ctx, running.usage, "input_tokens", "output_tokens")
        for number, file in enumerate(running.result.response.files):
            _attach(ctx, number, file.data, file.media_type)
        return _text(running.result.output, "The agent")

    return adopted(agent_id, description, card, run)


def smolagents(agent_id: str, make: Callable[[TaskContext], Any], *, description: str, **card: Unpack[Card]) -> Agent:
    """Adopt an agent of smolagents, which is made for each task because it keeps its conversation. It stops between steps.

    `make` returns the agent: `lambda ctx: ToolCallingAgent(tools=[…], model=model)`.

    Raises:
        InvalidInputError: `make` is not a function.
    """
    _check_makes(agent_id, make)

    def run(task: str, ctx: TaskContext) -> str:
        agent = make(ctx)
        answer: Any = None
        for step in agent.run(with_results(task, ctx), stream=True):
            if ctx.cancelled:
                agent.interrupt()  # before its next step
            _spend(ctx, getattr(step, "token_usage", None), "input_tokens", "output_tokens")
            if hasattr(step, "step_number"):
                _tell(ctx, step.model_output)
            answer = getattr(step, "output", None)
        if not isinstance(answer, str) and hasattr(answer, "to_string"):  # an image, or sound
            path = Path(answer.to_string())
            ctx.artifact(path.name, path.read_bytes())
            answer = f"The answer is the file {path.name}."
        return _text(answer, "The agent")

    return adopted(agent_id, description, card, run)


def autogen(agent_id: str, make: Callable[[TaskContext], Any], *, description: str, **card: Unpack[Card]) -> Agent:
    """Adopt an agent or a team of AutoGen, which is made for each task because it keeps its conversation.

    `make` returns the agent or team: `lambda ctx: AssistantAgent("translator", model)`.

    Raises:
        InvalidInputError: `make` is not a function.
    """
    _check_makes(agent_id, make)

    async def run(task: str, ctx: TaskContext) -> str:
        last: Any = None
        async with aclosing(make(ctx).run_stream(task=with_results(task, ctx))) as messages:
            async for one in messages:
                if not hasattr(one, "to_text"):  # the result, which repeats the messages
                    continue
                _spend(ctx, getattr(one, "models_usage", None), "prompt_tokens", "completion_tokens")
                if one.source != "user":
                    _tell(ctx, one.to_text())
                    last = one
        content = getattr(last, "content", ())
        for number, part in enumerate(content if isinstance(content, list) else ()):
            if hasattr(part, "to_base64"):
                ctx.artifact(f"image-{number}.png", b64decode(part.to_base64()))
        return _text(None if last is None else last.to_text(), "The agent")

    return adopted(agent_id, description, card, run)


def agent_framework(agent_id: str, agent: Thing, *, description: str, **card: Unpack[Card]) -> Agent:
    """Adopt an agent of Microsoft's Agent Framework. Its session has the task's key."""

    async def run(task: str, ctx: TaskContext) -> str:
        one, told = _made(agent, ctx), ""
        stream = one.run(with_results(task, ctx), stream=True, session=one.create_session(session_id=ctx.task_key))
        async for update in stream:
            for content in update.contents or ():
                _tell(ctx, getattr(content, "name", None))
            if update.text:
                told = (told + update.text)[-_SHOWN_CHARS:]
                _tell(ctx, told)
        response = await stream.get_final_response()
        _spend(ctx, response.usage_details, "input_token_count", "output_token_count")
        contents = [content for message in response.messages for content in message.contents]
        for number, file in enumerate(one for one in contents if one.type == "data"):
            _attach(ctx, number, b64decode(file.uri.partition(",")[2]), file.media_type)
        return _text(response.text, "The agent")

    return adopted(agent_id, description, card, run)


def openai_agents(
    agent_id: str,
    agent: Thing,
    runner: Any,
    *,
    description: str,
    context: Callable[[TaskContext], Any] = lambda ctx: ctx,
    **card: Unpack[Card],
) -> Agent:
    """Adopt an agent of the OpenAI Agents SDK. Its tools receive the task's context as the run's `context`.

    `runner` is the framework's `Runner`; `context` returns the run's context for a task's context.
    """

    async def run(task: str, ctx: TaskContext) -> str:
        running = runner.run_streamed(_made(agent, ctx), with_results(task, ctx), context=context(ctx))
        try:
            async for event in running.stream_events():
                if event.type == "run_item_stream_event":
                    raw: Any = getattr(event.item, "raw_item", None)
                    _tell(ctx, getattr(raw, "name", None) or _joined(getattr(raw, "content", None)))
                    if getattr(raw, "type", "") == "image_generation_call" and raw.result:
                        ctx.artifact(f"{raw.id}.png", b64decode(raw.result))
        finally:
            running.cancel()
            _spend(ctx, running.context_wrapper.usage, "input_tokens", "output_tokens")
        return _text(running.final_output, "The agent")

    return adopted(agent_id, description, card, run)


def adk(agent_id: str, runner: Thing, user_content: Callable[[str], Any], *, description: str, **card: Unpack[Card]) -> Agent:
    """Adopt a runner of Google's Agent Development Kit. Its session and its user have the task's key.

    `runner` is the runner, such as `InMemoryRunner(agent)`, or `runner(ctx)` that makes it.
    `user_content` is the framework's `google.genai.types.UserContent`.
    """

    async def run(task: str, ctx: TaskContext) -> str:
        one, said = _made(runner, ctx), list[str]()
        place = {"user_id": ctx.task_key, "session_id": ctx.task_key}
        if await one.session_service.get_session(app_name=one.app_name, **place) is None:
            await one.session_service.create_session(app_name=one.app_name, **place)
        async with aclosing(one.run_async(**place, new_message=user_content(with_results(task, ctx)))) as events:
            async for event in events:
                parts = (event.content.parts if event.content else None) or ()
                for number, part in enumerate(parts):
                    _tell(ctx, part.text or getattr(part.function_call, "name", None))
                    if part.inline_data:
                        file = part.inline_data
                        _attach(ctx, number, file.data, file.mime_type, file.display_name)
                if not event.partial:
                    _spend(ctx, event.usage_metadata, "prompt_token_count", "candidates_token_count")
                if event.is_final_response():
                    said = [part.text for part in parts if part.text and not part.thought]
        return _text("".join(said), "The agent")

    return adopted(agent_id, description, card, run)


def crewai(
    agent_id: str,
    crew: Thing,
    *,
    description: str,
    inputs: Callable[[str], Mapping[str, Any]] | None = None,
    **card: Unpack[Card],
) -> Agent:
    """Adopt a crew of CrewAI, which is copied for each task.

    The crew's texts may contain the variables `{task}`, `{task_id}` and `{task_key}`. One other variable receives the task.

    `inputs` returns the values of the crew's other variables for a task; needed if there are several.

    Raises:
        InvalidInputError: The crew has several other variables, and there is no `inputs`.
    """

    def values(made: Any, task: str) -> Mapping[str, Any]:
        if inputs is not None:
            return inputs(task)
        names = sorted(made.fetch_inputs() - {"task", "task_id", "task_key"})
        if len(names) > 1:
            raise InvalidInputError(
                f"The crew of agent {agent_id!r} has the variables {', '.join(names)}.",
                hint=f"Return their values: crewai(…, inputs=lambda task: {{{names[0]!r}: task, …}}).",
            )
        return dict.fromkeys(names, task)

    if not inspect.isroutine(crew):
        values(crew, "")

    async def run(task: str, ctx: TaskContext) -> str:
        one, words = _made(crew, ctx).copy(), with_results(task, ctx)
        one.step_callback = lambda step: _tell(ctx, getattr(step, "output", None) or getattr(step, "text", None))
        own = {"task": words, "task_id": ctx.task_id, "task_key": ctx.task_key}
        try:
            output = await one.akickoff(inputs={**own, **values(one, words)})
        finally:
            _spend(ctx, one.usage_metrics, "prompt_tokens", "completion_tokens")
        return _text(output.raw, "The crew")

    return adopted(agent_id, description, card, run)


def llama_index(agent_id: str, agent: Thing, *, description: str, **card: Unpack[Card]) -> Agent:
    """Adopt an agent, or a workflow of agents, of LlamaIndex."""

    async def run(task: str, ctx: TaskContext) -> str:
        running = _made(agent, ctx).run(user_msg=with_results(task, ctx))
        try:
            async for event in running.stream_events():
                _tell(ctx, getattr(event, "tool_name", None) or getattr(getattr(event, "response", None), "content", None))
                if hasattr(event, "tool_calls") and not hasattr(event, "delta"):
                    _spend(ctx, _field(getattr(event, "raw", None), "usage"), "prompt_tokens", "completion_tokens")
            output = await running
        except asyncio.CancelledError:
            await running.cancel_run()
            raise
        for number, block in enumerate(getattr(output.response, "blocks", ())):
            if data := getattr(block, "image", None) or getattr(block, "data", None):
                _attach(ctx, number, b64decode(data), getattr(block, "image_mimetype", None))
        return _text(output.response.content, "The agent")

    return adopted(agent_id, description, card, run)


def agno(agent_id: str, agent: Thing, *, description: str, **card: Unpack[Card]) -> Agent:
    """Adopt an agent or a team of Agno. Its session has the task's key."""

    async def run(task: str, ctx: TaskContext) -> str:
        last: Any = None
        text = ""
        events = _made(agent, ctx).arun(with_results(task, ctx), stream=True, stream_events=True, session_id=ctx.task_key)
        async with aclosing(events):
            async for event in events:
                match event.event.removeprefix("Team"):
                    case "RunContent" if isinstance(event.content, str):
                        text = (text + event.content)[-_SHOWN_CHARS:]
                        _tell(ctx, text)
                    case "ToolCallStarted":
                        _tell(ctx, event.tool.tool_name)
                    case "RunError" | "RunCancelled":
                        raise TaskError(f"The agent failed: {event.content or 'it was cancelled'}.")
                    case "RunCompleted":
                        last = event
        _spend(ctx, getattr(last, "metrics", None), "input_tokens", "output_tokens")
        for number, file in enumerate([*(getattr(last, "images", None) or ()), *(getattr(last, "files", None) or ())]):
            _attach(ctx, number, file.get_content_bytes(), file.mime_type, getattr(file, "filename", None))
        return _text(getattr(last, "content", None), "The agent")

    return adopted(agent_id, description, card, run)


def _made(thing: Thing, ctx: TaskContext) -> Any:
    return thing(ctx) if inspect.isroutine(thing) else thing


def _check_makes(agent_id: str, make: object) -> None:
    if not inspect.isroutine(make):
        raise InvalidInputError(
            f"Agent {agent_id!r} would share one conversation among all tasks.", hint="Make an agent for each task: lambda ctx: …"
        )


def _tell(ctx: TaskContext, said: object) -> None:
    """Report a step in the framework's own words."""
    if isinstance(said, str) and said.strip():
        ctx.progress(said.strip()[-_SHOWN_CHARS:])


def _spend(ctx: TaskContext, usage: object, prompt: str, answer: str) -> None:
    """Report the tokens in two fields of a usage, if there is one."""
    if usage:
        ctx.spend(tokens=_field(usage, prompt) or 0, answer_tokens=_field(usage, answer) or 0)


def _text(answer: object, whose: str) -> str:
    """Return an answer as text; data of Python or pydantic as JSON.

    Raises:
        TaskError: There is no text.
    """
    if hasattr(answer, "model_dump_json"):
        return str(answer.model_dump_json())
    if isinstance(answer, int | float | list | dict):
        return json.dumps(answer, ensure_ascii=False, default=str)
    if not isinstance(answer, str) or not answer.strip():
        raise TaskError(f"{whose} has answered without any text.", hint="The answer to a task is text.")
    return str(answer)


def _attach(ctx: TaskContext, number: int, data: bytes, media_type: str | None, name: str | None = None) -> None:
    """Attach a file; without a name, its number and its media type name it."""
    ctx.artifact(name or f"file-{number}{mimetypes.guess_extension(media_type or '') or ''}", data, media_type)


def _joined(content: object) -> str:
    return " ".join(str(part.text) for part in content if hasattr(part, "text")) if isinstance(content, list) else ""


def _field(thing: object, name: str) -> Any:
    """Return a field of an object or of a dict."""
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
