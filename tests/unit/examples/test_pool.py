"""The pool that ships: every target exists, and every card says enough to be found."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path

import pytest

import analyst_desk
from ioa import Agent, sandbox
from ioa.errors import DeclinedError, InvalidInputError
from ioa.local.pool import read_pool
from ioa.protocol.ids import AgentId
from ioa.testing.task_context import RecordingContext, upstream
from tests.unit.examples.agent_run import Run

POOL = Path(__file__).parents[3] / "examples" / "pool.toml"
ENTRIES = tomllib.loads(POOL.read_text())["agents"]


def _agent(target: str) -> Agent:
    path, _, name = target.partition(":")
    assert (POOL.parent / path).is_file()
    agent = getattr(importlib.import_module(Path(path).stem), name)
    assert isinstance(agent, Agent)
    return agent


def test_who_is_in_it() -> None:
    """The pool holds the six agents that do work, the one that coordinates, and the one that asks a model."""
    expected = [
        "csv-analyst",
        "chart-maker",
        "text-analyst",
        "calculator",
        "python-runner",
        "report-writer",
        "analyst-desk",
        "assistant",
    ]
    assert [_agent(entry["target"]).agent_id for entry in ENTRIES] == expected


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
    """Without a model that could answer, nobody offers to."""
    targets = [Path(agent.target).name for agent in read_pool(POOL, environment).agents]
    assert ("assistant.py:agent" in targets, len(targets)) == (joins, 6 + joins)


def test_the_runner_joins_only_where_code_is_allowed() -> None:
    """Nobody runs what others wrote unless whoever starts the agents said so; who did not is told how."""
    told: list[str] = []
    joins = {}
    for allow_code in (False, True):
        pool = read_pool(POOL, {"IOA_SANDBOX": "none"}, told.append, allow_code=allow_code)
        joins[allow_code] = "python_runner.py:agent" in [Path(agent.target).name for agent in pool.agents]
    assert (joins, told) == (
        {False: False, True: True},
        ["agents/python_runner.py:agent is left out, since it runs code that others write. --allow-code lets it join."],
    )


def test_the_runner_is_left_out_where_no_sandbox_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who runs code joins where it can be confined; else the others start without it, and whoever starts them is told why."""
    monkeypatch.setattr(sandbox, "_self_test", lambda: "bubblewrap is missing")
    told: list[str] = []
    targets = [Path(agent.target).name for agent in read_pool(POOL, {"IOA_SANDBOX": "bwrap"}, told.append, allow_code=True).agents]
    assert ("python_runner.py:agent" in targets, len(targets), len(told)) == (False, 6, 1)
    assert "python_runner.py:agent is left out. Untrusted code cannot run here: bubblewrap is missing." in told[0]


def test_only_the_desk_leads_teams() -> None:
    """The agents that do one thing do it themselves; the desk has its work done by a team."""
    assert [agent.agent_id for agent in (_agent(entry["target"]) for entry in ENTRIES) if agent.may_team_up] == ["analyst-desk"]


def test_desk_merges(run: Run, tmp_path: Path) -> None:
    """The desk's briefing holds every result of its team and passes their files on."""
    table = tmp_path / "t.csv"
    table.write_text("a,b\n1,2\n")
    results = [upstream("compute a", "a: 1", table, agent_id="csv-analyst"), upstream("draw it", "drawn", agent_id="chart-maker")]
    done = run(analyst_desk.agent, "a briefing: compute a and draw it.", results=results)
    assert (
        done.text
        == "Briefing: a briefing: compute a and draw it\n\n1. compute a (csv-analyst)\na: 1\n\n2. draw it (chart-maker)\ndrawn"
    )
    assert done.files == {"t.csv": b"a,b\n1,2\n"}


@pytest.mark.parametrize(
    "task",
    [
        "Email both results", "Write a briefing in German", "draw it", "Write a report",
    ],
)  # fmt: skip
def test_desk_refuses_what_is_no_briefing(task: str, run: Run) -> None:
    """What is not done is not answered with what was done before."""
    results = [upstream("compute a", "a: 1"), upstream("draw it", "drawn")]
    with pytest.raises(DeclinedError):
        run(analyst_desk.agent, task, results=results)


def test_desk_without_team(run: Run) -> None:
    """Without a team the desk says how to name the parts that it hands out."""
    with pytest.raises(InvalidInputError, match=r"sales\.csv: total units per region"):
        run(analyst_desk.agent, "prepare a full briefing")


def test_recording_context(tmp_path: Path) -> None:
    """The context records reports and artifacts, replaces an artifact of the same name, and refuses what a real one refuses."""
    context = RecordingContext(tmp_path)
    context.progress("half", 0.5)
    context.artifact("a.txt", "one")
    context.artifact("a.txt", b"two")
    with pytest.raises(InvalidInputError):
        context.artifact("../a.txt", "x")
    with pytest.raises(InvalidInputError):
        context.progress("too far", 1.5)
    assert context.reports == [("half", 0.5)]
    assert [(file.name, file.path.read_text(), file.media_type) for file in context.artifacts] == [("a.txt", "two", "text/plain")]
