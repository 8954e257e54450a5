"""Answer by running Python in a sandbox, on the files of the goal and of the results that the task uses.

All runs of a task share a folder. Its content is untrusted: the agent follows no link in it, and does not write into it again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ioa import InvalidInputError, TaskContext, sandbox
from ioa.react import Observation, ReactAgent, tool
from ioa.sandbox import SandboxLimits, level_here

_CODE_BYTES = 100_000
"""What an argument of a command may hold, with room to spare."""
_OUTPUT_CHARS = 6_000


@tool
def run_python(code: str, ctx: TaskContext, keep: Sequence[str] = ()) -> Observation:
    """Run Python code in the folder with the task's files; returns its output, and the names of all files in the folder.

    There is no network and no environment. Files stay for the next run, variables do not.

    Args:
        code: The code. Only printed values are returned.
        ctx: The task.
        keep: Names of files that it writes and that belong to the task's result.
    """
    if len(code.encode()) > _CODE_BYTES:
        raise InvalidInputError(f"The code is longer than {_CODE_BYTES:,} bytes.", hint="Run it in parts.")
    box, output = _box(ctx), ctx.workspace / "output.txt"
    reason = sandbox.run(
        [sys.executable, "-I", "-c", code], box, SandboxLimits(), level_here(),
        output=output, environment={"HOME": str(box)}, cancelled=lambda: ctx.cancelled,
    )  # fmt: skip
    with output.open(encoding="utf-8", errors="replace") as printed:
        text = printed.read(_OUTPUT_CHARS).rstrip() or "The code printed nothing."
    files = {path.name: path for path in sorted(box.iterdir()) if path.is_file() and not path.is_symlink()}
    told = [text, f"Files: {', '.join(files) or 'none'}"]
    if reason:
        return Observation("\n".join([f"The code {reason}.", *told]))
    if lost := [name for name in keep if name not in files]:
        told.append(f"Not kept, since there is no such file: {', '.join(lost)}")
    return Observation("\n".join(told), [files[name] for name in keep if name in files])


def _box(ctx: TaskContext) -> Path:
    """Return the folder of the task, with copies of its files from the first run on."""
    box = ctx.workspace / "box"
    if not box.exists():
        sandbox.lay({file.name: file.path for file in ctx.files}, box)
    return box


agent = ReactAgent(
    "code-executor",
    description="Computes by writing and running Python code in a sandbox: figures, tables, and files that it reads and writes.",
    examples=["compute the total of a column of the CSV file with Python", "run Python code to multiply these figures"],
    tags=["python", "code"],
    needs_sandbox=True,
    tools=[run_python],
    instructions="Compute nothing in your head. Look at a file before you rely on its columns. Keep the files that were asked for.",
)

if __name__ == "__main__":
    agent.run()
