"""Agents in a loop that is not theirs: they join, do their work, and are gone when the block ends."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

import ioa
from ioa.protocol.goal_order import GoalOrder
from ioa_testkit.planes import open_plane
from tests.rig.deadline import eventually


def _agents() -> list[ioa.Agent]:
    greeter = ioa.Agent("greeter", description="Greets people", examples=["say hello to Ada"])
    greeter.task(lambda task: "Hello!")
    counter = ioa.Agent("counter", description="Counts rows", examples=["count the rows"])
    counter.task(lambda task: "3 rows")
    return [greeter, counter]


async def test_agents_serve_in_the_loop_of_a_program(nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found when the block begins, and offline when it has ended; what the block raises comes out as it is."""
    monkeypatch.setenv("IOA_AGENT_DATA", str(tmp_path / "agents"))
    async with open_plane(nats_url) as plane:
        with pytest.raises(KeyError):
            async with ioa.serving(_agents(), plane.url):
                online = [status.card.agent_id for status in await plane.client.agents(online_only=True)]
                goal_id = await plane.client.submit(GoalOrder(goal="say hello to Ada"))
                result = await plane.client.wait_for_result(goal_id)
                raise KeyError
        left = await plane.client.agents(online_only=True)
    assert (sorted(online), result.content, left) == (["counter", "greeter"], "Hello!", [])


async def test_a_block_does_not_begin_without_one_of_its_agents(
    nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says which and why, and the others are gone with it: one that was just registering, when its lease is over."""
    monkeypatch.setenv("IOA_AGENT_DATA", str(tmp_path / "agents"))
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "counter").write_text("in the way")
    async with open_plane(nats_url) as plane:
        with pytest.raises(ioa.UnavailableError, match="cannot be locked"):
            async with asyncio.timeout(20), ioa.serving(_agents(), plane.url):
                raise AssertionError("it begins")
        await eventually(lambda: plane.client.agents(online_only=True), until=lambda left: left == [], within=timedelta(seconds=30))


async def test_agents_that_cannot_be_served_are_refused() -> None:
    """Before anything is connected."""
    for agents, why in ([_agents()[0]] * 2, "two agents called"), ([], "no agent"):
        with pytest.raises(ioa.InvalidInputError, match=why):
            async with ioa.serving(agents, "nats://127.0.0.1:1"):
                pass
