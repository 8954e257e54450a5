"""`ioa audit`: actions and rejections, by the name of the caller."""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated

import typer

from ioa.adapters.nats.stores.audit_stream import NatsAuditTrail
from ioa.adapters.nats.wire.connection import open_connection
from ioa.cli.command import command
from ioa.cli.console import create_table, local_time
from ioa.cli.options import Url, parse_age
from ioa.cli.reach import reach
from ioa.cli.terminal import Terminal
from ioa.foreign_text import shown_in_line
from ioa.hosting.place import PATIENCE
from ioa.protocol.audit import AuditLine

app = typer.Typer()

_PAGE = 500


@command(app)
async def audit(
    terminal: Terminal,
    since: Annotated[str, typer.Option(metavar="AGE", help="How far back: 7d, 12h, 30m.")] = "1d",
    who: Annotated[str | None, typer.Option(metavar="NAME", help="Only what this one did, or was done to it.")] = None,
    what: Annotated[str | None, typer.Option(metavar="WORD", help="Only this deed (`launched`), or `refused`, or `done`.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue with new lines.")] = False,
    url: Url = None,
) -> None:
    """List joins, launches, cancellations and rejections by name, and the ends of goals; no contents.

    Repeated rejections of a caller have one line a minute, with a count. On a system with keys this needs an auditor or an admin.
    """
    start = datetime.now(UTC) - parse_age(since)

    def is_wanted(line: AuditLine) -> bool:
        return who in (None, line.who, line.target) and what in (None, line.deed, "refused" if line.refused else "done")

    async with open_connection(await reach(url), patience=PATIENCE) as client:
        trail = NatsAuditTrail(client)
        found, last = await _lines_since(trail, start)
        _show([line for line in found if is_wanted(line)], terminal, is_stream=follow)
        if follow:
            async with aclosing(trail.follow(last)) as lines:
                async for line in lines:
                    if is_wanted(line):
                        _show([line], terminal, is_stream=True)


async def _lines_since(trail: NatsAuditTrail, start: datetime) -> tuple[list[AuditLine], int]:
    """Return the lines since a time, oldest first, and the number of the newest line.

    Services write concurrently, and counts at the end of their minute, so that numbers have no order in time.
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


def _show(lines: list[AuditLine], terminal: Terminal, *, is_stream: bool) -> None:
    documents = [line.model_dump(mode="json") for line in lines]
    if is_stream and terminal.as_json:
        for document in documents:
            terminal.line("audit", **document)
    elif lines or not is_stream:
        table = create_table((), [[*map(shown_in_line, _cells(line))] for line in lines])
        terminal.show(documents, table if lines else "Nothing in this time.")


def _cells(line: AuditLine) -> tuple[str, ...]:
    outcome = f"refused: {line.refused}" if line.refused else line.why
    times = f"{line.times:,} times" if line.times > 1 else ""
    return (local_time(line.at), line.who or "-", line.deed, line.target, outcome, times)
