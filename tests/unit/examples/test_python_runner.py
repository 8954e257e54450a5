"""The Python runner: real processes, real limits."""

from __future__ import annotations

import fcntl
from datetime import timedelta
from pathlib import Path

import pytest

import csv_analyst
from ioa.agent.definition import InputFile
from ioa.errors import DeclinedError, InvalidInputError, TaskError
from ioa.sandbox import SandboxLimits
from ioa.testing.task_context import RecordingContext, input_file, upstream
from python_runner import agent, run_script
from tests.unit.examples.agent_run import Run


def _script(folder: Path, code: str) -> InputFile:
    path = folder / "code.py"
    path.write_text(code)
    return input_file(path)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("run this: ```python\nprint(sum(range(10)))\n```", "45"),
        ("execute `2 ** 10`", "1024"),
        ("run this Python code: `print('a'); print('b')`", "a\nb"),
        ("run ```for i in range(2):\n    print(i)\n'é' * 3```", "0\n1"),
        ("run ```x = 1```", "The code printed nothing."),
        ("run this: ```\n# thrice\n'é' * 3  # as it is\n```", "ééé"),
        ("run `None`", "The code printed nothing."),
        ("what does this python code print: `print([n * n for n in range(4)])`", "[0, 1, 4, 9]"),
        ("run this code: `'a' in ['a']`", "True"),
    ],
)
def test_output(task: str, expected: str, run: Run) -> None:
    """What the code prints comes back; of an expression its value does."""
    assert run(agent, task).text == expected


def test_script_with_input(run: Run, tmp_path: Path, data: Path) -> None:
    """A script reads the goal's files by name; a file it writes is attached, a file it only reads is not."""
    script = tmp_path / "count.py"
    script.write_text("rows = open('sales.csv').read().splitlines()\nopen('count.txt', 'w').write(str(len(rows) - 1))\n")
    done = run(agent, "run count.py", [script, data / "sales.csv"])
    assert (done.text.splitlines()[-1], done.files) == ("Files: count.txt", {"count.txt": b"500"})


def test_earlier_script(run: Run, tmp_path: Path) -> None:
    """A script that an earlier task attached is run."""
    script = tmp_path / "made.py"
    script.write_text("print('made earlier')")
    assert run(agent, "run it", results=[upstream("write a script", "made.py", script)]).text == "made earlier"


def test_several_scripts(run: Run, tmp_path: Path) -> None:
    """Of several scripts none is run before it is named."""
    scripts = [tmp_path / "one.py", tmp_path / "two.py"]
    for script in scripts:
        script.write_text(f"print({script.stem!r})")
    assert run(agent, "run two.py", scripts).text == "two"
    with pytest.raises(InvalidInputError, match="Which script to run is not said"):
        run(agent, "run the script", scripts)


