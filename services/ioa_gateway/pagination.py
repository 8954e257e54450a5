"""Pages of entries and of goals, limited by count and bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from ioa.client.client import Client, Target
from ioa.client.documents import EntryDocument, GoalRow, told
from ioa.group.goal_lists import MOST_LOOKED_AT, PAGE_GOALS, GoalPhase
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import UserId

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


async def page_of_goals(
    client: Client,
    *,
    labels: Mapping[str, str],
    user: UserId | None = None,
    limit: int = PAGE_GOALS,
    before: int | None = None,
    open_only: bool = False,
    phase: GoalPhase | None = None,
) -> tuple[list[dict[str, Any]], int | None]:
    """Read documents of goals, newest first, until `limit` or `MOST_BYTES` is reached; also return where the next page starts.

    Raises:
        UnavailableError: The goals cannot be read now.
    """
    rows, size, looked_at = list[dict[str, Any]](), 0, 0
    while True:
        page = await client.goals(
            limit=limit - len(rows), before=before, open_only=open_only, labels=labels, phase=phase, user=user
        )
        for goal in page.goals:
            rows.append(told(GoalRow.of(goal)))
            size += len(json.dumps(rows[-1], ensure_ascii=False).encode())
        before, looked_at = page.before, looked_at + page.looked_at
        if before is None or len(rows) >= limit or size >= MOST_BYTES or looked_at >= MOST_LOOKED_AT:
            return rows, before
