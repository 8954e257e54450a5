"""`ioa run`: a goal from its launch to its files, on the running system or on one that lives only for it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ioa.adapters.nats.system_client import NatsSystemClient, open_system
from ioa.adapters.nats.wire.connection import NatsSettings
from ioa.cancellation import fail_after
from ioa.cli.command import TextCommand, command
from ioa.cli.files import check_writable
from ioa.cli.following import follow_goal, size, tell_result
from ioa.cli.options import DATA, AllowCode, AsJson, Inputs, Labels, PoolOfGoal, Quiet, Timeout, Url
from ioa.cli.reach import reach
from ioa.cli.terminal import Terminal, read_stdin
from ioa.disk import remove_folder
from ioa.errors import InvalidInputError, UnavailableError
from ioa.hosting.place import listens, read_url
from ioa.local.pool import read_pool
from ioa.local.system import open_embedded_system
from ioa.protocol.goal_order import GoalOrder, order_of
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import GoalId, GoalName
from ioa.protocol.labels import read_labels, refuse_reserved
from ioa.runtime.exit_code import ExitCode
from ioa.telemetry.logs import configure_logs

app = typer.Typer()

DEFAULT_OUT = Path("out")
"""Where the folders of goals go if nobody says."""

_PATIENCE = timedelta(seconds=5)
_GRACE = timedelta(seconds=15)
"""How long after the goal's timeout the command waits for the result, which services store within a second unless they are away."""


@dataclass(frozen=True)
class Wanted:
    """A goal and how the user wants it run.

    `files` are its inputs; `pool` and `data` ask for a system of its own, in which `allow_code` lets agents join that run code
    which others write.
    """

    order: GoalOrder
    files: Sequence[Path]
    out: Path | None
    url: str | None
    data: Path | None
    pool: Path | None
    allow_code: bool = False


@dataclass(frozen=True)
class _Stage:
    """The system the goal runs on. `kept_in` is the folder of an embedded one that will be there again."""

    system: NatsSystemClient
    embedded: bool
    kept_in: Path | None = None


async def run_goal(wanted: Wanted, terminal: Terminal) -> ExitCode:
    """Launch the goal, follow it and write its files.

    Raises:
        InvalidInputError: An input cannot be read.
        UnavailableError: There is no system, or the goal has no result 15 s after its timeout.
    """
    _check_files(wanted.files)
    if wanted.out is not None:
        check_writable(wanted.out)
    async with _open_stage(wanted, terminal) as stage:
        try:
            async with fail_after(wanted.order.timeout + _GRACE.total_seconds()):
                result = await _launch_and_follow(wanted, stage, terminal)
        except TimeoutError:
            raise UnavailableError(
                f"The goal has no result {_GRACE.total_seconds():.0f} s after its timeout of {wanted.order.timeout:g} s.",
                hint="`ioa doctor` reports whether the system stores goals and accepts them.",
            ) from None
        terminal.progress.print(Text())
        return await tell_result(stage.system, terminal, result, wanted.out or DEFAULT_OUT)


async def _launch_and_follow(wanted: Wanted, stage: _Stage, terminal: Terminal) -> GoalResult:
    goal = GoalName(await stage.system.user(), await stage.system.launch(wanted.order, wanted.files))
    _announce(terminal, wanted, goal)
    try:
        return await follow_goal(stage.system, terminal, goal)
    except asyncio.CancelledError:
        _say_interrupted(terminal, stage, goal.goal_id)
        raise


@asynccontextmanager
async def _open_stage(wanted: Wanted, terminal: Terminal) -> AsyncIterator[_Stage]:
    if wanted.url and (wanted.pool or wanted.data):
        raise InvalidInputError("--url names a running system; --pool and --data start one.", hint="Give one or the other.")
    noted = read_url(wanted.data) if wanted.data and not wanted.pool else None
    async with AsyncExitStack() as stack:
        if noted and await listens(noted):
            yield _Stage(await _connect(stack, NatsSettings(noted, "ioa-cli", data=wanted.data)), embedded=False)
        elif wanted.pool or wanted.data:
            yield await _start(stack, wanted, terminal)
        else:
            yield _Stage(await _connect(stack, await _reach(wanted.url)), embedded=False)


async def _reach(url: str | None) -> NatsSettings:
    try:
        nats, _ = await reach(url)
    except UnavailableError as error:
        raise UnavailableError(
            error.message, hint="Start one with `ioa up --pool FILE`, or run the goal with agents of its own: --pool FILE."
        ) from None
    return nats


