"""What the tests of the example agents share: run an agent's function on files, as its client would."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ioa import Agent, UpstreamResult
from ioa.testing.recording_context import RecordingContext, input_file
from tests.unit.examples.agent_run import Done, Run

DATA = Path(__file__).parents[3] / "examples" / "data"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run an agent's function on a task; each run gets a workspace of its own."""
    count = 0

    def run_agent(
        agent: Agent, task: str, inputs: Sequence[Path] = (), results: Sequence[UpstreamResult] = (), goal: str = ""
    ) -> Done:
        nonlocal count
        count += 1
        workspace = tmp_path / f"workspace-{count}"
        workspace.mkdir()
        context = RecordingContext(workspace, goal=goal or task, inputs=[input_file(path) for path in inputs], results=results)
        answer = agent.function(*agent.arguments(task, context))
        assert isinstance(answer, str)
        artifacts = context.artifacts
        return Done(answer, {file.name: file.path.read_bytes() for file in artifacts}, tuple(file.path for file in artifacts))

    return run_agent


@pytest.fixture
def data() -> Path:
    """The folder of the data that ships with the examples."""
    return DATA
