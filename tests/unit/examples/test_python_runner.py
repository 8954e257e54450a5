"""The Python runner: real processes, real limits."""

from __future__ import annotations

import fcntl
import re
from datetime import timedelta
from pathlib import Path

import pytest

import csv_analyst
import text_analyst
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
        run_script(RecordingContext(tmp_path), _script(tmp_path, code), limits=limits)
    assert said in str(error.value)
    assert str(tmp_path) not in error.value.hint


def test_long_output_is_cut(tmp_path: Path) -> None:
    """Output beyond the limit is cut, and the answer says by how much."""
    text = run_script(RecordingContext(tmp_path), _script(tmp_path, "print('x' * 20_100)"))
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
        run_script(CancelledOnceItRuns(tmp_path), _script(tmp_path, code))
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


@pytest.mark.parametrize(("fence", "language"), [("```js", "js"), ("``` sql", "sql"), ("```c++", "c++"), ("```pycon", "pycon")])
def test_code_in_another_language_is_refused(fence: str, language: str, run: Run) -> None:
    """By the name of the language, so that nothing of it is run: what it says may be Python, too, by chance."""
    with pytest.raises(InvalidInputError, match=re.escape(f"its code is {language}, and Python alone")):
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


@pytest.mark.parametrize("wish", ["show me the code", "give me the script", "return the program", "the code"])
def test_who_wants_to_see_the_code_too_is_refused(wish: str, run: Run, tmp_path: Path) -> None:
    """What it prints is half of it."""
    (tmp_path / "primes.py").write_text("print(5)")
    with pytest.raises(InvalidInputError, match=r"asks for more.*Say 'run primes.py'"):
        run(agent, f"Run primes.py and {wish}", [tmp_path / "primes.py"])


@pytest.mark.parametrize(
    "task",
    [
        "Run primes.py and show me the output of the script",
        "run primes.py, then give me its result",
        "Execute the script primes.py and tell me what it prints",
        "what does primes.py print?",
        "primes.py: run this script and return the value",
        "Run the attached script with Python.",
    ],
)
def test_what_it_comes_to_is_told(task: str, run: Run, tmp_path: Path) -> None:
    """In whichever words it is asked for."""
    (tmp_path / "primes.py").write_text("print(5)")
    assert run(agent, task, [tmp_path / "primes.py"]).text == "5"


def test_two_scripts_are_run_one_by_one(run: Run, tmp_path: Path) -> None:
    """Which ones was said."""
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("print(5)")
    with pytest.raises(InvalidInputError, match=r"One script is run at a time.*Say 'run one.py', and each in a sentence"):
        run(agent, "Run one.py and two.py", [tmp_path / "one.py", tmp_path / "two.py"])


def test_a_file_that_is_asked_for_is_written(run: Run) -> None:
    """Else the request is done by half."""
    with pytest.raises(TaskError, match=r"wrote no file.*It printed: 5"):
        run(agent, "Run `print(5)` and give me the file it writes")
    for asked in ("give me the file", "send us the file", "display the file"):
        assert run(agent, f"Run `open('a.txt', 'w').write('x')` and {asked}").files == {"a.txt": b"x"}


def test_no_file_that_is_written_is_left_out_in_silence(run: Run) -> None:
    """One in a folder is named after it; what libraries keep of their own is none."""
    many = run(agent, "run ```for i in range(103):\n    open(f'f{i:03}', 'w').write('x')```")
    assert (len(many.files), many.text.rpartition(", f099")[2]) == (100, " … and 3 more, which are not attached")
    code = "import os\nfor name in ('out/in', '.cache/lib'):\n    os.makedirs(name)\n    open(f'{name}/x.csv', 'w').write('x')"
    assert run(agent, f"run ```{code}```").files == {"out-in-x.csv": b"x"}
    linked = "import os\nos.makedirs('a')\nos.symlink('/etc', 'a/b')\nos.symlink('/etc/passwd', 'a/c')"
    assert run(agent, f"run ```{linked}```").files == {}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("os.remove('data.csv')", "removed data.csv, which later requests would still read"),
        ("os.rename('data.csv', 'old.csv')", "removed data.csv"),
        ("os.mkdir('a'); open('a/b.csv', 'w').close(); open('a-b.csv', 'w').close()", "wrote two files of one name"),
    ],
)
def test_what_cannot_be_handed_on_is_a_failure(code: str, said: str, run: Run, tmp_path: Path) -> None:
    """A file that came stays for later requests, and two files of one name would be one: neither happens in silence."""
    data = tmp_path / "data.csv"
    data.write_text("n\n1\n")
    with pytest.raises(TaskError, match=said):
        run(agent, f"run ```import os\n{code}```", inputs=(data,))


def test_what_is_printed_stands_in_its_order(run: Run) -> None:
    """Errors behind what was printed before them."""
    assert run(agent, "run ```import sys\nprint('fine')\nprint('warn', file=sys.stderr)```").text == "fine\nwarn"


def test_the_newest_file_is_read(run: Run, tmp_path: Path) -> None:
    """Where an earlier script wrote it anew, and one that is new can be named."""
    (tmp_path / "new").mkdir()
    for folder, text in ((tmp_path, "n\n1\n2\n"), (tmp_path / "new", "n\n7\n")):
        for name in ("data.csv", "poem.txt"):
            (folder / name).write_text(text)
    (tmp_path / "new" / "made.csv").write_text("n\n8\n9\n")
    (tmp_path / "see.py").write_text("print(open('data.csv').read().split(), open('made.csv').read().split())")
    came = [tmp_path / "data.csv", tmp_path / "poem.txt", tmp_path / "see.py"]
    results = [upstream("run clean.py", "cleaned", *sorted((tmp_path / "new").iterdir()))]
    assert "n: 7 (1 of 1 rows)" in run(csv_analyst.agent, "total n in data.csv", came, results=results).text
    assert "n: 17 (2 of 2 rows)" in run(csv_analyst.agent, "total n in made.csv", came, results=results).text
    assert run(text_analyst.agent, "how many lines in poem.txt", came, results=results).text == "poem.txt: lines: 2"
    assert run(agent, "run see.py", came, results=results).text == "['n', '7'] ['n', '8', '9']"
