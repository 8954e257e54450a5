"""`ioa demo`, without a clone: what a user has after `pip install 'internet-of-agents[laptop]'` in an empty environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.environment import ROOT, Environment


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_demo_runs_from_the_wheel_alone(environment_with: Callable[[str], Environment], tmp_path: Path) -> None:
    """It runs its goals, kills an agent whose goal ends all the same, replays that, and leaves files in the user's folder."""
    done = environment_with("laptop").run("ioa", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    said = done.stdout
    killed, ended, replayed = (
        said.index("slow-counter was killed"),
        said.rindex("one, two, three"),
        said.index("every state is reproduced"),
    )
    assert killed < ended < replayed
    assert {file.suffix for file in (tmp_path / "out").rglob("*") if file.is_file()} >= {".png", ".csv"}


def test_the_demo_without_the_extra_says_which_one_it_needs(bare: Environment) -> None:
    """On the base, `ioa demo` names the extra that brings all of it, and starts nothing."""
    done = bare.run("ioa", "demo")
    assert (done.returncode, "pip install 'internet-of-agents[laptop]'" in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
def test_every_example_is_in_the_wheel(bare: Environment) -> None:
    """Whatever lies below examples/ is data of the installed package."""
    folder = Path(bare.python("from ioa.cli.demo import examples; print(examples())"))
    expected = {
        file.relative_to(ROOT / "examples") for file in (ROOT / "examples").rglob("*") if file.is_file() and file.suffix != ".pyc"
    }
    packed = {file.relative_to(folder) for file in folder.rglob("*") if file.is_file()}
    assert (folder.is_relative_to(bare.folder), expected - packed) == (True, set())
