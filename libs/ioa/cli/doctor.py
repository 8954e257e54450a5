"""`ioa doctor`: telling what the examination found."""

from __future__ import annotations

from typing import Annotated

import typer

from ioa.cli.command import command
from ioa.cli.examination import Finding, Health
from ioa.cli.examining import examine
from ioa.cli.options import DATA, AsJson, Data, Url
from ioa.cli.terminal import Terminal
from ioa.foreign_text import shown_in_line
from ioa.runtime.exit_code import ExitCode

app = typer.Typer()


@command(app)
async def doctor(
    url: Url = None,
    data: Data = DATA,
    probes: Annotated[
        bool,
        typer.Option("--probe", help="Also launch a goal that no agent gets, and report its progress. It stays on record."),
    ] = False,
    as_json: AsJson = False,
) -> ExitCode:
    """Report problems of the system and how to solve them.

    Exit codes: 0 healthy, 1 problems, 3 nothing in reach.
    """
    terminal = Terminal(as_json=as_json)
    examined = await examine(url, data, probes=probes)
    if terminal.as_json:
        findings = [
            {"check": one.check, "status": str(one.health), "message": one.message, "hint": one.hint} for one in examined.findings
        ]
        terminal.document({"url": examined.url, "healthy": examined.code is ExitCode.DONE, "findings": findings})
    else:
        _tell(terminal, examined.url, examined.findings, examined.code)
    return examined.code


def _tell(terminal: Terminal, url: str | None, findings: list[Finding], code: ExitCode) -> None:
    from rich.table import Table
    from rich.text import Text

    marks = {Health.OK: ("ok", "green"), Health.WARNING: ("note", "yellow"), Health.PROBLEM: ("problem", "bold red")}
    table = Table.grid(padding=(0, 2, 0, 0))
    for one in findings:
        word, style = marks[one.health]
        text = Text(shown_in_line(one.message))
        if one.hint:
            text.append(f"\n{shown_in_line(one.hint)}", style="dim")
        table.add_row(Text(word, style=style), Text(one.check, style="dim"), text)
    problems = sum(one.health is Health.PROBLEM for one in findings)
    if url:
        terminal.print(Text(url, style="dim"))
    terminal.print(table, Text())
    if code is ExitCode.DONE:
        terminal.print(Text("The system is healthy.", style="green"))
    else:
        terminal.print(Text(f"{problems} problem{'s' if problems > 1 else ''}.", style="red"))
