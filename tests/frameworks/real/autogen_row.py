"""AutoGen: a model client that does the task, and thinks aloud before it asks for a tool."""

from collections.abc import Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

from ioa import TaskContext, adopt
from ioa.hosting.agent import Agent
from ioa.testing.foreign_agent import FinalAnswer, ForeignAgent, Made, ProgressStep, Spent


class ForeignModel(ReplayChatCompletionClient):
    """A model that plays the foreign agent."""

    def __init__(self, foreign: ForeignAgent, ctx: TaskContext) -> None:
        info = {"vision": False, "function_calling": True, "json_output": False, "structured_output": False, "family": "unknown"}
        super().__init__([], model_info=info)
        self._foreign, self._ctx = foreign, ctx
        self._is_asked = False

    async def create(self, messages: Sequence[Any], **_: Any) -> CreateResult:
        """Answer."""
        usage, said = RequestUsage(0, 0), "done"
        if not self._is_asked:
            self._is_asked = True
            async for deed in self._foreign.perform(messages[-1].content, self._ctx.task_key):
                match deed:
                    case ProgressStep(text):
                        call = FunctionCall(id="c1", arguments="{}", name="look")
                        return CreateResult(finish_reason="function_calls", content=[call], usage=usage, cached=False, thought=text)
                    case Spent(tokens, answer_tokens):
                        usage = RequestUsage(tokens, answer_tokens)
                    case Made(name, data):
                        self._ctx.artifact(name, data)
                    case FinalAnswer(text):
                        said = text or ""
        return CreateResult(finish_reason="stop", content=said, usage=usage, cached=False)


def adopted(foreign: ForeignAgent) -> Agent:
    """Adopt an agent whose model is the foreign agent."""

    async def look() -> str:
        """Look."""
        return "seen"

    def made(ctx: TaskContext) -> AssistantAgent:
        return AssistantAgent("assistant", ForeignModel(foreign, ctx), tools=[look], reflect_on_tool_use=True)

    return adopt.autogen("autogen", made, description="Does its tasks")
