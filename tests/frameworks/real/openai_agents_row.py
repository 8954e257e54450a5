"""The OpenAI Agents SDK: a model that does the task, and asks for a tool after a step."""

from collections.abc import AsyncIterator
from typing import Any

from agents import Agent as Assistant
from agents import Model, ModelResponse, RunContextWrapper, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from ioa import TaskContext, adopt
from ioa.hosting.agent import Agent
from ioa.testing.foreign_agent import FinalAnswer, ForeignAgent, Made, ProgressStep, Spent

set_tracing_disabled(disabled=True)


@function_tool
def look(run: RunContextWrapper[TaskContext]) -> str:
    """Look."""
    return run.context.task_key


class ForeignModel(Model):
    """A model that plays the foreign agent."""

    def __init__(self, foreign: ForeignAgent, ctx: TaskContext) -> None:
        self._foreign, self._ctx = foreign, ctx
        self._is_asked = False

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        """Do not answer without a stream."""
        return ModelResponse(output=[], usage=Usage(), response_id=None)

    async def stream_response(self, _: Any, said: Any, *__: Any, **___: Any) -> AsyncIterator[Any]:
        """Stream one whole answer."""
        words = said if isinstance(said, str) else said[0]["content"]
        output: list[Any] = []
        tokens = answer_tokens = 0
        if not self._is_asked:
            self._is_asked = True
            async for deed in self._foreign.perform(words, self._ctx.task_key):
                match deed:
                    case ProgressStep(text):
                        call = ResponseFunctionToolCall(arguments="{}", call_id="c1", name="look", type="function_call")
                        output += [_message(text), call]
                    case Spent(tokens, answer_tokens):
                        pass
                    case Made(name, data):
                        self._ctx.artifact(name, data)
                    case FinalAnswer(text) if not output:
                        output.append(_message(text or ""))
        usage = ResponseUsage(
            input_tokens=tokens,
            output_tokens=answer_tokens,
            total_tokens=tokens + answer_tokens,
            input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
            output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
        )
        response = Response(
            id="r1", created_at=0, model="foreign", object="response", output=output or [_message("done")],
            parallel_tool_calls=False, tool_choice="auto", tools=[], usage=usage,
        )  # fmt: skip
        yield ResponseCompletedEvent(response=response, sequence_number=0, type="response.completed")


def _message(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(annotations=[], text=text, type="output_text")
    return ResponseOutputMessage(id="m1", content=[part], role="assistant", status="completed", type="message")


def adopted(foreign: ForeignAgent) -> Agent:
    """Adopt an assistant whose model is the foreign agent."""

    def made(ctx: TaskContext) -> Assistant[TaskContext]:
        return Assistant(name="assistant", model=ForeignModel(foreign, ctx), tools=[look])

    return adopt.openai_agents("openai", made, Runner, description="Does its tasks")
