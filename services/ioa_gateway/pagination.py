"""Pages of entries, limited by count and bytes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from ioa.client.client import Client, Target
from ioa.client.documents import EntryDocument, told
from ioa.client.transcript import Tone, Transcript
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import Artifact
from ioa.protocol.model import Model

MOST_BYTES = 2_000_000
"""Maximum stored size of the entries of a page, in bytes. A page has at least one entry."""


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
    """Entries by rising sequence, also as documents (`TranscriptEntry`); `next` is where the next page starts, None on the last."""

    entries: list[StoredEntry]
    documents: list[dict[str, Any]]
    next: int | None


def describe_entry(stored: StoredEntry, transcript: Transcript) -> dict[str, Any]:
    """Describe the next entry of a transcript as a document (`TranscriptEntry`)."""
    lines = [told(LineDocument.model_validate(one, from_attributes=True)) for one in transcript.read(stored)]
    return {**told(EntryDocument.of(stored)), "lines": lines}


async def page_of(
    client: Client, target: Target, *, limit: int, after: int = 0, before: int | None = None, max_bytes: int = MOST_BYTES
) -> EntryPage:
    """Read the first entries after a sequence, or the last entries before one, until `limit` or `max_bytes` is reached."""
    found, documents, size, following = list[StoredEntry](), list[dict[str, Any]](), 0, None
    async with aclosing(client.read(target, after=after, before=before, page_size=limit + 1)) as entries:
        async for stored in entries:
            size += stored.size_bytes
            if found and (len(found) == limit or size > max_bytes):
                following = found[-1].seq
                break
            found.append(stored)
    if before is not None:
        found.reverse()
    if found:
        transcript = Transcript(states=dict(await client.state(target, at=found[0].seq - 1)))
        for stored in found:
            documents.append(describe_entry(stored, transcript))
            await asyncio.sleep(0)  # encoding an entry can take milliseconds
    return EntryPage(found, documents, following)
