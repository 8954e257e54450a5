"""`ioa waiting` and `ioa answer`: what is up to people in groups, and their answers."""

from __future__ import annotations

from typing import Annotated

import typer

from ioa.cli.failures import reported
from ioa.cli.options import AsJson, Url
from ioa.cli.terminal import Terminal

As = Annotated[
    str | None,
    typer.Option("--as", metavar="NAME", help="The person: what `human` names, or the role.", show_default="whoever is asked"),
]


def waiting(person: As = None, url: Url = None, as_json: AsJson = False) -> None:
    """List what waits for people: turns to speak, something to decide, conclusions, questions to the user; each with its item."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.people import show_waiting

        run_to_end(show_waiting(url, person, Terminal(as_json=as_json)))


def answer(
    item: Annotated[str, typer.Argument(metavar="ID", help="The item, as `ioa waiting` lists it.", show_default=False)],
    text: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="The words, taken as they are; - reads them from standard input.")
    ] = "",
    choose: Annotated[
        str | None,
        typer.Option(
            "--choose",
            metavar="X",
            help="What is chosen: an option, a way out, the next speaker, or several with commas between.",
            show_default=False,
        ),
    ] = None,
    fields: Annotated[
        list[str],
        typer.Option("--field", metavar="NAME=VALUE", help="What a form is filled in with; several times.", show_default=False),
    ] = [],  # noqa: B006
    passes: Annotated[bool, typer.Option("--pass", help="Say nothing in this turn, or leave a decision to its default.")] = False,
    person: As = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Answer as a person, or as the user what a group or a task asks.

    The first answer counts, the same one again is that one, and a later one is told so.

    What was passed as a draft is said again by the item alone.
    """
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.people import give_answer, read_reply
        from ioa.cli.terminal import read_stdin

        reply = read_reply(read_stdin() if text == "-" else text, choose, fields, passes=passes)
        run_to_end(give_answer(url, item, reply, person, Terminal(as_json=as_json)))
