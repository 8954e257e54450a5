"""What an agent's author may listen to, and may leave out of what the agent is shown."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from ioa import Agent, Heard, InvalidInputError, TaskContext, TurnView
from ioa.agent import listening
from ioa.agent.listening import AgentEvent, Listeners
from ioa.agent.worker_pool import WorkerPool
from ioa.brain import Said
from ioa.callbacks import AttemptRefused, TaskStarted, ToolCalled, ToolRefused, TurnStarted
from ioa.guards import deny, guarded
from ioa.protocol.ids import AgentId, CommId, GoalId
from ioa.react import ReactAgent, tool
from ioa.testing import ScriptedBrain, ScriptedModel, wants
from ioa_testkit import System
from tests.rig.deadline import eventually


def _agent(agent_id: str = "watcher") -> Agent:
    agent = Agent(agent_id, description="Watches", examples=["watch"])
    agent.task(lambda task: "Watched.")
    return agent


@tool
def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


async def test_an_author_hears_what_happens_in_order(ioa_system: System) -> None:
    """A turn, what was refused in it, what was said, the task with its tools and models, and the end, with the same ids."""
    events: list[AgentEvent] = []
    model = ScriptedModel([wants("bash", command="rm x"), wants("bash", command="ls"), "Watched."])
    agent = ReactAgent("watcher", description="Watches", tools=guarded([bash], deny("rm")), model=model)
    tries = iter([True, False, False])

    @agent.speak
    def speak(view: TurnView) -> Said:
        if next(tries):
            raise ValueError("not yet")
        return view.conclude("All quiet.") if view.tasks else view.assign({"watcher": "watch the door"})

    @agent.listen
    async def note(event: AgentEvent) -> None:
        events.append(event)

    async with ioa_system.group("Keep watch", agent=agent, members=["lead"], brain=ScriptedBrain()) as group:
        await group["lead"].says("What do you see?", to=agent)
        await group.result()
        await eventually(lambda: isinstance(events[-1], listening.GroupEnded))
    names = [type(one).__name__ for one in events]
    in_the_task = ["TaskStarted", "ModelCalled", "ToolRefused", "ModelCalled", "ToolCalled", "ModelCalled"]
    assert names == ["TurnStarted", "AttemptRefused", "MessageTaken", *in_the_task, "TurnStarted", "MessageTaken", "GroupEnded"]
    assert {one.me for one in events} == {AgentId("watcher")} and len({one.comm_id for one in events}) == 1
    told: dict[type[AgentEvent], Any] = {type(one): one for one in events}
    assert "ValueError: not yet" in told[AttemptRefused].why and told[TaskStarted].task == "watch the door"
    assert (told[ToolRefused].arguments, told[ToolCalled].brought) == ({"command": "rm x"}, "ran ls")
    assert (told[listening.MessageTaken].kind, told[listening.GroupEnded].content) == ("CONCLUDE_GROUP_DISCUSSION", "All quiet.")


def _event(number: int = 1) -> TurnStarted:
    return TurnStarted(AgentId("ann"), GoalId("goal"), CommId("room"), number)


async def test_a_listener_that_fails_is_a_line_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it raises, and if it never returns: others are told, and the next event is as well."""
    heard: list[int] = []
    never = threading.Event()
    agent = _agent()

    @agent.listen
    def broken(event: AgentEvent) -> None:
        raise SystemExit(3)

    @agent.listen
    def hangs(event: AgentEvent) -> None:
        never.wait(5)

    @agent.listen
    def hears(event: TurnStarted) -> None:
        assert threading.current_thread() is not threading.main_thread()
        heard.append(event.turn)

    monkeypatch.setattr(listening, "HANDLED_WITHIN", timedelta(milliseconds=20))
    listeners = Listeners(agent.with_card(version="2").listeners, WorkerPool("ann", 8, timedelta(0)))
    for number in (1, 2):
        listeners.tell(_event(number))
    with capture_logs() as logs:
        await listeners.catch_up()
    never.set()
    failed = [one["listener"] for one in logs if one["event"] == "listener_failed"]
    assert (heard, failed) == ([1, 2], ["broken", "hangs"] * 2)


async def test_a_view_drops_and_never_adds(ioa_system: System) -> None:
    """Neither the speaker nor a task is shown what the author leaves out; what the filter fails on is left out as well."""
    agent, shown = _agent(), list[list[str]]()

    @agent.view
    def keep(heard: Heard) -> bool:
        if heard.content == "break":
            raise ValueError
        return "secret" not in heard.content

    @agent.speak
    def speak(view: TurnView) -> Said:
        shown.append([one.content for one in view.conversation if one.kind == "message"])
        return view.conclude("Seen.") if view.tasks else view.assign({"watcher": "watch"}, say="go")

    worker = agent.with_card()
    worker._own.task = None

    @worker.task
    async def work(task: str, ctx: TaskContext) -> str:
        shown.append([one.content for one in ctx.conversation if one.kind == "message"])
        return "Watched."

    async with ioa_system.group("Keep watch", agent=worker, members=["lead", "bob"], brain=ScriptedBrain()) as group:
        await group["lead"].says("a secret", to="bob")
        await group["bob"].says("break", to="lead")
        await group["lead"].says("What do you see?", to=worker)
        await group.result()
    assert shown == [["What do you see?"], ["What do you see?", "go"], ["What do you see?", "go"]]


def test_what_cannot_filter_or_listen_is_refused_at_once() -> None:
    """At its definition, in the words of its author."""
    agent = _agent()

    async def late(heard: Heard) -> bool:
        return True

    for register in (agent.view, agent.listen):
        with pytest.raises(InvalidInputError):
            register(lambda: True)  # type: ignore[type-var]
    with pytest.raises(InvalidInputError, match="is async"):
        agent.view(late)  # type: ignore[type-var]
    agent.view(lambda heard: True)
    with pytest.raises(InvalidInputError, match="already"):
        agent.view(lambda heard: True)
