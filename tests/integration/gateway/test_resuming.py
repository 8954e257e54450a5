"""Two gateways, and a follower that is disconnected repeatedly."""

from __future__ import annotations

import asyncio
import random

import httpx
import pytest

from ioa.client.history import conversation
from ioa.protocol.ids import GoalId
from ioa.protocol.messages import Discussion
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, Members
from tests.integration.gateway.serving import Door, Event, followed, open_gateway

SEEDS = range(5)
ORDER = {"goal": "Count.", "agent": "ada", "max_turns": 100, "repetition": "off"}
MESSAGES = 12


async def _torn(gateways: list[httpx.AsyncClient], path: str, chance: random.Random) -> list[Event]:
    """Follow at a random gateway, disconnect after some events, and resume after the last one, until the end."""
    seen: list[Event] = []
    is_over = False
    while not is_over:
        left = chance.randrange(1, 6)
        is_over = bool(seen)  # unless another event follows
        last = {"Last-Event-ID": str(seen[-1].seq)} if seen else {}
        async for event in followed(chance.choice(gateways), path, **last):
            if event.kind == "end":
                return seen
            seen.append(event)
            is_over = False
            left -= 1
            if not left:
                break
    return seen


@pytest.mark.parametrize("page", [100, 1])
async def test_resumed_streams_equal_the_log(
    plane: Plane, door: Door, members: Members, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """Each entry is received once, in order, also when a page has one entry."""
    monkeypatch.setattr("ioa_gateway.event_streams._PAGE_ENTRIES", page)
    async with open_gateway(plane, door) as one, open_gateway(plane, door) as other:
        for seed in SEEDS:
            chance = random.Random(seed)
            launched = (await one.post("/goals", json=ORDER)).json()
            room = (await members.launch(GoalId(launched["goal_id"]))).state.comm_id
            async with asyncio.TaskGroup() as group:
                seen = group.create_task(_torn([one, other], f"/goals/{launched['goal_id']}/events", chance))
                for number in range(MESSAGES):
                    speaker, listener = (ADA, BOB) if number % 2 == 0 else (BOB, ADA)
                    await members.say(speaker, Discussion(content=f"{number}", next_speaker=listener), room)
                    await asyncio.sleep(0)
                await members.conclude(ADA, "Done.", room)
            log = [stored.seq for stored in await conversation(plane.client, room)]
            assert [event.seq for event in seen.result()] == log, seed
