"""An agent that writes a program, tests it and delivers it, with a file tool and a shell. Guards approve its calls.

The sandbox is the wall: nothing that is written or run can reach outside of the task's folder. The guards come before it: they tell
the model what it is not to try, and in a sentence from which it can do better. What a quorum of critics costs is counted for the
goal; add `quorum("…", of=3, need=2)` where a second opinion is worth it. One tool writes outside of the sandbox, into the folder
DELIVER_TO, and each call of it waits until the goal's user approves it: `ioa waiting`, `ioa answer ITEM --choose approve`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ioa import InvalidInputError, TaskContext, sandbox
from ioa.guards import Call, confirm, deny, guarded, once
from ioa.react import Observation, ReactAgent, tool
from ioa.sandbox import SandboxLimits, level_here

_TEXT_BYTES = 100_000
"""What an argument of a command may hold, with room to spare."""
_OUTPUT_CHARS = 6_000
_WRITE = """\
import pathlib, sys
path = pathlib.Path(sys.argv[1])
path.parent.mkdir(parents=True, exist_ok=True)
path.write_text(sys.argv[2])"""


@tool
def write_file(path: str, text: str, ctx: TaskContext) -> str:
    """Write a text file of the project, in the place of an older one of that name.

    Args:
        path: Where, such as `tests/test_sums.py`; `/` is between folders.
        text: All of it.
        ctx: The task.
    """
    if len(text.encode()) > _TEXT_BYTES:
        raise InvalidInputError(f"The text is longer than {_TEXT_BYTES:,} bytes.", hint="Write several files.")
    reason, told = _run([sys.executable, "-I", "-c", _WRITE, path, text], ctx)
    return f"It was not written: it {reason}.\n{told}" if reason else f"{path} is written."


@tool
def bash(command: str, ctx: TaskContext, keep: Sequence[str] = ()) -> Observation:
    """Run a shell command in the project's folder, such as `python -m unittest`; returns its output.

    There is no network and no environment. Files stay for the next command.

    Args:
        command: The command.
        ctx: The task.
        keep: Names of files that belong to the task's result, such as `sums.py`.
    """
    reason, told = _run(["/bin/sh", "-c", command], ctx)
    there = [name for name in keep if _is_own(_box(ctx), name)]
    lines = [f"The command {reason}.", told] if reason else [told or "It printed nothing."]
    lines += [f"Not kept, since there is no such file: {name}" for name in keep if name not in there]
    return Observation("\n".join(lines), [_box(ctx) / name for name in there])


@tool
def deliver(name: str, ctx: TaskContext) -> str:
    """Write a file of the project into the operator's folder, outside of the sandbox. The operator is asked first.

    Args:
        name: Which, such as `sums.py`.
        ctx: The task.
    """
    if not _is_own(_box(ctx), name):
        raise InvalidInputError(f"There is no file {name}.")
    folder = Path(os.environ.get("DELIVER_TO", "delivered"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PurePosixPath(name).name).write_bytes((_box(ctx) / name).read_bytes())
    return f"{name} is delivered."


def stays_inside(call: Call, _ctx: TaskContext) -> str | None:
    """Reject names that lead out of the project's folder."""
    given = call.arguments
    named = [given.get("path", ""), given.get("name", ""), *given.get("command", "").split(), *given.get("keep", ())]
    if any(".." in PurePosixPath(name.strip("'\"")).parts or name.startswith(("/", "~")) for name in named):
        return "Only what is in the project's folder is there; name files from it, without `..` and a `/` in front."
    return None


def _run(command: Sequence[str], ctx: TaskContext) -> tuple[str, str]:
    """Run a command in the sandbox; return its failure, if any, and its output."""
    box, output = _box(ctx), ctx.workspace / "output.txt"
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    reason = sandbox.run(
        command, box, SandboxLimits(), level_here(),
        output=output, environment={"HOME": str(box), "PATH": path}, cancelled=lambda: ctx.cancelled,
    )  # fmt: skip
    with output.open(encoding="utf-8", errors="replace") as printed:
        return reason, printed.read(_OUTPUT_CHARS).rstrip()


def _box(ctx: TaskContext) -> Path:
    box = ctx.workspace / "box"
    box.mkdir(exist_ok=True)
    return box


def _is_own(box: Path, name: str) -> bool:
    """Return whether a file is in the box, and no link leads to it: the content of the box is untrusted."""
    parts = PurePosixPath(name).parts
    steps = [box.joinpath(*parts[:number]) for number in range(1, len(parts) + 1)]
    is_inside = bool(parts) and ".." not in parts and not name.startswith("/")
    return is_inside and not any(step.is_symlink() for step in steps) and steps[-1].is_file()


agent = ReactAgent(
    "engineer",
    description="Writes small programs in Python with tests, and runs the tests before it hands them over.",
    examples=["write a function that adds up amounts in words, with tests", "mend this script and prove that it works"],
    tags=["python", "code"],
    needs_sandbox=True,
    tools=[
        *guarded([write_file], stays_inside, once()),
        *guarded([bash], stays_inside, deny("rm -rf", "sudo ")),
        *guarded([deliver], stays_inside, once(), confirm("operator")),
    ],
    max_steps=16,
    instructions="Write the program, then its test, and run it. Hand over what passed, and keep the files that were asked for.",
)

if __name__ == "__main__":
    agent.run()
