"""How a command ends: its exit code, and what it says when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ioa.cli.terminal import report
from ioa.errors import Fault, IoaError, NotPermittedError, UnavailableError, only_error, row_of
from ioa.runtime.exit_code import ExitCode


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
