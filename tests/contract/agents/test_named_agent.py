"""Goals that are a task for one named agent, on the real services."""

from __future__ import annotations

import pytest

from ioa import Agent, DeclinedError
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.testing.scripted_model import ScriptedModel
from ioa_testkit import System

_ORDER = GoalOrder(goal="tell the weather in Tarn", agent="poet", as_task=True)


def _agents(answer: str) -> list[Agent]:
    """Return the named agent, and an agent that fits the goal better."""
    poet = Agent("poet", description="Writes poems.", examples=["write a poem about rain"], declines=True)
    weather = Agent("weather", description="Tells the weather.", examples=["tell the weather in Orle"])

    @poet.task
    def write(task: str) -> str:
        if not answer:
            raise DeclinedError("I write poems only.")
        return f"{answer} ({task})"

    @weather.task
    def tell(task: str) -> str:
        return "Rain."

    return [poet, weather]


@pytest.mark.parametrize("model", [None, ScriptedModel([])], ids=["rules", "model"])
async def test_named_agent_does_the_goal_as_its_task(ioa_system: System, model: ScriptedModel | None) -> None:
    """The agent that fits better is not asked, and no model decides."""
    done = await ioa_system.run(_ORDER, agents=_agents("Clouds drift."), model=model)
    assert (done.result.reason, done.result.content) == (Reason.CONCLUDED, "Clouds drift. (tell the weather in Tarn)")


async def test_named_agent_declines_and_the_goal_ends_with_its_reason(ioa_system: System) -> None:
    """No other agent gets the task."""
    done = await ioa_system.run(_ORDER, agents=_agents(""))
    assert (done.result.reason, "I write poems only." in done.result.content) == (Reason.NO_AGENT, True)
