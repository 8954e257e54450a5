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
from ioa.client.transcript import Tone, Transcript
from ioa.group.goal_lists import MOST_LOOKED_AT, PAGE_GOALS, GoalPhase
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import UserId
from ioa.protocol.model import Model

MOST_BYTES = 2_000_000
"""Maximum size of the entries of a page in bytes, as JSON without lines or as stored. A page has at least one entry."""


class LineDocument(Model):
    """A line of a transcript (`ioa.client.transcript.Line`): `speaker` is the sender of a message, or `·`."""

    speaker: str
    act: str
    text: str
    tone: Tone
    files: tuple[Artifact, ...]


class TranscriptEntry(EntryDocument):
    """An entry of a log with its lines in the transcript."""

    lines: tuple[LineDocument, ...]


@dataclass(frozen=True)
class EntryPage:
    """Entries in the order of their sequences.

    Attributes:
        entries: The stored entries.
        documents: The same entries as documents (`TranscriptEntry`).
        next: The sequence after which, or before which, the next page starts; None on the last page.
    """

    entries: list[StoredEntry]
    documents: list[dict[str, Any]]
    next: int | None


def describe_entry(stored: StoredEntry, transcript: Transcript) -> dict[str, Any]:
    """Describe the next entry of a transcript as a document (`TranscriptEntry`)."""
    return {**told(EntryDocument.of(stored)), "lines": _lines(stored, transcript)}


def _lines(stored: StoredEntry, transcript: Transcript) -> list[dict[str, Any]]:
    return [told(LineDocument.model_validate(one, from_attributes=True)) for one in transcript.read(stored)]


async def transcript_at(client: Client, target: Target, seq: int) -> Transcript:
    """Return the transcript of a goal or group that continues after a sequence.

    Raises:
        UnavailableError: The logs cannot be read now.
    """
    return Transcript(states=dict(await client.state(target, at=seq)))


async def page_of(
    client: Client, target: Target, *, limit: int, after: int = 0, before: int | None = None, max_bytes: int = MOST_BYTES
) -> EntryPage:
    """Read the first entries after a sequence, or the last entries before one, until `limit` or `max_bytes` is reached.

    Raises:
        UnavailableError: The log cannot be read now.
    """
    found, documents, size, following = list[StoredEntry](), list[dict[str, Any]](), 0, None
    async with aclosing(client.read(target, after=after, before=before, page_size=limit)) as entries:
        async for stored in entries:
            document = told(EntryDocument.of(stored))
            size += max(len(json.dumps(document, ensure_ascii=False).encode()), stored.size_bytes)
            if found and size > max_bytes:
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
    if found:
        transcript = await transcript_at(client, target, found[0].seq - 1)
        for stored, document in zip(found, documents, strict=True):
            document["lines"] = _lines(stored, transcript)
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
