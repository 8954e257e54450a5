"""The example pool: every target exists, with a complete card."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import analyst_desk
from ioa import sandbox
from ioa.errors import DeclinedError
from ioa.local.pool import read_pool
from ioa.testing.recording_context import upstream
from tests.unit.examples.agent_run import Run

POOL = Path(__file__).parents[3] / "examples" / "pool.toml"


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


def test_desk_merges_results_of_its_team(run: Run, tmp_path: Path) -> None:
    """The briefing holds every result of the nested group, and its files."""
    table = tmp_path / "t.csv"
    table.write_text("a,b\n1,2\n")
    results = [upstream("sum of a by b", "a: 1", table, agent_id="csv-analyst"), upstream("bar chart of #1", "drawn")]
    done = run(analyst_desk.agent, "briefing:\n- sum of a by b\n- bar chart of #1", results=results)
    assert done.text == "1. sum of a by b\na: 1\n\n2. bar chart of #1\ndrawn"
    assert done.files == {"t.csv": b"a,b\n1,2\n"}


_OTHER_REQUESTS = {
    "analyst_desk": ["briefing", "briefing only for North:\n- a", "a report:\n- a"],
    "calculator": ["", "what is 15 % of 240", "15 % 4", "2 ^ 10", "2 × 3", "1,000 + 5", "12 miles in km", "x + 1", "5 > 3", "0x10"],
    "chart_maker": ["", "chart", "make a bar chart of it", "pie chart of #1", "bar chart of #1 and 2", "Balkendiagramm von #1"],
    "csv_analyst": ["", "total revenue per region", "sum of a", "sum of a per b", "what is the sum of a by b", "Summe von a"],
    "python_runner": ["", "run the script", "run `print(1)`", "run\n```js\n1\n```"],
    "report_writer": ["", "write a report of both", "report", "report of #1 in German", "Bericht über #1"],
    "text_analyst": ["", "read a.txt", "how many words are in a.txt", "count of e in a.txt", "count of words"],
}
"""By module, tasks that are not in the form that its agent accepts."""


@pytest.mark.parametrize(("module", "task"), [(module, task) for module, tasks in _OTHER_REQUESTS.items() for task in tasks])
def test_other_request_is_declined_with_the_form(module: str, task: str, run: Run, tmp_path: Path) -> None:
    """An agent never guesses, also where it has a file and a result that it could use."""
    table = tmp_path / "t.csv"
    table.write_text("b,a\nx,1\n")
    with pytest.raises(DeclinedError) as declined:
        run(importlib.import_module(module).agent, task, [table], [upstream("sum of a by b", "x: 1", table)])
    assert declined.value.hint
