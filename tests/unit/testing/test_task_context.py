"""The task context that agents' own tests use."""

from __future__ import annotations

from pathlib import Path

from ioa import Agent
from ioa.testing import RecordingContext, upstream


def test_rejected_result_is_marked_in_the_task(tmp_path: Path) -> None:
    """With the reason."""
    agent = Agent("writer", description="Writes")
    agent.task(lambda task: task)
    results = [upstream("draft", "It is 12.", rejected="a wrong table"), upstream("facts", "It is 13.")]
    [words] = agent.arguments("write", RecordingContext(tmp_path, results=results))
    told = ("'draft':\n  (rejected: a wrong table)\n  It is 12.", "'facts':\n  It is 13.")
    assert words == "\n\n".join(["write", *(f"Result of an earlier task, {one}" for one in told)])