async def _start(stack: AsyncExitStack, wanted: Wanted, terminal: Terminal) -> _Stage:
    pool = await asyncio.to_thread(read_pool, wanted.pool, os.environ, allow_code=wanted.allow_code)
    configure_logs("warning", "console")
    data = wanted.data or stack.enter_context(_temporary_folder())
    terminal.note(f"starting a system with {len(pool.agents)} agents …")
    system = await stack.enter_async_context(open_embedded_system(data, None, pool))
    return _Stage(await _connect(stack, system.nats("ioa-cli")), embedded=True, kept_in=wanted.data)


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Open a folder that is removed afterwards, unless the system failed: then its logs may say why."""
    folder = Path(tempfile.mkdtemp(prefix="ioa-"))
    failed = False
    try:
        yield folder
    except Exception:
        failed = True
        raise
    finally:
        if not failed:
            remove_folder(folder)


async def _connect(stack: AsyncExitStack, nats: NatsSettings) -> NatsSystemClient:
    return await stack.enter_async_context(open_system(nats, patience=_PATIENCE))


def _announce(terminal: Terminal, wanted: Wanted, goal: GoalName) -> None:
    if terminal.as_json and not terminal.quiet:
        terminal.line("goal", goal_id=goal.goal_id, comm_id=goal.comm_id, goal=wanted.order.goal)
    inputs = ", ".join(f"{file.name} ({size(file.stat().st_size)})" for file in wanted.files)
    terminal.progress.print(
        Text.assemble(("goal  ", "dim"), (wanted.order.goal, "bold")),
        Text(f"      {goal.goal_id}{f' · {inputs}' if inputs else ''}", style="dim"),
        Text(),
    )


def _say_interrupted(terminal: Terminal, stage: _Stage, goal_id: GoalId) -> None:
    if not stage.embedded:
        terminal.note(f"\nThe goal goes on. `ioa goal watch {goal_id}` follows it, `ioa goal cancel {goal_id}` stops it.")
    elif stage.kept_in is not None:
        again = "" if stage.kept_in == DATA else f" --data {stage.kept_in}"
        terminal.note(f"\nStopping the system. The goal is kept and goes on with the next `ioa up{again}`.")
    else:
        terminal.note("\nStopping the system and the goal.")


def _check_files(files: Sequence[Path]) -> None:
    """Refuse before anything is started what would fail afterwards."""
    for file in files:
        if not file.is_file():
            raise InvalidInputError(f"The input {file} is no file.", hint="Name an existing file with --input.")


@command(app, cls=TextCommand)
async def run(
    goal: Annotated[
        str,
        typer.Argument(
            metavar="GOAL", help="What you want done, in a sentence; - reads it from standard input.", show_default=False
        ),
    ],
    inputs: Inputs = [],  # noqa: B006
    agent: Annotated[str | None, typer.Option(metavar="ID", help="The agent or pool that leads.", show_default=False)] = None,
    max_turns: Annotated[int | None, typer.Option(help="How many messages the discussion may take.", show_default="40")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="How many tokens of language models it may take.", show_default="no bound")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Maximum cost of the goal, in the currency of the agents.", show_default="no bound")
    ] = None,
    timeout: Timeout = None,
    label: Labels = [],  # noqa: B006
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The produced files go into DIR/<goal id>, a new folder.", show_default="out"),
    ] = None,
    pool: PoolOfGoal = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of that system; a temporary one by default.", show_default=False)
    ] = None,
    allow_code: AllowCode = False,
    url: Url = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> ExitCode:
    """Launch a goal, follow it live, and write the files it produced.

    The answer and the paths of files go to standard output, the progress to standard error.

    It runs on the system in reach, or with --pool on a system that runs only for this goal. Exit codes: 0 done, 1 the goal
    failed, 2 wrong use, 3 no system in reach.
    """
    if goal == "-":
        goal = read_stdin()
    labels = read_labels(label)
    refuse_reserved(labels)
    bounds = {"max_turns": max_turns, "max_tokens": max_tokens, "max_cost": max_cost, "timeout": timeout}
    order = order_of(goal, agent=agent, labels=labels, **bounds)
    wanted = Wanted(order=order, files=inputs, out=out, url=url, data=data, pool=pool, allow_code=allow_code)
    return await run_goal(wanted, Terminal(as_json=as_json, quiet=quiet))
