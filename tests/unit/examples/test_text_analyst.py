"""The text analyst: three counts of one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.examples.agent_run import Run
from text_analyst import agent


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("count of words in a b.txt", "words in a b.txt = 4"),
        ("Count of lines in a b.txt", "lines in a b.txt = 3"),
        ("count of characters in a b.txt", "characters in a b.txt = 18"),
    ],
)
def test_file_is_counted(run: Run, tmp_path: Path, task: str, answer: str) -> None:
    """As `wc -w` counts words; the calculator can use the answer."""
    path = tmp_path / "a b.txt"
    path.write_text("Grüße an\n\nAda, Bob", encoding="utf-8")
    assert run(agent, task, [path]).text == answer
