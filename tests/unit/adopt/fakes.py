"""Fakes of nine frameworks: what an adapter calls of each, and what it gets back. Where the real ones run: tests/frameworks.

Each knows of its task's key what the real one knows: the id of its thread, conversation or session, or the context of its tools.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace as Some
from typing import Any

from ioa.agent.task_context import TaskContext
from ioa.testing.foreign_agent import Deed, FinalAnswer, ForeignAgent, Made, ProgressStep, Spent


class LangGraph:
    """A compiled graph."""

    def __init__(self, foreign: ForeignAgent) -> None:
        self._foreign = foreign

    async def astream(self, state: Any, config: Any, stream_mode: list[str]) -> AsyncIterator[tuple[str, Any]]:
        """Stream the modes."""
        values: dict[str, Any] = {"messages": [Some(text=state["messages"][0][1], usage_metadata=None)]}
        async for deed in self._foreign.perform(state["messages"][0][1], config["configurable"]["thread_id"]):
            match deed:
                case ProgressStep(text):
                    yield "custom", text
                case Spent(tokens, answer_tokens):
                    usage = {"input_tokens": tokens, "output_tokens": answer_tokens}
                    values["messages"].append(Some(text="", usage_metadata=usage))
                case Made(name, data):
                    values["files"] = {name: data}
                case FinalAnswer(text):
                    values["messages"].append(Some(text=text, usage_metadata=None))
                    yield "updates", {"translate": {}}
                    yield "values", values


class PydanticAi:
    """An agent."""

    def __init__(self, foreign: ForeignAgent) -> None:
        self._foreign = foreign

    @asynccontextmanager
    async def iter(self, words: str, *, deps: TaskContext, conversation_id: str) -> AsyncIterator[Any]:
        """Open a run."""
        assert deps.task_key == conversation_id
        run = _PydanticRun(self._foreign.perform(words, conversation_id))
        yield run


class _PydanticRun:
    def __init__(self, deeds: AsyncIterator[Deed]) -> None:
        self._deeds = deeds
        self.usage = Some(input_tokens=0, output_tokens=0)
        self.result = Some(output=None, response=Some(files=[]))

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for deed in self._deeds:
            match deed:
                case ProgressStep(text):
                    yield Some(model_response=Some(parts=[Some(content=text), Some(tool_name="look", content=None)]))
                case Spent(tokens, answer_tokens):
                    self.usage = Some(input_tokens=tokens, output_tokens=answer_tokens)
                case Made(_, data):
                    self.result.response.files.append(Some(media_type="application/octet-stream", data=data))
                case FinalAnswer(text):
                    self.result.output = text
                    yield Some(user_prompt="")


class SmolAgent:
    """A multi-step agent, of which each task has its own."""

    def __init__(self, foreign: ForeignAgent, ctx: TaskContext) -> None:
        self._foreign, self._ctx, self._is_interrupted = foreign, ctx, False

    def interrupt(self) -> None:
        """Stop before the next step."""
        self._is_interrupted = True

    def run(self, words: str, *, stream: bool) -> Iterator[Any]:
        """Stream steps, and tools in between."""
        assert stream
        for number, deed in enumerate(self._foreign.play(words, self._ctx.task_key, lambda: self._is_interrupted, in_steps=True)):
            match deed:
                case ProgressStep(text):
                    yield Some(step_number=number, model_output=text, token_usage=None)
                case Spent(tokens, answer_tokens):
                    usage = Some(input_tokens=tokens, output_tokens=answer_tokens)
                    yield Some(step_number=number, model_output=None, token_usage=usage)
                case Made(name, data):
                    self._ctx.artifact(name, data)  # as a tool does that was made with the context
                case FinalAnswer(text):
                    yield Some(output=text)
        if self._is_interrupted:
            raise RuntimeError("Agent interrupted.")


class AutoGen:
    """An agent, of which each task has its own."""

    def __init__(self, foreign: ForeignAgent, ctx: TaskContext) -> None:
        self._foreign, self._ctx = foreign, ctx

    async def run_stream(self, *, task: str) -> AsyncIterator[Any]:
        """Stream the task, messages, and the result."""

        def message(text: str, *, source: str = "assistant", usage: Any = None, content: Any = None) -> Any:
            return Some(to_text=lambda: text, source=source, models_usage=usage, content=content or text)

        yield message(task, source="user")
        images: list[Any] = []
        usage = None
        async for deed in self._foreign.perform(task, self._ctx.task_key):
            match deed:
                case ProgressStep(text):
                    yield message(text)
                case Spent(tokens, answer_tokens):
                    usage = Some(prompt_tokens=tokens, completion_tokens=answer_tokens)
                case Made(_, data):
                    images = ["an image", Some(to_base64=b64encode(data).decode)]
                case FinalAnswer(text):
                    yield message(text or "", usage=usage, content=images)
        yield Some(messages=[], stop_reason=None)


class AgentFramework:
    """An agent."""

    def __init__(self, foreign: ForeignAgent) -> None:
        self._foreign = foreign

    def create_session(self, *, session_id: str) -> Any:
        """Make a session."""
        return Some(session_id=session_id)

    def run(self, words: str, *, stream: bool, session: Any) -> Any:
        """Stream updates."""
        assert stream
        return _AgentFrameworkStream(self._foreign.perform(words, session.session_id))


class _AgentFrameworkStream:
    def __init__(self, deeds: AsyncIterator[Deed]) -> None:
        self._deeds = deeds
        self._response = Some(text="", usage_details=None, messages=[Some(contents=[Some(type="text")])])

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for deed in self._deeds:
            match deed:
                case ProgressStep(text):
                    yield Some(text=text, contents=[Some(type="function_call", name="look")])
                case Spent(tokens, answer_tokens):
                    self._response.usage_details = {"input_token_count": tokens, "output_token_count": answer_tokens}
                case Made(_, data):
                    uri = f"data:application/octet-stream;base64,{b64encode(data).decode()}"
                    content = Some(type="data", uri=uri, media_type="application/octet-stream")
                    self._response.messages[0].contents.append(content)
                case FinalAnswer(text):
                    self._response.text = text or ""
                    yield Some(text=text, contents=None)

    async def get_final_response(self) -> Any:
        """Return all of it."""
        return self._response


class OpenAiRunner:
    """The runner; its agent is the foreign agent itself."""

    @staticmethod
    def run_streamed(agent: ForeignAgent, words: str, *, context: TaskContext) -> Any:
        """Start a run in a task of its own, as the framework does."""
        return _OpenAiRun(agent, words, context)


class _OpenAiRun:
    def __init__(self, foreign: ForeignAgent, words: str, context: TaskContext) -> None:
        self.final_output: str | None = None
        self.context_wrapper = Some(usage=Some(input_tokens=0, output_tokens=0))
        self._events: asyncio.Queue[Any] = asyncio.Queue()
        self._task = asyncio.create_task(self._work(foreign.perform(words, context.task_key)))

    async def _work(self, deeds: AsyncIterator[Deed]) -> None:
        try:
            async for deed in deeds:
                match deed:
                    case ProgressStep(text):
                        self._tell(Some(content=[Some(text=text)]))
                    case Spent(tokens, answer_tokens):
                        self.context_wrapper.usage = Some(input_tokens=tokens, output_tokens=answer_tokens)
                    case Made(_, data):
                        self._tell(Some(type="image_generation_call", id="i1", result=b64encode(data).decode()))
                    case FinalAnswer(text):
                        self.final_output = text
        finally:
            self._events.put_nowait(None)

    def _tell(self, raw: Any) -> None:
        self._events.put_nowait(Some(type="run_item_stream_event", item=Some(raw_item=raw)))

    async def stream_events(self) -> AsyncIterator[Any]:
        """Stream what happens; what the run raised is raised in the end."""
        yield Some(type="agent_updated_stream_event")
        while (event := await self._events.get()) is not None:
            yield event
        await self._task

    def cancel(self) -> None:
        """Stop at once."""
        self._task.cancel()


class AdkRunner:
    """A runner, which is its own service of sessions."""

    app_name = "app"

    def __init__(self, foreign: ForeignAgent) -> None:
        self._foreign = foreign
        self._sessions: set[str] = set()

    @property
    def session_service(self) -> AdkRunner:
        """Where sessions are."""
        return self

    async def get_session(self, *, app_name: str, user_id: str, session_id: str) -> Any:
        """Find a session."""
        return Some(id=session_id) if session_id in self._sessions else None

    async def create_session(self, *, app_name: str, user_id: str, session_id: str) -> Any:
        """Make a session; one that is there is an error."""
        assert session_id not in self._sessions
        self._sessions.add(session_id)

    async def run_async(self, *, user_id: str, session_id: str, new_message: Any) -> AsyncIterator[Any]:
        """Stream events."""

        def event(*, is_final: bool = False, usage: Any = None, **part: Any) -> Any:
            whole = {"text": None, "function_call": None, "inline_data": None, "thought": None, **part}
            said = Some(parts=[Some(**whole)])
            return Some(content=said, usage_metadata=usage, partial=None, is_final_response=lambda: is_final)

        usage = None
        async for deed in self._foreign.perform(new_message.text, session_id):
            match deed:
                case ProgressStep(text):
                    yield event(text=text)
                case Spent(tokens, answer_tokens):
                    usage = Some(prompt_token_count=tokens, candidates_token_count=answer_tokens)
                case Made(name, data):
                    yield event(inline_data=Some(mime_type="application/octet-stream", display_name=name, data=data))
                case FinalAnswer(text):
                    yield event(text=text, usage=usage, is_final=True)


class Crew:
    """A crew, which is copied for each task."""

    def __init__(self, foreign: ForeignAgent, ctx: TaskContext) -> None:
        self._foreign, self._ctx = foreign, ctx
        self.usage_metrics: Any = None
        self.step_callback: Any = None

    def fetch_inputs(self) -> set[str]:
        """Return the names of its variables."""
        return {"task"}

    def copy(self) -> Crew:
        """Make another one like it."""
        return Crew(self._foreign, self._ctx)

    async def akickoff(self, inputs: dict[str, str]) -> Any:
        """Do all tasks."""
        raw: str | None = ""
        async for deed in self._foreign.perform(inputs["task"], inputs["task_key"]):
            match deed:
                case ProgressStep(text):
                    self.step_callback(Some(text=text))
                case Spent(tokens, answer_tokens):
                    self.usage_metrics = Some(prompt_tokens=tokens, completion_tokens=answer_tokens)
                case Made(name, data):
                    self._ctx.artifact(name, data)  # as a tool does that was made with the context
                case FinalAnswer(text):
                    raw = text
        return Some(raw=raw)


class Agno:
    """An agent of Agno."""

    def __init__(self, foreign: ForeignAgent) -> None:
        self._foreign = foreign

    async def arun(self, words: str, *, stream: bool, stream_events: bool, session_id: str) -> AsyncIterator[Any]:
        """Stream events."""
        assert stream and stream_events
        metrics, files, content = Some(input_tokens=0, output_tokens=0), list[Any](), ""
        async for deed in self._foreign.perform(words, session_id):
            match deed:
                case ProgressStep(text):
                    yield Some(event="RunContent", content=text)
                case Spent(tokens, answer_tokens):
                    metrics = Some(input_tokens=tokens, output_tokens=answer_tokens)
                case Made(name, data):
                    files.append(Some(filename=name, mime_type=None, get_content_bytes=lambda data=data: data))
                case FinalAnswer(text):
                    content = text or ""
        yield Some(event="RunCompleted", content=content, metrics=metrics, images=None, files=files)


class LlamaIndex:
    """An agent, made with the context."""

    def __init__(self, foreign: ForeignAgent, ctx: TaskContext) -> None:
        self._foreign, self._ctx = foreign, ctx

    def run(self, *, user_msg: str) -> Any:
        """Start a run in a task of its own, as the framework does."""
        return _LlamaRun(self._foreign.perform(user_msg, self._ctx.task_key))


class _LlamaRun:
    def __init__(self, deeds: AsyncIterator[Deed]) -> None:
        self._events: asyncio.Queue[Any] = asyncio.Queue()
        self._task = asyncio.create_task(self._work(deeds))

    async def _work(self, deeds: AsyncIterator[Deed]) -> Any:
        raw, blocks = None, list[Any]()
        try:
            async for deed in deeds:
                match deed:
                    case ProgressStep(text):
                        self._events.put_nowait(Some(delta=text, response=Some(content=text), raw=None))
                    case Spent(tokens, answer_tokens):
                        raw = {"usage": {"prompt_tokens": tokens, "completion_tokens": answer_tokens}}
                    case Made(_, data):
                        blocks.append(Some(image=b64encode(data), image_mimetype="image/png"))
                    case FinalAnswer(text):
                        output = Some(response=Some(content=text, blocks=blocks), raw=raw, tool_calls=[])
                        self._events.put_nowait(output)
                        return output
        finally:
            self._events.put_nowait(None)

    async def stream_events(self) -> AsyncIterator[Any]:
        """Stream what happens."""
        while (event := await self._events.get()) is not None:
            yield event

    def __await__(self) -> Any:
        return self._task.__await__()

    async def cancel_run(self) -> None:
        """Stop, gracefully."""
        self._task.cancel()
