"""Pages of entries, limited by count and bytes."""

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
"""Maximum size of the entries of a page in bytes, as JSON or as stored. A page has at least one entry."""


@dataclass(frozen=True)
class EntryPage:
    """Entries in the order of their sequences.

    Attributes:
        entries: The stored entries.
        documents: The same entries as documents.
        next: The sequence after which, or before which, the next page starts; None on the last page.
    """

    entries: list[StoredEntry]
    documents: list[dict[str, Any]]
    next: int | None


async def page_of(client: Client, target: Target, *, limit: int, after: int = 0, before: int | None = None) -> EntryPage:
    """Read the first entries after a sequence, or the last entries before a sequence, until `limit` or `MOST_BYTES` is reached.

    Raises:
        UnavailableError: The log cannot be read now.
    """
    found, documents, size, following = list[StoredEntry](), list[dict[str, Any]](), 0, None
    async with aclosing(client.read(target, after=after, before=before, page_size=limit)) as entries:
        async for stored in entries:
            document = told(EntryDocument.of(stored))
            size += max(len(json.dumps(document, ensure_ascii=False).encode()), stored.size_bytes)
            if found and size > MOST_BYTES:
                following = found[-1].seq
                break
            found.append(stored)
            documents.append(document)
            if len(found) == limit:
                following = stored.seq
                break
            await asyncio.sleep(0)  # encoding an entry can take milliseconds
    if before is not None:
        found.reverse()
        documents.reverse()
    return EntryPage(found, documents, following)
