"""Every command and every piece of Python in README.md and of the tutorial works, and then `ioa demo`. See `readme_session`.

Both pages start a system on the ports that it has by itself, so they are in one file, which one process runs.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.packaging.environment import ROOT, Environment
from tests.packaging.readme_session import go_through, left_to_ci, pip_from, shown_output

_PAGES = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("tutorial.md", "files.md", "publishing.md")]
_CLONE = "```sh\ngit clone https://example.org/somebody/ioa.git && cd ioa\n```"
"""The pages begin in a fresh clone."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A repository that holds the tree under test as it is now, committed or not, and nothing that git ignores."""
    repository = tmp_path / "origin"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, repository / name)
    author = ["-c", "user.name=reader", "-c", "user.email=reader@localhost"]
    for command in (
        ["init", "--quiet"],
        ["add", "--all"],
        [*author, "commit", "--quiet", "--no-verify", "--message", "The tree under test"],
    ):
        subprocess.run(["git", *command], cwd=repository, check=True)
    return repository


@pytest.mark.package
@pytest.mark.timeout(600)
def test_the_readme_works_from_top_to_bottom(copy: Path, wheels: Path, tmp_path: Path) -> None:
    """Each command of README.md and of the pages on first goals and agents succeeds in a fresh clone, in this order."""
    names = ("README.md", "docs/first-goals.md", "docs/agents.md")
    pages = [_CLONE, *((ROOT / name).read_text(encoding="utf-8") for name in names)]
    code, output = go_through("\n".join(pages), copy, tmp_path / "home", pip_from(wheels))
    assert code == 0, output[-8000:]


@dataclass(frozen=True)
class GoneThrough:
    """The tutorial and the pages that go on from there, done from top to bottom in an empty folder."""

    code: int
    output: str
    environment: Environment


@pytest.fixture(scope="module")
def tutorial(wheels: Path, locked: Path, tmp_path_factory: pytest.TempPathFactory) -> GoneThrough:
    """Done once, since the environment that it makes takes long to make."""
    folder = tmp_path_factory.mktemp("reader") / "home"
    code, output = go_through(
        "\n".join(_PAGES), ROOT, folder, {**pip_from(wheels), "PIP_CONSTRAINT": str(locked), "COLUMNS": "120"}
    )
    return GoneThrough(code, output, Environment(folder / "weather" / ".venv"))


@pytest.mark.package
@pytest.mark.timeout(600)
def test_the_tutorial_works_from_top_to_bottom(tutorial: GoneThrough) -> None:
    """The commands of the tutorial, run in an empty folder, print the shown output."""
    assert tutorial.code == 0, tutorial.output[-8000:]
    told = iter(tutorial.output.splitlines())
    assert [line for line in shown_output(_PAGES[0]) if line not in told] == [], tutorial.output[-8000:]


@pytest.mark.package
@pytest.mark.timeout(600)
def test_the_demo_runs_from_the_wheel_alone(tutorial: GoneThrough, tmp_path: Path) -> None:
    """It runs its goals, kills an agent whose goal ends all the same, replays that, and leaves files in the user's folder."""
    done = tutorial.environment.run("ioa", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    said = done.stdout
    killed, ended, replayed = (
        said.index("slow-counter was killed"),
        said.rindex("one, two, three"),
        said.index("every state is reproduced"),
    )
    assert killed < ended < replayed
    assert {file.suffix for file in (tmp_path / "out").rglob("*") if file.is_file()} >= {".png", ".csv"}


def test_commands_of_the_readme_that_take_long_are_run_by_ci() -> None:
    """`.ci/run` contains the commands `make test` and `make check` of the README."""
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert left_to_ci((ROOT / "README.md").read_text(encoding="utf-8")) - set(ci) == set()
