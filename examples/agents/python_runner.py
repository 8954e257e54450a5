"""Run a Python script in a sandbox, in a folder of its own, without network (docs/security.md); return its output."""

import re
import sys
from filecmp import cmp
from pathlib import Path

from ioa import Agent, DeclinedError, InputFile, TaskContext, TaskError, sandbox
from ioa.sandbox import SandboxLimits, level_here
from request import named_file

agent = Agent(
    "python-runner",
    description="Runs a Python script in a sandbox with limits of time and memory; returns its output and the files it wrote.",
    skills=["execute Python code", "run a script"], examples=[
        "run FILE.py", "run script.py", "run clean.py", "run\n```python\nprint(sum(range(10)))\n```", "run main.py",
        "run this Python script",
    ], tags=["python", "code"], declines=True, may_team_up=False, needs_sandbox=True,
)  # fmt: skip
_FORM = re.compile(r"(?is)run (?P<file>\S.*\.py)|run\s*```(?:python|py)?\s*\n(?P<code>.*)\n\s*```")
_MAX_FILES, _MAX_CHARS = 100, 20_000


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Run a script of the goal, or the code in the task."""
    asked = _FORM.fullmatch(task.strip())
    if asked is None or "\n" in (asked["file"] or ""):
        raise DeclinedError("This is not a script to run.", hint="Write 'run FILE.py', or 'run' and Python code between ``` lines.")
    if asked["file"]:
        return run_script(ctx, named_file(asked["file"], ctx, (".py",)))
    (path := ctx.workspace / "snippet.py").write_text(asked["code"], encoding="utf-8")
    return run_script(ctx, InputFile(".snippet.py", path, "text/x-python"))


def run_script(ctx: TaskContext, script: InputFile, limits: SandboxLimits = SandboxLimits()) -> str:
    """Run a script in a new folder with the goal's files; return its output, and attach the files that it wrote.

    Raises:
        TaskError: It failed, or exceeded a limit.
    """
    box, output = ctx.workspace / "run", ctx.workspace / "output.txt"
    given = {file.plain_name: file.path for file in (*ctx.inputs, script)}
    sandbox.lay(given, box)
    reason = sandbox.run(
        [sys.executable, "-B", "-u", "-E", "-s", str(box / script.plain_name)], box, limits,
        level_here(), output=output, readable=(Path("/etc/fonts"),), environment={"HOME": str(box)},
        cancelled=lambda: ctx.cancelled,
    )  # fmt: skip
    printed = output.read_text(encoding="utf-8", errors="replace").replace(f"{box}/", "")
    if reason:
        raise TaskError(f"The code {reason}.", hint=printed[:_MAX_CHARS][-2_000:].strip())
    if len(printed) > _MAX_CHARS:
        printed = f"{printed[:_MAX_CHARS]}\n… {len(printed) - _MAX_CHARS} more characters were cut."
    paths = [path for path in sorted(box.rglob("*")) if path.is_file() and not path.is_symlink()]
    named = {path.relative_to(box): path for path in paths}
    kept = {name: path for name, path in named.items() if not any(part.startswith(".") for part in name.parts[:-1])}
    written = {"-".join(name.parts): path for name, path in kept.items() if not _is_unchanged(path, given.get(str(name)))}
    for name in [*written][:_MAX_FILES]:
        ctx.artifact(name, written[name].read_bytes())
    if len(written) > _MAX_FILES:
        printed += f"\n… {len(written) - _MAX_FILES} more files are not attached."
    return (printed.rstrip() or "The code printed nothing.") + (f"\nFiles: {', '.join([*written][:_MAX_FILES])}" if written else "")


def _is_unchanged(path: Path, given: Path | None) -> bool:
    return given is not None and cmp(path, given, shallow=False)
