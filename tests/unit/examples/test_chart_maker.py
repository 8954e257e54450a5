"""The chart maker: a picture of the table of an earlier result."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from matplotlib import image

from chart_maker import agent
from ioa.errors import InvalidInputError
from ioa.testing.recording_context import upstream
from tests.unit.examples.agent_run import Run


def result(folder: Path, table: str) -> list[object]:
    """Return the result of one earlier task."""
    path = folder / "sum-of-a-by-b.csv"
    path.write_text(table)
    return [upstream("sum of a by b", "…", path)]


@pytest.mark.parametrize("kind", ["bar", "line"])
def test_chart_of_a_result_is_a_png(run: Run, tmp_path: Path, kind: str) -> None:
    """The same for the same table; a `$` in a label is drawn as it is."""
    results = result(tmp_path, "b,sum of a\nx$1$,1\ny,-2.5\nz,3\n")
    first, second = (run(agent, f"{kind} chart of #4", results=results) for _ in range(2))
    name = f"{kind}-chart-of-sum-of-a-by-b.png"
    assert first.text == f"{name}: a {kind} chart of sum of a by b, 3 values."
    assert first.files == second.files
    assert image.imread(io.BytesIO(first.files[name]), format="png").shape[2] == 4


@pytest.mark.parametrize("table", ["a,b,c\nx,1,2\n", "b,a\nx,y\n", "b,a\n" + "".join(f"k{n},{n}\n" for n in range(61))])
def test_other_table_is_rejected(run: Run, tmp_path: Path, table: str) -> None:
    """A chart has a label and a number, and bars that can be read."""
    with pytest.raises(InvalidInputError):
        run(agent, "bar chart of #1", results=result(tmp_path, table))
