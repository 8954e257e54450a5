"""smolagents: its `Model.generate` does the task, and asks for a tool in each step but the last."""

from collections.abc import Generator
from typing import Any

from smolagents import Model, ToolCallingAgent, tool
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole
from smolagents.monitoring import TokenUsage

from ioa import TaskContext, adopt
from ioa.hosting.agent import Agent
from ioa.testing.foreign_agent import Deed, FinalAnswer, ForeignAgent, Made, ProgressStep, Spent


@tool
def look() -> str:
    """Look."""
    return "seen"


class ForeignModel(Model):
    """A model that plays the foreign agent."""

    def __init__(self, foreign: ForeignAgent, ctx: TaskContext) -> None:
        super().__init__(model_id="foreign")
        self._foreign, self._ctx = foreign, ctx
        self._deeds: Generator[Deed, None, None] | None = None

    def generate(self, messages: list[ChatMessage], **_: Any) -> ChatMessage:
        """Answer by a call of a tool."""
        if self._deeds is None:
            said = messages[1].content
            words = said if isinstance(said, str) else said[0]["text"]
            self._deeds = self._foreign.play(words.partition("New task:\n")[2], self._ctx.task_key, in_steps=True)
        usage = TokenUsage(0, 0)
        for deed in self._deeds:
            match deed:
                case ProgressStep(text):
                    return self._call("look", {}, text, usage)
                case Spent(tokens, answer_tokens):
                    usage = TokenUsage(tokens, answer_tokens)
                case Made(name, data):
                    self._ctx.artifact(name, data)
                case FinalAnswer(text):
                    return self._call("final_answer", {"answer": text}, "", usage)
        raise AssertionError("a task ends with an answer")

    def close(self) -> None:
        """Stop the foreign agent."""
        if self._deeds is not None:
            self._deeds.close()

    def _call(self, name: str, arguments: dict[str, Any], said: str, usage: TokenUsage) -> ChatMessage:
        call = ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), "c1", "function")
        return ChatMessage(MessageRole.ASSISTANT, said, [call], token_usage=usage)


class ForeignCaller(ToolCallingAgent):
    """An agent whose model hears of an interruption, to write it down."""

    def interrupt(self) -> None:
        """Stop before the next step."""
        super().interrupt()
        self.model.close()


def adopted(foreign: ForeignAgent) -> Agent:
    """Adopt an agent whose model is the foreign agent."""

    def made(ctx: TaskContext) -> ToolCallingAgent:
        return ForeignCaller([look], ForeignModel(foreign, ctx), max_steps=100_000, verbosity_level=-1)

    return adopt.smolagents("smol", made, description="Does its tasks")
