"""What is kept of what was read while a call waits: hundreds wait at once, so that it would be in memory as often."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from weakref import ReferenceType, WeakSet, ref

import pytest
from a2a.types.a2a_pb2 import SubscribeToTaskRequest
from starlette.datastructures import Headers

from ioa.beside import beside
from ioa.client.client import Launched
from ioa.fair_semaphore import FairSemaphore
from ioa.ports.goal_client import GoalStatus
from ioa.protocol.api_keys import Scope
from ioa.protocol.cards import AgentCard, AgentStatus
from ioa.protocol.goals import Goal, GoalRecord, GoalResult, Reason
from ioa.protocol.ids import LOCAL, AgentId, GoalId, GoalName, PoolId
from ioa.protocol.registry import Agents, ListAgents
from ioa.protocol.webhooks import Notice, WebhookId
from ioa.testing.memory_webhooks import MemoryWebhooks
from ioa_gateway.a2a.asking import ASKED, AdmittedRequest
from ioa_gateway.a2a.handler import Tasks
from ioa_gateway.callers import Caller
from ioa_gateway.calls import ApiCall, Nothing, WebhookParts
from ioa_gateway.limits import CallerLimits
from ioa_gateway.mcp.tools import CALL, wait
from ioa_gateway.rooms import open_rooms
from ioa_gateway.routes import agui, chat
from ioa_gateway.routes.chat import models
from ioa_gateway.routes.goals import CancelOrder, WhoseQuery, cancel
from ioa_gateway.routes.webhooks import WebhookOrder, make_webhook
from tests.rig.deadline import eventually
from tests.unit.group.scenario import START

_PAGES = 5
_LAUNCHED = Launched(GoalName(LOCAL, GoalId("g1")), None)


class _System:
    """One goal, of which nothing more comes, and agents, one a page.

    Args:
        has_ended: Whether the goal has.

    Attributes:
        statuses: How the goal was found, each time.
        results: How it was found to have ended, each time.
        waiting: How many wait for what comes of it, or of what they ask.
        held: How many pages were held, at the most, when another one was asked for.
    """

    def __init__(self, *, has_ended: bool = False) -> None:
        self.system = self
        self._has_ended = has_ended
        self.statuses, self._pages = list[ReferenceType[GoalStatus]](), WeakSet[Agents]()
        self.results = list[ReferenceType[GoalResult]]()
        self.waiting = self.held = 0

    async def goal(self, name: GoalName, *, with_team: bool = True) -> GoalStatus:
        """Look at the goal."""
        goal = Goal(goal_id=name.goal_id, goal=f"Count, {'with' if with_team else 'without'} a team.")
        result = self._result(goal) if self._has_ended else None
        status = GoalStatus(GoalRecord(goal=goal, accepted_at=START), None, result)
        self.statuses.append(ref(status))
        return status

    async def result(self, name: GoalName, *, wait: bool = False) -> GoalResult | None:
        """Read how the goal ended, or wait for it, which does not come if it has not."""
        if wait and not self._has_ended:
            await asyncio.Event().wait()
        return self._result(Goal(goal_id=name.goal_id, goal="Count.")) if self._has_ended else None

    def _result(self, goal: Goal) -> GoalResult:
        about = {"goal_id": goal.goal_id, "user": goal.user, "comm_id": goal.comm_id}
        result = GoalResult(**about, reason=Reason.CONCLUDED, content="Ten.", turns=1, finished_at=START)
        self.results.append(ref(result))
        return result

    async def cancel(self, *_of: object) -> None:
        """Have group setup asked, which does not answer."""
        await self._wait()

    async def queue(self, _notice: Notice) -> bool:
        """Have something stored to be told to a webhook, which lasts."""
        await self._wait()
        return True

    async def _wait(self) -> None:
        self.waiting += 1
        await asyncio.Event().wait()

    async def read(self, *_of: object, **_more: object) -> AsyncGenerator[None, None]:
        """Nothing was said."""
        nothing: list[None] = []
        for one in nothing:
            yield one

    async def documents(self, *_of: object) -> AsyncGenerator[None, None]:
        """Follow the goal."""
        if not self._has_ended:
            await self._wait()
            yield

    async def list_agents(self, request: ListAgents) -> Agents:
        """Read the page of one agent, that behind another one."""
        self.held = max(self.held, len(self._pages))
        number = 0 if request.after is None else int(request.after.removeprefix("a")) + 1
        card = AgentCard(agent_id=AgentId(f"a{number}"), name="A", description="Counts.", pool=PoolId(f"p{number % 2}"))
        page = Agents(agents=(AgentStatus(card=card, online=True, registered_at=START),), more=number < _PAGES - 1)
        self._pages.add(page)
        return page

    async def agents(self, *, online_only: bool) -> list[AgentStatus]:
        """Gather all of them."""
        found = [await self.list_agents(ListAgents(online_only=online_only))]
        while found[-1].more:
            found.append(await self.list_agents(ListAgents(online_only=online_only, after=found[-1].agents[-1].card.agent_id)))
        return [one for page in found for one in page.agents]


def _call(system: _System) -> ApiCall:
    any_system: Any = system
    watched: Any = SimpleNamespace(watch=lambda _caller: asyncio.Event().wait(), check=lambda _caller: None, now=lambda: START)
    nothing: Any = SimpleNamespace()
    return ApiCall(
        caller=Caller("key", LOCAL, frozenset({Scope.GOALS_READ, Scope.GOALS_WRITE})),
        client=any_system,
        rooms=any_system,
        keyring=watched,
        limits=CallerLimits(lambda: 0.0),
        hooks=nothing,
        path={},
        headers=Headers(),
        session=None,
        is_secure=False,
        sent=nothing,
        left=nothing,
        seats=nothing,
    )


async def _subscribe(call: ApiCall) -> None:
    nothing: Any = SimpleNamespace()
    context: Any = SimpleNamespace(state={ASKED: AdmittedRequest(call, None, "http://x", nothing, nothing)})
    async with aclosing(Tasks().on_subscribe_to_task(SubscribeToTaskRequest(id="g1"), context)) as events:
        async for _event in events:
            pass


async def _wait(call: ApiCall) -> None:
    context: Any = SimpleNamespace(request_context=SimpleNamespace(request=SimpleNamespace(scope={CALL: call})))
    await wait(context, GoalId("g1"), seconds=50)


@pytest.mark.parametrize("follow", [_subscribe, _wait], ids=["a2a", "mcp"])
async def test_who_waits_for_a_goal_keeps_nothing_of_how_it_stood(follow: Callable[[ApiCall], Coroutine[Any, Any, None]]) -> None:
    """A goal with a large team takes megabytes in memory, and one key follows fifty things."""
    system = _System()
    async with beside(follow(_call(system))):
        await eventually(lambda: system.waiting, lambda count: count == 1)
        gc.collect()
        assert (len(system.statuses) > 0, [one() for one in system.statuses if one() is not None]) == (True, [])


async def _cancel(call: ApiCall) -> None:
    await cancel(replace(call, path={"goal_id": "g1"}), WhoseQuery(), CancelOrder())


async def _have_told(call: ApiCall) -> None:
    any_store: Any = MemoryWebhooks()
    any_store.queue = call.client.queue  # type: ignore[attr-defined]  # it is the system of this file
    nothing: Any = SimpleNamespace()
    hooks = WebhookParts(any_store, nothing, lambda size: b"a" * size)
    order = WebhookOrder(url="https://hooks.test/", goal_id=GoalId("g1"))
    await make_webhook(replace(call, hooks=hooks), order, WebhookId("h1"))


@pytest.mark.parametrize("ask", [_cancel, _have_told], ids=["cancel", "webhook"])
async def test_no_result_is_held_while_something_else_is_asked(ask: Callable[[ApiCall], Coroutine[Any, Any, None]]) -> None:
    """One takes a megabyte and more, and services answer a user a few times a second."""
    system = _System(has_ended=True)
    async with beside(ask(_call(system))):
        await eventually(lambda: system.waiting, lambda count: count == 1)
        gc.collect()
        assert (len(system.results) > 0, [one() for one in system.results if one() is not None]) == (True, [])


def _by_chat(call: ApiCall) -> AsyncGenerator[object, None]:
    return chat._streamed(call, "ioa", _LAUNCHED)


def _by_agui(call: ApiCall) -> AsyncGenerator[object, None]:
    return agui._told(call, {}, _LAUNCHED, 0)


def _by_a2a(call: ApiCall) -> AsyncGenerator[object, None]:
    nothing: Any = SimpleNamespace()
    headed = replace(call, headers=Headers({"last-event-id": "0"}))
    context: Any = SimpleNamespace(state={ASKED: AdmittedRequest(headed, None, "http://x", nothing, nothing)})
    return Tasks().on_subscribe_to_task(SubscribeToTaskRequest(id="g1"), context)


@pytest.mark.parametrize("follow", [_by_chat, _by_agui, _by_a2a], ids=["chat", "agui", "a2a"])
async def test_no_result_is_held_while_somebody_takes_it(follow: Callable[[ApiCall], AsyncGenerator[object, None]]) -> None:
    """Whoever follows a goal may read its end as slowly as he likes."""
    system, turns = _System(has_ended=True), FairSemaphore(1, 1)
    any_system: Any = system
    async with open_rooms(any_system, lambda _caller: True, turns, turns) as rooms, asyncio.timeout(20):
        parts: Any = SimpleNamespace(documents=system.documents, ending=rooms.ending, may_go_on=rooms.may_go_on)
        async with aclosing(follow(replace(_call(system), rooms=parts))) as events:
            told = [await anext(events)]
            while "Ten." not in str(told[-1]) or len(told) == 1:
                told.append(await anext(events))
            gc.collect()
            assert (len(system.results) > 0, [one() for one in system.results if one() is not None]) == (True, [])
            assert None not in [one async for one in events]
        assert rooms._ends.taken == 0


async def test_of_the_agents_that_are_models_one_page_is_held() -> None:
    """Each has up to 750 kB, and the next one comes when those of others were told."""
    system = _System()
    told = await models(_call(system), Nothing(), Nothing())
    assert [one["id"] for one in json.loads(bytes(told.body))["data"]] == ["ioa", "p0", "p1"]
    assert system.held == 1
