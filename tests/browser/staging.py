"""Agents on a stage: a briefing on a file, as the examples would make it, with a team inside of the team."""

from __future__ import annotations

import asyncio
from base64 import b64decode

from ioa.group.requests import AbandonGoal, LaunchGroup
from ioa.protocol.cards import AgentCard
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import AgentId, CommId, GoalId, MessageId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Pause,
    Payload,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.registry import Register
from ioa.protocol.setup.charter import ParentTask
from ioa.protocol.teams.team_file import read_toml
from ioa.protocol.usage import Usage
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import say
from tests.rig.deadline import eventually
from tests.rig.given_goals import GivenGoals

DESK, ANALYST, CHARTS, WRITER, READER = map(AgentId, ("analyst-desk", "csv-analyst", "chart-maker", "report-writer", "web-reader"))
GOAL = "Prepare a briefing on sales.csv with the average units per product, a chart of it and a report"
_CARDS = {
    DESK: ("Coordinates full briefings on data files", ("prepare a briefing on these figures",)),
    ANALYST: ("Answers questions on tables in CSV files with exact figures", ("what is the average price per product?",)),
    CHARTS: ("Draws charts as PNG images: bar, line, pie, histogram and scatter plots", ("draw a bar chart of these figures",)),
    WRITER: ("Writes reports in Markdown and HTML", ("write two paragraphs on this",)),
    READER: ("Reads web pages and says what is in them", ("what does this page say on colours?",)),
}
_TEAM = read_toml(f"""
team = "paper"
leader = "editor"
[roles]
editor = "{DESK}"
writer = "{WRITER}"
critic = "{ANALYST}"
[[nodes]]
name = "outline"
roles = ["editor"]
then = "draft"
[[nodes]]
name = "draft"
roles = ["writer"]
visits = 3
then = "review"
[[nodes]]
name = "review"
roles = ["critic"]
max = 1
exits = [{{ to = "release", by = "speaker" }}, {{ to = "draft", by = "speaker" }}, {{ to = "release" }}]
[[nodes]]
name = "release"
roles = ["editor"]
""")
OFFER = "Make an offer to our oldest customer"
DECIDED = read_toml(f"""
team = "offer"
leader = "boss"
[roles]
editor = "{DESK}"
writer = "{WRITER}"
boss = {{ human = "anna", prompt = "You decide what customers are offered." }}
[[nodes]]
name = "offer"
roles = ["editor"]
then = "answer"
[[nodes]]
name = "answer"
roles = ["boss"]
prompt = "Say whether we offer it, and how many at most."
visits = 3
form = {{ agrees = "yes/no", amount = "1..9?" }}
max = 1
exits = [{{ to = "write", by = "speaker" }}, {{ to = "offer" }}]
[[nodes]]
name = "write"
roles = ["writer"]
review = {{ by = "boss" }}
max = 1
""")
AVERAGES = "product,average\nNotebook,7.57\nPhone,7.01\nLamp,6.85\n"


