"""Who gets which need, what happens when nobody fits, and when a task becomes a nested team."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from ioa.agent.rules import RuleBrain
from ioa.agent.rules.matching import Matcher
from ioa.errors import UnavailableError
from ioa.group.events import GroupLaunched
from ioa.group.machine import legal_kinds, step
from ioa.group.state import Limits, ParentTask
from ioa.ports.brain import Alone, GroupView, Mission, NobodyFits, TaskRecord, TaskView, TeamLaunch
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.messages import TaskOutcome, TaskSpec
from ioa.protocol.search import Hit, Need, NeedHits, SearchResult
from tests.unit.agent.rules.found_agents import TabledTools, tools_of
from tests.unit.agent.rules.group_play import START, card, charter_of, planned

ME = card("me", "greets people")
CSV = card("csv-analyst", "computes statistics of CSV files")
CHART = card("chart-maker", "draws charts")
TEXT = card("text-analyst", "summarises texts")
REPORT = card("report-writer", "writes reports")
DESK = card("analyst-desk", "Prepares a full briefing on a data file: key figures, a chart and a report", tags=("coordinator",))
CARDS = (ME, CSV, CHART, TEXT, REPORT, DESK)
SKILLS = {
    "me": {"greet": 0.9},
    "csv-analyst": {"total": 0.7, "revenue": 0.6, "statistics": 0.6},
    "chart-maker": {"chart": 0.8},
    "text-analyst": {"summarise": 0.7, "words": 0.6},
    "report-writer": {"report": 0.9},
    "analyst-desk": {"briefing": 0.95},
}
BRAIN = RuleBrain()
BRIEFING = "prepare a briefing on sales.csv with total revenue per region, a chart of it and a report"


def tools() -> TabledTools:
    """The agents of this module, as discovery finds them."""
    return tools_of(CARDS, SKILLS)


def mission(text: str, me: AgentCard = ME) -> Mission:
    """A goal without files."""
    return Mission(text=text, inputs=(), me=me, depth=0)


def plan_of(team: object) -> list[tuple[str, str, tuple[str, ...]]]:
    """A team's plan as tuples."""
    assert isinstance(team, TeamLaunch), team
    return [(task.task_id, task.assignee, task.uses) for task in team.plan]


async def test_each_need_gets_its_agent_by_one_search() -> None:
    """A goal with three needs is planned over three agents, with one call of discovery."""
    table = tools()
    team = await BRAIN.form_team(
        mission("Compute total revenue per region in sales.csv, chart it and write a report of both"), table
    )
    assert plan_of(team) == [("t1", "csv-analyst", ()), ("t2", "chart-maker", ("t1",)), ("t3", "report-writer", ("t1", "t2"))]
    assert len(table.searches) == 1


def attached(*names: str) -> tuple[Artifact, ...]:
    """Files that come with a goal."""
    return tuple(Artifact(name=name, object_name=f"g/in/{name}", size_bytes=1, sha256="0" * 64) for name in names)


async def test_the_owner_is_no_member_by_name() -> None:
    """What the owner does best it does itself, and the members are the others."""
    team = await BRAIN.form_team(mission("- Greet Ada\n- Summarise notes.txt"), tools())
    assert isinstance(team, TeamLaunch)
    assert team.members == ("text-analyst",)
    assert plan_of(team) == [("t1", "me", ()), ("t2", "text-analyst", ())]


async def test_every_need_that_found_nobody_is_named() -> None:
    """The failure names all unmet needs in the user's words, and none that is met."""
    goal = "- Summarise notes.txt\n- Book a flight to Paris\n- Paint the fence"
    answer = await BRAIN.form_team(mission(goal), tools())
    assert isinstance(answer, NobodyFits)
    assert len(answer.needs) >= 1
    assert "flight to Paris" in " ".join(answer.needs)
    assert "Summarise notes.txt" not in answer.needs


async def test_a_single_need_without_an_agent_is_named() -> None:
    """A goal of one need that nobody serves fails with that need, and says who came nearest, how near, and what that one does."""
    answer = await BRAIN.form_team(mission("Paint the fence, please."), tools())
    assert answer == NobodyFits(
        ("Paint the fence.",),
        "Nearest to “Paint the fence.” is me (0.05 where 0.35 is needed), which does such as “greets people”.",
    )


async def test_a_listing_goal_goes_to_who_serves_the_whole() -> None:
    """A briefing with parts is one need as long as somebody prepares briefings."""
    assert plan_of(await BRAIN.form_team(mission(BRIEFING), tools())) == [("t1", "analyst-desk", ())]


async def test_a_coordinator_that_leads_hands_out_the_parts() -> None:
    """The desk, addressed with a briefing, plans its parts for others instead of a task for itself."""
    team = await BRAIN.form_team(mission(BRIEFING, DESK), tools())
    assert [assignee for _, assignee, _ in plan_of(team)] == ["csv-analyst", "chart-maker", "report-writer"]


def hits(*found: tuple[AgentCard, float]) -> NeedHits:
    """What discovery found for a need, in its order."""
    return NeedHits(need=Need(text="x"), hits=tuple(Hit(card=one, score=1, similarity=similarity) for one, similarity in found))


