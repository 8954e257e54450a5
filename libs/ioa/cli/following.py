"""Following a goal to its end, and what is left of it afterwards: the conclusion and the files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from rich.text import Text

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.beside import beside
from ioa.cli.conversation import ConversationView
from ioa.cli.files import Produced, write_files
from ioa.cli.terminal import Terminal
from ioa.client.documents import ResultDocument, told
from ioa.client.history import conversation
from ioa.client.transcript import what_lacks, who_decided
from ioa.client.watching import watch
from ioa.errors import IoaError, NotFoundError
from ioa.foreign_text import continued, shown_in_line, shown_name
from ioa.protocol.decisions import Decisions
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import GoalName
from ioa.runtime.exit_code import ExitCode

_LONG = timedelta(seconds=3)


async def follow_goal(system: NatsSystemClient, terminal: Terminal, goal: GoalName) -> GoalResult:
    """Show a goal's conversation as it happens, nested teams too, until it has its result."""
    comm_id = goal.comm_id

    async def is_over() -> bool:
        return await system.result(goal) is not None

    with ConversationView(terminal, beside=True) as view:
        view.wait_for("waiting for an agent to take the goal and form its team")
        if await is_over():
            for stored in await conversation(system, comm_id):
                view.show(stored)
        else:
            async with beside(say_waiting(system, terminal, view, goal)), watch(system, comm_id, is_over=is_over) as coming:
                async for news in coming:
                    view.show(news)
        return await system.wait_for_result(goal)


async def say_waiting(
    system: NatsSystemClient, terminal: Terminal, view: ConversationView, goal: GoalName, after: timedelta = _LONG
) -> None:
    """Say, if nothing happens for long, what is waited for: an agent, the end of other goals of the same user, or room for his."""
    await asyncio.sleep(after.total_seconds())
    if view.transcript.states:
        return
    others = 0
    with suppress(IoaError):
        others = await system.waiting(goal)
    if others:
        told = f"waiting until other goals of {goal.owner} have ended, of which {others:,} are not begun either"
    elif not await _is_taken_in(system, goal):
        told = f"waiting to be taken in; `ioa doctor` says whether group setup runs, and whether too much is kept of {goal.owner}"
    else:
        told = "waiting for an agent to take the goal and form its team; `ioa agents` shows who is there"
    if not terminal.progress.is_live:
        terminal.note(told)
    elif others:
        view.wait_for(told)


async def _is_taken_in(system: NatsSystemClient, goal: GoalName) -> bool:
    """Whether a goal is on record; who cannot tell says so."""
    try:
        await system.goal(goal)
    except NotFoundError:
        return False
    except IoaError:
        return True
    return True


async def tell_result(system: NatsSystemClient, terminal: Terminal, result: GoalResult, out: Path | None) -> ExitCode:
    """Print how a goal ended, write its files into the folder `<out>/<goal_id>`, and return the exit code that says how it ended.

    The answer is told whatever becomes of the files.

    Raises:
        IoaError: A file could not be fetched or written.
    """
    if not terminal.as_json:
        show_answer(terminal, result)
    fetched = await fetch_files(system, result, out)
    if terminal.as_json:
        terminal.line("result", **told(ResultDocument.of(result)), files=[str(path) for path in fetched.paths])
    else:
        show_files(terminal, result, fetched.paths)
    fetched.check()
    return ExitCode.DONE if result.succeeded else ExitCode.FAILED


@dataclass(frozen=True)
class Fetched:
    """Where the files of a result lie, or what was in the way, which is told when everything else is."""

    paths: list[Path] = field(default_factory=list)
    failure: IoaError | None = None

    def check(self) -> None:
        """Raise what was in the way."""
        if self.failure is not None:
            raise self.failure


async def fetch_files(system: NatsSystemClient, result: GoalResult | None, out: Path | None) -> Fetched:
    """Write the files of a result into the new folder `<out>/<goal_id>`, which is not made for none."""
    if result is None or out is None or not result.artifacts:
        return Fetched()
    try:
        files = [Produced(artifact.name, await system.fetch(artifact)) for artifact in result.artifacts]
        return Fetched(await asyncio.to_thread(write_files, out, result.goal_id, files))
    except IoaError as error:
        return Fetched(failure=error)


def show_answer(terminal: Terminal, result: GoalResult) -> None:
    """Show people the conclusion as it was written, or why there is none."""
    if result.succeeded:
        terminal.print(Text(result.content))
    else:
        kind = "failed" if result.reason is Reason.FAILED else f"failed: {result.reason}"
        terminal.tell(Text.assemble((kind, "bold red"), f"  {continued(result.content)}"))
    if result.degraded is not None:
        terminal.print(Text.assemble(("degraded: ", "bold yellow"), what_lacks(result.degraded)))
    if result.limit is not None:
        terminal.print(Text.assemble(("cut short: ", "bold yellow"), f"{result.limit} was reached, and so was the goal"))
    show_deciders(terminal, result.decisions)


def show_deciders(terminal: Terminal, decisions: Sequence[Decisions]) -> None:
    """Show people who decided, where that is not the rules alone."""
    for text, in_its_place in who_decided(decisions):
        terminal.tell(Text(shown_in_line(text), style="yellow" if in_its_place else "dim"))


def show_files(terminal: Terminal, result: GoalResult, files: list[Path]) -> None:
    """Say where the files lie, or how to get them."""
    if result.artifacts:
        terminal.print(Text())
    if files:
        for path, artifact in zip(files, result.artifacts, strict=True):
            where = Text.assemble(("file  ", "dim"), (shown_name(str(path)), "green"), (f"  {size(artifact.size_bytes)}", "dim"))
            terminal.result.tell(where, soft_wrap=True)
    elif result.artifacts:
        names = ", ".join(shown_in_line(artifact.name) for artifact in result.artifacts)
        terminal.tell(Text.assemble(("files ", "dim"), names))
        terminal.print(Text(f"      `ioa goal show {result.goal_id} --out DIR` writes them into DIR/{result.goal_id}", style="dim"))


def size(count: int) -> str:
    """Write a number of bytes for people."""
    if count < 1_000:
        return f"{count} B"
    return f"{count / 1_000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"
