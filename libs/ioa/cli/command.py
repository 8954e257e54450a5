"""Commands of Typer from plain or async functions: signals, errors of IoA, exit codes."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutine
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

from ioa.cli.terminal import report
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


def command(app: typer.Typer, name: str | None = None, cls: type[TyperCommand] | None = None) -> Callable[[F], F]:
    """Register a function, plain or async, as a command. Its result, if any, is the exit code."""

    def register(function: F) -> F:
        app.command(name, cls=cls)(_exiting(function))
        return function

    return register


def callback(app: typer.Typer) -> Callable[[F], F]:
    """Register a function, plain or async, as the command that a family is without a subcommand."""

    def register(function: F) -> F:
        app.callback()(_exiting(function))
        return function

    return register


def _exiting(function: Callable[..., Any]) -> Callable[..., None]:
    @wraps(function)
    def run(**values: Any) -> None:
        with reported(as_json=values.get("as_json", False)):
            done = function(**values)
            code = run_to_end(done) if iscoroutine(done) else done
        if code:
            raise typer.Exit(code)

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
