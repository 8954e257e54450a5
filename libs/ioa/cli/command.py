"""Commands of Typer from plain or async functions: signals, errors of IoA, exit codes."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from inspect import Parameter, Signature, iscoroutine, signature
from typing import Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand

from ioa.cli.options import AsJson, Quiet, Url
from ioa.cli.terminal import Terminal, report
from ioa.errors import Fault, IoaError, NotPermittedError, UnavailableError, only_error, row_of
from ioa.runtime.exit_code import ExitCode

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_TEXT = re.compile(r"-[^A-Za-z-]")


class TextCommand(TyperCommand):
    """A command whose text may begin with a minus sign, as in `-2^2` or `- item` of a list."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `--` before the text, unless the arguments contain it already."""
        valued = {name for one in self.params if not getattr(one, "is_flag", True) for name in one.opts}
        at = next((at for at, one in enumerate(args) if _TEXT.match(one) and not valued.intersection(args[at - 1 : at])), None)
        if at is not None and "--" not in args:
            args = [*args[:at], *args[at + 1 :], "--", args[at]]
        return super().parse_args(ctx, args)


def command(
    app: typer.Typer, name: str | None = None, cls: type[TyperCommand] | None = None, *, has_quiet: bool = False
) -> Callable[[F], F]:
    """Register a function, plain or async, as a command. Its result, if any, is the exit code.

    A parameter of type `Terminal` receives the command's output (options --json and, with `has_quiet`, --quiet). A parameter of
    type `Client` receives a connection to the running system (option --url).
    """

    def register(function: F) -> F:
        app.command(name, cls=cls)(_exiting(function, has_quiet=has_quiet))
        return function

    return register


def callback(app: typer.Typer) -> Callable[[F], F]:
    """Register a function as the command that a family is without a subcommand."""

    def register(function: F) -> F:
        app.callback()(_exiting(function, is_family=True))
        return function

    return register


def _exiting(function: Callable[..., Any], *, has_quiet: bool = False, is_family: bool = False) -> Callable[..., None]:
    hints = get_type_hints(function, include_extras=True)
    supplied = {kind: name for name, hint in hints.items() if (kind := getattr(hint, "__name__", "")) in ("Terminal", "Client")}

    async def connected(url: str | None, values: dict[str, Any]) -> Any:
        from ioa.cli.reach import open_reached_system  # the client takes 0.2 s to import, and `ioa up` needs none

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

    defaults = {name: one.default for name, one in signature(function).parameters.items()}
    options = {name: (hint, defaults[name]) for name, hint in hints.items() if name not in ("return", *supplied.values())}
    options |= {"context": (typer.Context, Parameter.empty)} if is_family else {}
    options |= {"url": (Url, None)} if "Client" in supplied else {}
    options |= {"quiet": (Quiet, False)} if has_quiet else {}
    options |= {"as_json": (AsJson, False)} if "Terminal" in supplied else {}
    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint) for name, (hint, default) in options.items()
    ]
    run.__doc__, run.__name__ = function.__doc__, function.__name__
    run.__annotations__ = {name: hint for name, (hint, _) in options.items()}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


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
