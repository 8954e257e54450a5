"""Listing what is read page by page: one page, or all of them as they are read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from ioa.cli.options import Listing
from ioa.cli.terminal import Terminal
from ioa.client.documents import told

R = TypeVar("R")


@dataclass(frozen=True)
class ListView(Generic[R]):
    """How the rows of a list are told.

    Attributes:
        kind: What a row is called for programs, where rows come one a line.
        document: Describes a row for programs.
        show: Shows the rows of a page; says whether nothing was shown before.
        nothing: What is said of an empty list.
        more: What is said where there is more than was asked for.
    """

    kind: str
    document: Callable[[R], BaseModel]
    show: Callable[[Sequence[R], bool], None]
    nothing: str
    more: str


async def list_pages(
    read: Callable[[int | None], Awaitable[tuple[Sequence[R], int | None]]], view: ListView[R], asked: Listing, terminal: Terminal
) -> None:
    """List what is asked for. `read` gets a page, and what to ask for the next one with; None when there is no more."""
    (rows, before), shown = await read(None), 0
    while True:
        if terminal.as_json and not asked.everything:
            terminal.document([told(view.document(row)) for row in rows])
        for row in rows if asked.everything and terminal.as_json else ():
            terminal.line(view.kind, **told(view.document(row)))
        view.show(rows, not shown)
        shown += len(rows)
        if before is None or not asked.everything:
            break
        rows, before = await read(before)
    if before is not None:
        terminal.note(view.more)
    elif not shown:
        terminal.print(view.nothing)
