"""`ioa audit`: who did what, and who was refused."""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.table import Table

from ioa.adapters.nats.stores.audit_stream import NatsAuditTrail
from ioa.adapters.nats.wire.connection import open_connection
from ioa.cli.command import command
from ioa.cli.goals import local_time
from ioa.cli.options import AsJson, Url
from ioa.cli.pruning import parse_age
from ioa.cli.reach import reach
from ioa.cli.terminal import Terminal
from ioa.foreign_text import shown_in_line
from ioa.hosting.place import PATIENCE
from ioa.protocol.audit import AuditLine

app = typer.Typer()

_PAGE = 500


async def show_audit(
    url: str | None,
    since: timedelta,
    who: str | None,
    what: str | None,
    terminal: Terminal,
    *,
    follow: bool,
) -> None:
    """Show the lines of a while, oldest first, and with `follow` those that come."""
    start = datetime.now(UTC) - since

    def wanted(line: AuditLine) -> bool:
        return who in (None, line.who, line.target) and what in (None, line.deed, "refused" if line.refused else "done")

    settings, _ = await reach(url)
    async with open_connection(settings, patience=PATIENCE) as client:
        trail = NatsAuditTrail(client)
        found, last = await _lines_since(trail, start)
        _tell([line for line in found if wanted(line)], terminal, each=follow)
        if follow:
            async with aclosing(trail.follow(last)) as lines:
                async for line in lines:
                    if wanted(line):
                        _tell([line], terminal, each=True)


async def _lines_since(trail: NatsAuditTrail, start: datetime) -> tuple[list[AuditLine], int]:
    """Return the lines since a time, oldest first, and the number of the last line that there is.

    Services write side by side, and counts at the end of their minute, so that numbers tell no order.
    """
    found: list[AuditLine] = []
    last, before = 0, None
    while True:
        page = await trail.page(limit=_PAGE, before=before)
        last = max((last, *(seq for seq, _ in page.lines)))
        new = [line for _, line in page.lines if line.at >= start]
        found += new
        before = page.before
        if before is None or (page.lines and not new):
            found.reverse()
            return sorted(found, key=lambda line: line.at), last


def _tell(lines: list[AuditLine], terminal: Terminal, *, each: bool) -> None:
    if terminal.as_json:
        documents = [line.model_dump(mode="json") for line in lines]
        if not each:
            terminal.document(documents)
        for document in documents if each else ():
            terminal.line("audit", **document)
        return
    if not lines and not each:
        terminal.print("Nothing in this while.")
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    for line in lines:
        table.add_row(*map(shown_in_line, _cells(line)))
    if lines:
        terminal.print(table)


def _cells(line: AuditLine) -> tuple[str, ...]:
    outcome = f"refused: {line.refused}" if line.refused else line.why
    times = f"{line.times:,} times" if line.times > 1 else ""
    return (local_time(line.at), line.who or "-", line.deed, line.target, outcome, times)


@command(app)
async def show(
    since: Annotated[str, typer.Option("--since", metavar="AGE", help="How far back: 7d, 12h, 30m.")] = "1d",
    who: Annotated[
        str | None, typer.Option("--who", metavar="NAME", help="Only what this one did, or was done to it.", show_default=False)
    ] = None,
    what: Annotated[
        str | None,
        typer.Option("--what", metavar="WORD", help="Only this deed (`launched`), or `refused`, or `done`.", show_default=False),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue with new lines.")] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List joins, launches, cancellations and rejections by name, and the ends of goals; no contents.

    Repeated rejections of a caller have one line a minute, with a count. On a system with keys this needs an auditor or an admin.
    """
    await show_audit(url, parse_age(since), who, what, Terminal(as_json=as_json), follow=follow)
