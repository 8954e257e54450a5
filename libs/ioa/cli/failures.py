"""How a command ends: its exit code, and what it says when it fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer

from ioa.errors import Fault, IoaError, UnavailableError


class ExitCode(IntEnum):
    """What the caller of a command learns from it."""

    DONE = 0
    FAILED = 1
    BAD_USE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130


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
        report(found.wire_code, found.message, found.hint, as_json=as_json)
        raise typer.Exit(code_of(found)) from None


def only_error(error: BaseException) -> IoaError | None:
    """Take the one error of IoA out of the groups that task groups wrap it in; None if there is another or more than one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, IoaError) else None


def code_of(error: IoaError) -> ExitCode:
    """Map an error to the exit code: out of reach, the caller's fault, or anything else."""
    if isinstance(error, UnavailableError):
        return ExitCode.UNREACHABLE
    return ExitCode.BAD_USE if error.fault is Fault.CALLER else ExitCode.FAILED


def report(code: str, message: str, hint: str, *, as_json: bool) -> None:
    """Say on standard error what went wrong and what to do, in words or as one JSON object."""
    if as_json:
        sys.stderr.write(json.dumps({"code": code, "message": message, "hint": hint}, ensure_ascii=False) + "\n")
        return
    from rich.text import Text

    from ioa.cli.terminal import create_console

    console = create_console(sys.stderr)
    console.print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    if hint:
        console.print(Text(f"       {hint}", style="dim"), soft_wrap=True)
