"""Programs as agents: their input, and their limits."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ioa import InvalidInputError, TaskContext, TaskError, adopt
from ioa.hosting.agent import Agent
from ioa.testing import RecordingContext, input_file, upstream

TELLS = """
import json, os, sys
order = json.loads(sys.stdin.readline())
order["texts"] = [open(file["path"]).read() for file in order["inputs"] + order["results"][0]["files"]]
order["environment"] = sorted(os.environ)
print(json.dumps({"result": json.dumps(order)}))
"""
REACHES_OUT = """
import json, os
os.symlink("/etc/passwd", "link")
print(json.dumps({"artifact": {"name": "passwd", "path": PATH}}))
print(json.dumps({"result": "there"}))
"""

PRINTS = "import json, os, signal; os.write(1, b'%s\\n' * %d); "
ANSWERS = """print('{"result": "there"}')"""


def _program(code: str, *, sandbox: bool = True) -> Agent:
    return adopt.command("program", [sys.executable, "-c", code], description="Runs", sandbox=sandbox)


def _run(agent: Agent, ctx: TaskContext) -> str:
    answer = agent.function("do it", ctx)
    assert isinstance(answer, str)
    return answer


def test_program_receives_the_task_and_the_named_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paths of its files are relative, with and without a sandbox."""
    monkeypatch.setenv("GIVEN", "1")
    monkeypatch.setenv("WITHHELD", "1")
    (tmp_path / "cars.csv").write_text("a\nb\n")
    (tmp_path / "note.txt").write_text("seven")
    ctx = RecordingContext(
        tmp_path,
        goal="Count",
        inputs=[input_file(tmp_path / "cars.csv")],
        results=[upstream("count the cars", "Seven.", tmp_path / "note.txt")],
        attempt=2,
    )
    agent = adopt.command("teller", [sys.executable, "-c", TELLS], description="Returns its input", env=["GIVEN", "NOT_THERE"])
    told = json.loads(_run(agent, ctx))
    assert (told["task"], told["goal"], told["goal_id"], told["task_id"], told["attempt"]) == (
        "do it", "Count", "goal-1", "task-1", 2
    )  # fmt: skip
    assert told["texts"] == ["a\nb\n", "seven"]
    assert told["results"][0] | {"files": []} == {
        "task_id": "t0", "agent_id": "earlier-agent", "task": "count the cars", "content": "Seven.", "rejected": "", "files": []
    }  # fmt: skip
    assert (
        {"GIVEN", "HOME", "PATH"}
        <= set(told["environment"])
        <= {"GIVEN", "HOME", "PATH", "LC_CTYPE", "PWD", "OLDPWD", "SHLVL", "_"}
    )


@pytest.mark.parametrize("path", ["link", "/etc/passwd", "../../etc/passwd", "missing"])
def test_file_outside_of_the_folder_is_not_attached(path: str, tmp_path: Path) -> None:
    """The agent does not read a file for an untrusted program."""
    ctx = RecordingContext(tmp_path)
    with pytest.raises(TaskError, match="has made no file 'passwd' in its folder"):
        _run(_program(REACHES_OUT.replace("PATH", repr(path)), sandbox=False), ctx)
    assert ctx.artifacts == []


def test_program_runs_in_a_sandbox_by_default(tmp_path: Path) -> None:
    """Its card requires a sandbox."""
    assert (_program("").needs_sandbox, _program("", sandbox=False).needs_sandbox) == (True, False)
    with pytest.raises(TaskError, match="A sandbox hides the network and all files but the system's"):
        _run(_program(f"open({str(tmp_path / 'outside')!r}, 'w')"), RecordingContext(tmp_path))
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("print('hello')", "ended without a result; its last line is 'hello'. Its last line must"),
        ("import sys; sys.exit('no \\x1b[2J vase')", "ended with status 1 without a result; its last line is 'no ␛[2J vase'."),
        ('print(\'{"error": "no vase"}\')', "failed: no vase"),
        ("print('{\"result\": 7}')", "is int, not text"),
        (
            """for number in range(101): print('{"artifact": {"name": "%d"}}' % number)\nprint('{"error": "no vase"}')""",
            "has made more than 100 files",
        ),
        ('print(\'{"progress": "x", "fraction": 7}\')', "`fraction` must be between 0 and 1"),
        ('print(\'{"progress": "x", "fraction": \' + "9" * 400 + "}")', "`fraction` must be between 0 and 1"),
    ],
)
def test_error_names_the_failure(code: str, why: str, tmp_path: Path) -> None:
    """In the words of the program, without control characters."""
    with pytest.raises((TaskError, InvalidInputError)) as raised:
        _run(_program(code, sandbox=False), RecordingContext(tmp_path))
    assert why in str(raised.value)


def test_all_lines_are_read_at_the_end(tmp_path: Path) -> None:
    """Also a long line."""
    ctx = RecordingContext(tmp_path)
    code = PRINTS % ('{"progress":"x"}', 5_000) + "print(json.dumps({'result': 'x' * 3_000_000}), end='')"
    assert (len(_run(_program(code, sandbox=False), ctx)), len(ctx.reports)) == (3_000_000, 5_000)


def test_command_must_be_a_list() -> None:
    """A shell would split a text differently."""
    with pytest.raises(InvalidInputError, match="has no command"):
        adopt.command("program", "ls -l", description="Runs")


def test_relative_files_of_a_command_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative to the folder at the definition, also in a sandbox."""
    (tmp_path / "prog.py").write_text("import json, sys; print(json.dumps({'result': open(sys.argv[1]).read()}))")
    (tmp_path / "words.txt").write_text("bonjour")
    monkeypatch.chdir(tmp_path)
    agent = adopt.command("program", [sys.executable, "prog.py", "words.txt"], description="Runs")
    monkeypatch.chdir("/")
    assert _run(agent, RecordingContext(tmp_path)) == "bonjour"
