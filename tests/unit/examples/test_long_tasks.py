"""Tasks as long as anybody may give them: none keeps an agent whose rules read it from its lease, and so from everybody."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

import calculator
import chart_maker
import csv_analyst
import python_runner
import report_writer
import text_analyst
from ioa import Agent
from ioa.errors import InvalidInputError, TaskError
from ioa.protocol.messages import MAX_CONTENT_CHARS
from ioa.testing.task_context import RecordingContext, input_file, upstream
from tests.unit.patterns.bounding import bounded

_STALL_SECONDS = 2.0
"""Of CPU time, within which an expression lets nothing else of its process run. A lease is longer."""
_UNITS = (
    " ", "= ", ".", "1", "1,111", "1.", "a.", "(", " in a", "1 % of ", "are a ", "how many a ", "“", "«", "`", " 'a", '" ', "and ",
    "chart ", "total of ", "above 1", "1-", "2024-01-", "a, ", "a.p", "total x where a is b and ", "```", "\n",
    "how many words and ", "'a' and ", "please ", "the ", "the file x.txt and ",
)  # fmt: skip
_BEGINNINGS = {
    "calculator": "what is 1", "chart-maker": "bar chart of a", "csv-analyst": "total amount where region is ",
    "python-runner": "run x.py ```py", "text-analyst": "how many words has the file a",
}  # fmt: skip
_AGENTS = [module.agent for module in (calculator, chart_maker, csv_analyst, python_runner, text_analyst)]


def _here(function: str, *arguments: object, **_: object) -> object:
    name, attribute = function.split(".")
    return getattr(import_module(name), attribute)(*arguments)


def _read(agent: Agent, task: str, context: RecordingContext) -> None:
    with bounded(_STALL_SECONDS), suppress(InvalidInputError, TaskError):
        agent.function(*agent.arguments(task, context))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A small table to ask about."""
    path = tmp_path / "data.csv"
    path.write_text("region,amount\nnorth,1\nsouth,2\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("unit", _UNITS)
@pytest.mark.parametrize("agent", _AGENTS, ids=lambda agent: agent.agent_id)
def test_no_task_stalls_an_agent(agent: Agent, unit: str, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it may be, and as long as its agent reads."""
    monkeypatch.setattr(csv_analyst.TABLE_READER, "call", _here)
    monkeypatch.setattr(python_runner, "run_script", lambda *_: "done")
    for begin in ("", _BEGINNINGS[agent.agent_id]):
        for chars in (950, 20_000, MAX_CONTENT_CHARS):
            task = (begin + unit * (chars // len(unit)))[: chars - 1] + "x"
            inputs = [input_file(table)] if agent.agent_id in ("chart-maker", "csv-analyst") else []
            _read(agent, task, RecordingContext(table.parent, inputs=inputs))


@pytest.mark.parametrize("unit", ["1.", ": ", "1,111", "1", ":1", "=-"])
def test_no_earlier_result_stalls_the_calculator(unit: str, tmp_path: Path) -> None:
    """It looks for a figure there."""
    told = upstream("text-analyst", unit * (MAX_CONTENT_CHARS // len(unit)))
    _read(calculator.agent, "divide it by 2", RecordingContext(tmp_path, results=[told]))


def test_tables_of_one_user_are_read_one_at_a_time() -> None:
    """Else who sends many large ones has another user's wait for his, and takes a part of the machine's memory for each."""
    assert [one.of_one_user for one in (csv_analyst.agent, chart_maker.agent, report_writer.agent)] == [1, 1, 1]
