"""Routers and group setup die while a user is asked, and while it answers: each question has one answer, and none is lost."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta

import pytest

import ioa
from ioa import Agent
from ioa.agent.turn_view import Said as Speech
from ioa.agent.turn_view import TurnView
from ioa.client.client import Client
from ioa.client.documents import OpenQuestion
from ioa.client.history import conversation
from ioa.errors import UnavailableError
from ioa.group.events import QuestionAnswered
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.team import team_of
from tests.rig.deadline import eventually
from tests.rig.fleet import GROUPS, ROUTERS, Fleet

pytestmark = [pytest.mark.faults, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

QUESTIONS = 8
TEAM = {
    "team": "asking",
    "roles": {"clerk": "asker"},
    "nodes": [{"name": "ask", "roles": ["clerk"], "asks": True, "max": 1, "then": "end"}],
}


def _asker() -> Agent:
    """An agent that asks until it has all its answers, and concludes with them."""
    agent = Agent("asker", description="asks", examples=["ask"])

    @agent.speak
    def speak(view: TurnView) -> Speech:
        answers = [one.content for one in view.conversation if one.kind == "answer"]
        if len(answers) < QUESTIONS:
            return view.ask(f"Question {len(answers)}?", default="nobody", within=timedelta(minutes=1))
        is_over = view.offer is not None and view.offer.concluding
        return view.conclude(" ".join(answers)) if is_over else view.say("I know all.")

    return agent


async def _look(client: Client) -> list[OpenQuestion]:
    try:
        return list(await client.waiting())
    except UnavailableError:
        return []


async def _answer(client: Client, item: str, text: str) -> None:
    while True:
        try:
            return await client.answer(item, text)
        except UnavailableError:
            await asyncio.sleep(0.05)


async def test_each_question_is_answered_once_whatever_dies(fleet: Fleet, nats_url: str) -> None:
    """Something is killed while each waits, and another while it is answered; the user sends each answer twice."""
    client, chance = Client(fleet.client), random.Random(5)
    async with ioa.serving([_asker()], url=nats_url):
        launched = await client.launch(GoalOrder(goal="Ask.", team=team_of(TEAM), timeout=120))
        for number in range(QUESTIONS):
            (question,) = await eventually(lambda: _look(client))
            assert question.text == f"Question {number}?"
            for victim in (chance.choice(ROUTERS), chance.choice(GROUPS)):
                await fleet.kill(victim)
                await fleet.start(victim)
            async with asyncio.TaskGroup() as side:
                side.create_task(_answer(client, question.item, f"a{number}"))
                await asyncio.sleep(chance.random() * 0.02)
                victim = chance.choice((*ROUTERS, *GROUPS))
                await fleet.kill(victim)
                await fleet.start(victim)
            await _answer(client, question.item, f"a{number}")
        result = await client.wait_for_result(launched.name)
    assert result.content == " ".join(f"a{number}" for number in range(QUESTIONS))
    log = [one.entry.event for one in await conversation(client, launched.comm_id)]
    assert [one.answer for one in log if isinstance(one, QuestionAnswered)] == result.content.split()
