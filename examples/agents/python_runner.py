"""Run a Python snippet or script in a sandbox, in a folder of its own, without network (docs/security.md); tell what it wrote."""

import ast
import os
import re
import shutil
import sys
from contextlib import suppress
from filecmp import cmp
from pathlib import Path

from ioa import Agent, DeclinedError, InputFile, InvalidInputError, TaskContext, TaskError, sandbox
from ioa.files import came, pick
from ioa.sandbox import AUTO, SETTING, SandboxLimits, level_here
from request import account_for, words_in

agent = Agent(
    "python-runner",
    description="Runs Python code snippets and scripts in a separate process with time and memory limits; returns the printed "
    "output and the files they wrote.", skills=["execute Python code", "run a script"], examples=[
        "run this Python code: `print(sum(range(10)))`", "execute `2 ** 10`", "run script.py",
        "execute the following snippet and return its output", "what does this python code print",
        "run the script and give me the file it writes", "evaluate the python expression `sorted([3, 1, 2])`",
    ], tags=["python", "code"], declines=True, may_team_up=False, needs_sandbox=True,
)  # fmt: skip
_FENCE = re.compile(r"```[ \t]*+(?:(?:python|py)[\d.]*\b)?[ \t]*+\n?(?P<code>.*?)```", re.DOTALL | re.IGNORECASE)
_INLINE, _NAME = re.compile(r"`(?P<code>[^`]+)`"), re.compile(r"(?<![^\s`])[^\s`]+\.py\b")
_SHOW, _CODE = frozenset("show give tell return print".split()), frozenset("code snippet script program expression".split())
_ASKS = re.compile(r"\W*(?:please )?(?:run|execute|evaluate|what does)\b")
_WORDS = frozenset(
    "please run execute evaluate this that the a an following attached below python python3 py code snippet script program "
    "expression file files in with using and what does print prints write writes return returns show give me tell its it output "
    "result value of from".split()
)
_HINT = "Code is run as it is. Say 'run this code:' and the code in backticks, and nothing else."
_FILES, _OUTPUT_CHARS = 20, 20_000


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Run the snippet that the task holds, or the `.py` file it names."""
    return run_script(_script(task, ctx), ctx)


def run_script(script: InputFile, ctx: TaskContext, limits: SandboxLimits = SandboxLimits()) -> str:
    """Run a script in a fresh folder; return what it printed, attach what it wrote. TaskError: it failed, or ran out of a limit."""
    box, output = ctx.workspace / "run", ctx.workspace / "output.txt"
    box.mkdir(parents=True, exist_ok=True)
    given = {file.name: file.path for file in (*ctx.inputs, script)}
    for name, path in given.items():
        shutil.copyfile(path, box / name)
    reason = sandbox.run(
        [sys.executable, "-B", "-E", "-s", str(box / script.name)], box, limits, level_here(os.environ.get(SETTING, AUTO)),
        output=output, readable=(Path("/etc/fonts"),), environment={"HOME": str(box)}, cancelled=lambda: ctx.cancelled,
    )  # fmt: skip
    printed = output.read_text(encoding="utf-8", errors="replace").replace(f"{box}/", "")
    if reason:
        raise TaskError(f"The code {reason}.", hint=printed[:_OUTPUT_CHARS][-2_000:].strip())
    if (more := len(printed) - _OUTPUT_CHARS) > 0:
        printed = f"{printed[:_OUTPUT_CHARS]}\n… {more} more characters were cut."
    written = [path for path in sorted(box.iterdir()) if path.is_file() and not path.is_symlink()]
    changed = [one for one in written if one.name not in given or not cmp(one, given[one.name], shallow=False)][:_FILES]
    for path in changed:
        ctx.artifact(path.name, path.read_bytes())
    others = sum(path.is_file() for path in {*box.rglob("*")} - {*changed} - {box / name for name in given})
    attached = f"\nFiles: {', '.join(path.name for path in changed)}" if changed else ""
    attached += f"\nNot attached: {others} more files, or files in folders." if others > 0 else ""
    return (printed.rstrip() or "The code printed nothing.") + attached


def _script(task: str, ctx: TaskContext) -> InputFile:
    pattern = _FENCE if _FENCE.search(task) else _INLINE
    pieces = [found["code"].strip("\n") for found in pattern.finditer(task)]
    code = next((one for one in pieces if not _NAME.fullmatch(one.strip())), "")  # `primes.py` is a file's name
    if code and len(pieces) > 1:
        raise InvalidInputError("The task holds several pieces of code.", hint="Ask for each in a sentence of its own.")
    scripts = [] if code else pick(task, ctx, (".py",))
    if not code and not scripts:
        raise DeclinedError("The task holds no Python code.", hint=f"Put it between ``` fences, or send a .py file. {came(ctx)}")
    around = (pattern if code else _NAME).sub(" ", task).lower()
    bare = f"Code is run as it is, without arguments. Say 'run {scripts[0].name}'." if scripts else _HINT
    account_for(around, _WORDS, bare, InvalidInputError if scripts and _ASKS.match(around) else DeclinedError)
    words = words_in(around)  # what is to be shown is the code, if that is said last
    if words and (not _ASKS.match(around) or (words[-1] in _CODE and _SHOW.intersection(words))):
        raise DeclinedError(f"{task[:200]!r} does not ask to run it.", hint=_HINT)
    if len(scripts) > 1:
        said = "One script is run at a time." if _NAME.search(task) else "Which script to run is not said."
        raise InvalidInputError(said, hint=f"Say which, each in a sentence of its own. {came(ctx)}")
    if not code:
        return scripts[0]
    with suppress(SyntaxError):  # which Python tells of where it is run
        ast.parse(code, mode="eval")
        code = f"(_ := ({code}\n)) is None or print(_)"
    snippet = InputFile(".snippet.py", ctx.workspace / "snippet.py", "text/x-python")
    snippet.path.write_text(code, encoding="utf-8")
    return snippet
