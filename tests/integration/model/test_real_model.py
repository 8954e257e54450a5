"""The model brain on a real OpenAI-compatible server with real weights, small ones: poor answers, and no broken rule."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ioa.adapters.openai.chat import ModelSettings, open_openai_chat
from ioa.adapters.openai.dialect import AnswerFormat
from ioa.agent.model import answers
from ioa.agent.model.dialogue import read_answer
from ioa.ports.chat_model import AnswerLimits, ChatMessage
from tests.integration.model.llama_server import SLOT_TOKENS

pytestmark = pytest.mark.model


async def test_the_server_keeps_to_the_shape(llama_url: str) -> None:
    """A strict schema is taken at the first try, and the answer fits the class."""
    shape = answers.Approach
    question = [
        ChatMessage("system", "You answer in JSON."),
        ChatMessage("user", "Think: yes. Then decide: alone or team?"),
    ]
    async with open_openai_chat(ModelSettings(llama_url, "smollm2")) as chat:
        answer = await chat.answer(question, shape, AnswerLimits(max_tokens=200, timeout=timedelta(seconds=60)))
        assert chat.dialect.format is AnswerFormat.SCHEMA
        context = await chat.context_tokens()
    said, problem = read_answer(answer.text, shape)
    assert (type(said), problem, answer.answer_tokens > 0, context) == (answers.Approach, "", True, SLOT_TOKENS)
