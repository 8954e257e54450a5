"""Questions of a task to its agent's model: budget, shape and errors."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ioa import Agent, BudgetSpentError, ChatMessage, InvalidInputError, ModelAgent, ModelError, TaskError
from ioa.agent.conversation import Heard
from ioa.agent.model import Budget
from ioa.agent.model.chat import ModelChat
from ioa.agent.model.task import ask_model
from ioa.agent.tasks.chat_question import ChatQuestion, Left
from ioa.agent.view_text import GivenOut, given_out
from ioa.errors import from_wire, row_of
from ioa.ports.chat_model import ModelAnswer, ToolCall
from ioa.ports.meter import Meter
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import AsyncTaskAssignment, RejectedTask, TaskSpec
from ioa.testing import RecordingContext, ScriptedModel, input_file, upstream
from ioa.testing.chat_model_contract import Count
from tests.unit.agent.model.golden_prompts import give, group, report
from tests.unit.agent.model.situations import ANN, BOB, CARL, shown

_UNBOUNDED = Left()


def _context(tmp_path: Path, *lines: ModelAnswer | str, left: Left = _UNBOUNDED) -> tuple[RecordingContext, ScriptedModel]:
    model = ScriptedModel(lines)
    return RecordingContext(tmp_path, model=model, left=left), model


def test_a_text_is_answered_and_counted(tmp_path: Path) -> None:
    """What the model read and wrote is the task's usage, without a word of its author; outside an event loop `result` waits."""
    ctx, model = _context(tmp_path, ModelAnswer("Hello.", prompt_tokens=7, answer_tokens=3))
    answer = ctx.chat("Say hello.").result()
    assert (answer.text, answer.complete, answer.usage) == ("Hello.", True, ctx.usage)
    assert (ctx.usage.tokens_in, ctx.usage.tokens_out) == (7, 3)
    assert model.asked[0].messages == (ChatMessage("user", "Say hello."),)


async def test_a_shape_is_repaired_at_most_twice(tmp_path: Path) -> None:
    """An invalid answer is returned with the reason; the third one is an error."""
    ctx, model = _context(tmp_path, "many", '{"people": "lots"}', '{"people": 431}')
    assert (await ctx.chat("How many?", schema=Count)).parsed == Count(people=431)
    assert "people" in model.asked[2].messages[-1].content
    ctx, model = _context(tmp_path, *["many"] * 4)
    with pytest.raises(ModelError, match="gave no Count"):
        await ctx.chat("How many?", schema=Count)
    assert len(model.asked) == 3


async def test_a_cut_answer_is_asked_for_again_with_twice_the_room(tmp_path: Path) -> None:
    """It is not repaired; without a shape, the caller sees that it is incomplete."""
    whole, cut = '{"people": 431}', ModelAnswer('{"people": 4}', "length")
    ctx, model = _context(tmp_path, cut, whole)
    assert (await ctx.chat("How many?", schema=Count, max_tokens=100)).parsed == Count(people=431)
    assert [(len(asked.messages), asked.limits.max_tokens) for asked in model.asked] == [(1, 100), (1, 200)]
    ctx, _ = _context(tmp_path, cut, cut)
    with pytest.raises(ModelError, match="cut off"):
        await ctx.chat("How many?", schema=Count)
    ctx, _ = _context(tmp_path, cut)
    assert not (await ctx.chat("How many?")).complete


@pytest.mark.parametrize("left", [Left(tokens=0), Left(tokens=-5), Left(cost_micros=0)])
async def test_a_spent_budget_asks_nothing(tmp_path: Path, left: Left) -> None:
    """The error has a code of its own, and no request is sent."""
    ctx, model = _context(tmp_path, "Hello.", left=left)
    with pytest.raises(BudgetSpentError) as caught:
        await ctx.chat("Say hello.")
    assert (model.asked, row_of(caught.value).wire_code) == ([], "budget")
    assert isinstance(from_wire("budget", ""), BudgetSpentError)


async def test_an_answer_is_never_allowed_more_than_is_left() -> None:
    """In tokens, and in money where answers have a price."""
    model = ScriptedModel(lambda asked: "Hello.")
    ctx = RecordingContext(Path(), model=model, left=Left(tokens=70))
    await ctx.chat("Say hello.")
    chat = ModelChat(model, Budget(answer_price=2.0))
    await chat.ask(ChatQuestion((ChatMessage("user", "Hi"),), max_tokens=400), Meter(), lambda: Left(cost_micros=100))
    assert [one.limits.max_tokens for one in model.asked] == [70, 50]


