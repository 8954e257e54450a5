"""The model brain on a real OpenAI-compatible server with real weights, small ones: poor answers, and no broken rule."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ioa.adapters.openai.chat import ModelSettings, open_openai_chat
from ioa.adapters.openai.dialect import AnswerFormat
from ioa.agent.model import answers
from ioa.agent.model.dialogue import read_decision
from ioa.ports.chat_model import AnswerLimits, ChatMessage
from tests.integration.model.goals import FRUGAL

pytestmark = pytest.mark.model


async def test_the_server_keeps_to_the_shape(llama_url: str) -> None:
    """A strict schema is taken at the first try, and the answer fits the class."""
    shape = answers.conclusion(FRUGAL)
    question = [ChatMessage("system", "You answer in JSON."), ChatMessage("user", "The total is 42. What is the total?")]
    async with open_openai_chat(ModelSettings(llama_url, "smollm2")) as chat:
        answer = await chat.answer(question, shape, AnswerLimits(max_tokens=80, timeout=timedelta(seconds=60)))
        assert chat.dialect.format is AnswerFormat.SCHEMA
    decision, problem = read_decision(answer.text, shape)
    assert (type(decision).__mro__[1], problem, answer.answer_tokens > 0) == (answers.Conclude, "", True)
