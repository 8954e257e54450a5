"""Run a Python snippet or script in a sandbox, in a folder of its own, without network (docs/security.md); tell what it wrote."""

import ast
import re
import sys
from contextlib import suppress
from filecmp import cmp
from pathlib import Path

from ioa import Agent, DeclinedError, InputFile, InvalidInputError, TaskContext, TaskError, sandbox
from ioa.files import at_hand, came, pick
from ioa.sandbox import SandboxLimits, level_here
from request import account_for, of_length

agent = Agent(
    "python-runner",
    description="Runs Python code snippets and scripts in a separate process with time and memory limits; returns the printed "
    "output and the files they wrote.", skills=["execute Python code", "run a script"], examples=[
        "run this Python code: `print(sum(range(10)))`", "execute `2 ** 10`", "run script.py",
        "execute the following snippet and return its output", "what does this python code print",
        "run the script and give me the file it writes", "evaluate the python expression `sorted([3, 1, 2])`",
    ], tags=["python", "code"], declines=True, may_team_up=False, needs_sandbox=True,
)  # fmt: skip
_FENCE = re.compile(r"(?is)``` *+(?:(?:python|py)[\d.]*+\b|(?P<language>[a-z][\w+#-]*+)(?= *+\n))? *+\n?(?P<code>.*?)```")
_INLINE, _NAME = re.compile(r"`(?P<code>[^`]+)`"), re.compile(r"(?<![^\s`])[^\s`]+\.py\b")
_NOUN = "it|this|that|the|an?|following|attached|below|in|with|using|python3?|code|snippet|script|program|expression|files?"
_CODE, _DOES = rf"(?:(?:{_NOUN})\b\W*+)++", "(?:prints?|writes?|returns?)"
_TOLD = rf"(?:(?:the|its) )*+(?:outputs?|results?|values?|(?P<file>files?))(?: (?:of |from )?{_CODE}{_DOES}?)?|what {_CODE}{_DOES}"
_ASKED = rf"(?:{_CODE})?(?:please )?(?:(?:run|execute|evaluate) {_CODE}|what does {_CODE}{_DOES}\W*+(?:{_CODE})?)"
_GIVE = "(?:show|tell|give|send|print|display|return)(?: me| us)?"
_RUN = re.compile(rf"{_ASKED}(?:\W*+(?:and |then )*+(?:{_GIVE} )?(?:{_TOLD}))*+\W*|snippet")
_KNOWN = {word.removesuffix(end) for word in re.findall("[a-z]+3?", f"{_RUN.pattern} a an python") for end in ("", "s")}
_HINT = "Code is run as it is. Say 'run this code:' and the code in backticks, and nothing else."
_FILES, _MOST_CHARS = 100, 20_000


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Run the snippet that the task holds, or the `.py` file it names."""
    return run_script(ctx, *_script(task, ctx))


def run_script(ctx: TaskContext, script: InputFile, needs_file: bool = False, limits: SandboxLimits = SandboxLimits()) -> str:
    """Run a script in a fresh folder; return what it printed, attach what it wrote. TaskError: it failed, or ran out of a limit."""
    box, output = ctx.workspace / "run", ctx.workspace / "output.txt"
    given = {file.plain_name: file.path for file in (*at_hand(ctx), script)}
    sandbox.lay(given, box)
    reason = sandbox.run(
        [sys.executable, "-B", "-u", "-E", "-s", str(box / script.plain_name)], box, limits,
        level_here(), output=output, readable=(Path("/etc/fonts"),), environment={"HOME": str(box)},
        cancelled=lambda: ctx.cancelled,
    )  # fmt: skip
    printed = output.read_text(encoding="utf-8", errors="replace").replace(f"{box}/", "")
    if reason:
        raise TaskError(f"The code {reason}.", hint=printed[:_MOST_CHARS][-2_000:].strip())
    printed = printed[:_MOST_CHARS] + f"\n… {len(printed) - _MOST_CHARS} more characters were cut." * (len(printed) > _MOST_CHARS)
    written = {str(path.relative_to(box)): path for path in sorted(box.rglob("*")) if path.is_file() and not path.is_symlink()}
    mine = [name for name, path in written.items() if name not in given or not cmp(path, given[name], shallow=False)]
    mine = [name for name in mine if "/." not in f"/{name}".rpartition("/")[0]]  # no `.cache/x`
    new = {name.replace("/", "-"): written[name] for name in mine}
    for name in [*new][:_FILES]:
        ctx.artifact(name, new[name].read_bytes())
    did = [f"removed {name}, which later requests would still read" for name in given if name not in written]
    did += ["wrote two files of one name, as `a/b` and `a-b` are"] * (len(new) < len(mine))
    if did := did or ["wrote no file"] * (needs_file and not new):
        raise TaskError(f"The code {did[0]}.", hint=f"It printed: {printed[-2_000:]}")
    more = f" … and {len(new) - _FILES} more, which are not attached" * (len(new) > _FILES)
    return (printed.rstrip() or "The code printed nothing.") + f"\nFiles: {', '.join([*new][:_FILES])}{more}" * bool(new)


def _script(task: str, ctx: TaskContext) -> tuple[InputFile, bool]:
    pattern = _FENCE if _FENCE.search(of_length(task, _MOST_CHARS, "Send longer code as a .py file.")) else _INLINE
    if language := next((found["language"] for found in _FENCE.finditer(task) if found["language"]), ""):
        raise InvalidInputError(f"The fence says that its code is {language}, and Python alone is run here.", hint=_HINT)
    pieces = [found["code"].strip("\n") for found in pattern.finditer(task)]
    code = next((one for one in pieces if not _NAME.fullmatch(one.strip())), "")  # `primes.py` is a file's name
    if code and len(pieces) > 1:
        raise InvalidInputError("The task holds several pieces of code.", hint="Ask for each in a sentence of its own.")
    scripts = [] if code else pick(task, ctx, (".py",))
    if not code and not scripts:
        raise DeclinedError("The task holds no Python code.", hint=f"Put it between ``` fences, or send a .py file. {came(ctx)}")
    around = " ".join((pattern if code else _NAME).sub(" snippet ", task).lower().replace("`", " ").split()).strip(" .!?:")
    bare = f"Code is run as it is, without arguments. Say 'run {scripts[0].name}'." if scripts else _HINT
    refusal = InvalidInputError if scripts and _RUN.match(around) else DeclinedError
    account_for(around, _KNOWN, bare, refusal)
    if len(scripts) > 1:
        said = "One script is run at a time." if around.count("snippet") > 1 else "Which script to run is not said."
        raise InvalidInputError(said, hint=f"Say 'run {scripts[0].name}', and each in a sentence of its own. {came(ctx)}")
    if not (asked := _RUN.fullmatch(around)):
        raise refusal(f"{task[:200]!r} does not ask to run it, or asks for more.", hint=bare)
    if not code:
        return scripts[0], bool(asked["file"])
    with suppress(SyntaxError):  # which Python tells of where it is run
        ast.parse(code, mode="eval")
        code = f"(_ := ({code}\n)) is None or print(_)"
    (path := ctx.workspace / "snippet.py").write_text(code, encoding="utf-8")
    return InputFile(".snippet.py", path, "text/x-python"), bool(asked["file"])
