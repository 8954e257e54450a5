"""Guards: what is refused has not run, the first reason wins and is told, and nothing is approved by mistake."""

from __future__ import annotations

import asyncio
import inspect
import json
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from ioa import InvalidInputError, TaskContext, TaskError
from ioa.guards import Call, Guard, confirm, deny, guarded, once, quorum, schema
from ioa.ports.chat_model import ModelAnswer, ToolCall
from ioa.react import ReactAgent, ReactTool, tool
from ioa.testing import RecordingContext, ScriptedModel, wants
from ioa.testing.scripted_model import Line, ScriptedCall

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@tool(parallel=True)
def bash(command: str) -> str:
    """Run a command."""
    RAN.append(command)
    return "done"


@tool
def write(lines: list[str]) -> str:
    """Write lines."""
    RAN.append("\n".join(lines))
    return "written"


async def _run(
    tmp_path: Path, guards: Guard | tuple[Guard, ...], *lines: Line, retries: int = 3, tools: tuple[ReactTool, ...] = (bash, write)
) -> list[str]:
    """Return what the model was told of its calls."""
    agent = ReactAgent(
        "engineer",
        description="Builds",
        tools=guarded(tools, *(guards if isinstance(guards, tuple) else (guards,)), retries=retries),
    )
    model = ScriptedModel([*lines, "Done."])
    answer = agent.function("build", RecordingContext(tmp_path, model=model))
    assert inspect.isawaitable(answer)
    await answer
    return [message.content for message in model.asked[-1].messages if message.role == "tool"]


async def test_the_first_refusal_wins_and_nothing_has_run(tmp_path: Path) -> None:
    """Guards are asked in order, those behind a refusal not at all; what was refused is told, and mended."""
    asked: list[str] = []

    def notes(call: Call, _ctx: TaskContext) -> str | None:
        asked.append(call.arguments["command"])
        return None

    told = await _run(
        tmp_path, (deny("rm -rf"), notes, deny("rm")), wants("bash", command="rm  -RF /"), wants("bash", command="ls")
    )
    assert told == ["Refused: 'rm -rf' is not allowed here.", "done"]
    assert (RAN, asked) == (["ls"], ["ls"])


async def test_words_are_found_wherever_they_stand(tmp_path: Path) -> None:
    """Also when they are spread over a list, as commands are."""
    told = await _run(tmp_path, deny("rm -rf"), wants("write", lines=["sudo", "rm", "-rf", "/"]))
    assert (told, RAN) == (["Refused: 'rm -rf' is not allowed here."], [])
    with pytest.raises(InvalidInputError):
        deny(" ")


async def test_a_call_is_approved_once(tmp_path: Path) -> None:
    """Also when the same is asked for twice side by side; what was refused may be asked for again."""
    twice = ModelAnswer("", "tools", tool_calls=tuple(ToolCall(f"c{n}", "bash", '{"command": "send"}') for n in (1, 2)))
    told = await _run(tmp_path, (once(), deny("now")), twice, *[wants("bash", command="send now")] * 2)
    assert [one.partition(":")[0] for one in told] == ["done", "Refused", "Refused", "Refused"]
    assert "now" in told[3] and RAN == ["send"]


async def test_arguments_fit_a_narrower_form(tmp_path: Path) -> None:
    """Those of functions fit what the tool offers anyway."""

    class Short(BaseModel):
        command: str

        def model_post_init(self, _context: object) -> None:
            if len(self.command) > 3:
                raise ValueError("is too long")

    told = await _run(tmp_path, schema(Short), wants("bash", command="make"), wants("bash", command="ls"))
    assert (told, RAN) == (["Refused: arguments: is too long", "done"], ["ls"])


async def test_guard_that_returns_no_text_rejects(tmp_path: Path) -> None:
    """It approves nothing by mistake."""
    guard: Guard = lambda call, ctx: True  # type: ignore[assignment,return-value]  # noqa: E731
    assert (await _run(tmp_path, guard, wants("bash", command="ls")))[0].startswith("Refused: the guard returned bool")
    assert RAN == []


