"""A whole system in a test."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ioa import Agent, InvalidInputError
from ioa.protocol.goals import Reason
from ioa_testkit import System
from tests.contract.testkit.agents import counter, hanging, translator


async def test_a_goal_comes_to_its_typed_result(ioa_system: System) -> None:
    """With files, messages and a transcript."""
    goal = await ioa_system.run("translate soup into French", agents=[translator(), counter()])
    assert (goal.succeeded, goal.result.reason, goal.files) == (True, Reason.CONCLUDED, {"menu.txt": b"soupe"})
    kinds = [message.payload.type for message in goal.messages(by="translator")]
    assert "INFORM_TASK_RESULT" in kinds
    assert ("done: soupe" in goal.transcript, "soupe" in repr(goal)) == (True, True)


async def test_goal_without_a_fitting_agent_has_a_result(ioa_system: System) -> None:
    """It names the reason."""
    goal = await ioa_system.run("paint the fence green", agents=[translator()])
    assert (goal.succeeded, goal.result.reason) == (False, Reason.NO_AGENT)


async def test_goal_without_a_result_raises_an_error_with_the_transcript(ioa_system: System) -> None:
    """Within the time the test gives it; the error shows the group so far."""
    ioa_system.within = timedelta(seconds=0.5)
    with pytest.raises(AssertionError, match=r"(?s)no result after 0.5 s.*So far in the group:.*sleeper"):
        await ioa_system.run("sleep for a while", agents=[hanging()])


async def test_invalid_agents_and_goals_are_rejected_at_once(ioa_system: System) -> None:
    """An agent without a function, an id that is taken twice, and a goal that is none."""
    with pytest.raises(InvalidInputError, match="has no task function"):
        await ioa_system.run("do it", agents=[Agent("idle", description="Does nothing")])
    with pytest.raises(InvalidInputError, match="two agents called translator"):
        await ioa_system.run("do it", agents=[translator(), translator()])
    with pytest.raises(InvalidInputError, match="The goal cannot be read: goal: "):
        await ioa_system.run("  ", agents=[translator()])
