"""Contract of `ChatModel`, as tests: the author of an adapter to a provider subclasses them in a test module.

class TestMyModel(ChatModelContract):
    @asynccontextmanager
    async def model_saying(self, *answers):
        with my_provider_answering(answers) as url:
            yield MyModel(url)

They are plain async tests and do not need pytest.
"""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

from pydantic import BaseModel

from ioa.errors import InvalidInputError
from ioa.ports.chat_model import AnswerLimits, ChatMessage, ChatModel, ModelAnswer, Tool, ToolCall

LIMITS = AnswerLimits(max_tokens=100, timeout=timedelta(seconds=20))
QUESTION = (ChatMessage("system", "Be brief."), ChatMessage("user", "How many people live in Tarn?"))
TOOL = Tool(
    "population",
    "How many people live in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
ASKED = ToolCall("c1", "population", '{"city": "Tarn"}')
HISTORY = (*QUESTION, ChatMessage("assistant", "", (ASKED,)), ChatMessage("tool", "431", tool_call_id="c1"))


class Count(BaseModel):
    """A requested shape."""

    people: int


class ChatModelContract:
    """The contract. `model_saying` opens the model under test, whose provider returns these answers in order."""

    def model_saying(self, *answers: ModelAnswer) -> AbstractAsyncContextManager[ChatModel]:
        """Open the model under test."""
        raise NotImplementedError

    async def test_context_is_positive(self) -> None:
        """Prompts are shortened to it."""
        async with self.model_saying() as model:
            assert await model.context_tokens() > 0

    async def test_text_is_returned_with_usage_and_finish(self) -> None:
        """No shape is needed."""
        async with self.model_saying(ModelAnswer("431.", prompt_tokens=7, answer_tokens=3)) as model:
            answer = await model.answer(QUESTION, None, LIMITS)
        assert (answer.text, answer.finish, answer.tool_calls) == ("431.", "stop", ())
        assert (answer.prompt_tokens, answer.answer_tokens) == (7, 3)

    async def test_partial_texts_are_starts_of_the_answer(self) -> None:
        """A model may report none."""
        heard: list[str] = []
        async with self.model_saying(ModelAnswer("Four hundred and thirty-one.")) as model:
            answer = await model.answer(QUESTION, None, LIMITS, hear=heard.append)
        assert all(answer.text.startswith(text) for text in heard)

    async def test_answer_with_a_shape_is_unchanged(self) -> None:
        """The caller validates it."""
        async with self.model_saying(ModelAnswer('{"people": 431}'), ModelAnswer("many")) as model:
            answers = [await model.answer(QUESTION, Count, LIMITS) for _ in range(2)]
        assert [answer.text for answer in answers] == ['{"people": 431}', "many"]

    async def test_truncated_answer_has_the_finish_length(self) -> None:
        """So that no caller uses it as a complete answer."""
        async with self.model_saying(ModelAnswer("4", "length")) as model:
            assert (await model.answer(QUESTION, None, LIMITS)).finish == "length"

    async def test_tool_calls_have_unique_ids(self) -> None:
        """Their arguments are JSON text. A call without an id gets one."""
        twice = ModelAnswer("Let me see.", "tools", tool_calls=(ASKED, ToolCall("", "population", '{"city": "Orle"}')))
        async with self.model_saying(twice) as model:
            answer = await model.answer(QUESTION, None, LIMITS, [TOOL])
        assert (answer.finish, [call.name for call in answer.tool_calls]) == ("tools", ["population"] * 2)
        assert [json.loads(call.arguments) for call in answer.tool_calls] == [{"city": "Tarn"}, {"city": "Orle"}]
        assert len({call.call_id for call in answer.tool_calls} - {""}) == 2

    async def test_conversation_continues_after_tool_results(self) -> None:
        """An id of an earlier call is not used again."""
        async with self.model_saying(ModelAnswer("", "tools", tool_calls=(ASKED,)), ModelAnswer("431.")) as model:
            again = await model.answer(HISTORY, None, LIMITS, [TOOL])
            last = await model.answer(HISTORY, None, LIMITS, [TOOL], may_call=False)
        assert [(call.name, call.call_id == ASKED.call_id) for call in again.tool_calls] == [("population", False)]
        assert last.text == "431."

    async def test_call_without_a_result_is_rejected(self) -> None:
        """Nothing is sent."""
        async with self.model_saying() as model:
            try:
                await model.answer(HISTORY[:-1], None, LIMITS, [TOOL])
            except InvalidInputError as error:
                assert "has no answer" in str(error)
            else:
                raise AssertionError("An unanswered call was sent.")
