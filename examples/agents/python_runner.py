"""Run a Python snippet in a process of its own, with limits, and return what it printed and the files it wrote.

The process has a folder of its own with copies of the task's inputs, no environment, and bounds on processor time, memory, wall
clock, output and file size; the value of a last expression is printed as well. The limits stop accidents. They are not a
sandbox: run this agent under a user, or in a container, that may do no harm.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from ioa import Agent, InvalidInputError, TaskContext, TaskError
from task_files import have, pick_inputs, read_text, upstream_files
from words import account_for

agent = Agent(
    "python-runner",
    description="Runs Python code snippets and scripts in a separate process with time and memory limits; returns the printed "
    "output and the files they wrote.",
    skills=["execute Python code", "run a script"],
    examples=[
        "run this Python code: print(sum(range(10)))", "execute `2 ** 10`", "run script.py",
        "execute the following snippet and return its output", "what does this python code print",
        "run the script and give me the file it writes", "evaluate the python expression `sorted([3, 1, 2])`",
    ],
    tags=["python", "code"],
    may_team_up=False,
)  # fmt: skip
_FENCE = re.compile(r"```(?:python3?|py)?[ \t]*\n?(.*?)```", re.DOTALL | re.IGNORECASE)
_INLINE = re.compile(r"`([^`]+)`")
_AFTER = re.compile(r"[^:\n]*:\s*(.+)$", re.DOTALL)
_BARE = re.compile(
    r"^\s*(?:please\s+)?(?:run|execute|evaluate)\s+(?:the\s+)?(?:python\s+)?(?:code\s+|snippet\s+|expression\s+)?(.+)$",
    re.DOTALL | re.IGNORECASE,
)
_WORDS = frozenset(
    "please run execute evaluate this that the a an following attached below python python3 py code snippet script program "
    "expression file files in with using and what does do print prints write writes return returns show give me tell its it output "
    "result value of from".split()
)
_IN_PYTHON = re.compile(r"\s+in\s+python3?\s*[.!?]?\s*$", re.IGNORECASE)
_HINT = "Code is run as it is. Say 'run this code:' and the code, and nothing else."
_LAUNCHER = """\
import resource, runpy, sys
seconds, memory, size = map(int, sys.argv[1:4])
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sys.argv = sys.argv[4:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Limits:
    """What a snippet may use."""

    cpu: timedelta = timedelta(seconds=10)
    wall_clock: timedelta = timedelta(seconds=30)
    memory_bytes: int = 1 << 30
    file_bytes: int = 10_000_000
    output_chars: int = 20_000
    files: int = 20


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Run the snippet that the task holds, or the `.py` file it names."""
    return run_code(_code(task, ctx), ctx)


def run_code(code: str, ctx: TaskContext, limits: Limits = Limits()) -> str:
    """Run code in a fresh folder; return what it printed, attach what it wrote.

    Raises:
        InvalidInputError: The code is not valid Python.
        TaskError: It failed, ran out of a limit, or was cancelled.
    """
    folder = ctx.workspace / "run"
    folder.mkdir(parents=True, exist_ok=True)
    for file in ctx.inputs:
        shutil.copyfile(file.path, folder / file.name)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    script, output = ctx.workspace / "snippet.py", ctx.workspace / "output.txt"
    script.write_text(_showing_last_value(code))
    reason = _run(script, folder, output, ctx, limits)
    printed = output.read_bytes().decode("utf-8", errors="replace")
    if reason:
        # a traceback without the launcher's own lines, and without the folder in its paths
        own = re.sub(r'  File "<(?:string|frozen runpy)>", line \d+, in .*\n', "", printed[: limits.output_chars])
        raise TaskError(f"The code {reason}.", hint=own.replace(str(script), script.name)[-2_000:].strip())
    if (more := len(printed) - limits.output_chars) > 0:
        printed = f"{printed[: limits.output_chars]}\n… {more} more characters were cut."
    written = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.is_symlink()]
    changed = [path for path in written if before.get(path.name) != path.stat().st_mtime_ns][: limits.files]
    for path in changed:
        ctx.artifact(path.name, path.read_bytes())
    files = f"\nFiles: {', '.join(path.name for path in changed)}" if changed else ""
    return (printed.rstrip() or "The code printed nothing.") + files


def _run(script: Path, folder: Path, output: Path, ctx: TaskContext, limits: Limits) -> str:
    """Run a script until it ends or breaks a limit; say how it failed, or nothing."""
    cpu, wall_clock = max(1, int(limits.cpu.total_seconds())), limits.wall_clock.total_seconds()
    bounds = map(str, (cpu, limits.memory_bytes, limits.file_bytes))
    deadline = time.monotonic() + wall_clock
    with output.open("wb") as stream:
        # A session of its own makes the process leader of a group, so that whatever it starts ends with it.
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _LAUNCHER, *bounds, str(script)],
            cwd=folder, env={}, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            while True:
                try:
                    status = process.wait(timeout=0.05)
                    break
                except subprocess.TimeoutExpired:
                    if ctx.cancelled:
                        return "was cancelled"
                    if time.monotonic() > deadline:
                        return f"did not end within {wall_clock:g} seconds"
        finally:
            with contextlib.suppress(ProcessLookupError):  # the whole group has ended by itself
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"used more than {cpu} seconds of processor time"
    if status == -signal.SIGXFSZ:
        return f"wrote a file of more than {limits.file_bytes} bytes"
    return f"ended with status {status}" if status > 0 else f"was ended by signal {-status}" if status else ""


def _showing_last_value(code: str) -> str:
    """Print the value of a last expression, as an interactive session does."""
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise InvalidInputError(f"The code is not valid Python: line {error.lineno}: {error.msg}.") from None
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        return code
    lines = code.encode().splitlines(keepends=True)  # the columns of a syntax tree count bytes
    head = b"".join([*lines[: last.lineno - 1], lines[last.lineno - 1][: last.col_offset]]).decode()
    return f"{head}_value = ({ast.unparse(last.value)})\nif _value is not None: print(_value)\n"


def _code(task: str, ctx: TaskContext) -> str:
    """Find the code. What stands around it must ask for nothing but to run it."""
    for pattern in (_FENCE, _INLINE):
        if found := pattern.findall(task):
            account_for(pattern.sub(" ", task), _WORDS, _HINT)
            return "\n".join(code.strip("\n") for code in found)
    for pattern in (_AFTER, _BARE):
        if match := pattern.match(task):
            for code in (_IN_PYTHON.sub("", match[1]).strip(), match[1].strip()):
                if _is_python(code):
                    account_for(task[: match.start(1)], _WORDS, _HINT)
                    return code
    scripts = pick_inputs(task, ctx, (".py",)) or upstream_files(ctx, (".py",))
    fences = _FENCE.findall(ctx.goal)
    if not scripts and not fences:
        raise InvalidInputError(
            "The task holds no Python code.", hint=f"Put it between ``` fences, or send a .py file. {have(ctx)}"
        )
    account_for(re.sub(r"\S+\.py\b", " ", task), _WORDS, _HINT)
    if len(scripts) > 1:
        raise InvalidInputError("Which script to run is not said.", hint=have(ctx))
    return read_text(scripts[0].path) if scripts else "\n".join(fence.strip("\n") for fence in fences)


def _is_python(text: str) -> bool:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    bare = len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Name | ast.Attribute)
    return bool(tree.body) and not bare  # a lone word, or `script.py`, is no snippet


if __name__ == "__main__":
    agent.run()
