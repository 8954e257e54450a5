"""Events that an author's function receives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ioa import TurnView
from ioa.brain import Said
from ioa.guards import deny, guarded
from ioa.react import ReactAgent, tool
from ioa.testing import ScriptedBrain, ScriptedModel, wants
from ioa_testkit import System
from tests.contract.agents.leaders import WATCH, asking, launch_team
from tests.rig.deadline import eventually


@tool
def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


async def test_events_of_a_turn_and_a_task_are_reported_in_order(ioa_system: System) -> None:
    """A turn, its rejected message, the accepted one, the task with its tools and models, and the end, with the same ids.

    The agent goes on if the author's function fails.
    """
    events: list[tuple[str, Mapping[str, Any]]] = []

    def hear(kind: str, data: Mapping[str, Any]) -> None:
        events.append((kind, data))
        raise ValueError(kind)

    model = ScriptedModel([wants("bash", command="rm x"), wants("bash", command="ls"), "Watched."])
    agent = ReactAgent("watcher", description="Watches", tools=guarded([bash], deny("rm")), model=model)
    agent.on_event = hear
    tries = iter([True, False, False])

    @agent.speak
    def speak(view: TurnView) -> Said:
        if next(tries):
            raise ValueError("not yet")
        return view.conclude("All quiet.") if view.tasks else view.assign({"watcher": "watch the door"})

    async with ioa_system.serve(asking("watcher"), agent, brain=ScriptedBrain(teams=[launch_team("watcher")])) as running:
        await running.run(WATCH)
        await eventually(lambda: events[-1][0] == "group_ended")
    in_the_task = ["task_started", "model_called", "tool_rejected", "model_called", "tool_called", "model_called"]
    turns = ["turn_started", "message_rejected", "message_accepted"], ["turn_started", "message_accepted", "group_ended"]
    assert [kind for kind, _ in events] == [*turns[0], *in_the_task, *turns[1]]
    assert {(data["agent_id"], data["comm_id"]) for _, data in events} == {("watcher", events[0][1]["comm_id"])}
    last = dict(events)
    assert "ValueError: not yet" in last["message_rejected"]["why"] and last["task_started"]["task"] == "watch the door"
    assert (last["tool_rejected"]["arguments"], last["tool_called"]["result"]) == ({"command": "rm x"}, "ran ls")
    assert (last["message_accepted"]["kind"], last["group_ended"]["content"]) == ("CONCLUDE_GROUP_DISCUSSION", "All quiet.")
