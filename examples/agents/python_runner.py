"""Run a Python snippet or script in a sandbox and return what it printed and the files it wrote.

It has a folder of its own with copies of the task's inputs, no environment and no network. A script is run as Python runs it; of
a snippet the value of a last expression is printed as well. What the sandbox stops and leaves open is in docs/security.md; where
there is none the agent does not start.
"""

import ast
import os
import re
import shutil
import sys
from filecmp import cmp
from pathlib import Path

from ioa import Agent, DeclinedError, InputFile, InvalidInputError, TaskContext, TaskError, sandbox
from ioa.files import came, pick
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
_FENCE = re.compile(r"```[ \t]*+(?:(?:python|py)[\d.]*\b)?[ \t]*+\n?(?P<code>.*?)```", re.DOTALL | re.IGNORECASE)
_INLINE, _NAME = re.compile(r"`(?P<code>[^`]+)`"), re.compile(r"(?<!\S)\S+\.py\b")
_WORDS = frozenset(
    "please run execute evaluate this that the a an following attached below python python3 py code snippet script program "
    "expression file files in with using and what does print prints write writes return returns show give me tell its it output "
    "result value of from".split()
)
_HINT = "Code is run as it is. Say 'run this code:' and the code in backticks, and nothing else."
_FILES, _OUTPUT_CHARS = 20, 20_000


_SNIPPET = ".snippet.py"
_RUN_SNIPPET = f"""
import ast, sys, traceback, types
name, runner, sys.modules["__main__"] = {_SNIPPET!r}, sys.modules["__main__"], types.ModuleType("__main__")
sys.argv, sys.displayhook = [name], lambda value: None if value is None else print(value)
sys.excepthook = lambda kind, error, trace: traceback.print_exception(kind, error, trace and trace.tb_next)
with open(name, encoding="utf-8") as file: tree = ast.parse(file.read())
last = [tree.body.pop()] if tree.body and isinstance(tree.body[-1], ast.Expr) else []
for code in [compile(tree, name, "exec"), compile(ast.Interactive(last), name, "single")]: exec(code, vars(sys.modules["__main__"]))
"""
"""Compiles a snippet as it is, so that errors show its own lines, and its last expression as an interactive session does."""


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Run the snippet that the task holds, or the `.py` file it names."""
    return run_code(_code(task, ctx), ctx)


def run_code(code: str | InputFile, ctx: TaskContext, limits: SandboxLimits = SandboxLimits()) -> str:
    """Run code in a fresh folder; return what it printed, attach what it wrote. TaskError: it failed, or ran out of a limit."""
    box, output = ctx.workspace / "run", ctx.workspace / "output.txt"
    box.mkdir(parents=True, exist_ok=True)
    script = [] if isinstance(code, str) else [code]
    given = {file.name: file.path for file in (*ctx.inputs, *script)}
    for name, path in given.items():
        shutil.copyfile(path, box / name)
    if isinstance(code, str):
        (box / _SNIPPET).write_text(code, encoding="utf-8")
    command = ["-I", "-c", _RUN_SNIPPET] if isinstance(code, str) else ["-E", "-s", str(box / code.name)]
    reason = sandbox.run(
        [sys.executable, *command], box, limits, level_here(os.environ.get(SETTING, AUTO)), output=output,
        readable=(Path("/etc/fonts"),), environment={"HOME": str(box)}, cancelled=lambda: ctx.cancelled,
    )  # fmt: skip
    printed = output.read_text(encoding="utf-8", errors="replace").replace(f"{box}/", "")
    if reason:
        raise TaskError(f"The code {reason}.", hint=printed[:_OUTPUT_CHARS][-2_000:].strip())
    if (more := len(printed) - _OUTPUT_CHARS) > 0:
        printed = f"{printed[:_OUTPUT_CHARS]}\n… {more} more characters were cut."
    (box / _SNIPPET).unlink(missing_ok=True)
    written = [path for path in sorted(box.iterdir()) if path.is_file() and not path.is_symlink()]
    changed = [one for one in written if one.name not in given or not cmp(one, given[one.name], shallow=False)][:_FILES]
    for path in changed:
        ctx.artifact(path.name, path.read_bytes())
    attached = f"\nFiles: {', '.join(path.name for path in changed)}" if changed else ""
    return (printed.rstrip() or "The code printed nothing.") + attached


def _code(task: str, ctx: TaskContext) -> str | InputFile:
    """Find the code. What stands around it must ask for nothing but to run it."""
    pattern = _FENCE if _FENCE.search(task) else _INLINE
    code, *more = [found["code"].strip("\n") for found in pattern.finditer(task)] or [""]
    if more:
        raise InvalidInputError("The task holds several pieces of code.", hint="Ask for each in a sentence of its own.")
    scripts = [] if code else pick(task, ctx, (".py",))
    if not code and not scripts:
        raise DeclinedError("The task holds no Python code.", hint=f"Put it between ``` fences, or send a .py file. {came(ctx)}")
    around = (pattern if code else _NAME).sub(" ", task).lower()
    account_for(around, _WORDS, _HINT)
    if around.strip(" .!?") and not re.match(r"\W*(?:please )?(?:run|execute|evaluate|what does)\b", around):
        raise DeclinedError(f"{task[:200]!r} does not ask to run it.", hint=_HINT)
    if len(scripts) > 1:
        raise InvalidInputError("Which script to run is not said.", hint=came(ctx))
    return _valid(code) if code else scripts[0]


def _valid(code: str) -> str:
    try:
        ast.parse(code)
    except SyntaxError as error:
        raise InvalidInputError(f"The code is not valid Python: line {error.lineno}: {error.msg}.") from None
    return code
