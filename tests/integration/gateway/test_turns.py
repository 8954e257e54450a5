"""What one key asks for many times at once: little of it is read at a time, and others are answered meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from ioa.beside import beside
from ioa.ports.goal_client import GoalStatus
from ioa.protocol import team as teams
from ioa.protocol.ids import GoalName
from ioa.protocol.named_teams import NamedTeam
from ioa.protocol.registry import Agents, ListAgents
from ioa.protocol.team import TeamSpec
from ioa.protocol.webhooks import Webhook
from ioa_gateway.bodies import check_body
from ioa_gateway.limits import PAGES_OF_USER, PUTS_OF_USER
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

    async def of_many(self, http: httpx.AsyncClient, path: str, *bodies: dict[str, Any]) -> tuple[int, set[int]]:
        """Ask many times at once; return how many readings were begun while others were answered, and all statuses."""
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(http.put(path, json=body) if body else http.get(path)) for body in bodies or [{}] * _AT_ONCE]
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


def _team(name: str, number: int) -> dict[str, Any]:
    return {"team": name, "roles": {"a": {"agent": "ada"}}, "nodes": [{"name": "n", "roles": ["a"], "prompt": f"{number}"}]}


@pytest.mark.parametrize(
    ("method", "path", "body_of"),
    [
        ("POST", "/goals", lambda number: {"goal": "x", "goal_id": "mine", "team": _team("launched", number)}),
        ("PUT", "/teams/other", lambda number: _team("put", number)),
    ],
    ids=["goals", "teams"],
)
async def test_others_have_their_turn_before_each_body_is_parsed_and_before_its_team_is_checked(
    http: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    body_of: Callable[[int], dict[str, Any]],
) -> None:
    """A legal team of 40 kB takes a tenth of a second, in which nobody else is answered, and one key sends hundreds at once."""
    seen, rounds = list[int](), 0

    def noted(read: Callable[..., object]) -> Callable[..., object]:
        def note(*given: Any) -> object:
            seen.append(rounds)
            return read(*given)

        return note

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    monkeypatch.setattr("ioa_gateway.calls.check_body", noted(check_body))
    monkeypatch.setattr(teams, "_team_of", noted(teams._team_of))
    async with beside(count()):
        answers = await asyncio.gather(*(http.request(method, path, json=body_of(number)) for number in range(_AT_ONCE)))
    assert {one.status_code for one in answers} == {422}, "what is read goes no further"
    assert (len(seen), len({*seen})) == (2 * _AT_ONCE, 2 * _AT_ONCE)


async def test_of_one_user_few_teams_are_held_while_they_are_put(
    plane: Plane, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes forty times as much of memory as it was sent in, until group setup has answered."""
    read, put_team = _Readings(), plane.client.put_team

    async def put(team: TeamSpec) -> NamedTeam:
        await read.wait()
        return await put_team(team)

    monkeypatch.setattr(plane.client, "put_team", put)
    assert await read.of_many(http, "/teams/large", *(_team("large", number) for number in range(_AT_ONCE))) == (
        PUTS_OF_USER,
        {200},
    )
