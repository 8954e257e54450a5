"""Agents under a policy: with a function, with a model, and with neither; and roles that discovery fills."""

from __future__ import annotations

import json
from typing import Any

from ioa import Agent
from ioa.agent.model.answers import PartSpeech
from ioa.group.events import Said
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.messages import Discussion
from ioa.protocol.team import team_of
from ioa.testing import ScriptedModel
from ioa.testing.scripted_model import Asked
from ioa_testkit import System
from ioa_testkit.finished import FinishedGoal

TALK: dict[str, Any] = {
    "team": "talk",
    "roles": {"host": {"agent": "host", "prompt": "Be kind."}, "guest": {"need": "gardens and flowers"}},
    "nodes": [
        {"name": "talk", "roles": ["host", "guest"], "opens": {"role": "host", "say": "Welcome: to all."}, "prompt": "Be brief.",
         "max": 3, "exits": [{"to": "end", "by": "speaker"}, {"to": "end"}]},
    ],
}  # fmt: skip
ORDER = GoalOrder(goal="Talk of gardens.", team=team_of(TALK))


def agent(name: str, does: str, told: list[str]) -> Agent:
    """An agent that notes what its function is told, and says its name."""
    this = Agent(name, description=does, examples=[does])

    @this.task
    def run(task: str) -> str:
        told.append(task)
        return f"{name} speaks"

    return this


def said(finished: FinishedGoal) -> list[tuple[str, str]]:
    """Who said what."""
    messages = [one.entry.event.message for one in finished.log if isinstance(one.entry.event, Said)]
    return [(one.header.sender, one.payload.content) for one in messages if isinstance(one.payload, Discussion)]


async def test_agents_without_a_model_speak_by_their_functions(ioa_system: System) -> None:
    """Each is told its part, the goal and what was said; opening words ask nobody, and the answer is what was said last."""
    told: list[str] = []
    both = agent("host", "hosts talks", told), agent("flora", "gardens and flowers", told)
    finished = await ioa_system.run(ORDER, agents=both)
    assert said(finished) == [("host", "Welcome: to all."), ("flora", "flora speaks"), ("host", "host speaks")]
    assert (finished.result.reason, finished.result.content) == (Reason.CONCLUDED, "host speaks")
    assert told == [
        "Be brief.\nTalk of gardens.\nWhat was said so far:\nhost: Welcome: to all.",
        "Be kind.\nBe brief.\nTalk of gardens.\nWhat was said so far:\nhost: Welcome: to all.\nflora: flora speaks",
    ]


async def test_a_model_is_told_its_part_and_what_it_may_choose(ioa_system: System) -> None:
    """It answers in a form that has a way out, and what it chooses is what happens."""
    prompts: list[str] = []

    def answer(asked: Asked) -> str:
        prompts.append(asked.prompt)
        if asked.shape is not PartSpeech or "The discussion has ended" in asked.prompt:
            return json.dumps({"decision": {"type": "CONCLUDE", "goal_reached": True, "content": "Gardens are nice."}})
        if len(prompts) == 1:
            return json.dumps({"decision": {"type": "DISCUSSION", "content": "Water at night.", "next_speaker": "host"}})
        return json.dumps({"decision": {"type": "DISCUSSION", "content": "Water at night.", "go": "end"}})

    both = agent("host", "hosts talks", []), agent("flora", "gardens and flowers", [])
    finished = await ioa_system.run(ORDER, agents=both, model=ScriptedModel(answer))
    assert said(finished) == [("host", "Welcome: to all."), ("flora", "Water at night.")]
    assert finished.result.content == "Gardens are nice."
    assert "You play: guest. The discussion is at: talk." in prompts[0] and "`go` leads the group on to one of end" in prompts[0]
    assert "`next_speaker` is empty." in prompts[1]