def test_isolation(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process inherits no environment, and runs in a folder of its own, which is its home."""
    monkeypatch.setenv("IOA_SECRET", "do not tell")
    code = "import os\nprint(os.environ.get('IOA_SECRET'), os.listdir() == ['.snippet.py'], os.path.expanduser('~') == os.getcwd())"
    assert run(agent, f"run ```{code}```").text == "None True True"


@pytest.mark.parametrize(
    ("code", "limits", "said"),
    [
        ("while True: pass", SandboxLimits(cpu=timedelta(seconds=1)), "more than 1 seconds of processor time"),
        (
            "input_never = __import__('threading').Event().wait()",
            SandboxLimits(wall_clock=timedelta(seconds=0.3)),
            "did not end within 0.3 seconds",
        ),
        ("x = bytearray(900_000_000)", SandboxLimits(memory_bytes=400_000_000), "MemoryError"),
        ("open('big', 'wb').write(b'x' * 200_000)", SandboxLimits(file_bytes=100_000), "File too large"),
        ("1 / 0", SandboxLimits(), "ZeroDivisionError"),
        ("raise SystemExit(3)", SandboxLimits(), "status 3"),
    ],
)
def test_limits(code: str, limits: SandboxLimits, said: str, tmp_path: Path) -> None:
    """Code that breaks a limit, or fails, is an error that says which and shows the traceback."""
    with pytest.raises(TaskError) as error:
        run_script(_script(tmp_path, code), RecordingContext(tmp_path), limits)
    assert said in str(error.value)
    assert str(tmp_path) not in error.value.hint


def test_long_output_is_cut(tmp_path: Path) -> None:
    """Output beyond the limit is cut, and the answer says by how much."""
    text = run_script(_script(tmp_path, "print('x' * 20_100)"), RecordingContext(tmp_path))
    assert text == "x" * 20_000 + "\n… 101 more characters were cut."


def test_cancel_kills_the_whole_group(tmp_path: Path) -> None:
    """Cancelling ends the code and every process it started."""
    code = "import fcntl, os, signal\nfcntl.flock(1, fcntl.LOCK_EX)\nif os.fork(): print('it runs', flush=True)\nsignal.pause()"

    class CancelledOnceItRuns(RecordingContext):
        @property
        def cancelled(self) -> bool:
            output = self.workspace / "output.txt"
            return output.exists() and output.read_text().strip() != ""

        @cancelled.setter
        def cancelled(self, value: bool) -> None:
            pass

    with pytest.raises(TaskError, match="was cancelled"):
        run_script(_script(tmp_path, code), CancelledOnceItRuns(tmp_path))
    with (tmp_path / "output.txt").open() as output:  # locked as long as anybody lives who inherited it
        fcntl.flock(output, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_refusals(run: Run) -> None:
    """Without code nothing is run, and of what is no Python Python says where it is none."""
    with pytest.raises(InvalidInputError, match="holds no Python code"):
        run(agent, "run the thing")
    with pytest.raises(TaskError, match=r'(?s)File "\.snippet\.py", line 2\n    def f\(.*SyntaxError'):
        run(agent, "run ```x = 1\ndef f(```")


@pytest.mark.parametrize(
    "task",
    [
        "add 5 to the result of “Run `print(6*7)` in Python”",
        "explain this code: ```print(1)```",
        "run `print(1)` every minute",
        "find the bug in: `print(1)`",
        "translate script.py into Rust",
        "what does script.py do",
        "```python\nprint(1)\n```\nRun other.py",
    ],
)
def test_what_is_not_running_is_refused(task: str, run: Run, tmp_path: Path) -> None:
    """What a code prints is no answer to who wants something else of it."""
    (tmp_path / "script.py").write_text("print(1)")
    with pytest.raises(InvalidInputError, match=r"not understood here.*Code is run as it is"):
        run(agent, task, [tmp_path / "script.py"])


@pytest.mark.parametrize("fence", ["```js", "``` sql", "```c++", "```pycon"])
def test_code_in_another_language_fails(fence: str, run: Run) -> None:
    """Its name is no Python, so that nothing of it is run: what it says may be Python, too, by chance."""
    with pytest.raises((InvalidInputError, TaskError), match=r"is not defined|SyntaxError"):
        run(agent, f"run this:\n{fence}\nprint(1)\n```")


@pytest.mark.parametrize("fence", ["```", "```py", "```Python", "``` python", "```python3.12"])
def test_code_in_python_is_run(fence: str, run: Run) -> None:
    """Whichever way its language is written."""
    assert run(agent, f"run this:\n{fence}\nprint(1)\n```").text == "1"


@pytest.mark.parametrize(
    "task", ["show made.py", "print the code in made.py", "give me made.py", "show made.py and run it", "write made.py"]
)
def test_what_asks_for_the_code_itself_is_not_run(task: str, run: Run, tmp_path: Path) -> None:
    """What a script prints is no answer to who wants to see it."""
    (tmp_path / "made.py").write_text("print(5)")
    with pytest.raises(DeclinedError, match="does not ask to run it"):
        run(agent, task, [tmp_path / "made.py"])


def test_of_several_snippets_none_is_run(run: Run) -> None:
    """Else the value of the last alone would be told."""
    with pytest.raises(InvalidInputError, match="several pieces of code"):
        run(agent, "run `2+3` and `4+5`")


def test_errors_show_the_line_that_was_written(run: Run) -> None:
    """The last one, too, and nothing of what ran it."""
    with pytest.raises(TaskError, match=r'File "\.snippet\.py", line 2, in <module>'):
        run(agent, "run ```# an expression\n1 / 0```")
    with pytest.raises(TaskError) as error:
        run(agent, "run ```def f(x):\n    return 1 / x\n\n# here\nf( 0 )  # fails```")
    assert [line.strip() for line in error.value.hint.splitlines() if "^" not in line] == [
        "Traceback (most recent call last):",
        'File ".snippet.py", line 5, in <module>',
        "f( 0 )  # fails",
        'File ".snippet.py", line 2, in f',
        "return 1 / x",
        "ZeroDivisionError: division by zero",
    ]


def test_a_snippet_is_a_main_module(run: Run) -> None:
    """Nothing that it did not import is there, and what it defines is found by its module."""
    code = "import pickle\nclass A: pass\na = pickle.loads(pickle.dumps(A()))\nprint(__name__, type(a) is A)\nprint('ast' in dir())"
    assert run(agent, f"run ```{code}```").text == "__main__ True\nFalse"


def test_a_script_is_run_as_python_runs_it(run: Run, tmp_path: Path) -> None:
    """In the encoding that it declares, beside modules of its own, and without showing a last value."""
    (tmp_path / "helper.py").write_text("WORD = 'helped'")
    (tmp_path / "old.py").write_bytes(
        "# coding: latin-1\nimport helper\nprint('gr\u00fcn', helper.WORD, __name__)\n1 + 1\n".encode("latin-1")
    )
    assert run(agent, "run old.py", [tmp_path / "old.py", tmp_path / "helper.py"]).text == "grün helped __main__"
    (tmp_path / "bad.py").write_text("x = 1\nprint(x / 0)\n")
    with pytest.raises(TaskError) as error:
        run(agent, "run bad.py", [tmp_path / "bad.py"])
    assert 'File "bad.py", line 2, in <module>\n    print(x / 0)' in error.value.hint


def test_a_name_in_backticks_is_the_files(run: Run, tmp_path: Path) -> None:
    """It is no code; beside code it is not told which of them is meant."""
    (tmp_path / "primes.py").write_text("print(5)")
    assert run(agent, "Run `primes.py`", [tmp_path / "primes.py"]).text == "5"
    with pytest.raises(InvalidInputError, match=r"'primes.py' did not come"):
        run(agent, "Run `primes.py`")
    with pytest.raises(InvalidInputError, match=r"several pieces of code"):
        run(agent, "Run `primes.py` and `print(3)`", [tmp_path / "primes.py"])


@pytest.mark.parametrize("task", ["Run primes.py on b.csv", "Run primes.py with 10", "run primes.py --fast"])
def test_a_script_gets_no_arguments(task: str, run: Run, tmp_path: Path) -> None:
    """Who asks for it is told so by who runs scripts, and by no reader of tables."""
    files = [tmp_path / "primes.py", tmp_path / "b.csv"]
    files[0].write_text("print(5)")
    files[1].write_text("n\n1\n")
    with pytest.raises(InvalidInputError, match=r"not understood here.*without arguments.*Say 'run primes.py'") as refused:
        run(agent, task, files)
    assert not isinstance(refused.value, DeclinedError)
    with pytest.raises(DeclinedError, match=r"primes.py is no table"):
        run(csv_analyst.agent, "Run primes.py on b.csv", files)


def test_files_that_are_not_attached_are_told(run: Run) -> None:
    """A result has so many files at most, and none of folders."""
    code = "import os; os.mkdir('out'); [open(name, 'w').close() for name in ('out/x', *(f'f{at:02}' for at in range(30)))]"
    done = run(agent, f"Run `{code}`")
    assert len(done.files) == 20
    assert done.text.endswith("\nNot attached: 11 more files, or files in folders.")


def test_code_that_is_to_be_shown_is_not_run(run: Run, tmp_path: Path) -> None:
    """What it prints is something else."""
    (tmp_path / "a.py").write_text("print(5)")
    with pytest.raises(DeclinedError, match="does not ask to run it"):
        run(agent, "Run a.py and give me the code", [tmp_path / "a.py"])
