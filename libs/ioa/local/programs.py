"""Child processes of a system on one machine: Python modules, each with its own log."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals

from ioa.adapters.child_processes import ending_with_parent


@dataclass(frozen=True)
class Program:
    """A Python module to run as a process. Its output goes to `<logs>/<name>.log`."""

    name: str
    module: str
    arguments: Sequence[str] = ()
    env: dict[str, str] = field(default_factory=dict)


async def start_program(
    program: Program, log: Path, env: Mapping[str, str], inherited: Sequence[int] = (), *, reports: bool = False
) -> Process:
    """Start a program. It ends with this process, also if this process is killed (Linux).

    Args:
        program: The program.
        log: File for its output.
        env: Its environment.
        inherited: Descriptors that stay open in it.
        reports: Whether its standard output is a pipe instead.
    """
    command = [sys.executable, "-P", "-m", program.module, *program.arguments]
    with log.open("ab") as output:
        # Its own session, so that Ctrl-C in a terminal reaches only the starter, which drains before it stops the others.
        return await asyncio.create_subprocess_exec(
            *ending_with_parent(command, Signals.SIGKILL),
            stdin=DEVNULL,
            stdout=PIPE if reports else output,
            stderr=output,
            env=dict(env),
            start_new_session=True,
            pass_fds=inherited,
        )
