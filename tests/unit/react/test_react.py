"""ReAct agents: tools, steps and errors."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from ioa import Agent, InvalidInputError, TaskContext, TaskError
from ioa.ports.chat_model import ModelAnswer, ToolCall
from ioa.react import Observation, tool
from ioa.testing import RecordingContext, ScriptedModel, wants
from tests.rig.census import census_agent, population


class Point(BaseModel):
    """A place."""

    x: int
    y: int = 0


@tool
async def walk(
    to: Point, how: Literal["fast", "slow"] = "slow", *, times: Annotated[int, Field(ge=1)] = 1, ctx: TaskContext
) -> str:
    """Walk somewhere."""
    return f"{ctx.task_id}: {to.x},{to.y} {how} {times}"


async def _run(tmp_path: Path, agent: Agent, *lines: ModelAnswer | str) -> tuple[str, ScriptedModel, RecordingContext]:
    ctx = RecordingContext(tmp_path, model=(model := ScriptedModel(lines)))
    said = agent.function("how many people live in Tarn", ctx)
    assert not isinstance(said, str)
    return await said, model, ctx


def _observations(model: ScriptedModel) -> list[str]:
    return [message.content for message in model.asked[-1].messages if message.role == "tool"]


async def test_agent_calls_tools_and_answers(tmp_path: Path) -> None:
    """The model reads the schema of each tool. Each step is reported and traced."""
    answer, model, ctx = await _run(tmp_path, census_agent(max_steps=5), wants("population", city="Tarn"), "431 people.")
    [offered] = model.asked[0].tools
    assert answer == "431 people."
    assert (offered.name, offered.description) == ("population", "How many people live in a city, by the last census.")
    assert offered.parameters["properties"]["city"]["description"] == "Its name."
    assert (_observations(model), ctx.reports) == (["431"], [("step 1 of 5: population('Tarn')", 1 / 6)])
    assert [event["gen_ai.operation.name"] for event in ctx.events] == ["chat", "execute_tool", "chat"]
    assert model.asked[1].messages[: len(model.asked[0].messages)] == model.asked[0].messages


async def test_tool_receives_values_of_its_types(tmp_path: Path) -> None:
    """The context is no argument of the schema."""
    script = (wants("walk", to={"x": "3"}), wants("walk", to={"x": 1, "y": 2}, how="fast", times=2), "There.")
    _, model, _ = await _run(tmp_path, census_agent(walk), *script)
    assert _observations(model) == ["task-1: 3,0 slow 1", "task-1: 1,2 fast 2"]
    assert set(walk.offered.parameters["properties"]) == {"to", "how", "times"}


@pytest.mark.parametrize(
    "written", ['{"city": "Tarn"}', json.dumps('{"city": "Tarn"}'), '```json\n{"city": "Tarn"}\n```', 'Sure: {"city": "Tarn"}']
)
async def test_arguments_in_other_wrappings_are_read(tmp_path: Path, written: str) -> None:
    """Encoded twice, or in a Markdown fence."""
    call = ModelAnswer("", "tools", tool_calls=(ToolCall("c", "population", written),))
    _, model, _ = await _run(tmp_path, census_agent(), call, "431.")
    assert _observations(model) == ["431"]


async def test_model_reads_errors_of_calls(tmp_path: Path) -> None:
    """Only the trace contains the traceback."""
    bad = ModelAnswer("", "tools", tool_calls=(ToolCall("c", "population", "{city"),))
    script = (wants("weather"), wants("population", town="Tarn"), bad, wants("population", city="Nowhere"), "I do not know.")
    _, model, ctx = await _run(tmp_path, census_agent(), *script)
    unknown, missing, broken, raised = _observations(model)
    assert unknown == "Error: there is no tool 'weather'. There are: population."
    assert missing.startswith("Error: population cannot take these arguments: city: Field required; town: Extra")
    assert "JSON" in broken and raised == "Error: KeyError: 'Nowhere'"
    assert any("Traceback" in event.get("exception.stacktrace", "") for event in ctx.events)


async def test_slow_tool_times_out(tmp_path: Path) -> None:
    """The model reads the error, and continues."""

    @tool
    async def sleep() -> None:
        """Sleep."""
        await asyncio.Event().wait()

    _, model, _ = await _run(tmp_path, census_agent(sleep, tool_timeout=timedelta(milliseconds=1)), wants("sleep"), "Good night.")
    assert _observations(model) == ["Error: TimeoutError: it was not done within 0.001 s"]


async def test_task_error_of_a_tool_fails_the_task(tmp_path: Path) -> None:
    """At once, also during other calls."""

    @tool
    def stop() -> str:
        """Stop."""
        raise TaskError("no access")

    twice = ModelAnswer("", "tools", tool_calls=(ToolCall("a", "stop", ""), ToolCall("b", "stop", "{}")))
    with pytest.raises(TaskError, match="no access"):
        await _run(tmp_path, census_agent(stop), twice, "never")


async def test_steps_are_limited(tmp_path: Path) -> None:
    """After the last step the model must answer; another call fails the task."""
    asking = [wants("population", city="Tarn")] * 2
    answer, model, _ = await _run(tmp_path, census_agent(max_steps=2), *asking, "431.")
    last = model.asked[-1]
    assert (answer, last.may_call, len(last.tools), last.messages[-1].content) == (
        "431.",
        False,
        1,
        "The steps are spent. Answer now.",
    )
    with pytest.raises(TaskError, match="no answer within 2 steps"):
        await _run(tmp_path, census_agent(max_steps=2), *asking, *asking)


async def test_truncated_answer_runs_no_call(tmp_path: Path) -> None:
    """A truncated or empty answer is requested again once; a truncated one with twice the limit."""
    cut = ModelAnswer("", "length", answer_tokens=50, tool_calls=(ToolCall("c", "population", '{"city": "Ta'),))
    answer, model, ctx = await _run(tmp_path, census_agent(), cut, "431.")
    assert (answer, ctx.reports, model.asked[1].limits.max_tokens) == ("431.", [], 100)
    for lines in ([cut, cut], ["", " "]):
        with pytest.raises(TaskError, match=r"without text|was cut off"):
            await _run(tmp_path, census_agent(), *lines)


async def test_tool_returns_files_and_long_texts(tmp_path: Path) -> None:
    """Files are attached to the result, long texts are truncated, and other values are JSON."""
    chart = tmp_path / "made" / "chart.txt"
    chart.parent.mkdir()
    chart.write_text("a chart")

    @tool
    def draw() -> Observation:
        """Draw."""
        return Observation("x" * 10_000, [chart])

    @tool
    def point() -> Point:
        """Point."""
        return Point(x=1)

    _, model, ctx = await _run(tmp_path, census_agent(draw, point), wants("draw"), wants("point"), "Drawn.")
    assert _observations(model) == ["x" * 7_996 + " […]", '{"x":1,"y":0}']
    assert [file.path.read_text() for file in ctx.artifacts] == ["a chart"]


def test_invalid_tools_are_rejected() -> None:
    """When they are defined."""
    for wrong in (lambda city: 1, lambda *cities: 1, lambda **cities: 1):
        wrong.__name__ = "wrong"
        with pytest.raises(InvalidInputError, match=r"wrong: the parameter \w+ has no type"):
            tool(wrong)
    with pytest.raises(InvalidInputError, match="two tools called population"):
        census_agent(population, population)
    with pytest.raises(InvalidInputError, match="0 steps"):
        census_agent(max_steps=0)

    @tool
    def odd(schema: int, model_config: int, json: int) -> int:
        """Have parameters that pydantic uses."""
        return schema + model_config + json

    assert odd.call(odd.read('{"schema": 1, "model_config": 2, "json": 3}'), None) == 6
