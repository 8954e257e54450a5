"""Run a Python snippet in a sandbox and return what it printed and the files it wrote.

It has a folder of its own with copies of the task's inputs, no environment and no network; the value of a last expression is
printed as well. What the sandbox stops and leaves open is in docs/security.md; where there is none the agent does not start.
"""

import ast
import os
import re
import shutil
import sys
from filecmp import cmp
from pathlib import Path

from ioa import Agent, DeclinedError, InvalidInputError, TaskContext, TaskError, sandbox
from ioa.files import came, pick, read_text
from ioa.sandbox import AUTO, SETTING, SandboxLimits, level_here
from request import account_for

agent = Agent(
    "python-runner",
    description="Runs Python code snippets and scripts in a separate process with time and memory limits; returns the printed "
    "output and the files they wrote.",
    skills=["execute Python code", "run a script"],
    examples=[
        "run this Python code: `print(sum(range(10)))`", "execute `2 ** 10`", "run script.py",
        "execute the following snippet and return its output", "what does this python code print",
        "run the script and give me the file it writes", "evaluate the python expression `sorted([3, 1, 2])`",
    ],
    tags=["python", "code"], declines=True, may_team_up=False, needs_sandbox=True,
)  # fmt: skip
_FENCE = re.compile(r"```(?:python3?|py)?[ \t]*+\n?(.*?)```", re.DOTALL | re.IGNORECASE)
_INLINE = re.compile(r"`([^`]+)`")
_WORDS = frozenset(
    "please run execute evaluate this that the a an following attached below python python3 py code snippet script program "
    "expression file files in with using and what does do print prints write writes return returns show give me tell its it output "
    "result value of from".split()
)
_HINT = "Code is run as it is. Say 'run this code:' and the code in backticks, and nothing else."
_FILES, _OUTPUT_CHARS = 20, 20_000


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Run the snippet that the task holds, or the `.py` file it names."""
    return run_code(_code(task, ctx), ctx)


def run_code(code: str, ctx: TaskContext, limits: SandboxLimits = SandboxLimits()) -> str:
    """Run code in a fresh folder; return what it printed, attach what it wrote. TaskError: it failed, or ran out of a limit."""
    box, output = ctx.workspace / "run", ctx.workspace / "output.txt"
    box.mkdir(parents=True, exist_ok=True)
    for file in ctx.inputs:
        shutil.copyfile(file.path, box / file.name)
    (box / ".snippet.py").write_text(_showing_last_value(code), encoding="utf-8")
    reason = sandbox.run(
        [sys.executable, "-I", ".snippet.py"], box, limits, level_here(os.environ.get(SETTING, AUTO)), output=output,
        readable=(Path("/etc/fonts"),), environment={"HOME": str(box)}, cancelled=lambda: ctx.cancelled,
    )  # fmt: skip
    printed = output.read_text(encoding="utf-8", errors="replace").replace(f"{box}/.", "")
    if reason:
        raise TaskError(f"The code {reason}.", hint=printed[:_OUTPUT_CHARS][-2_000:].strip())
    if (more := len(printed) - _OUTPUT_CHARS) > 0:
        printed = f"{printed[:_OUTPUT_CHARS]}\n… {more} more characters were cut."
    (box / ".snippet.py").unlink(missing_ok=True)
    given = {file.name: file.path for file in ctx.inputs}
    written = [path for path in sorted(box.iterdir()) if path.is_file() and not path.is_symlink()]
    changed = [one for one in written if one.name not in given or not cmp(one, given[one.name], shallow=False)][:_FILES]
    for path in changed:
        ctx.artifact(path.name, path.read_bytes())
    attached = f"\nFiles: {', '.join(path.name for path in changed)}" if changed else ""
    return (printed.rstrip() or "The code printed nothing.") + attached


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
    scripts = pick(task, ctx, (".py",))
    if not scripts:
        raise DeclinedError("The task holds no Python code.", hint=f"Put it between ``` fences, or send a .py file. {came(ctx)}")
    account_for(re.sub(r"(?<!\S)\S+\.py\b", " ", task), _WORDS, _HINT)
    if len(scripts) > 1:
        raise InvalidInputError("Which script to run is not said.", hint=came(ctx))
    return read_text(scripts[0].path)
