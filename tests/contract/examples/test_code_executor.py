"""The agent that runs Python: a real sandbox, and the files of a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from code_executor import run_python
from ioa.react import Observation
from ioa.testing import RecordingContext, input_file, upstream


@pytest.fixture
def ctx(tmp_path: Path) -> RecordingContext:
    """A task with a file of its goal, and one of a result that it builds on."""
    (tmp_path / "carts.csv").write_text("month,carts\n1,40\n2,2\n")
    (tmp_path / "made.txt").write_text("7")
    given, before = [input_file(tmp_path / "carts.csv")], [upstream("count", "Seven.", tmp_path / "made.txt")]
    (tmp_path / "work").mkdir()
    return RecordingContext(tmp_path / "work", inputs=given, results=before)


def _run(code: str, ctx: RecordingContext, *keep: str) -> Observation:
    brought = run_python.call({"code": code, "keep": keep}, ctx)
    assert isinstance(brought, Observation)
    return brought


def test_executor_reads_files_and_returns_the_requested_ones(ctx: RecordingContext) -> None:
    """Files of the goal and of results are in the same folder, which stays for the next run."""
    code = "print(sum(int(line.split(',')[1]) for line in open('carts.csv').readlines()[1:]) * int(open('made.txt').read()))"
    assert _run(code, ctx).text == "294\nFiles: carts.csv, made.txt"
    _run("open('sum.txt', 'w').write('294')", ctx)
    brought = _run("print(open('sum.txt').read())", ctx, "sum.txt", "lost.txt")
    assert brought.text.splitlines()[0::2] == ["294", "Not kept, since there is no such file: lost.txt"]
    assert [path.read_text() for path in brought.files] == ["294"]


def test_nothing_outside_is_handed_out(ctx: RecordingContext, tmp_path: Path) -> None:
    """A link that code leaves is no file of its folder, so that no secret of the agent's own user becomes a result."""
    (tmp_path / "secret").write_text("secret")
    code = f"import os; os.symlink({str(tmp_path / 'secret')!r}, 'link.txt')"
    for name in ("link.txt", "../../secret"):
        brought = _run(code if name == "link.txt" else "", ctx, name)
        assert brought.files == [] and "no such file" in brought.text
