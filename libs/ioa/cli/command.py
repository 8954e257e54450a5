"""Commands of Typer from functions: parameters from signature and docstring, connections, signals, errors of IoA, exit codes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from datetime import timedelta
from inspect import Parameter, Signature, cleandoc, iscoroutine, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from ioa.cli.output.terminal import Terminal, report
from ioa.errors import Fault, IoaError, NotPermittedError, UnavailableError, only_error, row_of
from ioa.runtime.exit_code import ExitCode

if TYPE_CHECKING:
    from ioa.client.client import Client

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

Port = Annotated[int, typer.Option(min=0, max=65_535)]
Data = Annotated[Path, typer.Option(envvar="IOA_DATA", show_envvar=False)]
Limit = Annotated[int, typer.Option(min=1)]
Replicas = Annotated[int | None, typer.Option(min=1, max=10_000)]

DATA = Path(".ioa")
"""Default folder of a system's data; commands look here for a running system."""

_TEXT = re.compile(r"-[^A-Za-z-]")
_SECTION = re.compile(r"\n(?:Args|Raises):\n")
_NOTE = re.compile(r"^ {4}(\w+)(?: \((.*?)\))?: (.*(?:\n {8}.*)*)", re.MULTILINE)
_SHARED = """
    url (URL): The system's NATS server. Default: IOA_NATS_URL, otherwise the url in .ioa (or IOA_DATA), otherwise
        nats://127.0.0.1:4222.
    as_json (--json): Write JSON, one document or one object a line.
    quiet (--quiet -q): Show only the answer and the files, not the progress.
    out (DIR): Write the produced files into DIR/<goal id>, a new folder.
    data (DIR): Holds everything the system keeps.
    allow_code: Let agents of the pool join that run code which others write; they need a sandbox.
    inputs (--input -i FILE): A file the goal is about.
    timeout (SECONDS): Timeout of the goal. Default: 3600.
    pool (FILE): Start a system with these agents for this goal.
    replicas: Join as replicas 0 to N - 1, all in this process.
    limit: Of how many goals, the newest first.
    label (NAME=VALUE): A label of the goal; several may be given.
    open_only (--open): Only goals that have not ended.
    goal_id (ID): The goal's id or its unique beginning, as `ioa goals` lists it; `USER/ID` of another user's.
"""
"""Parameters of several commands, as in the section Args of a docstring."""
_AGE = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class TextCommand(TyperCommand):
    """A command whose text may begin with a minus sign, as in `-2^2` or `- item` of a list."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `--` before the text, unless the arguments contain it already."""
        valued = {name for one in self.params if not getattr(one, "is_flag", True) for name in one.opts}
        at = next((at for at, one in enumerate(args) if _TEXT.match(one) and not valued.intersection(args[at - 1 : at])), None)
        if at is not None and "--" not in args:
            args = [*args[:at], *args[at + 1 :], "--", args[at]]
        return super().parse_args(ctx, args)


def _read_notes(text: str) -> dict[str, tuple[Sequence[str], str]]:
    """Read descriptions such as `count (-k --count N): How many.`: by parameter, the names and placeholder, and the help."""
    return {name: (words.split(), " ".join(text.split())) for name, words, text in _NOTE.findall(text)}


def command(
    app: typer.Typer,
    name: str | None = None,
    cls: type[TyperCommand] | None = None,
    *,
    has_quiet: bool = False,
    is_family: bool = False,
) -> Callable[[F], F]:
    """Register a function, plain or async, as a command. Its result, if any, is the exit code.

    Its parameters are the arguments of the command, and its keyword-only parameters the options. The section Args of the docstring
    describes them, with placeholder and names: `count (-k --count N): How many.` A parameter of type `Terminal` receives the output
    (option --json), and one of type `Client` a connection to the running system (option --url). A parameter without a description
    is for callers in Python.

    Args:
        app: The family of commands.
        name: The name of the command. Default: the name of the family.
        cls: The class of the command.
        has_quiet: Add the option --quiet.
        is_family: The command is what the family does without a subcommand.
    """

    def register(function: F) -> F:
        add = app.callback() if is_family else app.command(name, cls=cls)
        add(_exiting(function, has_quiet=has_quiet, is_family=is_family))
        return function

    return register


