"""Agno: an agent whose model does the task."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from agno.agent import Agent as Assistant
from agno.metrics import MessageMetrics
from agno.models.base import Model
from agno.models.response import ModelResponse

from ioa import TaskContext, adopt
from ioa.hosting.agent import Agent
from ioa.testing.foreign_agent import FinalAnswer, ForeignAgent, Made, ProgressStep, Spent


class ForeignModel(Model):
    """A model that plays the foreign agent."""

    foreign: ForeignAgent
    ctx: TaskContext

    async def ainvoke_stream(self, *_: Any, **options: Any) -> AsyncIterator[ModelResponse]:
        """Answer the last message."""
        async for deed in self.foreign.perform(options["messages"][-1].content, self.ctx.task_key):
            match deed:
                case ProgressStep(text):
                    yield ModelResponse(content=text + " ")
                case Spent(tokens, answer_tokens):
                    yield ModelResponse(response_usage=MessageMetrics(input_tokens=tokens, output_tokens=answer_tokens))
                case Made(name, data):
                    self.ctx.artifact(name, data)
                case FinalAnswer(text):
                    yield ModelResponse(content=text or "")

    def invoke(self, *_: Any, **__: Any) -> ModelResponse:
        """Do not answer at once."""
        raise NotImplementedError

    async def ainvoke(self, *_: Any, **__: Any) -> ModelResponse:
        """Do not answer at once."""
        raise NotImplementedError

    def invoke_stream(self, *_: Any, **__: Any) -> Iterator[ModelResponse]:
        """Do not answer without a loop."""
        raise NotImplementedError

    def _parse_provider_response(self, response: Any, **_: Any) -> ModelResponse:
        return response  # type: ignore[no-any-return]

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        return response  # type: ignore[no-any-return]


def adopted(foreign: ForeignAgent) -> Agent:
    """Adopt an agent whose model is the foreign agent."""

    def made(ctx: TaskContext) -> Assistant:
        model = ForeignModel(id="foreign")
        model.foreign, model.ctx = foreign, ctx
        return Assistant(model=model, telemetry=False)

    return adopt.agno("agno", made, description="Does tasks")
