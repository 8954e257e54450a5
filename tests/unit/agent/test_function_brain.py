"""Functions of authors in turns: instructions and speakers."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ioa import Agent, DeclinedError, InvalidInputError, TurnView
from ioa.adapters.system_clock import RandomIds
from ioa.agent import function_brain
from ioa.agent.agent_ports import AgentPorts
from ioa.agent.function_brain import MAX_INSTRUCTIONS_BYTES, FunctionBrain
from ioa.agent.model import Budget, ModelBrain
from ioa.agent.tasks.task_files import GroupFiles
from ioa.agent.tasks.worker_pool import WorkerPool
from ioa.protocol.goals import Reason
from ioa.protocol.ids import CommId, SessionId, comm_id_of_goal
from ioa.testing import ScriptedBrain, ScriptedModel
from ioa.testing.manual_clock import ManualClock
from tests.rig.agent_stores import UnreliableStore
from tests.rig.memory_network import MemoryNetwork
from tests.unit.agent.company import GOAL, idle, one_task, open_company, working
from tests.unit.agent.model.situations import ANN, decision, launched

CANARY = "the cat is in the cellar"


def _agent(agent_id: str = "ann") -> Agent:
    agent = Agent(agent_id, description="Watches", examples=["watch"])
    agent.task(lambda task: "Watched.")
    return agent


def _view() -> TurnView:
    return launched().view(ANN)


class _Rig:
    """The function brain of one agent."""

    def __init__(self, agent: Agent, folder: Path) -> None:
        network = MemoryNetwork(ManualClock())
        self.files = GroupFiles(network, ANN, CommId("room"), folder, SessionId("s-1"))
        store, ids = UnreliableStore(folder / "memory.sqlite"), RandomIds()
        ports = AgentPorts(network, store, network.clock, ids, ScriptedBrain())
        self.brain = FunctionBrain(agent, ports, WorkerPool(agent.agent_id, 1))

    async def instructions(self) -> str:
        return (await self.brain.prepare(_view(), self.files)).instructions


async def test_instructions_can_come_from_a_function(tmp_path: Path) -> None:
    """A sync function runs off the event loop, an async one on it; long instructions are cut."""
    threads = list[bool]()

    def write(view: TurnView) -> str:
        threads.append(threading.current_thread() is threading.main_thread())
        return f"{view.me}: {CANARY}".ljust(9_000, "x")

    async def write_on_the_loop(view: TurnView) -> str:
        return write(view)

    for function in (write, write_on_the_loop):
        agent = _agent()
        agent.instructions = function
        written = await _Rig(agent, tmp_path).instructions()
        assert (written.startswith(f"ann: {CANARY}"), len(written.encode())) == (True, MAX_INSTRUCTIONS_BYTES)
    assert threads == [False, True]


@pytest.mark.parametrize("kind", ["raises", "number", "exits", "hangs"])
async def test_failing_instructions_are_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The agent still takes its turn."""
    agent = _agent()

    async def write(view: TurnView) -> Any:
        match kind:
            case "raises":
                raise ValueError("blind")
            case "number":
                return 7
            case "exits":
                raise SystemExit
            case _:
                return await asyncio.Event().wait()

    agent.instructions = write
    if kind == "hangs":
        monkeypatch.setattr(function_brain, "INSTRUCTIONS_TIMEOUT", timedelta(milliseconds=1))
    assert await _Rig(agent, tmp_path).instructions() == ""


async def test_instructions_are_private(tmp_path: Path) -> None:
    """They are in no log, in no view of another member, and in the view of the agent's own brain."""
    worker, lead, brain = working(lambda task: "Done."), one_task(), ScriptedBrain()
    worker.instructions = lambda view: CANARY
    async with open_company(tmp_path) as company:
        await company.start(worker, brain)
        await company.start(idle("lead"), lead)
        assert (await company.has_done()).reason is Reason.CONCLUDED
        log = repr(await company.network.entries(comm_id_of_goal(GOAL.goal_id)))
    assert brain.tasks[0].group.instructions == CANARY
    assert CANARY not in log + "".join(view.instructions for view in lead.views)


async def test_instructions_are_in_the_prompt() -> None:
    """Without them the prompt does not mention any."""
    model = ScriptedModel([decision(type="DISCUSSION", next_speaker="bob", content="Which month?")] * 2)
    brain = ModelBrain(model, budget=Budget())
    await brain.speak(replace(_view(), instructions="Be kind."))
    await brain.speak(_view())
    written, plain = (asked.messages[1].content for asked in model.asked)
    assert ("<instructions>\nBe kind.\n</instructions>" in written, "instructions" in plain) == (True, False)


def test_an_agent_that_only_speaks_declines_all_tasks() -> None:
    """Also with another card; it needs no function of its own to join."""
    agent = Agent("ann", description="Talks")
    agent.speak(lambda view: view.say(""))
    for one in (agent, agent.with_card(tags=["calm"])):
        with pytest.raises(DeclinedError, match="only speaks"):
            one.function("paint the fence")


def test_speaker_is_checked_when_it_is_registered() -> None:
    """It takes a view, and an agent has one speaker."""
    agent = _agent()
    agent.speak(lambda view: view.say("", to=""))
    with pytest.raises(InvalidInputError, match="speaks already"):
        agent.speak(lambda view: view.say("", to=""))
    with pytest.raises(InvalidInputError, match="one argument"):
        _agent().speak(lambda: "")  # type: ignore[type-var]
    thoughtful = Agent("ann", description="Thinks", brain=ScriptedBrain())
    with pytest.raises(InvalidInputError, match="a brain that speaks already"):
        thoughtful.speak(lambda view: view.say("", to=""))
