"""Pages of entries that end by their bytes, too: an entry may be as large as a thousand others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ioa.client.client import Client, Target
from ioa.client.documents import EntryDocument, told
from ioa.ports.group_log import StoredEntry

MOST_BYTES = 2_000_000
"""Of the entries of a page, as they are written. One is told however large it is."""
_LARGEST_BYTES, _AT_ONCE = 250_000, 64
"""How large an entry of the log may be, about, for which few are read at first; and how many are at a time when that is known."""


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


async def page_of(
    client: Client, target: Target, *, limit: int, after: int = 0, before: int | None = None, most_bytes: int | None = None
) -> EntryPage:
    """Read the first entries behind a sequence, or the last ones before one, until there are so many or they have too many bytes.

    That is more than `MOST_BYTES`, unless it is said how many.

    Raises:
        UnavailableError: The log cannot be read now.
    """
    most = MOST_BYTES if most_bytes is None else most_bytes
    found, documents, place = list[StoredEntry](), list[dict[str, Any]](), before if before is not None else after
    size, step = 0, max(1, most // _LARGEST_BYTES)
    has_more = True
    while has_more and len(found) < limit:
        asked = min(step, limit - len(found))
        if before is None:
            read = await client.entries(target, after=place, limit=asked)
        else:
            read = [*reversed(await client.entries(target, after=after, before=place, limit=asked))]
        has_more = len(read) == asked
        for stored in read:
            document = told(EntryDocument.of(stored))
            size += len(json.dumps(document, ensure_ascii=False).encode())
            if found and size > most:
                return _page(found, documents, place, before)
            found.append(stored)
            documents.append(document)
            place = stored.seq
        step = min(4 * step, _AT_ONCE, max(1, (most - size) * len(found) // max(1, size)))
    return _page(found, documents, place if has_more else None, before)


def _page(found: list[StoredEntry], documents: list[dict[str, Any]], following: int | None, before: int | None) -> EntryPage:
    return EntryPage(found, documents, following) if before is None else EntryPage(found[::-1], documents[::-1], following)
