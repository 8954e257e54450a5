"""Microsoft's Agent Framework: a chat client that does the task."""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any

from agent_framework import Agent as Assistant
from agent_framework import BaseChatClient, ChatResponse, ChatResponseUpdate, Content, Message, ResponseStream

from ioa import TaskContext, adopt
from ioa.hosting.agent import Agent
from ioa.testing.foreign_agent import FinalAnswer, ForeignAgent, Made, ProgressStep, Spent


class ForeignModel(BaseChatClient):
    """A chat client that plays the foreign agent."""

    def __init__(self, foreign: ForeignAgent, ctx: TaskContext) -> None:
        super().__init__()
        self._foreign, self._ctx = foreign, ctx

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **_: Any
    ) -> Awaitable[ChatResponse] | ResponseStream[ChatResponseUpdate, ChatResponse]:
        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            async for deed in self._foreign.perform(messages[-1].text, self._ctx.task_key):
                match deed:
                    case ProgressStep(text):
                        yield ChatResponseUpdate(contents=[Content.from_text(text + " ")], role="assistant")
                    case Spent(tokens, answer_tokens):
                        usage = {"input_token_count": tokens, "output_token_count": answer_tokens}
                        yield ChatResponseUpdate(contents=[Content.from_usage(usage)], role="assistant")
                    case Made(_, data):
                        yield ChatResponseUpdate(contents=[Content.from_data(data, "application/octet-stream")], role="assistant")
                    case FinalAnswer(text):
                        yield ChatResponseUpdate(contents=[Content.from_text(text or "")], role="assistant")

        assert stream
        return ResponseStream(updates(), finalizer=ChatResponse.from_updates)


def adopted(foreign: ForeignAgent) -> Agent:
    """Adopt an agent whose model is the foreign agent."""
    return adopt.agent_framework("framework", lambda ctx: Assistant(ForeignModel(foreign, ctx)), description="Does its tasks")