def _exiting(function: Callable[..., Any], *, has_quiet: bool, is_family: bool) -> Callable[..., None]:
    text, *described = _SECTION.split(cleandoc(function.__doc__ or ""))
    notes = _read_notes(_SHARED) | _read_notes(described[0] if described else "")
    hints = get_type_hints(function, include_extras=True)
    own = {name: one.replace(annotation=hints[name]) for name, one in signature(function).parameters.items()}
    supplied = {
        kind: name for name, one in own.items() if (kind := getattr(one.annotation, "__name__", "")) in ("Terminal", "Client")
    }

    async def connected(url: str | None, values: dict[str, Any]) -> Any:
        async with open_reached_system(url) as system:
            return await function(**values, **{supplied["Client"]: system})

    def run(**values: Any) -> None:
        as_json, quiet = values.pop("as_json", False), has_quiet and values.pop("quiet")
        with reported(as_json=as_json):
            if is_family and values.pop("context").invoked_subcommand:
                return
            if "Terminal" in supplied:
                values[supplied["Terminal"]] = Terminal(as_json=as_json, quiet=quiet)
            result: Any = connected(values.pop("url"), values) if "Client" in supplied else function(**values)
            code = run_to_end(result) if iscoroutine(result) else result
        if code:
            raise typer.Exit(code)

    parameters = [_declared(one, notes) for name, one in own.items() if name in notes]
    if is_family:
        parameters.append(Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context))
    added = {"url": (str | None, "Client" in supplied), "quiet": (bool, has_quiet), "as_json": (bool, "Terminal" in supplied)}
    for name, (hint, is_added) in added.items():
        if is_added:
            default = None if name == "url" else False
            parameters.append(_declared(Parameter(name, Parameter.KEYWORD_ONLY, annotation=hint, default=default), notes))
    run.__doc__, run.__name__ = text, function.__name__
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


def _declared(one: Parameter, notes: Mapping[str, tuple[Sequence[str], str]]) -> Parameter:
    """Return a parameter as Typer reads it: keyword-only parameters are options, the others arguments."""
    words, text = notes[one.name]
    hint, *metadata = get_args(one.annotation) if get_origin(one.annotation) is Annotated else (one.annotation,)
    is_option = one.kind is Parameter.KEYWORD_ONLY
    found = copy(metadata[0]) if metadata else typer.Option() if is_option else typer.Argument()
    names = [word for word in words if word.startswith("-")]
    found.help, found.metavar = text, " ".join(word for word in words if word not in names) or None
    if is_option:
        found.param_decls = tuple(names or [f"--{one.name.replace('_', '-')}"])
    default = one.default
    if get_origin(hint) is Sequence:
        hint, default = list[get_args(hint)], [] if default == () else default  # type: ignore[misc]
    return Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, found])


@asynccontextmanager
async def open_reached_system(url: str | None) -> AsyncIterator[Client]:
    """Connect to the system at the first place that answers; logs go to the terminal from here on.

    Raises:
        UnavailableError: There is none; the message names each place.
    """
    from ioa.hosting.connecting import connect  # takes 0.2 s to import, and `ioa up` needs none
    from ioa.runtime.settings import ProcessSettings, settings_from
    from ioa.telemetry.logs import configure_logs

    level = settings_from(ProcessSettings, os.environ).log_level
    configure_logs(level if "IOA_LOG_LEVEL" in os.environ else "warning", "console")
    async with connect(url) as system:
        yield system


def run_to_end(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine; SIGINT and SIGTERM cancel it.

    Raises:
        KeyboardInterrupt: A signal cancelled it.
    """

    async def cancellable() -> T:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        return await main

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@contextmanager
def reported(*, as_json: bool) -> Iterator[None]:
    """Turn errors of IoA into a message on standard error and an exit code. Any other error is a bug and keeps its traceback."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except (IoaError, ExceptionGroup) as error:
        found = only_error(error)
        if found is None:
            raise
        report(row_of(found).wire_code, found.message, found.hint, as_json=as_json)
        raise typer.Exit(code_of(found)) from None


def code_of(error: IoaError) -> ExitCode:
    """Map an error to the exit code: out of reach, the caller's fault, or anything else."""
    if isinstance(error, UnavailableError) and not isinstance(error, NotPermittedError):
        return ExitCode.UNREACHABLE
    return ExitCode.BAD_USE if row_of(error).fault is Fault.CALLER or isinstance(error, NotPermittedError) else ExitCode.FAILED


def parse_age(written: str) -> timedelta:
    """Parse an age such as `7d`, `12h`, `30m` or `90s`.

    Raises:
        BadParameter: It is no age.
    """
    found = _AGE.fullmatch(written.strip())
    if found is None:
        raise typer.BadParameter(f"{written!r} is no age: write a number and one of s, m, h, d, such as 7d.")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
