"""The Python runner: real processes, real limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioa.agent.task_context import InputFile
from ioa.errors import TaskError
from ioa.sandbox import SandboxLimits
from ioa.testing.task_context import RecordingContext, input_file
from python_runner import agent, run_script
from tests.unit.examples.agent_run import Run


def _script(folder: Path, code: str) -> InputFile:
    path = folder / "code.py"
    path.write_text(code)
    return input_file(path)


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
def test_output(task: str, expected: str, run: Run) -> None:
    """The answer is what the code prints."""
    assert run(agent, task).text == expected


def test_script_with_input(run: Run, tmp_path: Path, data: Path) -> None:
    """A script reads the goal's files by name; a file it writes is attached, a file it only reads is not."""
    script = tmp_path / "count.py"
    script.write_text("rows = open('sales.csv').read().splitlines()\nopen('count.txt', 'w').write(str(len(rows) - 1))\n")
    done = run(agent, "run count.py", [script, data / "sales.csv"])
    assert (done.text.splitlines()[-1], done.files) == ("Files: count.txt", {"count.txt": b"500"})


@pytest.mark.parametrize(
    ("code", "limits", "said"),
    [
        ("x = bytearray(900_000_000)", SandboxLimits(memory_bytes=400_000_000), "MemoryError"),
        ("1 / 0", SandboxLimits(), "ZeroDivisionError"),
        ("raise SystemExit(3)", SandboxLimits(), "status 3"),
    ],
)
def test_limits(code: str, limits: SandboxLimits, said: str, tmp_path: Path) -> None:
    """The error names the limit, or contains the traceback."""
    with pytest.raises(TaskError) as error:
        run_script(RecordingContext(tmp_path), _script(tmp_path, code), limits)
    assert said in str(error.value)
    assert str(tmp_path) not in error.value.hint


def test_long_output_is_cut(tmp_path: Path) -> None:
    """The answer contains the number of removed characters."""
    text = run_script(RecordingContext(tmp_path), _script(tmp_path, "print('x' * 20_100)"))
    assert text == "x" * 20_000 + "\n… 101 more characters were cut."


def test_code_that_is_no_python_fails_with_the_line(run: Run) -> None:
    """As Python reports it."""
    with pytest.raises(TaskError, match=r'(?s)File "\.snippet\.py", line 2\n    def f\(.*SyntaxError'):
        run(agent, _snippet("x = 1\ndef f("))


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
