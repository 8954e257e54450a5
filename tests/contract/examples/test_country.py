"""A goal that needs all four agents of examples/react, in a whole system with scripted models."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from code_executor import agent as code_executor
from country import Country, make_country
from country_server import create_site
from ioa import Agent, ModelError
from ioa.agent.rules import RuleBrain
from ioa.ports.chat_model import ModelAnswer
from ioa.protocol.messages import InformTaskResult
from ioa.testing import ScriptedModel, wants
from ioa.testing.scripted_model import ScriptedCall
from ioa_testkit import System
from knowledge import knowledge
from transcript_reader import transcript_reader
from web_browser import web_browser

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
SOURCES = {"sparql": "knowledge graph", "click": "web site", "run_python": "Python", "find": "transcripts"}
"""A tool, and the words of the tasks that its owner can do. The first tool that an agent has names the agent."""
TOKENS = (100, 20)
"""Tokens of each answer: prompt and answer."""


def _found(pattern: str, asked: ScriptedCall) -> str:
    found = re.findall(pattern, asked.prompt)
    assert found, f"{pattern} is not in: {asked.prompt}"
    return str(found[-1])


def _says(asked: ScriptedCall) -> ModelAnswer | ModelError:
    """Say what a model would that reads: the next call of the tools that it has, or the answer that they have brought."""
    step = sum(message.role == "tool" for message in asked.messages)
    names = {tool.name for tool in asked.tools}
    one = next(name for name in SOURCES if name in names)
    if SOURCES[one] not in asked.messages[1].content.rpartition("<task")[2]:
        return ModelError("None of these tools can do that.")
    answer: ModelAnswer | str
    if one == "sparql":
        mayor = _found(r"mayor is (\w+ \w+)", asked)
        query = f'SELECT ?town {{ ?m {LABEL} "{mayor}" ; <http://country.test/mayorOf>/{LABEL} ?town }}'
        answer = wants("sparql", query=query) if step == 0 else "Town: " + _found(r"\?town\n(\w+)$", asked)
    elif one == "find":
        town = _found(r"Town: (\w+)", asked)
        find = wants("find", words=f"toll agreed {town}")
        answer = find if step == 0 else "Toll: " + _found(rf"agreed: the toll of {town} is (\d+)", asked)
    elif one == "click":
        town = _found(r"Town: (\w+)", asked)
        calls = [wants("open", address="/register"), wants("fill", number=1, text=town), wants("click", number=2)]
        answer = calls[step] if step < len(calls) else "Roads: " + _found(rf"{town} has (\d+) km", asked)
    else:
        town, toll, roads = (_found(rf"{what}: (\w+)", asked) for what in ("Town", "Toll", "Roads"))
        carts = f"sum(int(row['carts']) for row in csv.DictReader(open('carts.csv')) if row['town'] == {town!r})"
        code = f"import csv\nprint('Total:', {toll} * {roads} * {carts})"
        answer = wants("run_python", code=code) if step == 0 else _found(r"Total: (\d+)", asked)
    return replace(ModelAnswer(answer) if isinstance(answer, str) else answer, prompt_tokens=TOKENS[0], answer_tokens=TOKENS[1])


@pytest.fixture
def country() -> Country:
    """A country."""
    return make_country(3)


@pytest.fixture
def agents(country: Country, tmp_path: Path) -> Iterator[dict[str, Agent]]:
    """All four, each with a model of its own, on the sources of the country."""
    country.write(tmp_path / "country")
    with create_site(country) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        four = [
            knowledge(tmp_path / "country" / "graph.ttl"),
            transcript_reader(tmp_path / "country" / "transcripts.sqlite"),
            web_browser(f"http://127.0.0.1:{server.server_port}/"),
            replace(code_executor),
        ]
        for agent in four:
            agent.model, agent.brain = ScriptedModel(_says), RuleBrain()
        try:
            yield {agent.agent_id: agent for agent in four}
        finally:
            server.shutdown()
            thread.join()


async def test_goal_of_four_agents_has_the_right_answer(
    country: Country, agents: dict[str, Agent], ioa_system: System, tmp_path: Path
) -> None:
    """The answer is right, each of them leaves a trace of its steps, and all that their models were asked is counted."""
    goal = await ioa_system.run(country.question, agents=list(agents.values()), files=[tmp_path / "country" / "carts.csv"])
    assert goal.succeeded and country.answer in goal.content, goal.transcript
    results = [message for message in goal.messages() if isinstance(message.payload, InformTaskResult)]
    traces = {message.header.sender: message.payload.traces for message in results if isinstance(message.payload, InformTaskResult)}
    assert {str(agent_id) for agent_id, left in traces.items() if left} == set(agents)
    asked = sum(len(agent.model.asked) for agent in agents.values() if isinstance(agent.model, ScriptedModel))
    assert (asked, goal.result.usage.tokens_in, goal.result.usage.tokens_out) == (10, 10 * TOKENS[0], 10 * TOKENS[1])