async def test_retries_are_counted_by_task_and_by_guard(tmp_path: Path) -> None:
    """One refusal more, and the task fails with the reason; another task, and another guard, begin anew."""
    no = wants("bash", command="no")
    for _ in range(2):
        assert await _run(tmp_path, deny("no"), no, no, retries=2) == ["Refused: 'no' is not allowed here."] * 2
    ctx = RecordingContext(tmp_path, model=ScriptedModel([no] * 3))
    agent = ReactAgent("engineer", description="Builds", tools=guarded([bash], deny("no"), retries=2))
    with pytest.raises(TaskError, match=r"3 calls.*'no' is not allowed"):
        await agent.function("build", ctx)  # type: ignore[misc]
    assert [kind for kind, _ in ctx.reported] == ["tool_rejected"] * 3
    tools = (*guarded([bash], deny("no"), retries=1), *guarded([write], deny("no"), retries=1))
    assert len(await _run(tmp_path, (), no, wants("write", lines=["no"]), tools=tools)) == 2
    assert RAN == []


@pytest.mark.parametrize(("votes", "asked", "runs"), [("yy", 2, True), ("yny", 3, True), ("ynn", 3, False), ("nn", 2, False)])
async def test_a_quorum_decides_and_its_tokens_count(tmp_path: Path, votes: str, asked: int, runs: bool) -> None:
    """No more critics are asked than it takes; the reasons of those that refuse are told."""
    left = iter(votes)

    def answer(question: ScriptedCall) -> Line:
        assert "Would it lose data?" in question.prompt and "drop it \\u003c/call>" in question.prompt
        approved = next(left) == "y"
        text = json.dumps({"reason": "It is for ever.", "approved": approved})
        return ModelAnswer(text, prompt_tokens=100, answer_tokens=10)

    ctx = RecordingContext(tmp_path, goal="tidy up", model=(model := ScriptedModel(answer)))
    call = Call("bash", {"command": "drop it </call>"}, 1)
    why = await quorum("Would it lose data?", of=3, need=2)(call, ctx)  # type: ignore[misc]
    assert (why is None, len(model.asked), ctx.usage.tokens) == (runs, asked, 110 * asked)
    assert why is None or why.endswith("of 3 critics refuse: It is for ever.")


async def test_critics_approve_nothing_that_they_have_not_read(tmp_path: Path) -> None:
    """What is too long for them is refused, and a critic that fails is none that approves."""
    quiet = RecordingContext(tmp_path, model=ScriptedModel([]))
    judged = quorum("Is it safe?", of=1, need=1)
    assert "critics read" in str(await judged(Call("bash", {"command": "x" * 60_000}, 1), quiet))  # type: ignore[misc]
    assert (await _run(tmp_path, quorum("Is it safe?", of=1, need=1), wants("bash", command="ls"), *["no verdict"] * 3))[
        0
    ].startswith("Refused")
    assert RAN == []
    with pytest.raises(InvalidInputError):
        quorum("?", of=2, need=3)


async def test_a_guard_may_take_its_time(tmp_path: Path) -> None:
    """A plain function runs in a thread, so that it holds up nobody, also within a chain."""
    loop = asyncio.get_running_loop()

    def slow(_call: Call, _ctx: TaskContext) -> str | None:
        return asyncio.run_coroutine_threadsafe(asyncio.sleep(0, "not now"), loop).result(5)

    assert await _run(tmp_path, slow, wants("bash", command="ls")) == ["Refused: not now"]


async def test_what_is_to_be_confirmed_runs_once_somebody_has_approved_it(tmp_path: Path) -> None:
    """The question shows the call as it is; it is refused if nobody answers, and nothing has run then."""
    agent = ReactAgent("engineer", description="Builds", tools=guarded([bash], confirm("operator")))
    asked = {'May bash run, with {"command":"make"}?': "approve"}
    model = ScriptedModel([wants("bash", command="rm x"), wants("bash", command="make"), "Done."])
    ctx = RecordingContext(tmp_path, model=model, answers=asked)
    answer = agent.function("build", ctx)
    assert inspect.isawaitable(answer)
    await answer
    told = [message.content for message in model.asked[-1].messages if message.role == "tool"]
    assert (RAN, [one.role for one in ctx.inquiries]) == (["make"], ["operator", "operator"])
    assert ["was not approved by the operator" in one for one in told] == [True, False]


async def test_what_nobody_could_read_whole_is_not_confirmed(tmp_path: Path) -> None:
    """A call that is longer than a question is refused, and nobody is asked; so is one where asking fails."""
    told = await _run(tmp_path, confirm(), wants("bash", command="x" * 3_000))
    assert (RAN, "2000 characters" in told[0]) == ([], True)
    told = await _run(tmp_path, confirm(within=timedelta(0)), wants("bash", command="make"))
    assert RAN == []
