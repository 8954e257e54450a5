"""The task context that agents' own tests use."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioa import Agent, InvalidInputError
from ioa.testing import RecordingContext, found, input_file, upstream


def test_test_context_contains_inputs_results_and_found_agents(tmp_path: Path) -> None:
    """Inputs, results of earlier tasks, and agents that a search finds, the best first."""
    (tmp_path / "rows.csv").write_text("a")
    agents = [Agent(name, description=f"{name} helps") for name in ("ada", "bob")]
    context = RecordingContext(
        tmp_path, inputs=[input_file(tmp_path / "rows.csv")], results=[upstream("count", "Seven.")], found=found(*agents)
    )
    merged = context.search("help").result().merged
    assert [(hit.card.agent_id, hit.card.description) for hit in merged] == [("ada", "ada helps"), ("bob", "bob helps")]
    assert merged[0].score > merged[1].score
    assert (context.inputs[0].media_type, context.results[0].content) == ("text/csv", "Seven.")


def test_test_context_rejects_invalid_file_names(tmp_path: Path) -> None:
    """An author learns from the test, not from the system, that a name is refused. A file of the same name is replaced."""
    context = RecordingContext(tmp_path)
    with pytest.raises(InvalidInputError, match="no plain file name"):
        context.artifact("reports\\total.txt", "7")
    context.artifact("a.txt", "one")
    context.artifact("a.txt", b"two")
    assert [(file.path.read_text(), file.media_type) for file in context.artifacts] == [("two", "text/plain")]


def test_rejected_result_is_marked_in_the_task(tmp_path: Path) -> None:
    """With the reason."""
    agent = Agent("writer", description="Writes")
    agent.task(lambda task: task)
    results = [upstream("draft", "It is 12.", rejected="a wrong table"), upstream("facts", "It is 13.")]
    [words] = agent.arguments("write", RecordingContext(tmp_path, results=results))
    told = ("'draft':\n  (rejected: a wrong table)\n  It is 12.", "'facts':\n  It is 13.")
    assert words == "\n\n".join(["write", *(f"Result of an earlier task, {one}" for one in told)])
