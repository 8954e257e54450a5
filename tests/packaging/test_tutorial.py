"""What a user has after `pip install 'internet-of-agents[laptop]'` in an empty environment: the tutorial works, and `ioa demo`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.packaging.environment import ROOT, Environment
from tests.packaging.readme_session import go_through, pip_from, shown_output

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_PAGES = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("tutorial.md", "files.md", "publishing.md")]


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


def test_the_tutorial_works_from_top_to_bottom(tutorial: GoneThrough) -> None:
    """Whoever does what the tutorial says in an empty folder sees what it shows, and can publish goals to what then runs."""
    assert tutorial.code == 0, tutorial.output[-8000:]
    told = iter(tutorial.output.splitlines())
    assert [line for line in shown_output(_PAGES[0]) if line not in told] == [], tutorial.output[-8000:]


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