def test_a_replica_does_not_stand_by_for_its_pool() -> None:
    """It would fail where the other one has failed."""
    replica = TEXT.model_copy(update={"agent_id": AgentId("text-analyst-7")})
    fitting = Matcher(0.3, ME.agent_id).fitting(hits((TEXT, 0.6), (replica, 0.6), (CSV, 0.5)))
    assert [hit.card.agent_id for hit in fitting] == ["text-analyst", "csv-analyst"]


async def test_who_else_fits_stands_by() -> None:
    """It is a member, so that it can be given the task if the best one fails it."""
    found = tools_of(CARDS, {**SKILLS, "report-writer": {"report": 0.9, "total": 0.5}, "text-analyst": {"total": 0.4}})
    team = await BRAIN.form_team(mission("Compute the total of sales.csv"), found)
    assert isinstance(team, TeamLaunch)
    assert team.members == ("csv-analyst", "report-writer", "text-analyst")
    assert [task.others for task in team.plan] == [("report-writer", "text-analyst")]


async def test_who_leads_teams_is_no_last_resort() -> None:
    """Whoever brings others together would only say that no parts are listed; who works by itself is named as the nearest."""
    desk = card("desk").model_copy(update={"declines": True, "tags": ("coordination",)})
    found = tools_of((ME, desk, CSV), {"desk": {"22": 0.3}, "csv-analyst": {"22": 0.2}})
    nobody = await BRAIN.form_team(mission("22/7"), found)
    assert isinstance(nobody, NobodyFits)
    assert "is csv-analyst (0.20 where 0.35 is needed)" in nobody.nearest


def task_view(
    text: str, me: AgentCard, *, depth: int = 0, max_depth: int = 3, used: str = "", owner: str = "owner", goal: str = ""
) -> TaskView:
    """A task as its assignee sees it."""
    parent = ParentTask(comm_id=CommId("g0"), task_id=TaskId("t1")) if depth else None
    charter = charter_of(
        [planned("t1", me.agent_id, text)],
        members=(me, card(owner)),
        goal=goal or text,
        team_up_depth=depth,
        owner=AgentId(owner),
        parent=parent,
    ).model_copy(update={"limits": Limits(max_turns=9, max_depth=max_depth, deadline=START + timedelta(hours=1))})
    state = step(None, GroupLaunched(at=START, charter=charter)).state
    earlier = TaskSpec(task_id=TaskId("t0"), assignee=CSV.agent_id, task_desc=used or "-")
    records = (TaskRecord(earlier, TaskOutcome.DONE, "42", ()),) if used else ()
    view = GroupView(me.agent_id, charter, state, (), records, legal_kinds(state, me.agent_id, START), state.reachable(START))
    uses = (TaskId("t0"),) if used else ()
    return TaskView(TaskSpec(task_id=TaskId("t1"), assignee=me.agent_id, task_desc=text, uses=uses), me, view)


async def test_a_briefing_becomes_a_nested_team() -> None:
    """The desk hands out the parts that its task lists, and takes none itself."""
    team = await BRAIN.approach(task_view(BRIEFING, DESK), tools())
    assert plan_of(team) == [("t1", "csv-analyst", ()), ("t2", "chart-maker", ("t1",)), ("t3", "report-writer", ("t1", "t2"))]
    assert isinstance(team, TeamLaunch)
    assert team.plan[0].task_desc == "total revenue per region in sales.csv"


async def test_a_plain_task_is_done_alone_without_a_search() -> None:
    """A task with one need asks nobody."""
    table = tools()
    answer = await BRAIN.approach(task_view("compute total revenue in sales.csv", CSV), table)
    assert Alone("compute total revenue in sales.csv") == answer
    assert table.searches == []


async def test_who_does_not_coordinate_does_its_task_alone() -> None:
    """An agent that may open teams, but whose skill it is not to, keeps a task of two needs."""
    text = "compute total revenue in sales.csv, then chart it"
    assert Alone(text) == await BRAIN.approach(task_view(text, CSV), tools())


@pytest.mark.parametrize(
    "view",
    [
        task_view(BRIEFING, DESK.model_copy(update={"may_team_up": False})),
        task_view(BRIEFING, DESK, depth=3),
        task_view(BRIEFING, DESK, depth=1, owner="analyst-desk", goal="all about sales"),
        task_view(BRIEFING, DESK, depth=1),
    ],
    ids=["may not", "too deep", "its own nested team", "the nested team's whole goal"],
)
async def test_no_team_where_it_would_go_in_circles(view: TaskView) -> None:
    """Without leave, at the depth limit, in one's own nested team or with the whole of its goal, a task is done alone."""
    assert Alone(BRIEFING) == await BRAIN.approach(view, tools())


async def test_a_task_that_builds_on_results_is_done_alone() -> None:
    """The results stay with the assignee."""
    view = task_view("chart it and write a report of it", CHART, used="compute the total sales per region in sales.csv")
    assert Alone("chart it and write a report of it") == await BRAIN.approach(view, tools())


async def test_without_discovery_a_task_is_done_alone() -> None:
    """A task that is already here is not lost because discovery does not answer."""

    class UnreachableTools(TabledTools):
        async def search_client(self, needs: Sequence[Need]) -> SearchResult:
            raise UnavailableError("discovery does not answer.")

    assert Alone(BRIEFING) == await BRAIN.approach(task_view(BRIEFING, DESK), UnreachableTools({}, {}))
