"""`ioa dead`: lists dead letters, shows one, and publishes it again."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.text import Text

from ioa.cli.command import command
from ioa.cli.console import create_fields, create_table, local_time, size
from ioa.cli.terminal import Terminal
from ioa.client.client import Client
from ioa.errors import ConflictError, InvalidInputError
from ioa.foreign_text import continued, shown_in_line
from ioa.protocol.dead_letters import DeadLetter
from ioa.protocol.goal_order import find_goal_id
from ioa.protocol.ids import GoalName
from ioa.protocol.subjects import parse_goal_subject

app = typer.Typer()


@command(app)
async def dead(
    system: Client,
    terminal: Terminal,
    number: Annotated[int | None, typer.Argument(metavar="N", min=1, help="The number of a letter: show it.")] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Publish letter N again on its subject, and remove it from the dead letters.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of letters, newest first.")] = 50,
    before: Annotated[int | None, typer.Option(metavar="N", min=1, help="List only letters before this number.")] = None,
) -> None:
    """List messages that could not be processed, show one, or publish it again.

    Fix the cause before --retry. If the system has credentials, --retry needs those of an admin.
    """
    if number is None:
        if retry:
            raise InvalidInputError("--retry needs the number of a letter.", hint="`ioa dead` lists the letters.")
        await list_letters(system, terminal, limit, before)
    elif retry:
        await put_back(system, terminal, number)
    else:
        await show_letter(system, terminal, number)


async def list_letters(system: Client, terminal: Terminal, limit: int, before: int | None = None) -> None:
    """List a page of letters, newest first."""
    page = await system.dead_letters.page(limit=limit, before=before)
    rows = [(str(one.seq), local_time(one.at), *map(shown_in_line, (one.reason, one.subject, one.why))) for one in page.letters]
    table = create_table(("number", "when", "reason", "where", "why"), rows, folded=("where", "why"))
    terminal.show([*map(_document, page.letters)], table if rows else "No dead letters.")
    if page.before is not None:
        terminal.note(f"There are more: `ioa dead --before {page.before}` lists them.")


async def show_letter(system: Client, terminal: Terminal, number: int) -> None:
    """Show one letter, and the message as it came."""
    letter = await system.dead_letters.read(number)
    fields = {
        "number": str(letter.seq),
        "when": local_time(letter.at),
        "reason": letter.reason,
        "why": shown_in_line(letter.why),
        "where": shown_in_line(letter.subject),
        "size": size(letter.size_bytes),
    }
    data = base64.b64encode(letter.data).decode("ascii")
    terminal.show({**_document(letter), "data_base64": data}, create_fields(fields), Text())
    terminal.tell(continued(letter.data.decode("utf-8", errors="replace")))


async def put_back(system: Client, terminal: Terminal, number: int) -> None:
    """Publish a letter again, and remove it from the dead letters.

    Raises:
        ConflictError: The letter is a goal whose id has a result.
    """
    letter = await system.dead_letters.read(number)
    goal = _goal_of(letter)
    if goal is not None and await system.result(goal) is not None:
        raise ConflictError(
            f"The goal {goal.goal_id} of dead letter {number} has ended, and a goal ends once.",
            hint="Publish it again under another goal_id; `ioa dead N` shows it.",
        )
    is_first = await system.dead_letters.put_back(letter)
    again = "" if is_first else "; it was published again before, as the same message"
    subject = shown_in_line(letter.subject)
    terminal.show({"put_back": number, "subject": letter.subject, "first": is_first}, f"{number} is back on {subject}{again}")


def _goal_of(letter: DeadLetter) -> GoalName | None:
    """Return the goal that a letter names, if any."""
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
