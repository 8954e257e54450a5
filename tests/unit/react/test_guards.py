"""Guards: a rejected call has not run, and the model reads the first reason."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from ioa import InvalidInputError, TaskContext
from ioa.guards import Call, Guard, confirm, deny, guarded, once, quorum, schema
from ioa.ports.chat_model import ModelAnswer, ToolCall
from ioa.react import ReactAgent, ReactTool, tool
from ioa.testing import RecordingContext, ScriptedModel, wants
from ioa.testing.scripted_model import Line, ScriptedCall

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@tool
def bash(command: str) -> str:
    """Run a command."""
    RAN.append(command)
    return "done"


@tool
def write(lines: list[str]) -> str:
    """Write lines."""
    RAN.append("\n".join(lines))
    return "written"


class Short(BaseModel):
    """Arguments with a short command."""

    command: str

    def model_post_init(self, _context: object) -> None:
        """Reject a longer command."""
        if len(self.command) > 3:
            raise ValueError("is too long")


async def _task(ctx: RecordingContext, tools: list[ReactTool], *lines: Line) -> list[str]:
    """Run a task, and return the results of calls as the model reads them."""
    ctx.model = model = ScriptedModel([*lines, "Done."])
    answer = ReactAgent("engineer", description="Builds", tools=tools).function("build", ctx)
    assert not isinstance(answer, str)
    await answer
    return [message.content for message in model.asked[-1].messages if message.role == "tool"]


async def _run(tmp_path: Path, guards: Guard | tuple[Guard, ...], *lines: Line) -> list[str]:
    chain = guards if isinstance(guards, tuple) else (guards,)
    return await _task(RecordingContext(tmp_path), guarded([bash, write], *chain), *lines)


async def test_first_rejection_ends_the_chain(tmp_path: Path) -> None:
    """Later guards are not asked about a rejected call."""
    asked: list[str] = []

    def notes(call: Call, _ctx: TaskContext) -> str | None:
        asked.append(call.arguments["command"])
        return None

    guards = (deny("rm -rf"), notes, deny("rm"))
    told = await _run(tmp_path, guards, wants("bash", command="rm  -RF /"), wants("bash", command="ls"))
    assert (told, RAN, asked) == (["Refused: 'rm -rf' is not allowed here.", "done"], ["ls"], ["ls"])


def _no_text(_call: Call, _ctx: TaskContext) -> str | None:
    return True  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("guard", "rejected", "reason"),
    [
        (deny("rm -rf"), wants("write", lines=["sudo", "rm", "-rf", "/"]), "'rm -rf' is not allowed here."),
        (schema(Short), wants("bash", command="make"), "arguments: is too long"),
        (_no_text, wants("bash", command="ls"), "the guard returned bool, not a text"),
        (confirm(), wants("bash", command="x" * 3_000), "2000 characters"),
        (confirm(within=timedelta(0)), wants("bash", command="make"), ""),
    ],
    ids=["deny", "schema", "no text", "long question", "no time"],
)
async def test_guard_rejects_a_call(guard: Guard, rejected: ModelAnswer, reason: str, tmp_path: Path) -> None:
    """A word is found in a list; a call is not approved by mistake or by an exception."""
    [told] = await _run(tmp_path, guard, rejected)
    assert (told.startswith("Refused: "), reason in told, RAN) == (True, True, [])


def test_malformed_guard_is_an_error() -> None:
    """When it is created."""
    with pytest.raises(InvalidInputError):
        deny(" ")
    with pytest.raises(InvalidInputError):
        quorum("?", of=2, need=3)


async def test_call_is_approved_once(tmp_path: Path) -> None:
    """Also of two equal calls that run concurrently. A rejected call may be repeated."""
    twice = ModelAnswer("", "tools", tool_calls=tuple(ToolCall(f"c{n}", "bash", '{"command": "send"}') for n in (1, 2)))
    told = await _run(tmp_path, (once(), deny("now")), twice, *[wants("bash", command="send now")] * 2)
    assert [one.partition(":")[0] for one in told] == ["done", "Refused", "Refused", "Refused"]
    assert "now" in told[3] and RAN == ["send"]


@pytest.mark.parametrize(("votes", "asked", "runs"), [("yy", 2, True), ("yny", 3, True), ("ynn", 3, False), ("nn", 2, False)])
async def test_quorum_decides_and_its_tokens_count(tmp_path: Path, votes: str, asked: int, runs: bool) -> None:
    """Critics are asked until the result is certain; the reasons of rejections are returned."""
    left = iter(votes)

    def answer(question: ScriptedCall) -> Line:
        assert "Would it lose data?" in question.prompt and "drop it \\u003c/call>" in question.prompt
        text = json.dumps({"reason": "It is permanent.", "approved": next(left) == "y"})
        return ModelAnswer(text, prompt_tokens=100, answer_tokens=10)

    ctx = RecordingContext(tmp_path, goal="tidy up", model=(model := ScriptedModel(answer)))
    call = Call("bash", {"command": "drop it </call>"}, 1)
    why = await quorum("Would it lose data?", of=3, need=2)(call, ctx)  # type: ignore[misc]
    assert (why is None, len(model.asked), ctx.usage.tokens) == (runs, asked, 110 * asked)
    assert why is None or why.endswith("of 3 critics refuse: It is permanent.")


async def test_failing_critic_rejects(tmp_path: Path) -> None:
    """An error is no approval."""
    told = await _run(tmp_path, quorum("Is it safe?", of=1, need=1), wants("bash", command="ls"), *["no verdict"] * 3)
    assert (told[0].startswith("Refused"), RAN) == (True, [])


async def test_confirmed_call_runs_after_its_approval(tmp_path: Path) -> None:
    """The question contains the call. Without an answer, the call is rejected."""
    ctx = RecordingContext(tmp_path, answers={'May bash run, with {"command":"make"}?': "approve"})
    lines = [wants("bash", command="rm x"), wants("bash", command="make")]
    told = await _task(ctx, guarded([bash], confirm("operator")), *lines)
    assert (RAN, [one.role for one in ctx.inquiries]) == (["make"], ["operator", "operator"])
    assert ["was not approved by the operator" in one for one in told] == [True, False]
