"""Results of goals: follows a goal to its end, shows its answer, and writes its files under safe names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path, PurePosixPath

from rich.text import Text

from ioa.cli.output.console import size
from ioa.cli.output.conversation_output import ConversationView
from ioa.cli.output.terminal import Terminal
from ioa.client.client import Client
from ioa.client.documents import ResultDocument, told
from ioa.client.transcript import what_lacks, who_decided
from ioa.client.watching import watch
from ioa.concurrency import beside
from ioa.errors import ERRORS, ErrorRow, IoaError
from ioa.foreign_text import continued, shown_in_line, shown_name
from ioa.protocol.decisions import Decisions
from ioa.protocol.goals import Artifact, GoalResult, Reason
from ioa.protocol.ids import GoalId, GoalName
from ioa.runtime.exit_code import ExitCode

_LONG = timedelta(seconds=3)


def announce(terminal: Terminal, goal: GoalName, text: str, inputs: str = "") -> None:
    """Show the goal that was launched."""
    if terminal.as_json and not terminal.quiet:
        terminal.line("goal", goal_id=goal.goal_id, comm_id=goal.comm_id, goal=text)
    details = " · ".join(filter(None, (goal.goal_id, inputs)))
    terminal.progress.print(Text.assemble(("goal  ", "dim"), (text, "bold")), Text(f"      {details}", style="dim"), Text())


async def follow_goal(system: Client, terminal: Terminal, goal: GoalName) -> GoalResult:
    """Show a goal's conversation, with nested teams, until it has its result."""
    with ConversationView(terminal, beside=True) as view:
        view.wait_for("waiting for an agent to take the goal and form its team")
        ending = partial(system.wait_for_result, goal)
        async with beside(note_waiting(system, terminal, view, goal)), watch(system, goal.comm_id, until=ending) as news:
            async for one in news:
                view.show(one)
        result = await ending()
    terminal.progress.print(Text())
    return result


async def note_waiting(
    system: Client, terminal: Terminal, view: ConversationView, goal: GoalName, after: timedelta = _LONG
) -> None:
    """If nothing happens for `after`, report the reason: other goals of the same user, group setup, or a missing agent."""
    await asyncio.sleep(after.total_seconds())
    if view.transcript.states:
        return
    others = 0
    with suppress(IoaError):
        others = await system.count_waiting(goal)
    if others:
        reason = f"waiting until other goals of {goal.user} have ended, of which {others:,} are not begun either"
    else:
        reason = "waiting for an agent to take the goal; `ioa agents` shows the agents, `ioa doctor` whether goals are accepted"
    view.wait_for(reason)
    if not terminal.progress.is_live:
        terminal.note(reason)


async def show_result(system: Client, terminal: Terminal, result: GoalResult, out: Path | None) -> ExitCode:
    """Print the result of a goal, write its files into the folder `<out>/<goal_id>`, and return the exit code.

    Raises:
        IoaError: A file could not be fetched or written. The result is printed all the same.
    """
    paths: Sequence[Path] = []
    if not terminal.as_json:
        show_answer(terminal, result)
    try:
        paths = await fetch_files(system, result.goal_id, out, [(one.name, one) for one in result.artifacts])
    finally:
        if terminal.as_json:
            terminal.line("result", **told(ResultDocument.of(result)), files=[*map(str, paths)])
        else:
            show_files(terminal, result, paths)
    return ExitCode.DONE if result.succeeded else ExitCode.FAILED


async def fetch_files(system: Client, goal_id: GoalId, out: Path | None, files: Sequence[tuple[str, Artifact]]) -> Sequence[Path]:
    """Write files, each with its name, into the new folder `<out>/<goal_id>`; return the paths.

    Raises:
        IoaError: A file could not be fetched or written.
    """
    if out is None or not files:
        return []
    produced = [(name, await system.fetch(artifact)) for name, artifact in files]
    return await asyncio.to_thread(write_files, out, goal_id, produced)


def show_answer(terminal: Terminal, result: GoalResult) -> None:
    """Show the conclusion as it was written, or the reason why there is none."""
    if result.succeeded:
        terminal.print(Text(result.content))
    else:
        kind = "failed" if result.reason is Reason.FAILED else f"failed: {result.reason}"
        terminal.print(Text.assemble((kind, "bold red"), f"  {continued(result.content)}"))
    limits = {"degraded": result.degraded and what_lacks(result.degraded)}
    limits["cut short"] = result.limit and f"{result.limit} was reached, and so was the goal"
    for name, text in limits.items():
        if text:
            terminal.print(Text.assemble((f"{name}: ", "bold yellow"), text))
    show_deciders(terminal, result.decisions)


def show_deciders(terminal: Terminal, decisions: Sequence[Decisions]) -> None:
    """Show which models, people and programs decided, unless only rules did."""
    for text in who_decided(decisions):
        terminal.print(Text(shown_in_line(text), style="dim"))


def show_files(terminal: Terminal, result: GoalResult, paths: Sequence[Path]) -> None:
    """Show the paths of the written files, or the command that writes them."""
    if result.artifacts:
        terminal.print(Text())
    for path in paths:
        where = Text.assemble(("file  ", "dim"), (shown_name(str(path)), "green"), (f"  {size(path.stat().st_size)}", "dim"))
        terminal.result.print(where, soft_wrap=True)
    if result.artifacts and not paths:
        names = ", ".join(shown_in_line(artifact.name) for artifact in result.artifacts)
        terminal.print(Text.assemble(("files ", "dim"), names))
        terminal.print(Text(f"      `ioa goal show {result.goal_id} --out DIR` writes them into DIR/{result.goal_id}", style="dim"))


class NotWrittenError(IoaError):
    """The files of a goal could not be written. They can be fetched again."""


ERRORS[NotWrittenError] = ErrorRow("not_written")


Produced = tuple[str, bytes]
"""A file of a result: its plain file name, and its content."""


def create_folder(out: Path | None) -> None:
    """Create the folder of results, if one is given, unless it exists.

    Raises:
        NotWrittenError: It cannot be created.
    """
    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotWrittenError(f"The folder {out} cannot be used: {error.strerror}.", hint="Name a folder with --out.") from None


def write_files(out: Path, goal_id: GoalId, files: Sequence[Produced]) -> list[Path]:
    """Write files into the new folder `<out>/<goal_id>`; return their paths in order.

    Raises:
        NotWrittenError: `out` is no folder, the goal's folder exists, or a file could not be written.
    """
    create_folder(out)
    folder = out / goal_id
    paths = [folder / name for name in _names(files)]
    try:
        folder.mkdir()
        for path, (_, data) in zip(paths, files, strict=True):
            with path.open("xb") as written:
                written.write(data)
    except OSError as error:
        why = f"The files could not be written to {folder}: {error.strerror}."
        if isinstance(error, FileExistsError):
            why = f"{folder} is there already, and nothing in it is replaced."
        hint = f"`ioa goal show {goal_id} --out DIR` writes the files to another folder."
        raise NotWrittenError(why, hint=hint) from None
    return paths


def _names(files: Sequence[Produced]) -> Iterator[str]:
    """Yield visible names that differ, also on a file system that ignores case; none is hidden or looks like an option."""
    taken: set[str] = set()
    for given, _ in files:
        name = shown_in_line(given).lstrip(".- ") or "file"
        path, number = PurePosixPath(name), 1
        while name.casefold() in taken:
            number += 1
            name = f"{path.stem}-{number}{path.suffix}"
        taken.add(name.casefold())
        yield name
