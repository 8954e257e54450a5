"""Lists that are read page by page: one page, or all pages as they are read."""

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
    """The presentation of a list.

    Attributes:
        kind: Event of a row, if rows are written as JSON lines.
        document: Describes a row as JSON.
        show: Shows the rows of a page; its second argument is whether this is the first page.
        nothing: Text for an empty list.
    """

    kind: str
    document: Callable[[R], BaseModel]
    show: Callable[[Sequence[R], bool], None]
    nothing: str


async def list_pages(
    read: Callable[[int | None], Awaitable[tuple[Sequence[R], int | None]]], view: ListView[R], asked: Listing, terminal: Terminal
) -> None:
    """List the requested part. `read` takes the cursor of a page, and returns its rows and the next cursor, or None."""
    before, is_first = None, True
    while is_first or (before is not None and asked.everything):
        rows, before = await read(before)
        documents = [told(view.document(row)) for row in rows] if terminal.as_json else []
        if not asked.everything and terminal.as_json:
            terminal.document(documents)
        elif rows:
            for document in documents:
                terminal.line(view.kind, **document)
            view.show(rows, is_first)
        elif is_first:
            terminal.print(view.nothing)
        is_first = False
    if before is not None:
        terminal.note("There are more: --limit N lists more of them, --all lists all.")
