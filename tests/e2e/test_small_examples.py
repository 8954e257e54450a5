"""The examples that fit on a screen, as a newcomer runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine, running_system

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("0*.py"))


def test_each_fits_on_a_screen() -> None:
    """Five agents of at most fifteen lines."""
    assert [len(path.read_text(encoding="utf-8").splitlines()) <= 15 for path in EXAMPLES] == [True] * 5


@pytest.mark.nightly
def test_each_does_what_it_says(tmp_path: Path) -> None:
    """They find each other, read a file, report progress, build on results and ask discovery."""
    command = CommandLine(tmp_path)
    (tmp_path / "names.txt").write_text("Eve\nAda\n", encoding="utf-8")
    pool = tmp_path / "pool.toml"
    pool.write_text("".join(f'[[agents]]\ntarget = "{path}:agent"\n' for path in EXAMPLES), encoding="utf-8")
    goals = {
        ("1. greet Ada\n2. make a poster of #1",): "* hello: Hello, Ada! *",
        ("sort the lines of names.txt", "--input", "names.txt"): "Sorted 1 files.",
        ("primes below 20",): "2, 3, 5, 7, 11, 13, 17, 19",
        ("name agents that can find prime numbers",): "prime-finder",
    }
    with running_system(command, "--pool", pool):
        answers = {goal: command.run("run", *goal, "--quiet") for goal in goals}
    assert [goal for goal, expected in goals.items() if expected not in answers[goal].stdout] == [], answers
    [made] = (tmp_path / "out").rglob("sorted-names.txt")
    assert made.read_text(encoding="utf-8") == "Ada\nEve"
