"""Removing goals that ended long ago, and agents that are not coming back."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta
from typing import Annotated

import typer
from rich.text import Text

from ioa.cli.command import command
from ioa.cli.options import AsJson, Url
from ioa.cli.reach import open_reached_system
from ioa.cli.terminal import Terminal
from ioa.protocol.retention import Prune
from ioa.runtime.exit_code import ExitCode

app = typer.Typer()

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_AGE = re.compile(r"(\d{1,6})([smhd])")


def parse_age(written: str) -> timedelta:
    """Read an age such as `7d`, `12h`, `30m` or `90s`.

    Raises:
        BadParameter: It is none.
    """
    found = _AGE.fullmatch(written.strip())
    if found is None:
        raise typer.BadParameter(f"{written!r} is no age: write a number and one of s, m, h, d, such as 7d.")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


@command(app)
async def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="How long ago a goal must have ended: 7d, 12h, 30m.")
    ] = "30d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Remove records, logs, results and files of goals that ended long ago. Their ids cannot be used again.

    Group setup does this by itself after IOA_KEEP. On a system that asks who you are only an admin may do it. Exits 1 if a goal
    could not be removed.
    """
    terminal = Terminal(as_json=as_json)
    goals: Counter[str] = Counter()
    groups = files = failed = 0
    after: int | None = 0
    async with open_reached_system(url) as system:
        while after is not None:
            part = await system.prune(Prune(older_than=parse_age(older_than), after=after, dry_run=dry_run))
            goals.update(part.goals)
            groups, files, failed, after = groups + part.groups, files + part.files, failed + part.failed, part.after
    if terminal.as_json:
        terminal.document(
            {"dry_run": dry_run, "goals": dict(goals), "groups": groups, "files": files, "not_removed": failed},
        )
    else:
        verb = "would be removed" if dry_run else "removed"
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in goals.most_common())
        terminal.print(
            Text(f"{goals.total():,} goals {verb}{f' ({reasons})' if reasons else ''}, {groups:,} groups, {files:,} files")
        )
        if failed:
            terminal.print(Text(f"{failed:,} goals could not be removed; the log of group setup says why", style="red"))
    return ExitCode.FAILED if failed else ExitCode.DONE
