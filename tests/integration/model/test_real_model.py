"""The model brain on a real OpenAI-compatible server with real weights, small ones: poor answers, and no broken rule."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from ioa.adapters.openai.openai_chat import ModelSettings, open_openai_chat
from ioa.agent.model import ModelBrain, answers
from ioa.hosting.brains import budget_of
from ioa.ports.chat_model import AnswerLimits, ChatMessage
from ioa.protocol.messages import Phase
from tests.integration.model.goals import FRUGAL
from tests.unit.agent.model.golden_prompts import report, worked

pytestmark = pytest.mark.model
_TURNS = 2


class _Alone(BaseModel):
    """Do the task without a group."""

    type: Literal["alone"]


class _Team(BaseModel):
    """Do the task with a group that you lead."""

    type: Literal["team"]


class _Choice(answers.ShapedAnswer):
    """How a task is done: small enough for a model of 135 million parameters."""

    decision: Annotated[_Alone | _Team, Field(discriminator="type")]


async def test_the_server_keeps_to_the_shape(llama_url: str) -> None:
    """A strict schema is taken at the first try, and the answer fits the class."""
    question = [
        ChatMessage("system", "You answer in JSON."),
        ChatMessage("user", "Think: yes. Then decide: alone or team?"),
    ]
    async with open_openai_chat(ModelSettings(llama_url, "smollm2")) as chat:
        answer = await chat.answer(question, _Choice, AnswerLimits(max_tokens=200, timeout=timedelta(seconds=60)))
        assert "response_format" not in chat.omitted
    assert isinstance(answers.parse_answer(answer.text, _Choice), _Choice) and answer.answer_tokens > 0


@pytest.mark.timeout(300)
async def test_what_a_small_model_is_made_to_say_is_legal(llama_url: str) -> None:
    """The machine accepts each message that the brain builds from real answers: truncated, useless and good ones.

    The model is mostly too slow in `test_real_system`, where the agents of all goals share one processor core.
    """
    budget = replace(
        budget_of(ModelSettings.layered(FRUGAL)), answer_timeout=timedelta(seconds=120), decision_timeout=timedelta(seconds=120)
    )
    team = worked(max_turns=2, floor_timeout=timedelta(minutes=5), conclusion_timeout=timedelta(minutes=5))
    async with open_openai_chat(ModelSettings(llama_url, "smollm2")) as chat:
        brain = ModelBrain(chat, budget=budget)
        for _ in range(_TURNS):
            if team.state.phase.is_terminal:
                break
            holder = team.state.floor_holder
            if holder is None:
                report(team, team.state.open_tasks[0].task_id, "Done.")
            elif team.state.phase is Phase.CONCLUDING:
                team.say(holder, await brain.conclude(team.view(holder)))
            else:
                team.say(holder, await brain.speak(team.view(holder)))
    assert brain.failures == 0
