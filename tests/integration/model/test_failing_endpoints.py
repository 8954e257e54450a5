"""Failing model endpoints, over a real nats-server: only a model concludes a goal, and each goal ends with its reason."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from ioa.adapters.openai.chat import ModelSettings, open_openai_chat
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.adapters.this_process import new_session
from ioa.agent.agent_ports import AgentPorts
from ioa.agent.agent_runtime import AgentRuntime, RuntimeOptions
from ioa.agent.brain_port import Brain
from ioa.agent.model import Budget, ModelBrain
from ioa.client.history import conversation
from ioa.concurrency import beside
from ioa.errors import NotFoundError
from ioa.group.events import Said
from ioa.hosting.agent import Agent
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import AgentId, comm_id_of_goal
from ioa.protocol.messages import Message, Pass, PassCause, Thinking
from ioa.runtime.process import StopSignal
from ioa_testkit.planes import Plane, open_plane
from tests.rig.agent_stores import UnreliableStore
from tests.rig.deadline import eventually
from tests.rig.http_script import Line, completion, serving

pytestmark = pytest.mark.timeout(60)

PATIENCE = timedelta(seconds=3)
"""Of decisions by models that are away, and of their groups."""
BRIEF = Budget(answer_timeout=PATIENCE, decision_timeout=PATIENCE)
AMPLE = Budget(answer_timeout=timedelta(seconds=20), decision_timeout=timedelta(seconds=20))
CONCLUDED = completion(json.dumps({"decision": {"type": "CONCLUDE", "goal_reached": True, "content": "It is done."}}))
DOWN = Line(status=503, body="overloaded")


@dataclass
class Endpoint:
    """Chooses a team, and then returns the lines of `speech`."""

    member: str
    speech: Callable[[], Line]

    def answer(self, body: dict[str, Any]) -> Line:
        """Answer a request."""
        is_formation = "launch_group_chat" in json.dumps(body["response_format"])
        if not is_formation:
            return self.speech()
        return completion(json.dumps({"decision": {"type": "launch_group_chat", "members": [self.member]}}))


def always(line: Line) -> Callable[[], Line]:
    """Return the same answer to each request."""
    return lambda: line


def away_for(seconds: float) -> Callable[[], Line]:
    """Fail for some seconds from the first request on, and then answer."""
    began: list[float] = []

    def answer() -> Line:
        began[:] = began or [monotonic()]
        return DOWN if monotonic() - began[0] < seconds else CONCLUDED

    return answer


FAILING: dict[str, tuple[Line, Reason, PassCause]] = {
    "401": (Line(status=401, body="who are you"), Reason.MODEL_UNAVAILABLE, PassCause.MODEL_UNAVAILABLE),
    "503": (DOWN, Reason.MODEL_UNAVAILABLE, PassCause.MODEL_UNAVAILABLE),
    "hanging": (Line(hang=True), Reason.MODEL_UNAVAILABLE, PassCause.MODEL_UNAVAILABLE),
    "dropping": (Line(drop=True), Reason.MODEL_UNAVAILABLE, PassCause.MODEL_UNAVAILABLE),
    "page": (Line(body="<html>Welcome</html>"), Reason.MODEL_UNAVAILABLE, PassCause.MODEL_UNAVAILABLE),
    "garbage": (completion("As a language model I"), Reason.FAILED, PassCause.NO_USABLE_ANSWER),
    "empty": (completion(""), Reason.FAILED, PassCause.NO_USABLE_ANSWER),
}


@pytest.fixture
async def plane(nats_url: str) -> AsyncIterator[Plane]:
    """A control plane on a nats-server of its own. Its floors are short, so that cards may have others wait as briefly."""
    async with open_plane(nats_url, model_patience=PATIENCE, floor_timeout=timedelta(seconds=2)) as running:
        yield running


@dataclass
class Told:
    """The end of a goal."""

    result: GoalResult
    messages: list[Message]

    @property
    def deciders(self) -> set[str]:
        """The kinds of brains that decided its messages."""
        return {message.header.decided_by.kind for message in self.messages if message.header.decided_by is not None}


async def reach(
    plane: Plane,
    folder: Path,
    name: str,
    endpoint: Endpoint,
    *,
    budget: Budget = BRIEF,
    patience: float = 60,
) -> Told:
    """Run a goal with two agents of an endpoint. `patience` is on their cards, in seconds."""
    async with AsyncExitStack() as stack:
        url = stack.enter_context(serving(answer=endpoint.answer))[0]
        chat = await stack.enter_async_context(open_openai_chat(ModelSettings(url, "large", context=32_000)))
        brain = ModelBrain(chat, budget=replace(budget, model="large"))
        clients = [_client(plane, folder, f"{name}-{role}", brain, patience) for role in ("lead", "member")]
        stop = StopSignal()
        await stack.enter_async_context(beside(*(client.run(stop) for client in clients), stop=stop.set))
        lead = f"{name}-lead"
        await eventually(plane.client.agents, lambda agents: lead in {one.card.agent_id for one in agents})
        goal_id = await plane.client.submit(GoalOrder(goal=f"Help {name} to count.", agent=lead, timeout=40))
        result = await plane.client.wait_for_result(goal_id)
        try:
            entries = await conversation(plane.client, comm_id_of_goal(goal_id))
        except NotFoundError:
            entries = []
        said = [stored.entry.event.message for stored in entries if isinstance(stored.entry.event, Said)]
        return Told(result, said)


def _client(plane: Plane, folder: Path, agent_id: str, brain: Brain, patience: float) -> AgentRuntime:
    agent = Agent(agent_id, description=f"Helps {agent_id} to count.", examples=[f"Help {agent_id} to count."])
    agent.task(lambda task: "1, 2, 3")
    card = agent.card_as(AgentId(agent_id)).model_copy(update={"patience": timedelta(seconds=patience)})
    clock, ids = SystemClock(), RandomIds()
    store = UnreliableStore(folder / f"{agent_id}.sqlite")
    options = RuntimeOptions(folder / agent_id, drain=timedelta(0), takeover=timedelta(0), reform_after=timedelta(seconds=0.1))
    return AgentRuntime(agent, card, AgentPorts(plane.network, store, clock, ids, brain), new_session(clock, ids), options)


async def test_no_failing_endpoint_concludes_anything(plane: Plane, tmp_path: Path) -> None:
    """Each failure has its typed end, with the names of the members, which only pass."""
    budgets = {Reason.MODEL_UNAVAILABLE: BRIEF, Reason.FAILED: AMPLE}
    async with asyncio.TaskGroup() as group:
        running = {
            name: group.create_task(reach(plane, tmp_path, name, Endpoint(f"{name}-member", always(line)), budget=budgets[reason]))
            for name, (line, reason, _) in FAILING.items()
        }
    told = {name: task.result() for name, task in running.items()}
    assert {name: one.result.reason for name, one in told.items()} == {name: reason for name, (_, reason, _) in FAILING.items()}
    for name, (_, _, cause) in FAILING.items():
        assert {type(message.payload) for message in told[name].messages} == {Pass}
        assert {message.payload.cause for message in told[name].messages if isinstance(message.payload, Pass)} == {cause}
        assert (told[name].deciders, f"{name}-lead, {name}-member" in told[name].result.content) == (set(), True)
        assert [one.by.kind for one in told[name].result.decisions] == ["model"], "the team was the model's choice"
        assert len(told[name].messages) < 12, "members whose models refuse at once do not pass the floor around as fast as they can"


async def test_models_that_come_back_go_on(plane: Plane, tmp_path: Path) -> None:
    """An endpoint that was away for a while, or takes its time, costs time and nothing else: the model decides all there is.

    A member that thinks for longer than its patience keeps the floor meanwhile.
    """
    async with asyncio.TaskGroup() as group:
        away = group.create_task(reach(plane, tmp_path, "away", Endpoint("away-member", away_for(1)), budget=AMPLE))
        slow = group.create_task(reach(plane, tmp_path, "slow", Endpoint("slow-member", away_for(3)), budget=AMPLE, patience=2))
    for told in (away.result(), slow.result()):
        decided = {(one.by.kind, one.by.name) for one in told.result.decisions}
        assert (told.result.reason, told.deciders, decided) == (Reason.CONCLUDED, {"model"}, {("model", "large")})
    assert Thinking in {type(message.payload) for message in slow.result().messages}
