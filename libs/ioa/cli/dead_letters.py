"""Listing dead letters, showing one and putting one back."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from ioa.cli.command import command
from ioa.cli.following import size
from ioa.cli.goals import local_time
from ioa.cli.options import AsJson, Url
from ioa.cli.reach import open_reached_system
from ioa.cli.terminal import Terminal
from ioa.errors import ConflictError, InvalidInputError
from ioa.foreign_text import continued, shown_in_line
from ioa.protocol.dead_letters import DeadLetter
from ioa.protocol.goal_order import find_goal_id
from ioa.protocol.ids import GoalName
from ioa.protocol.subjects import parse_goal_subject

app = typer.Typer()


@command(app)
async def dead(
    number: Annotated[
        int | None, typer.Argument(metavar="N", min=1, help="The number of a letter: show it.", show_default=False)
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Publish letter N again on its subject, and remove it from the dead letters.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="Maximum number of letters, newest first.")] = 50,
    before: Annotated[
        int | None, typer.Option("--before", metavar="N", min=1, help="List only letters before this number.", show_default=False)
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List messages that could not be processed, show one, or publish it again.

    Fix the cause before --retry. If the system has credentials, --retry needs those of an admin.
    """
    terminal = Terminal(as_json=as_json)
    if number is None:
        if retry:
            raise InvalidInputError("--retry needs the number of a letter.", hint="`ioa dead` lists the letters.")
        await list_letters(url, limit, before, terminal)
    elif retry:
        await put_back(url, number, terminal)
    else:
        await show_letter(url, number, terminal)


async def list_letters(url: str | None, limit: int, before: int | None, terminal: Terminal) -> None:
    """List a page of letters, newest first."""
    async with open_reached_system(url) as system:
        page = await system.dead_letters.page(limit=limit, before=before)
    if terminal.as_json:
        terminal.document([_document(letter) for letter in page.letters])
    elif not page.letters:
        terminal.print("No dead letters.")
    else:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for head in ("number", "when", "reason"):
            table.add_column(head, no_wrap=True)
        table.add_column("where", overflow="fold")
        table.add_column("why", overflow="fold")
        for letter in page.letters:
            table.add_row(str(letter.seq), _when(letter), *map(shown_in_line, (letter.reason, letter.subject, letter.why)))
        terminal.print(table)
    if page.before is not None:
        terminal.note(f"There are more: `ioa dead --before {page.before}` lists them.")


async def show_letter(url: str | None, number: int, terminal: Terminal) -> None:
    """Show one letter, and the message as it came."""
    async with open_reached_system(url) as system:
        letter = await system.dead_letters.read(number)
    if terminal.as_json:
        data = base64.b64encode(letter.data).decode("ascii")
        terminal.document({**_document(letter), "data_base64": data})
        return
    rows = {
        "number": str(letter.seq),
        "when": _when(letter),
        "reason": letter.reason,
        "why": letter.why,
        "where": letter.subject,
        "size": size(letter.size_bytes),
    }
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, value in rows.items():
        table.add_row(Text(name, style="dim"), shown_in_line(value))
    terminal.print(table, Text())
    terminal.tell(continued(letter.data.decode("utf-8", errors="replace")))


async def put_back(url: str | None, number: int, terminal: Terminal) -> None:
    """Publish a letter again, and remove it from the dead letters.

    Raises:
        ConflictError: The letter is a goal whose id has a result.
    """
    async with open_reached_system(url) as system:
        letter = await system.dead_letters.read(number)
        goal = _goal_of(letter)
        if goal is not None and await system.result(goal) is not None:
            raise ConflictError(
                f"The goal {goal.goal_id} of dead letter {number} has ended, and a goal ends once.",
                hint="Publish it again under another goal_id; `ioa dead N` shows it.",
            )
        is_first = await system.dead_letters.put_back(letter)
    if terminal.as_json:
        terminal.document({"put_back": number, "subject": letter.subject, "first": is_first})
    else:
        again = "" if is_first else "; it had been before, and is still the same message"
        terminal.tell(f"{number} is back on {shown_in_line(letter.subject)}{again}")


def _goal_of(letter: DeadLetter) -> GoalName | None:
    """Read off a letter which goal it names, if any."""
    goal_id = find_goal_id(letter.data)
    try:
        return None if goal_id is None else GoalName(parse_goal_subject(letter.subject)[0], goal_id)
    except InvalidInputError:
        return None


def _document(letter: DeadLetter) -> Mapping[str, Any]:
    return {
        "number": letter.seq,
        "at": letter.at.isoformat() if letter.at else None,
        "reason": letter.reason,
        "why": letter.why,
        "subject": letter.subject,
        "size_bytes": letter.size_bytes,
    }


def _when(letter: DeadLetter) -> str:
    return local_time(letter.at) if letter.at else ""
