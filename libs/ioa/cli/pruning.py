"""Removing goals that ended long ago, and agents that are not coming back."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta

import typer
from rich.text import Text

from ioa.cli.reach import open_reached_system
from ioa.cli.terminal import Terminal
from ioa.protocol.ids import parse_agent_id
from ioa.protocol.registry import RemoveAgent
from ioa.protocol.retention import Prune
from ioa.runtime.exit_code import ExitCode

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


async def prune(url: str | None, older_than: timedelta, terminal: Terminal, *, dry_run: bool) -> ExitCode:
    """Have group setup remove what ended longer ago, part by part, and tell what went; failed if something could not be removed."""
    goals: Counter[str] = Counter()
    groups = files = failed = 0
    after: int | None = 0
    async with open_reached_system(url) as system:
        while after is not None:
            part = await system.prune(Prune(older_than=older_than, after=after, dry_run=dry_run))
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


async def remove_agent(url: str | None, agent_id: str, terminal: Terminal, *, force: bool) -> None:
    """Have the registry forget an agent."""
    request = RemoveAgent(agent_id=parse_agent_id(agent_id), force=force)
    async with open_reached_system(url) as system:
        await system.remove_agent(request)
    if terminal.as_json:
        terminal.document({"removed": request.agent_id})
    else:
        terminal.print(f"{request.agent_id} is forgotten")
