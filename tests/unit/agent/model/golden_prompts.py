"""What a model sees in some situations, written down so that a reviewer sees it too.

`python -m tests.unit.agent.model.golden_prompts` records the files.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from ioa.adapters.openai.chat_request import strict_schema
from ioa.agent.model import Budget, ModelBrain
from ioa.agent.model.answers import Formation, Speech
from ioa.agent.model.prompt_templates import fill
from ioa.group.events import MemberLost, TimerFired
from ioa.group.state import Loan
from ioa.ports.brain_types import Contact, Mission
from ioa.protocol.agents.outcomes import Record
from ioa.protocol.agents.search import Hit, Need, NeedHits, SearchResult
from ioa.protocol.cards import AgentCard, Load, Skill
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, CommId, GoalId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    RejectedTask,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.setup.charter import Charter, Limits, ParentTask
from ioa.protocol.usage import Usage
from ioa.testing.scripted_model import ScriptedModel
from tests.unit.agent.model.machine_group import START, Group
from tests.unit.agent.model.situations import ANN, BOB, CARL, decision, shown

FOLDER = Path(__file__).parent / "golden"

DESK = AgentCard(
    agent_id=ANN,
    name="Desk",
    description="Leads work on figures: brings together who is needed and checks what they report.",
    pool="desk",
    may_team_up=True,
)
ANALYST = AgentCard(
    agent_id=BOB,
    name="Analyst",
    description="Answers questions about a CSV table: totals, means, medians, counts and comparisons by group.",
    skills=(Skill(name="statistics"), Skill(name="filtering rows")),
    examples=(
        "total sales per region in sales.csv",
        "mean temperature by month",
        "how many rows have an empty price",
        "total sales per month in sales.csv",
        "median age of the customers in people.csv",
    ),
    pool="analyst",
)
ARTIST = AgentCard(
    agent_id=CARL,
    name="Artist",
    description="Draws bar and line charts of numbers as PNG files.",
    examples=("bar chart of: North 12, South 7", "line chart of the rows month,sales"),
    pool="artist",
)
GOAL = "What are the total sales per region in sales.csv? Draw them as a bar chart and say which region leads."
SALES = Artifact(name="sales.csv", object_name="g1/sales.csv", size_bytes=18_204, sha256="a" * 64, media_type="text/csv")
CHART = Artifact(name="chart.png", object_name="c1/t3-chart/chart.png", size_bytes=20_113, sha256="b" * 64, media_type="image/png")
TOTALS = "region,total\nNorth,231324.8\nSouth,180220.0\nWest,99871.5\n(418 rows; 2 rows without a region were left out)"


def group(**limits: object) -> Group:
    """Open the group of the examples."""
    told = {"max_turns": 40, "max_depth": 1, "deadline": START + timedelta(hours=1), **limits}
    return Group(
        Charter(
            comm_id=CommId("c1"),
            goal_id=GoalId("g1"),
            goal=GOAL,
            owner=ANN,
            team_members=(DESK, ANALYST, ARTIST),
            team_up_depth=0,
            limits=Limits.model_validate(told),
            inputs=(SALES,),
        )
    )


def give(team: Group, assignee: AgentId, task_id: str, text: str, *uses: str, content: str = "") -> None:
    """Let ann give out a task and wait for it."""
    spec = TaskSpec(task_id=TaskId(task_id), assignee=assignee, task_desc=text, uses=tuple(map(TaskId, uses)))
    task = {"name": task_id.partition("-")[2], "assignee": assignee, "task_desc": text}
    said = {"content": content} if content else {}
    team.history.thoughts[team.state.turn] = json.dumps({"decision": {"type": "ASSIGN", "mode": "wait", **said, "tasks": [task]}})
    team.say(ANN, SyncTaskAssignment(content=content, tasks=(spec,)))


def report(team: Group, task_id: str, text: str, *files: Artifact, outcome: TaskOutcome = TaskOutcome.DONE) -> None:
    """Let its assignee end a task."""
    task = next(task for task in team.state.open_tasks if task.task_id == task_id)
    result = InformTaskResult.model_validate({"task_id": task_id, "outcome": outcome, "task_conclusion": text, "artifacts": files})
    team.say(task.assignee, result, task.turn)


def worked(**limits: object) -> Group:
    """The group after the totals are there."""
    team = group(**limits)
    give(team, BOB, "t1-totals", "total sales per region in sales.csv", content="The chart needs the totals first.")
    report(team, "t1-totals", TOTALS)
    return team


async def asked(agent: AgentId, team: Group, *answers: str, refusals: tuple[str, ...] = (), budget: Budget | None = None) -> str:
    """What the speaker is asked last, after these answers."""
    model = ScriptedModel([*answers, decision(type="CONCLUDE", goal_reached=True, content="?")])
    brain, view = ModelBrain(model, budget=budget), replace(team.view(agent), refusals=refusals)
    await (brain.conclude(view) if team.state.phase == "concluding" else brain.speak(view))
    return shown(model.asked[len(answers)])


async def first_turn() -> str:
    """The leader's first turn: nothing was said yet."""
    return await asked(ANN, group())


