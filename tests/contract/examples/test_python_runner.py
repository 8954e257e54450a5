"""The Python runner: real processes, real limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioa.errors import TaskError
from python_runner import agent
from tests.unit.examples.agent_run import Run


def _snippet(code: str) -> str:
    return f"run\n```python\n{code}\n```"


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (_snippet("print(sum(range(10)))"), "45"),
        ("run\n```\nprint('a')\n\nprint('b')\n```", "a\nb"),
        (_snippet("x = 1"), "The code printed nothing."),
    ],
)
def test_runner_returns_the_printed_output(task: str, expected: str, run: Run) -> None:
    """The answer is what the code prints."""
    assert run(agent, task).text == expected


def test_script_reads_inputs_and_attaches_new_files(run: Run, tmp_path: Path, data: Path) -> None:
    """A script reads the goal's files by name; a file it writes is attached, a file it only reads is not."""
    script = tmp_path / "count.py"
    script.write_text("rows = open('sales.csv').read().splitlines()\nopen('count.txt', 'w').write(str(len(rows) - 1))\n")
    done = run(agent, "run count.py", [script, data / "sales.csv"])
    assert (done.text.splitlines()[-1], done.files) == ("Files: count.txt", {"count.txt": b"500"})


def test_a_script_is_run_as_python_runs_it(run: Run, tmp_path: Path) -> None:
    """With its declared encoding, its own modules, and without printing the last value."""
    (tmp_path / "helper.py").write_text("WORD = 'helped'")
    (tmp_path / "old.py").write_bytes(
        "# coding: latin-1\nimport helper\nprint('gr\u00fcn', helper.WORD, __name__)\n1 + 1\n".encode("latin-1")
    )
    assert run(agent, "run old.py", [tmp_path / "old.py", tmp_path / "helper.py"]).text == "grün helped __main__"
    (tmp_path / "bad.py").write_text("x = 1\nprint(x / 0)\n")
    with pytest.raises(TaskError) as error:
        run(agent, "run bad.py", [tmp_path / "bad.py"])
    assert 'File "bad.py", line 2, in <module>\n    print(x / 0)' in error.value.hint
