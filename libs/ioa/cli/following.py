"""Following a goal to its end, and what is left of it afterwards: the conclusion and the files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from rich.markdown import Markdown
from rich.padding import Padding
from rich.text import Text

from ioa.cli.conversation import ConversationView
from ioa.cli.failures import ExitCode
from ioa.cli.terminal import Terminal
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import GoalId, comm_id_of_goal
from ioa.runtime.system import System

_LONG = timedelta(seconds=3)


async def follow_goal(system: System, terminal: Terminal, goal_id: GoalId) -> GoalResult:
    """Show a goal's conversation as it happens, nested teams too, until it has its result."""
    comm_id = comm_id_of_goal(goal_id)
    with ConversationView(terminal, answer_below=True) as view:
        view.wait_for("waiting for an agent to take the goal")
        if await system.result(goal_id) is not None:
            for stored in await system.conversation(comm_id):
                view.show(stored)
        else:
            waiting = asyncio.get_running_loop().call_later(_LONG.total_seconds(), _say_waiting, terminal, view)
            try:
                async with system.watch(comm_id) as entries:
                    async for stored in entries:
                        view.show(stored)
            finally:
                waiting.cancel()
        return await system.wait_for_result(goal_id)


def _say_waiting(terminal: Terminal, view: ConversationView) -> None:
    if not view.transcript.states and not terminal.is_live:
        terminal.note("waiting for an agent to take the goal; `ioa agents` shows who is there")


async def write_files(system: System, result: GoalResult, folder: Path) -> list[Path]:
    """Write the files of a result to a folder, replacing those of the same name; returns where they lie."""
    paths: list[Path] = []
    for artifact in result.artifacts:
        data = await system.fetch(artifact)
        path = folder / _free_name(_file_name(artifact.name), {path.name for path in paths})
        await asyncio.to_thread(_write, path, data)
        paths.append(path)
    return paths


def show_result(terminal: Terminal, result: GoalResult, files: list[Path]) -> ExitCode:
    """Print how a goal ended; returns the exit code that says so."""
    if terminal.as_json:
        terminal.line("result", **result_document(result), files=[str(path) for path in files])
    else:
        terminal.print(Text())
        if result.succeeded:
            terminal.print(Padding(Markdown(result.content), (0, 2)) if terminal.is_live else Text(result.content))
        else:
            terminal.print(Text.assemble((f"failed: {result.reason}", "bold red"), f"  {result.content}"))
        terminal.print(Text())
        show_files(terminal, result, files)
    return ExitCode.DONE if result.succeeded else ExitCode.FAILED


def show_files(terminal: Terminal, result: GoalResult, files: list[Path]) -> None:
    """Say where the files lie, or how to get them."""
    if files:
        for path, artifact in zip(files, result.artifacts, strict=True):
            terminal.print(Text.assemble(("file  ", "dim"), (str(path), "green"), (f"  {size(artifact.size_bytes)}", "dim")))
    elif result.artifacts:
        names = ", ".join(artifact.name for artifact in result.artifacts)
        terminal.print(Text.assemble(("files ", "dim"), names))
        terminal.print(Text(f"      `ioa goal show {result.goal_id} --out DIR` writes them to a folder", style="dim"))


def result_document(result: GoalResult) -> Mapping[str, Any]:
    """Describe a result for programs."""
    return {**result.model_dump(mode="json"), "succeeded": result.succeeded}


def size(count: int) -> str:
    """Write a number of bytes for people."""
    if count < 1_000:
        return f"{count} B"
    return f"{count / 1_000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def _file_name(name: str) -> str:
    """Keep only the last part: an agent's word must not decide where on this machine something is written."""
    last = PurePosixPath(name.replace("\\", "/")).name
    return last if last not in ("", ".", "..") else "file"


def _free_name(name: str, taken: set[str]) -> str:
    path, number, free = PurePosixPath(name), 2, name
    while free in taken:
        free, number = f"{path.stem}-{number}{path.suffix}", number + 1
    return free


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
