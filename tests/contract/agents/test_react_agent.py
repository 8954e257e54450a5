"""ReAct agents in a system, and with a server without tools."""

from __future__ import annotations

from pathlib import Path

from ioa.adapters.openai.openai_chat import ModelSettings, open_openai_chat
from ioa.agent.rules import RuleBrain
from ioa.ports.chat_model import ModelAnswer
from ioa.testing import RecordingContext, ScriptedModel, wants
from ioa_testkit import System
from tests.rig.census import census_agent
from tests.rig.http_script import completion, refused, serving


async def test_agent_works_with_a_server_without_tools(tmp_path: Path) -> None:
    """The model writes its calls as text."""
    call = completion('{"tool": "population", "arguments": {"city": "Tarn"}}')
    with serving(refused("tools are not supported"), call, completion("431.")) as (url, _):
        async with open_openai_chat(ModelSettings(url, "tiny", context=8_000)) as chat:
            ctx = RecordingContext(tmp_path, model=chat)
            assert await census_agent().function("how many people live in Tarn", ctx) == "431."  # type: ignore[misc]
    assert ctx.reports == [("step 1 of 8: population('Tarn')", 1 / 9)]


async def test_agent_works_in_a_system(ioa_system: System) -> None:
    """Its trace is no file of the goal, and its usage counts for the goal."""
    model = ScriptedModel([wants("population", city="Tarn"), ModelAnswer("431.", prompt_tokens=50, answer_tokens=5)])
    agent = census_agent(examples=["how many people live in Tarn"], model=model, brain=RuleBrain())
    goal = await ioa_system.run("how many people live in Tarn", agents=[agent])
    assert (goal.succeeded, goal.content, goal.files) == (True, "431.", {})
    assert goal.result.usage.tokens == 55