async def asked_by_another() -> str:
    """A member that does not lead is asked for the second time, and an attempt of this turn was refused."""
    team = group()
    team.say(ANN, Discussion(content="Do your totals leave out rows without a region?", next_speaker=BOB))
    team.say(BOB, Discussion(content="I vote for North.", next_speaker=CARL))
    team.say(CARL, Discussion(content="Agreed?", next_speaker=BOB))
    return await asked(BOB, team, refusals=("dan cannot be the next speaker: name another member that is not out of reach.",))


async def results_and_thoughts() -> str:
    """Results are in log order, with files; own decisions are shown as the model's answers."""
    team = group()
    thought = "The chart needs totals, so bob first. Watch for rows without a region."
    tasks = [{"name": "totals", "assignee": "bob", "task_desc": "total sales per region in sales.csv", "uses": []}]
    said = {"type": "ASSIGN", "mode": "wait", "content": "Totals first.", "tasks": tasks}
    view = team.view(ANN)
    team.say(ANN, await ModelBrain(ScriptedModel([json.dumps({"known": thought, "decision": said})])).speak(view))
    team.history.thoughts[1] = view.meter.thought
    report(team, "t1-totals", TOTALS)
    give(team, CARL, "t2-chart", "bar chart of: North 231324.8, South 180220.0, West 99871.5")
    report(team, "t2-chart", "Drew 3 bars into chart.png.", CHART)
    return await asked(ANN, team)


async def tasks_of_all_kinds() -> str:
    """A task failed with a reason, one by its lease; a result was rejected and is made again, and a chart waits for it."""
    team = worked()
    give(team, BOB, "t2-county", "totals by county in sales.csv")
    report(team, "t2-county", "There is no column county; there are region, month and sales.", outcome=TaskOutcome.FAILED)
    give(team, CARL, "t3-chart", "bar chart of: North 12, South 7")
    while team.state.open_tasks:
        team.at = team.state.open_tasks[0].lease_until
        team.happen(TimerFired(at=team.at))
    words = "total sales per region in sales.csv, rows without a region as 'none'"
    again = TaskSpec(task_id=TaskId("t4-totals"), assignee=BOB, task_desc=words)
    uses = (TaskId("t4-totals"), TaskId("t1-totals"))
    chart = TaskSpec(task_id=TaskId("t4-chart"), assignee=CARL, task_desc="bar chart of the totals", uses=uses)
    wrong = RejectedTask(task_id=TaskId("t1-totals"), why="It leaves out two rows.")
    team.say(ANN, AsyncTaskAssignment(content="All rows count.", tasks=(again, chart), rejects=(wrong,)))
    team.say(BOB, InformTaskProgress(task_id=TaskId("t4-totals"), number=1), 4)
    return await asked(ANN, team)


async def little_left() -> str:
    """A member is away, one out of reach; turns, tokens and cost are limited; a nested team works on a loan; little is left."""
    team = worked(max_turns=5, max_tokens=20_000, max_cost_micros=2_000_000)
    team.happen(MemberLost(at=team.at, agent_id=CARL))
    team.at += timedelta(seconds=70)
    team.happen(MemberLost(at=team.at, agent_id=BOB))
    loan = Loan(subgroup=CommId("n1"), turns=2, tokens=4_000, cost_micros=400_000, deadline=START + timedelta(minutes=20))
    spent = Usage(tokens_in=9_000, tokens_out=1_500, cost_micros=700_000)
    team.history.state = team.state.model_copy(update={"loans": (loan,), "spent": spent})
    return await asked(ANN, team)


async def conclusion_announced_by_a_lost_process() -> str:
    """The discussion has ended, and the conclusion is asked for alone."""
    team = worked()
    team.say(ANN, ConcludeGroupDiscussion())
    return await asked(ANN, team)


