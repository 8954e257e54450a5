"""Pages of entries that end by their bytes, too: an entry may be as large as a thousand others."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from ioa.client.client import Client, Target
from ioa.client.documents import EntryDocument, told
from ioa.ports.group_log import StoredEntry

MOST_BYTES = 2_000_000
"""Of the entries of a page, as they are written or as they are stored. One is told however large it is."""


@dataclass(frozen=True)
class EntryPage:
    """Entries, by rising sequence.

    Attributes:
        entries: As they are stored.
        documents: As they are told.
        next: Behind which sequence, or before which one, there may be more; None if there is nothing more now.
    """

    entries: list[StoredEntry]
    documents: list[dict[str, Any]]
    next: int | None


async def page_of(client: Client, target: Target, *, limit: int, after: int = 0, before: int | None = None) -> EntryPage:
    """Read the first entries behind a sequence, or the last ones before one, so many, or fewer that have no more than `MOST_BYTES`.

    Raises:
        UnavailableError: The log cannot be read now.
    """
    found, documents, size = list[StoredEntry](), list[dict[str, Any]](), 0
    async with aclosing(client.read(target, after=after, before=before, page_size=limit)) as entries:
        async for stored in entries:
            document = told(EntryDocument.of(stored))
            size += max(len(json.dumps(document, ensure_ascii=False).encode()), stored.size_bytes)
            if found and size > MOST_BYTES:
                return _page(found, documents, found[-1].seq, before)
            found.append(stored)
            documents.append(document)
            if len(found) == limit:
                return _page(found, documents, stored.seq, before)
            await asyncio.sleep(0)  # one may take milliseconds to write
    return _page(found, documents, None, before)


def _page(found: list[StoredEntry], documents: list[dict[str, Any]], following: int | None, before: int | None) -> EntryPage:
    return EntryPage(found, documents, following) if before is None else EntryPage(found[::-1], documents[::-1], following)
