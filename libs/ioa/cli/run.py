"""`ioa run`: a goal from its launch to its files, on the running system or on a system that runs only for it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import typer

from ioa.cli.command import TextCommand, command, open_reached_system
from ioa.cli.output.console import size
from ioa.cli.output.results import announce, create_folder, follow_goal, show_result
from ioa.cli.output.terminal import Terminal, read_stdin
from ioa.client.client import open_system
from ioa.concurrency import fail_after
from ioa.disk import remove_folder
from ioa.errors import InvalidInputError, UnavailableError
from ioa.hosting.place import PATIENCE
from ioa.local.local_system import open_embedded_system
from ioa.local.pool import read_pool
from ioa.protocol.goal_order import GoalOrder, order_of
from ioa.protocol.goals import read_labels, refuse_reserved
from ioa.protocol.ids import GoalName
from ioa.runtime.exit_code import ExitCode
from ioa.telemetry.logs import configure_logs

app = typer.Typer()

_OUT = Path("out")
_GRACE = timedelta(seconds=15)
"""How long after the goal's timeout the command waits for the result, which services store within a second unless they are away."""


async def run_goal(
    terminal: Terminal,
    order: GoalOrder,
    files: Sequence[Path],
    out: Path | None,
    *,
    url: str | None,
    pool: Path | None,
    allow_code: bool,
) -> ExitCode:
    """Launch the goal, follow it and write its files.

    Args:
        terminal: The output.
        order: The goal.
        files: Its input files.
        out: The folder of its results. None: `out`.
        url: The running system. None: the system in reach.
        pool: Start a system with these agents for this goal instead.
        allow_code: Whether agents of the pool may join that run code which others write.

    Raises:
        InvalidInputError: An input cannot be read.
        UnavailableError: There is no system, or the goal has no result 15 s after its timeout.
    """
    for file in files:
        if not file.is_file():
            raise InvalidInputError(f"The input {file} is no file.", hint="Name an existing file with --input.")
    create_folder(out)
    if url and pool:
        raise InvalidInputError("--url names a running system; --pool starts one.", hint="Give one or the other.")
    interrupted = "The goal goes on. `ioa goal watch {goal_id}` follows it, `ioa goal cancel {goal_id}` stops it."
    async with AsyncExitStack() as stack:
        opened = open_reached_system(url)
        if pool:
            agents = await asyncio.to_thread(read_pool, pool, os.environ, allow_code=allow_code)
            configure_logs("warning", "console")
            terminal.note(f"starting a system with {len(agents.agents)} agents …")
            folder = stack.enter_context(_temporary_folder())
            started = await stack.enter_async_context(open_embedded_system(folder, None, agents))
            opened = open_system(started.nats("ioa-cli"), patience=PATIENCE)
            interrupted = "Stopping the system and the goal."
        system = await stack.enter_async_context(opened)
        try:
            async with fail_after(order.timeout + _GRACE.total_seconds()):
                goal = GoalName(await system.user(), await system.submit(order, files))
                announce(terminal, goal, order.goal, ", ".join(f"{file.name} ({size(file.stat().st_size)})" for file in files))
                try:
                    result = await follow_goal(system, terminal, goal)
                except asyncio.CancelledError:
                    terminal.note(f"\n{interrupted.format(goal_id=goal.goal_id)}")
                    raise
        except TimeoutError:
            raise UnavailableError(
                f"The goal has no result {_GRACE.total_seconds():.0f} s after its timeout of {order.timeout:g} s.",
                hint="`ioa doctor` reports whether the system stores goals and accepts them.",
            ) from None
        return await show_result(system, terminal, result, out or _OUT)


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Open a folder that is removed at the end, unless the system failed: then it contains the logs."""
    folder = Path(tempfile.mkdtemp(prefix="ioa-"))
    keep = False
    try:
        yield folder
    except Exception:
        keep = True
        raise
    finally:
        if not keep:
            remove_folder(folder)


@command(app, cls=TextCommand, has_quiet=True)
async def run(
    terminal: Terminal,
    goal: str,
    *,
    inputs: Sequence[Path] = (),
    agent: str | None = None,
    max_turns: int | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    timeout: float | None = None,
    label: Sequence[str] = (),
    out: Path | None = None,
    pool: Path | None = None,
    allow_code: bool = False,
    url: str | None = None,
) -> ExitCode:
    """Launch a goal, follow it live, and write the files it produced.

    The answer and the paths of files go to standard output, the progress to standard error.

    It runs on the system in reach, or with --pool on a system that runs only for this goal. Exit codes: 0 done, 1 the goal
    failed, 2 wrong use, 3 no system in reach.

    Args:
        goal (GOAL): What you want done, in a sentence; - reads it from standard input.
        agent (ID): The agent or pool that leads.
        max_turns: How many messages the discussion may take. Default: 40.
        max_tokens: How many tokens of language models it may take. Default: no limit.
        max_cost: Maximum cost of the goal, in the currency of the agents. Default: no limit.
        out (DIR): The produced files go into DIR/<goal id>, a new folder. Default: out.
    """
    labels = read_labels(label)
    refuse_reserved(labels)
    limits = {"max_turns": max_turns, "max_tokens": max_tokens, "max_cost": max_cost, "timeout": timeout}
    order = order_of(read_stdin() if goal == "-" else goal, agent=agent, labels=labels, **limits)
    return await run_goal(terminal, order, inputs, out, url=url, pool=pool, allow_code=allow_code)
