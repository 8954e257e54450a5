"""Google's Agent Development Kit: a model that does the task."""

from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai.types import Blob, Content, GenerateContentResponseUsageMetadata, Part, UserContent
from pydantic import PrivateAttr

from ioa import TaskContext, adopt
from ioa.hosting.agent import Agent
from ioa.testing.foreign_agent import FinalAnswer, ForeignAgent, Made, ProgressStep, Spent


class ForeignModel(BaseLlm):
    """A model that plays the foreign agent."""

    _foreign: ForeignAgent = PrivateAttr()
    _ctx: TaskContext = PrivateAttr()

    def playing(self, foreign: ForeignAgent, ctx: TaskContext) -> "ForeignModel":
        """Play a foreign agent."""
        self._foreign, self._ctx = foreign, ctx
        return self

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        """Answer once, and once more after a call of a tool."""
        said = llm_request.contents
        parts: list[Part] = []
        usage = None
        if len(said) > 1:
            yield LlmResponse(content=Content(role="model", parts=[Part(text="done")]))
            return
        async for deed in self._foreign.perform(said[0].parts[0].text, self._ctx.task_key):
            match deed:
                case ProgressStep(text):
                    parts += [Part(text=text), Part.from_function_call(name="look", args={})]
                case Spent(tokens, answer_tokens):
                    usage = GenerateContentResponseUsageMetadata(prompt_token_count=tokens, candidates_token_count=answer_tokens)
                case Made(name, data):
                    parts.append(Part(inline_data=Blob(mime_type="application/octet-stream", data=data, display_name=name)))
                case FinalAnswer(text) if not any(part.function_call for part in parts):
                    parts.append(Part(text=text or ""))
        yield LlmResponse(content=Content(role="model", parts=parts), usage_metadata=usage)


def look() -> str:
    """Look."""
    return "seen"


def adopted(foreign: ForeignAgent) -> Agent:
    """Adopt a runner whose model is the foreign agent."""

    def made(ctx: TaskContext) -> InMemoryRunner:
        agent = LlmAgent(name="assistant", model=ForeignModel(model="foreign").playing(foreign, ctx), tools=[look])
        return InMemoryRunner(agent, app_name="app")

    return adopt.adk("adk", made, UserContent, description="Does its tasks")
