"""What every `ChatModel` promises, as tests: whoever writes an adapter to a provider subclasses them in a test module.

class TestMyModel(ChatModelContract):
    @asynccontextmanager
    async def model_saying(self, *answers):
        with my_provider_answering(answers) as url:
            yield MyModel(url)

They are plain async tests, so whichever plugin runs such tests runs these. They need no pytest.
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
    """A shape to be asked for."""

    people: int


class ChatModelContract:
    """The promises. `model_saying` makes the model under test, whose provider gives these answers one after the other."""

    def model_saying(self, *answers: ModelAnswer) -> AbstractAsyncContextManager[ChatModel]:
        """Open the model under test."""
        raise NotImplementedError

    async def test_it_says_how_large_its_context_is(self) -> None:
        """Prompts are fitted to it."""
        async with self.model_saying() as model:
            assert await model.context_tokens() > 0

    async def test_a_text_comes_as_it_was_said(self) -> None:
        """With what it cost, and with how it ended; no shape is needed."""
        async with self.model_saying(ModelAnswer("431.", prompt_tokens=7, answer_tokens=3)) as model:
            answer = await model.answer(QUESTION, None, LIMITS)
        assert (answer.text, answer.finish, answer.tool_calls) == ("431.", "stop", ())
        assert (answer.prompt_tokens, answer.answer_tokens) == (7, 3)

    async def test_what_is_heard_of_an_answer_is_its_text(self) -> None:
        """Whoever listens hears the answer grow, or nothing of it."""
        heard: list[str] = []
        async with self.model_saying(ModelAnswer("Four hundred and thirty-one.")) as model:
            answer = await model.answer(QUESTION, None, LIMITS, hear=heard.append)
        assert all(answer.text.startswith(text) for text in heard)

    async def test_a_shape_changes_nothing_of_what_was_said(self) -> None:
        """Whether it keeps to the shape is for the caller to check."""
        async with self.model_saying(ModelAnswer('{"people": 431}'), ModelAnswer("many")) as model:
            answers = [await model.answer(QUESTION, Count, LIMITS) for _ in range(2)]
        assert [answer.text for answer in answers] == ['{"people": 431}', "many"]

    async def test_a_cut_answer_says_so(self) -> None:
        """Nobody takes half an answer for a whole one."""
        async with self.model_saying(ModelAnswer("4", "length")) as model:
            assert (await model.answer(QUESTION, None, LIMITS)).finish == "length"

    async def test_calls_of_tools_come_with_ids_of_their_own(self) -> None:
        """Their arguments are JSON text; a call without an id gets one, so that it can be answered."""
        twice = ModelAnswer("Let me see.", "tools", tool_calls=(ASKED, ToolCall("", "population", '{"city": "Orle"}')))
        async with self.model_saying(twice) as model:
            answer = await model.answer(QUESTION, None, LIMITS, [TOOL])
        assert (answer.finish, [call.name for call in answer.tool_calls]) == ("tools", ["population"] * 2)
        assert [json.loads(call.arguments) for call in answer.tool_calls] == [{"city": "Tarn"}, {"city": "Orle"}]
        assert len({call.call_id for call in answer.tool_calls} - {""}) == 2

    async def test_a_conversation_goes_on_from_the_results_of_tools(self) -> None:
        """The next answer follows them; an id that is taken is not given again."""
        async with self.model_saying(ModelAnswer("", "tools", tool_calls=(ASKED,)), ModelAnswer("431.")) as model:
            again = await model.answer(HISTORY, None, LIMITS, [TOOL])
            last = await model.answer(HISTORY, None, LIMITS, [TOOL], may_call=False)
        assert [(call.name, call.call_id == ASKED.call_id) for call in again.tool_calls] == [("population", False)]
        assert last.text == "431."

    async def test_a_call_without_its_answer_is_refused(self) -> None:
        """Before anything is sent, and with what to do, rather than by a provider's own words."""
        async with self.model_saying() as model:
            try:
                await model.answer(HISTORY[:-1], None, LIMITS, [TOOL])
            except InvalidInputError as error:
                assert "has no answer" in str(error)
            else:
                raise AssertionError("An unanswered call was sent.")
