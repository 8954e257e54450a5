"""Files of agents and users in the stream `OBJ_IOA_FILES`, which only group setup reads and writes.

A stored file consists of its pieces on one subject, which contains owner and size, and of its reference on another subject, which
is published last. A note of each upload that began lets the sweep find interrupted uploads.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime

from nats.aio.client import Client

from ioa.adapters.nats.streams.compare_and_set import last_message, next_message, publish_onto
from ioa.adapters.nats.streams.stream_reader import next_messages, pages
from ioa.adapters.nats.streams.stream_stats import subject_counts
from ioa.adapters.nats.streams.topology import FILES
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import ConflictError
from ioa.protocol.codec import decode, encode
from ioa.protocol.files import FilePiece, OwnerBytes
from ioa.protocol.goals import Artifact
from ioa.protocol.model import Model, Time

_STREAM = f"OBJ_{FILES}"
_STORE = "The store of files"
_PAGE_BYTES, _PAGE_PIECES = 384 * 1024, 8
"""Maximum bytes and pieces of a reply."""
_MIN_COUNTED_BYTES = 4_096
"""Bytes that a small file counts for its owner, because an empty file also uses space."""


class StoredFile(Model):
    """A complete file: its reference, and the name of its upload."""

    artifact: Artifact
    upload: str


class _Begun(Model):
    """An upload that began and is not complete."""

    upload: str
    object_name: str
    at: Time


def counts_as(size_bytes: int) -> int:
    """Return the bytes that a file of this size counts for its owner."""
    return max(size_bytes, _MIN_COUNTED_BYTES)


class NatsFileStore:
    """Files that are written once, piece by piece, and readable when they are complete.

    Raises:
        UnavailableError: From every method; a `StoreFullError` if the store is full.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()

    async def find(self, object_name: str) -> StoredFile | None:
        """Return a complete file."""
        with unavailable_unless_answered(_STORE):
            message = await last_message(self._js, _STREAM, _reference(object_name))
        return None if message is None else decode(StoredFile, message.data or b"")

    async def read(self, stored: StoredFile, after: int) -> FilePiece:
        """Read the pieces after a sequence, from any replica of the stream; the rest from its leader. No bytes mean the end."""
        subject = _pieces(stored.upload)
        page = await next_messages(self._client, _STREAM, subject, after=after, limit=_PAGE_PIECES, max_bytes=_PAGE_BYTES)
        if page.messages:
            return FilePiece(data=b"".join(message.data for message in page.messages), after=page.messages[-1].seq)
        with unavailable_unless_answered(_STORE):
            message = await next_message(self._js, _STREAM, subject, after=after)
        return FilePiece(data=b"", after=after) if message is None else FilePiece(data=message.data or b"", after=message.seq or 0)

    async def begin(self, owner: str, object_name: str, size_bytes: int, at: datetime) -> str:
        """Begin an upload and return its name. An interrupted upload of the same file is removed."""
        await self._drop(object_name)
        upload = f"{owner}.{secrets.token_hex(11)}.{size_bytes}"
        with unavailable_unless_answered(_STORE):
            note = encode(_Begun(upload=upload, object_name=object_name, at=at))
            await self._js.publish(_note(object_name), note, stream=_STREAM)
        return upload

    async def append(self, upload: str, data: bytes, after: int) -> int:
        """Store the next piece after the piece with a sequence, 0 for the first one; return its sequence.

        Raises:
            ConflictError: Another piece was stored, or the upload was removed.
        """
        with unavailable_unless_answered(_STORE):
            seq = await publish_onto(self._js, _STREAM, _pieces(upload), data, last=after)
        if seq is None:
            raise ConflictError("The upload was removed, or continues elsewhere.")
        return seq

    async def complete(self, upload: str, artifact: Artifact) -> bool:
        """Make an upload readable; return False if another file has its name."""
        reference = encode(StoredFile(artifact=artifact, upload=upload))
        with unavailable_unless_answered(_STORE):
            is_first = await publish_onto(self._js, _STREAM, _reference(artifact.object_name), reference) is not None
        await self._drop(artifact.object_name)
        return is_first

    async def owners(self, owner: str = "*") -> Mapping[str, OwnerBytes]:
        """Count the files of an owner or of all owners, by the subjects of their pieces, which incomplete files also have."""
        counted = dict[str, OwnerBytes]()
        for subject in await subject_counts(self._client, _STREAM, _pieces(f"{owner}.*.*")):
            name, _, size = subject.split(".")[-3:]
            known = counted.get(name, OwnerBytes(owner=name, size_bytes=0, files=0))
            counted[name] = OwnerBytes(owner=name, size_bytes=known.size_bytes + counts_as(int(size)), files=known.files + 1)
        return counted

    async def drop_interrupted(self, begun_before: datetime) -> Sequence[str]:
        """Remove incomplete uploads that began before a time; return the names of their files."""
        names: list[str] = []
        async for page in pages(self._client, _STREAM, f"$O.{FILES}.P.*", limit=_PAGE_PIECES):
            for begun in [decode(_Begun, message.data) for message in page.messages]:
                if begun.at < begun_before:
                    await self._drop(begun.object_name)
                    names.append(begun.object_name)
        return names

    async def remove(self, object_name: str) -> None:
        """Remove a file: its pieces, then its reference."""
        found = await self.find(object_name)
        if found is not None:
            await self._purge(_pieces(found.upload))
        await self._purge(_reference(object_name))

    async def _drop(self, object_name: str) -> None:
        """Remove the note of an upload, and its pieces unless the complete file consists of them."""
        with unavailable_unless_answered(_STORE):
            note = await last_message(self._js, _STREAM, _note(object_name))
        if note is None:
            return
        upload, complete = decode(_Begun, note.data or b"").upload, await self.find(object_name)
        if complete is None or complete.upload != upload:
            await self._purge(_pieces(upload))
        await self._purge(_note(object_name))

    async def _purge(self, subject: str) -> None:
        with unavailable_unless_answered(_STORE):
            await self._js.purge_stream(_STREAM, subject=subject)


def _pieces(upload: str) -> str:
    return f"$O.{FILES}.C.{upload}"


def _reference(object_name: str) -> str:
    return f"$O.{FILES}.M.{base64.urlsafe_b64encode(object_name.encode()).decode()}"


def _note(object_name: str) -> str:
    return f"$O.{FILES}.P.{base64.urlsafe_b64encode(object_name.encode()).decode()}"
