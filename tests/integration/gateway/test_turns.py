"""What one key asks for many times at once: little of it is read at a time, and others are answered meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from ioa.ports.goal_client import GoalStatus
from ioa.protocol.ids import GoalName
from ioa.protocol.registry import Agents, ListAgents
from ioa.protocol.webhooks import Webhook
from ioa_gateway.limits import PAGES_OF_USER
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, GOAL, Members, order
from tests.integration.gateway.serving import Door

_AT_ONCE = 20


class _Readings:
    """Readings that go on when they may, and how many of them were begun until then."""

    def __init__(self) -> None:
        self.begun = 0
        self._may_go_on = asyncio.Event()

    async def wait(self) -> None:
        """Begin one, unless all go on."""
        self.begun += not self._may_go_on.is_set()
        await self._may_go_on.wait()

    async def of_many(self, http: httpx.AsyncClient, path: str) -> tuple[int, set[int]]:
        """Ask many times at once; return how many readings were begun while others were answered, and all statuses."""
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(http.get(path)) for _ in range(_AT_ONCE)]
            for _ in range(_AT_ONCE):
                await http.get("/session")
            self._may_go_on.set()
        return self.begun, {one.result().status_code for one in asked}


@pytest.fixture
def readings(plane: Plane, door: Door, monkeypatch: pytest.MonkeyPatch) -> _Readings:
    """All readings of goals, agents and webhooks."""
    read, goal, list_agents, hooks = _Readings(), plane.client.goal, plane.client.list_agents, door.hooks.all

    async def look(name: GoalName, *, with_team: bool = True) -> GoalStatus:
        await read.wait()
        return await goal(name, with_team=with_team)

    async def page(request: ListAgents) -> Agents:
        await read.wait()
        return await list_agents(request)

    async def every() -> AsyncIterator[Webhook]:
        await read.wait()
        async for hook in hooks():
            yield hook

    for system, name, slow in ((plane.client, "goal", look), (plane.client, "list_agents", page), (door.hooks, "all", every)):
        monkeypatch.setattr(system, name, slow)
    return read


@pytest.mark.parametrize(
    "path", [f"/goals/{GOAL}", f"/goals/{GOAL}/result", f"/goals/{GOAL}/events", "/agents", "/models", "/webhooks"]
)
async def test_of_one_user_little_is_read_at_a_time(
    plane: Plane, members: Members, http: httpx.AsyncClient, readings: _Readings, path: str
) -> None:
    """Whatever is asked for: a goal, agents or webhooks take megabytes each."""
    await plane.client.launch(order())
    await members.launch()
    await members.conclude(ADA, "Ten.")
    begun, statuses = await readings.of_many(http, path)
    assert (begun, statuses <= {200, 204}) == (PAGES_OF_USER, True)
