"""`ioa prune`: removes goals that ended long ago."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer
from rich.text import Text

from ioa.cli.command import command
from ioa.cli.options import parse_age
from ioa.cli.terminal import Terminal
from ioa.client.client import Client
from ioa.protocol.retention import Prune
from ioa.runtime.exit_code import ExitCode

app = typer.Typer()


@command(app)
async def prune(
    system: Client,
    terminal: Terminal,
    older_than: Annotated[str, typer.Option(metavar="AGE", help="How long ago a goal must have ended: 7d, 12h, 30m.")] = "30d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be removed.")] = False,
) -> ExitCode:
    """Remove records, logs, results and files of goals that ended long ago. Their ids cannot be used again.

    Group setup does this by itself after IOA_KEEP. On a system with keys this needs an admin. Exits 1 if a goal could not be
    removed.
    """
    age, goals, groups, files, failed = parse_age(older_than), Counter[str](), 0, 0, 0
    after: int | None = 0
    while after is not None:
        part = await system.prune(Prune(older_than=age, after=after, dry_run=dry_run))
        goals.update(part.goals)
        groups, files, failed, after = groups + part.groups, files + part.files, failed + part.failed, part.after
    verb = "would be removed" if dry_run else "removed"
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in goals.most_common())
    terminal.show(
        {"dry_run": dry_run, "goals": dict(goals), "groups": groups, "files": files, "not_removed": failed},
        f"{goals.total():,} goals {verb}{f' ({reasons})' if reasons else ''}, {groups:,} groups, {files:,} files",
    )
    if failed:
        terminal.print(Text(f"{failed:,} goals could not be removed; the log of group setup contains the reason", style="red"))
    return ExitCode.FAILED if failed else ExitCode.DONE
