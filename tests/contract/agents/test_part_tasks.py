"""Tasks under a policy, assigned by a model."""

from __future__ import annotations

from ioa.ports.meter import Meter
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Decision, Discussion
from ioa.protocol.teams.team_file import read_toml
from ioa.testing import ScriptedModel
from ioa.testing.scripted_model import ScriptedCall
from ioa_testkit import System
from tests.contract.agents.test_parts import agent, answered, concluded, said
from tests.unit.agent.stories import folded
from tests.unit.group.scenario import START
from tests.unit.group.test_policy import group

CREW = read_toml("""
team = "crew"
[roles]
lead = "host"
hand = "smith"
[[nodes]]
name = "work"
roles = ["lead"]
tasks = true
max = 1
""")


async def test_a_model_gives_out_tasks_where_its_node_lets_it(ioa_system: System) -> None:
    """The prompt permits tasks. The model waits for open tasks and discusses their results."""
    prompts: list[str] = []

    def answer(asked: ScriptedCall) -> str:
        prompts.append(asked.prompt)
        if "The discussion has ended" in asked.prompt:
            return concluded("All is welded.")
        if len(prompts) == 1:
            tasks = [{"name": "seam", "assignee": "smith", "task_desc": "weld the seam", "uses": []}]
            return answered(type="ASSIGN", mode="go_on", content="", tasks=tasks)
        if "smith speaks" not in asked.prompt.split("weld the seam", 1)[-1]:
            return answered(type="PAUSE", triggers=["t1-seam"])
        return answered(type="DISCUSSION", content="The seam is done.")

    told: list[str] = []
    order = GoalOrder(goal="Build a bridge.", team=CREW)
    both = agent("host", "plans bridges", []), agent("smith", "weld steel", told)
    finished = await ioa_system.run(order, agents=both, model=ScriptedModel(answer))
    assert (finished.result.content, told, said(finished)) == (
        "All is welded.", ["weld the seam"], [("host", "The seam is done.")]
    )  # fmt: skip
    assert "tasks: true" in prompts[0]


async def test_a_model_names_the_team_that_serves_a_task(ioa_system: System) -> None:
    """An invalid team name is rejected with a reason; all members read the name and the result."""
    task = {"name": "seam", "assignee": "smith", "task_desc": "weld or rivet", "uses": []}
    given = [
        answered(type="ASSIGN", mode="wait", content="", tasks=[{**task, "team": team}]) for team in ("the debaters", "debate")
    ]
    model = ScriptedModel([*given, answered(type="DISCUSSION", content="Nobody debates."), concluded("There is no such team.")])
    told: list[str] = []
    order = GoalOrder(goal="Build a bridge.", team=CREW)
    both = agent("host", "plans bridges", []), agent("smith", "weld steel", told)
    finished = await ioa_system.run(order, agents=both, model=model)
    _, second, third, _ = (asked.prompt for asked in model.asked)
    assert "starting with a letter or digit" in second
    wanted = '"assignee": "smith"', '"team": "debate"', "No team of local is called debate"
    assert [words in third for words in wanted] == [True] * 3
    assert ("weld or rivet (by the team debate)" in finished.transcript, told) == (True, [])


def test_struck_tasks_are_in_no_view() -> None:
    """After a restart of the node, the view contains no task that was assigned in it."""
    work = {"name": "work", "roles": ["a"], "tasks": True, "max": 1, "then": "last"}
    watcher = {"role": "c", "node": "last", "may": "go", "go": ["work"]}
    story = group(work, {"name": "last", "roles": ["a"], "max": 3}, roles={"c": {}}, watchers=[watcher])
    done = story.assigns_and_waits("ada", "t1-1:bob").finishes("t1-1").speaks("ada", Discussion(content="On."))
    anew = done.speaks("ada", Discussion(content="Hm.")).speaks("eve", Decision(choice="work"))
    shown = [folded(one).view(AgentId("ada"), START, Meter()) for one in (done, anew)]
    assert [[task.spec.task_id for task in view.tasks] for view in shown] == [["t1-1"], []]
    assert [len(view.log) for view in shown] == [3, 1]