class Stage:
    """Five agents that say what a test has them say."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._said = 0
        self.given = GivenGoals()

    async def enter(self) -> None:
        """Register all of them."""
        for agent_id, (description, examples) in _CARDS.items():
            await self.register(agent_id, description, examples)
        await eventually(lambda: self._plane.client.agents(online_only=True), lambda found: len(found) == len(_CARDS))

    async def register(self, agent_id: AgentId, description: str, examples: tuple[str, ...] = ()) -> None:
        """Register an agent."""
        card = {"agent_id": agent_id, "name": agent_id, "description": description, "examples": examples, "pool": agent_id}
        await self._plane.network.register(Register(card=AgentCard.model_validate(card)))

    async def launched(self, text: str = GOAL) -> GoalId:
        """Launch a goal that the desk leads."""
        file = await self._plane.client.upload("sales.csv", b"product,units\nPen,3\n", media_type="text/csv")
        order = GoalOrder.model_validate({"goal": text, "agent": DESK, "inputs": [file.model_dump()], "max_tokens": 60_000})
        return await self._plane.client.submit(order)

    async def goals(self) -> list[GoalId]:
        """All goals, newest first."""
        return [one.record.goal.goal_id for one in (await self._plane.client.goals()).goals]

    async def opened(self, goal_id: GoalId, *members: AgentId, owner: AgentId = DESK, parent: ParentTask | None = None) -> CommId:
        """Open a group for a goal, or a nested one."""
        ticket = None if parent else await eventually(lambda: self._ticket(goal_id))
        request = LaunchGroup(
            owner=owner, members=members, goal_id=goal_id, parent=parent, goal="Choose colours." if parent else "", ticket=ticket
        )
        return (await self._plane.network.launch(request)).state.comm_id

    async def abandoned(self, goal_id: GoalId, why: str) -> None:
        """Report as the desk that no agent fits a goal."""
        ticket = await eventually(lambda: self._ticket(goal_id))
        await self._plane.network.abandon(AbandonGoal(goal_id=goal_id, by=DESK, reason=Reason.NO_AGENT, content=why, ticket=ticket))

    def _ticket(self, goal_id: GoalId) -> str | None:
        return self.given.ticket_of(goal_id) if any(name.goal_id == goal_id for name in self.given.names) else None

    async def say(self, room: CommId, sender: AgentId, payload: Payload, tokens: int = 900) -> int:
        """Say something that must be accepted, and return its sequence."""
        self._said += 1
        usage = Usage(tokens_in=tokens, tokens_out=tokens // 3, cost_micros=tokens * 9)
        return await say(self._plane, MessageId(f"m-{self._said}"), sender, payload, room, usage)

    async def file(self, name: str, data: bytes, media_type: str) -> Artifact:
        """Store what an agent has made."""
        return await self._plane.client.upload(name, data, media_type=media_type)

    async def talk(self, goal_id: GoalId) -> CommId:
        """Play the first half of a briefing: figures, two tasks side by side, a nested team, and a pause."""
        room = await self.opened(goal_id, ANALYST, CHARTS, WRITER)
        first, chart, text = map(TaskId, ("t3-1", "t4-1", "t4-2"))
        await self.say(
            room,
            DESK,
            Discussion(
                content="We need the figures first, then a chart of them, then the report. csv-analyst: are there rows without"
                " units that would distort an average?",
                next_speaker=ANALYST,
            ),
        )
        safe = "500 rows, all of them with units. Averages per product are safe; there are 8 products."
        await self.say(room, ANALYST, Discussion(content=safe, next_speaker=DESK))
        figures = TaskSpec(task_id=first, assignee=ANALYST, task_desc="the average units per product in sales.csv")
        await self.say(room, DESK, SyncTaskAssignment(tasks=(figures,)))
        await self.say(room, ANALYST, InformTaskProgress(task_id=first, number=1, content="reading, 500 rows", fraction=0.3))
        table = await self.file("average-of-units-by-product.csv", AVERAGES.encode(), "text/csv")
        told = "Average of units over all 500 rows: 6.714. Highest: Notebook 7.57, lowest: Pen 5.95."
        await self.say(room, ANALYST, InformTaskResult(task_id=first, task_conclusion=told, artifacts=(table,)))
        tasks = (
            TaskSpec(task_id=chart, assignee=CHARTS, task_desc="a bar chart of the average units per product", uses=(first,)),
            TaskSpec(task_id=text, assignee=WRITER, task_desc="two paragraphs on the averages", uses=(first,)),
        )
        await self.say(room, DESK, AsyncTaskAssignment(content="Both go on while we talk about the outline.", tasks=tasks))
        await self.say(room, CHARTS, InformTaskProgress(task_id=chart, number=1))
        await self.say(room, WRITER, InformTaskProgress(task_id=text, number=1))
        inner = await self.opened(goal_id, READER, owner=CHARTS, parent=ParentTask(comm_id=room, task_id=chart))
        asked = TaskSpec(task_id=TaskId("t1-1"), assignee=READER, task_desc="which colours are safe for colour-blind readers")
        await self.say(inner, CHARTS, SyncTaskAssignment(tasks=(asked,)))
        hue = "One blue hue, 4.5 : 1 against white, labels on the bars."
        await self.say(inner, READER, InformTaskProgress(task_id=asked.task_id, number=1))
        await self.say(inner, READER, InformTaskResult(task_id=asked.task_id, task_conclusion=hue))
        asks = "Is there anything in the data that the text should warn of?"
        await self.say(room, DESK, Discussion(content=asks, next_speaker=ANALYST))
        await self.say(room, ANALYST, Pause(content="Nothing to say before the chart is there.", triggers=(chart, text)))
        self.inner = inner
        return room

    async def reviewed(self) -> CommId:
        """Play a goal under a policy up to the second review of a draft."""
        goal_id = await self._plane.client.submit(GoalOrder(goal="Write a page on how units sell", team=_TEAM))
        ticket = await eventually(lambda: self._ticket(goal_id))
        request = LaunchGroup(owner=DESK, members=(), goal_id=goal_id, ticket=ticket, policy=_TEAM.policy.digest)
        room = (await self._plane.network.launch(request)).state.comm_id
        await self.say(room, DESK, Discussion(content="Three parts: figures, what stands out, what to do."))
        await self.say(room, WRITER, Discussion(content="Notebooks sell best, at 7.57 units."))
        await self.say(room, ANALYST, Discussion(content="It says nothing of the spread.", go="draft"))
        await self.say(room, WRITER, Discussion(content="Notebooks sell best, at 7.57 units; the spread is small."))
        return room

    async def decided(self, goal_id: GoalId | None = None) -> tuple[GoalId, CommId]:
        """Play a goal in which a person decides, up to its first turn, or begin one now."""
        goal_id = goal_id or await self._plane.client.submit(GoalOrder(goal=OFFER, team=DECIDED))
        ticket = await eventually(lambda: self._ticket(goal_id))
        request = LaunchGroup(owner=DESK, members=(), goal_id=goal_id, ticket=ticket, policy=DECIDED.policy.digest)
        room = (await self._plane.network.launch(request)).state.comm_id
        await self.say(room, DESK, Discussion(content="Notebooks sell best. Shall we offer three of them at half the price?"))
        return goal_id, room

    async def finish(self, room: CommId) -> None:
        """Play the second half, to the conclusion."""
        await self.say(self.inner, CHARTS, ConcludeGroupDiscussion())
        chart = await self.file("mean-of-units.png", _PNG, "image/png")
        await self.say(self.inner, CHARTS, Conclusion(content="The chart is drawn in one blue hue.", artifacts=(chart,)))
        report = await self.file("report.md", b"# Units\n\nNotebooks lead.\n", "text/markdown")
        done = InformTaskResult(task_id=TaskId("t4-2"), task_conclusion="Two paragraphs.", artifacts=(report,))
        await self.say(room, WRITER, done)
        state = await eventually(lambda: self._plane.client.group(room), lambda found: found.state.floor_holder is not None)
        holder = state.state.floor_holder
        assert holder is not None
        await self.say(room, holder, ConcludeGroupDiscussion(content="All of it is there."))
        answer = Conclusion(content="Notebooks sell best on average, 7.57 units; pens least, 5.95.", artifacts=(chart, report))
        await self.say(room, holder, answer)
        await asyncio.sleep(0)


_PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
"""A picture of one pixel."""