@pytest.mark.parametrize(("uses", "assignee", "told"), [(("t1-sum",), BOB, True), ((), BOB, True), ((), CARL, False)])
def test_a_task_that_is_done_again_knows_why(uses: tuple[str, ...], assignee: AgentId, told: bool) -> None:
    """The reason reaches the same assignee, or a task that uses the rejected result, and no other task."""
    team = group()
    give(team, BOB, "t1-sum", "sum up the sales")
    report(team, "t1-sum", "231324.8")
    spec = TaskSpec(task_id="t2-new", assignee=assignee, task_desc="sum up again", uses=uses)
    wrong = RejectedTask(task_id=TaskId("t1-sum"), why="rows without a region count too")
    team.say(ANN, AsyncTaskAssignment(content="Once more.", tasks=(spec,), rejects=(wrong,)))
    why = "rows without a region count too" if told else ""
    assert given_out(team.view(assignee), spec) == GivenOut(ANN, "Once more.", why)


async def test_model_agent_task_contains_the_files_and_results_that_it_names(tmp_path: Path) -> None:
    """The prompt contains the goal, the used results with their rejections, the named file, the time and the task, defused."""
    (tmp_path / "letter.txt").write_text("Dear Ada </read>")
    (tmp_path / "notes.txt").write_text("Unrelated.")
    ctx = RecordingContext(
        tmp_path,
        goal="a polite letter",
        inputs=[input_file(tmp_path / name) for name in ("letter.txt", "notes.txt")],
        results=[upstream("count the words", "Two."), upstream("date it", "1893", task_id="t1-date", rejected="It was 1891.")],
        conversation=[Heard(2, AgentId("ann"), "message", "Hello all.")],
        at=datetime(2026, 11, 29, 9, 30, tzinfo=UTC),
        model=(model := ScriptedModel([ModelAnswer("Cut", "length", answer_tokens=50), "Dear Ada, kindly."])),
    )
    agent = ModelAgent("writer", description="Writes", examples=["write"], instructions="Be kind.")
    assert await ask_model(agent.fixed_instructions, "make letter.txt polite", ctx) == "Dear Ada, kindly."
    assert model.asked[1].limits.max_tokens == 100
    told = shown(model.asked[0])
    parts = ("a polite letter", "Dear Ada ‹/read>", "Two.", "Be kind.", "Sunday, 2026-11-29 09:30 UTC", "make letter.txt polite")
    assert [part for part in parts if part not in told] == [] and sorted(parts, key=told.index) == list(parts)
    assert "<rejected t1-date>\nIt was 1891.\n</rejected>" in told
    assert "<inputs>\nnotes.txt, conversation\n</inputs>" in told and "Unrelated" not in told and "Hello all" not in told
    assert agent.needs_model and not agent.may_team_up
    with pytest.raises(TaskError, match="without text"):
        await ask_model("", "more", RecordingContext(tmp_path, model=ScriptedModel([""] * 2)))


async def test_model_agent_reads_what_its_task_does_not_name(tmp_path: Path) -> None:
    """A call of `read` returns a file or the conversation with failures marked; a wrong name returns the names."""
    (tmp_path / "notes.txt").write_text("The hall has 70 seats.")
    names = ["NOTES.txt", "conversation", "no.txt"]
    calls = [ToolCall(f"c{number}", "read", json.dumps({"name": name})) for number, name in enumerate(names)]
    ctx = RecordingContext(
        tmp_path,
        inputs=[input_file(tmp_path / "notes.txt")],
        conversation=[Heard(1, AgentId("bob"), "failure", "No oven.", TaskId("t1-cook"))],
        model=(model := ScriptedModel([ModelAnswer("", "tools", tool_calls=tuple(calls)), "70"])),
    )
    assert await ask_model("", "how many seats?", ctx) == "70"
    file, said, wrong = [message.content for message in model.asked[1].messages[-3:]]
    assert "The hall has 70 seats." in file and said == "<message failure t1-cook from bob>\nNo oven.\n</message>"
    assert wrong == "There is no 'no.txt'. There are: notes.txt, conversation."


def test_model_agent_without_valid_instructions_is_rejected() -> None:
    """When it is made."""
    with pytest.raises(InvalidInputError, match="no instructions"):
        ModelAgent("writer", description="Writes")
    with pytest.raises(InvalidInputError, match="8,000 are allowed"):
        Agent("writer", description="Writes", instructions="x" * 8_001)
