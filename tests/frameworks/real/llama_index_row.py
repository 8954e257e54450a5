"""LlamaIndex: a ReAct agent whose model does the task."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ChatResponseAsyncGen, CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from pydantic import PrivateAttr

from ioa import TaskContext, adopt
from ioa.hosting.agent import Agent
from ioa.testing.foreign_agent import FinalAnswer, ForeignAgent, Made, ProgressStep, Spent


class ForeignModel(CustomLLM):
    """A model that plays the foreign agent."""

    _foreign: ForeignAgent = PrivateAttr()
    _ctx: TaskContext = PrivateAttr()

    def playing(self, foreign: ForeignAgent, ctx: TaskContext) -> "ForeignModel":
        """Play a foreign agent."""
        self._foreign, self._ctx = foreign, ctx
        return self

    @property
    def metadata(self) -> LLMMetadata:
        """Return its description."""
        return LLMMetadata(is_chat_model=True)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Do not answer in this way."""
        raise NotImplementedError

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        """Do not answer in this way."""
        raise NotImplementedError

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        """Stream an answer."""

        async def chunks() -> ChatResponseAsyncGen:
            told, raw = "Thought: I know. ", None
            async for deed in self._foreign.perform(messages[-1].content or "", self._ctx.task_key):
                match deed:
                    case ProgressStep(text):
                        told += f"{text} "
                        yield ChatResponse(message=ChatMessage(told, role="assistant"), delta=text)
                    case Spent(tokens, answer_tokens):
                        raw = {"usage": {"prompt_tokens": tokens, "completion_tokens": answer_tokens}}
                    case Made(name, data):
                        self._ctx.artifact(name, data)
                    case FinalAnswer(text):
                        whole = f"{told}\nAnswer: {text or ' '}"
                        yield ChatResponse(message=ChatMessage(whole, role="assistant"), delta=whole, raw=raw)

        return chunks()


def adopted(foreign: ForeignAgent) -> Agent:
    """Adopt an agent whose model is the foreign agent."""
    return adopt.llama_index(
        "llama", lambda ctx: ReActAgent(llm=ForeignModel().playing(foreign, ctx)), description="Does its tasks"
    )
