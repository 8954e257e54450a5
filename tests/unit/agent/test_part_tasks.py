"""Agents that give out tasks where a policy lets them: by a model and by functions, heard by all and by few."""

from __future__ import annotations

from typing import Any

from ioa import Agent, TurnView
from ioa.agent.hooks import Said
from ioa.group.events import Said as Message
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.messages import InformTaskResult
from ioa.protocol.team import team_of
from ioa.testing import ScriptedModel
from ioa.testing.scripted_model import ScriptedCall
from ioa_testkit import System
from tests.unit.agent.test_parts import agent, answered, said

CREW: dict[str, Any] = {
    "team": "crew",
    "roles": {"lead": {"agent": "host"}, "hand": {"agent": "smith"}},
    "nodes": [{"name": "work", "roles": ["lead"], "tasks": True, "max": 1}],
}


async def test_a_model_gives_out_tasks_where_its_node_lets_it(ioa_system: System) -> None:
    """It is told that it may, waits for what is open, is told the results, and says then what they come to."""
    prompts: list[str] = []

    def answer(asked: ScriptedCall) -> str:
        prompts.append(asked.prompt)
        if "The discussion has ended" in asked.prompt:
            return answered(type="CONCLUDE", goal_reached=True, content="All is welded.")
        if len(prompts) == 1:
            tasks = [{"name": "seam", "assignee": "smith", "task_desc": "weld the seam", "uses": []}]
            return answered(type="ASSIGN", mode="go_on", content="", tasks=tasks)
        if "smith speaks" not in asked.prompt.split("weld the seam", 1)[-1]:
            return answered(type="PAUSE", triggers=["t1-seam"])
        return answered(type="DISCUSSION", content="The seam is done.")

    told: list[str] = []
    order = GoalOrder(goal="Build a bridge.", team=team_of(CREW))
    both = agent("host", "plans bridges", []), agent("smith", "weld steel", told)
    finished = await ioa_system.run(order, agents=both, model=ScriptedModel(answer))
    assert (finished.result.content, told, said(finished)) == (
        "All is welded.", ["weld the seam"], [("host", "The seam is done.")]
    )  # fmt: skip
    assert "ASSIGN gives out tasks" in prompts[0] and "nobody gives out tasks" not in prompts[0]


SECRET: dict[str, Any] = {
    "team": "secret",
    "roles": {"lead": {"agent": "host"}, "hand": {"agent": "smith"}, "guest": {"agent": "guest"}},
    "nodes": [
        {"name": "work", "roles": ["lead"], "tasks": True, "heard_by": "node", "max": 1, "then": "talk"},
        {"name": "talk", "roles": ["guest"]},
    ],
}


async def test_who_hears_nothing_of_a_node_works_for_it_all_the_same(ioa_system: System) -> None:
    """Its function is told its task; who gave it out has the result, and a third one is shown neither."""
    seen: dict[str, list[TurnView]] = {"host": [], "guest": []}

    def speaking(name: str) -> Agent:
        this = Agent(name, description=f"{name} helps", examples=[f"{name} helps"])

        @this.speak
        def speak(view: TurnView) -> Said:
            seen[name].append(view)
            if view.offer is not None and view.offer.concluding:
                return view.conclude("Done.")
            if view.offer is not None and view.offer.tasks and not view.tasks:
                return view.assign({"smith": "weld canary"})
            return view.say("Well.")

        return this

    told: list[str] = []
    order = GoalOrder(goal="Build a bridge.", team=team_of(SECRET))
    three = speaking("host"), agent("smith", "weld steel", told), speaking("guest")
    finished = await ioa_system.run(order, agents=three)
    assert (finished.result.reason, told) == (Reason.CONCLUDED, ["weld canary"])
    (record,) = seen["host"][1].tasks
    assert record.conclusion == "smith speaks"
    assert [view.tasks for view in seen["guest"]] == [()]
    assert not any("canary" in one.content or "smith" in one.content for one in seen["guest"][0].conversation)
    (result,) = [
        one.entry
        for one in finished.log
        if isinstance(one.entry.event, Message) and isinstance(one.entry.event.message.payload, InformTaskResult)
    ]
    assert result.audience == ("host", "smith")