async def conclusion_forced() -> str:
    """The turns are used up while a task was open: it was cancelled."""
    team = group(max_turns=1)
    team.say(ANN, AsyncTaskAssignment(tasks=(TaskSpec(task_id=TaskId("t1-a"), assignee=BOB, task_desc="totals"),)))
    team.say(BOB, InformTaskProgress(task_id=TaskId("t1-a"), number=1), 1)
    return await asked(ANN, team)


async def nested_team() -> str:
    """A group that serves a task of another one."""
    team = worked()
    parent = ParentTask(comm_id=CommId("c0"), task_id=TaskId("t4-figures"))
    brief = "The goal is task t4-figures of group c0; zoe gave it to ann.\n\nWhy the task was given:\nThe board meets on Monday."
    team.change_charter(parent=parent, brief=brief)
    return await asked(ANN, team)


async def log_that_is_cut() -> str:
    """Long results in a small room: the mark states how to read what is missing; the last lines stay."""
    team = group()
    for turn in range(1, 11):
        give(team, BOB, f"t{turn}-part", f"part {turn} of sales.csv")
        report(team, f"t{turn}-part", f"Part {turn} begins. " + f"Row of part {turn}. " * 60 + f"Part {turn} ends.")
    return await asked(ANN, team, budget=Budget(max_prompt=4_000))


async def a_read() -> str:
    """What the model reads, as the conversation goes on."""
    reads = [decision(type="READ", what="t1-totals", start=13), decision(type="READ", what="t9")]
    return await asked(ANN, worked(), *reads, decision(type="PAUSE", triggers=["t1-totals"]))


class Search:
    """Team tools with hits that were written down. False in that every need finds the same."""

    def __init__(self, hits: list[Hit]) -> None:
        self._hits = tuple(hits)

    async def search_client(self, needs: object) -> SearchResult:
        """Find what was written down."""
        assert isinstance(needs, list)
        by_need = tuple(NeedHits(need=need, hits=self._hits) for need in needs if isinstance(need, Need))
        return SearchResult(by_need=by_need)

    async def contacts(self) -> tuple[Contact, ...]:
        """One agent was met before."""
        return (Contact(ANALYST, tasks_done=6, tasks_failed=1),)


FOUND = Hit(
    card=ANALYST,
    score=0.9,
    similarity=0.76,
    matched_example="total sales per month in sales.csv",
    record=Record(done=7, failed=1),
    load=Load(tasks=1, slots=4),
)


async def _formation(found: list[Hit], *answers: str) -> str:
    model = ScriptedModel(answers)
    await ModelBrain(model).form_team(Mission(GOAL, (SALES,), DESK), Search(found))
    return shown(model.asked[-1])


async def team_second_step() -> str:
    """What the goal's own words have found, and a search by need."""
    search = decision(type="search_client", needs=["draw a bar chart of totals"])
    found = [FOUND, Hit(card=ARTIST, score=0.6, similarity=0.41)]
    return await _formation(found, search, decision(type="launch_group_chat", members=["bob", "carl"]))


async def team_nobody() -> str:
    """Nobody was found."""
    return await _formation([], decision(type="report_nobody_fits", needs=["x"], why="y"))


SITUATIONS: tuple[Callable[[], Awaitable[str]], ...] = (
    team_second_step,
    team_nobody,
    first_turn,
    asked_by_another,
    results_and_thoughts,
    tasks_of_all_kinds,
    little_left,
    conclusion_announced_by_a_lost_process,
    conclusion_forced,
    nested_team,
    log_that_is_cut,
    a_read,
)


def written() -> dict[str, str]:
    """All files: the rules of a group and of its formation, the two schemas, and the question of each situation."""
    shapes = (Formation, Speech)
    schemas = {f"schema-{shape.__name__.lower()}.json": json.dumps(strict_schema(shape), indent=1) for shape in shapes}
    asked_in = {f"{one.__name__.replace('_', '-')}.md": asyncio.run(_one(one)) for one in SITUATIONS}
    rules = {f"{name.replace('_', '-')}.md": fill(name, talk=fill("talk")) for name in ("system", "system_forming")}
    return {**rules, **schemas, **asked_in}


async def _one(situation: Callable[[], Awaitable[str]]) -> str:
    return f"<!-- {(situation.__doc__ or '').strip()} -->\n{await situation()}"


def main() -> None:
    """Write the files."""
    for name, text in written().items():
        (FOLDER / name).write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
