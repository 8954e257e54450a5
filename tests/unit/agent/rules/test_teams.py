"""Which agents get the tasks of a goal, when no agent fits, and when a task opens a nested group."""

from __future__ import annotations

import pytest

from ioa.agent.brain_port import TaskView
from ioa.agent.rules import RuleBrain
from ioa.errors import InvalidInputError
from ioa.ports.brain_types import Mission, NobodyFits, TeamLaunch
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import TaskSpec
from ioa.protocol.setup.charter import Limits
from tests.unit.agent.model.machine_group import START, Found, Group, card
from tests.unit.agent.rules.group_play import charter_of, planned

ME = card("me", "greets people")
CSV = card("csv", "computes sums", examples=("sum of NUMBER by COLUMN",))
CHART = card("chart", "draws charts", declines=True)
DESK = card("desk", "prepares briefings", examples=("Lagebericht:\n- a\n- b of #1",))
BRAIN = RuleBrain()


AGENTS = (
    (ME, {"grüße": 0.9}),
    (CSV, {"summe": 0.7}),
    (CHART, {"diagramm": 0.8}),
    (DESK, {"lagebericht": 0.95}),
)


def found() -> Found:
    """The agents of this module, as discovery finds them."""
    return Found(AGENTS)


def mission(text: str, me: AgentCard = ME) -> Mission:
    """A goal without files."""
    return Mission(text=text, inputs=(), me=me)


def plan_of(team: object) -> list[tuple[str, str, tuple[str, ...]]]:
    """A team's plan as tuples of task, assignee and used tasks."""
    assert isinstance(team, TeamLaunch), team
    return [(task.task_id, task.assignee, task.uses) for task in team.plan]


async def test_list_gets_an_agent_for_each_item_with_one_search() -> None:
    """The owner does what fits it best, and is not named as a member."""
    table = found()
    team = await BRAIN.form_team(mission("1. Summe\n2. Diagramm von #1\n3. Grüße an Ada"), table)
    assert plan_of(team) == [("t1", "csv", ()), ("t2", "chart", ("t1",)), ("t3", "me", ())]
    assert isinstance(team, TeamLaunch)
    assert (set(team.members), table.searches) == ({"csv", "chart"}, 1)


@pytest.mark.parametrize("goal", ["Summe, und dann ein Lagebericht", "Summe nur für Norden:\n- Diagramm\n- Grüße"])
async def test_other_goal_is_one_task_unchanged(goal: str) -> None:
    """Nothing reads its words."""
    team = await BRAIN.form_team(mission(goal), found())
    assert isinstance(team, TeamLaunch)
    assert [task.task_desc for task in team.plan] == [goal]


async def test_agent_below_the_threshold_gets_a_task_only_if_it_declines() -> None:
    """The stand-ins of a task are chosen by the same rule as its assignee."""
    team = await BRAIN.form_team(mission("Summe"), found())
    assert isinstance(team, TeamLaunch)
    assert [(task.assignee, task.others) for task in team.plan] == [("csv", ("chart",))]
    doubtful = await BRAIN.form_team(mission("paint the fence"), found())
    assert isinstance(doubtful, TeamLaunch)
    assert [task.assignee for task in doubtful.plan] == ["chart"]


async def test_replica_is_no_stand_in() -> None:
    """It would fail where its pool has failed."""
    cards = [card("a-1", pool="a"), card("a-2", pool="a"), card("b")]
    team = await BRAIN.form_team(mission("x"), Found([(one, {"x": 0.9 - number / 10}) for number, one in enumerate(cards)]))
    assert isinstance(team, TeamLaunch)
    assert [(task.assignee, task.others) for task in team.plan] == [("a-1", ("b",))]


async def test_goal_without_a_fitting_agent_names_the_task() -> None:
    """No task starts if an item has no agent."""
    team = await BRAIN.form_team(mission("1. Summe\n2. paint the fence"), Found(AGENTS[:2]))
    assert isinstance(team, NobodyFits)
    assert team.needs == ("paint the fence",)


async def test_wrong_reference_is_rejected_before_any_search() -> None:
    """The goal ends with the reason."""
    with pytest.raises(InvalidInputError, match="#3"):
        await BRAIN.form_team(mission("- a\n- b of #3"), found())


def task_view(text: str, me: AgentCard, depth: int = 0, uses: tuple[str, ...] = ()) -> TaskView:
    """A task as its assignee sees it."""
    limits = Limits(max_turns=9, max_depth=2, deadline=START.replace(year=2030))
    group = Group(charter_of([planned("t1", me.agent_id)], [me], team_up_depth=depth, limits=limits))
    spec = TaskSpec(task_id=TaskId("t1-t1"), assignee=me.agent_id, task_desc=text, uses=tuple(map(TaskId, uses)))
    return TaskView(spec, me, group.view(me.agent_id))


async def test_list_with_the_introduction_of_the_agents_example_opens_a_nested_group() -> None:
    """The agent itself gets none of the tasks."""
    team = await BRAIN.approach(task_view("Lagebericht:\n1. Summe\n2. Diagramm von #1", DESK), found())
    assert plan_of(team) == [("t1", "csv", ()), ("t2", "chart", ("t1",))]


@pytest.mark.parametrize(
    "view",
    [
        task_view("Lagebericht nur für Norden:\n- Summe\n- Diagramm", DESK),
        task_view("Lagebericht", DESK),
        task_view("Lagebericht:\n- Summe\n- Diagramm", DESK, depth=2),
        task_view("Lagebericht:\n- Summe\n- Diagramm", DESK, uses=("t1-t0",)),
        task_view("Lagebericht:\n- Summe\n- Diagramm", DESK.model_copy(update={"may_team_up": False})),
        task_view("Lagebericht:\n- Summe\n- b of #7", DESK),
    ],
    ids=["other-introduction", "no-list", "depth", "uses-results", "may-not", "wrong-reference"],
)
async def test_other_task_is_done_alone(view: TaskView) -> None:
    """The agent's function then declines what it does not understand."""
    assert await BRAIN.approach(view, found()) is None


async def test_task_is_done_alone_while_discovery_is_away() -> None:
    """A nested group is an option, never a requirement."""
    view = task_view("Lagebericht:\n- Summe\n- Diagramm", DESK)
    assert await BRAIN.approach(view, Found(AGENTS, is_away=True)) is None
