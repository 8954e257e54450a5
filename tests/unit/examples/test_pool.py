"""The example pool: every target exists, with a complete card."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path

import pytest

import analyst_desk
from ioa import Agent, sandbox
from ioa.errors import DeclinedError
from ioa.local.pool import read_pool
from ioa.protocol.ids import AgentId
from ioa.testing.task_context import upstream
from tests.unit.examples.agent_run import Run

POOL = Path(__file__).parents[3] / "examples" / "pool.toml"
ENTRIES = tomllib.loads(POOL.read_text())["agents"]


def _agent(target: str) -> Agent:
    path, _, name = target.partition(":")
    assert (POOL.parent / path).is_file()
    agent = getattr(importlib.import_module(Path(path).stem), name)
    assert isinstance(agent, Agent)
    return agent


@pytest.mark.parametrize("target", [entry["target"] for entry in ENTRIES])
def test_cards(target: str) -> None:
    """Every card has a description, skills and six to twelve different example requests, and its agent a function."""
    agent = _agent(target)
    card = agent.card_as(AgentId(agent.agent_id))
    assert (6 <= len(set(card.examples)) <= 12, len(card.skills) >= 2, len(card.description) > 60, callable(agent.function)) == (
        True,
    ) * 4


@pytest.mark.parametrize(("environment", "joins"), [({}, False), ({"IOA_LLM_MODEL": "m"}, True), ({"OPENAI_API_KEY": "k"}, False)])
def test_the_assistant_joins_where_a_model_is(environment: dict[str, str], joins: bool) -> None:
    """Without a model it is left out."""
    targets = [Path(agent.target).name for agent in read_pool(POOL, environment).agents]
    assert ("assistant.py:agent" in targets, len(targets)) == (joins, 6 + joins)


def test_agents_left_out_are_listed_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code of others is run only where it is allowed and can be confined."""
    monkeypatch.setattr(sandbox, "_self_test", lambda: "bubblewrap is missing")
    cases = [("none", False), ("bwrap", True), ("none", True)]
    pools = [read_pool(POOL, {"IOA_SANDBOX": kind}, allow_code=allow) for kind, allow in cases]
    shown = [[one.partition("Install")[0] for one in pool.left_out] for pool in pools]
    model = "assistant (needs a language model)"
    assert shown == [
        ["python_runner (runs code: needs --allow-code)", model],
        ["python_runner (Untrusted code cannot run here: bubblewrap is missing. ", model],
        [model],
    ]
    assert [len(pool.agents) for pool in pools] == [6, 6, 7]


def test_desk_merges(run: Run, tmp_path: Path) -> None:
    """The briefing holds every result of the nested group, and its files."""
    table = tmp_path / "t.csv"
    table.write_text("a,b\n1,2\n")
    results = [upstream("sum of a by b", "a: 1", table, agent_id="csv-analyst"), upstream("bar chart of #1", "drawn")]
    done = run(analyst_desk.agent, "briefing:\n- sum of a by b\n- bar chart of #1", results=results)
    assert done.text == "1. sum of a by b\na: 1\n\n2. bar chart of #1\ndrawn"
    assert done.files == {"t.csv": b"a,b\n1,2\n"}


@pytest.mark.parametrize("task", ["briefing", "briefing only for North:\n- a", "a report:\n- a"])
def test_desk_declines_other_requests(task: str, run: Run) -> None:
    """Also a briefing that no nested group worked on."""
    with pytest.raises(DeclinedError):
        run(analyst_desk.agent, task, results=[upstream("sum of a by b", "a: 1")] if ":" in task else [])
