"""Assignments of several tasks, rejected results and nested teams."""

from __future__ import annotations

from ioa import TaskContext
from ioa.agent.model import ModelBrain
from ioa.group.events import GroupLaunched
from ioa.ports.brain_types import Mission, NobodyFits, TeamLaunch, TeamTools
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, TaskId, comm_id_of_task
from ioa.protocol.messages import SyncTaskAssignment
from ioa.protocol.setup.file_requests import folder_of
from ioa.testing.scripted_model import ScriptedModel
from tests.unit.agent.company import Company, idle, leading, task, working
from tests.unit.agent.model.situations import decision, speech


class Editor(ModelBrain):
    """A leader with a fixed team that speaks by a model."""

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Take the colleagues."""
        return TeamLaunch(members=tuple(AgentId(name) for name in ("researcher", "writer", "critic")))


def _given(name: str, assignee: str, *uses: str) -> dict[str, object]:
    return {"name": name, "assignee": assignee, "task_desc": f"{name} of the report", "uses": list(uses)}


async def test_a_rejected_draft_is_made_again_and_only_the_approved_one_is_handed_out(company: Company) -> None:
    """One message assigns research, draft and review; the revision receives the rejection, and its file replaces the draft's."""
    seen: list[tuple[str, bool, list[tuple[str, str]]]] = []

    def write(words: str, ctx: TaskContext) -> str:
        for result in ctx.results:
            files = [(file.name, file.path.read_text()) for file in result.artifacts]
            seen.append((result.task_id, bool(result.rejected), files))
        version = "second" if any(result.rejected for result in ctx.results) else "first"
        ctx.artifact("report.md", f"the {version} report")
        return f"The {version} report is written."

    model = ScriptedModel(
        [
            decision(
                type="ASSIGN",
                mode="wait",
                tasks=[
                    _given("review", "critic", "draft"),
                    _given("draft", "writer", "facts"),
                    _given("facts", "researcher"),
                ],
            ),
            speech(
                [("t1-draft", "The critic found a wrong figure.")],
                type="ASSIGN",
                mode="wait",
                tasks=[_given("draft", "writer", "t1-facts", "t1-draft", "t1-review")],
            ),
            decision(
                type="CONCLUDE", goal_reached=True, content="Approved:", answer_from=[{"result": "t2-draft", "heading": "Report"}]
            ),
        ]
    )
    researcher = working(lambda words, ctx: ctx.artifact("facts.csv", "1,2").name, "researcher")
    for agent in (researcher, working(write, "writer"), idle("critic")):
        await company.start(agent)
    await company.start(idle("lead"), Editor(model))
    result = await company.has_done()
    _, file = result.artifacts
    assert (result.reason, result.content) == (Reason.CONCLUDED, "Approved:\n\n## Report\n\nThe second report is written.")
    assert (await company.network.artifacts.get(file), file.object_name.split("/")[0]) == (
        b"the second report",
        folder_of(result.comm_id),
    )
    facts = ("t1-facts", False, [("facts.csv", "1,2")])
    assert seen == [facts, facts, ("t1-draft", True, []), ("t1-review", False, [])]
    kinds = [message.payload.type for message in await company.messages(result.comm_id) if message.header.sender == "lead"]
    assert kinds == ["SYNC_TASK_ASSIGNMENT", "SYNC_TASK_ASSIGNMENT", "CONCLUDE_GROUP_DISCUSSION"]


async def test_nested_team_receives_the_used_results_of_its_task(company: Company) -> None:
    """Its members receive the files of the results, and its brief names the parent task."""
    inputs: list[str] = []

    def gather(words: str, ctx: TaskContext) -> str:
        ctx.artifact("rows.csv", "1,2")
        return "two rows"

    def draw(words: str, ctx: TaskContext) -> str:
        inputs.extend(file.path.read_text() for file in ctx.inputs)
        return "drawn"

    nested = leading(SyncTaskAssignment(tasks=(task("s", "artist"),)))
    nested.approaches.append(TeamLaunch(members=(AgentId("artist"),)))
    await company.start(working(gather, "first"))
    await company.start(working(draw, "artist"))
    await company.start(idle("second"), nested)
    drawing = task("b", "second").model_copy(update={"uses": (TaskId("t1-a"),)})
    given = SyncTaskAssignment(tasks=(task("a", "first"), drawing))
    await company.start(idle("lead"), leading(given, members=("first", "second")))
    result = await company.has_done()
    [opening, *_] = await company.network.entries(comm_id_of_task(result.comm_id, TaskId("t1-b")))
    assert isinstance(opening.entry.event, GroupLaunched)
    brief = opening.entry.event.charter.brief
    told = ("task t1-b of group", "lead gave it to second", "Have it done.", "Result t1-a of first, done: two rows")
    assert (inputs, [words in brief for words in told]) == (["1,2"], [True] * 4)
