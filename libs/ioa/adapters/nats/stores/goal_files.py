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

from ioa.adapters.nats.streams.stream import Stream
from ioa.adapters.nats.streams.topology import FILES
from ioa.errors import ConflictError
from ioa.protocol.codec import decode, encode
from ioa.protocol.goals import Artifact
from ioa.protocol.model import Model, Time
from ioa.protocol.setup.file_requests import FilePiece, OwnerBytes

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
    """Files that are written once, piece by piece, and readable when they are complete."""

    def __init__(self, client: Client) -> None:
        self._stream = Stream(client, f"OBJ_{FILES}")

    async def find(self, object_name: str) -> StoredFile | None:
        """Return a complete file."""
        message = await self._stream.last(_named("M", object_name))
        return None if message is None else decode(StoredFile, message.data)

    async def read(self, stored: StoredFile, after: int) -> FilePiece:
        """Read the pieces after a sequence, from any replica of the stream; the rest from its leader. No bytes mean the end."""
        subject = _pieces(stored.upload)
        page = await self._stream.page(subject, after=after, limit=_PAGE_PIECES, max_bytes=_PAGE_BYTES)
        if page.messages:
            return FilePiece(data=b"".join(message.data for message in page.messages), after=page.messages[-1].seq)
        message = await self._stream.next(subject, after=after)
        return FilePiece(data=b"", after=after) if message is None else FilePiece(data=message.data, after=message.seq)

    async def begin(self, owner: str, object_name: str, size_bytes: int, at: datetime) -> str:
        """Begin an upload and return its name. An interrupted upload of the same file is removed."""
        await self._drop(object_name)
        upload = f"{owner}.{secrets.token_hex(11)}.{size_bytes}"
        await self._stream.publish(_named("P", object_name), encode(_Begun(upload=upload, object_name=object_name, at=at)))
        return upload

    async def append(self, upload: str, data: bytes, after: int) -> int:
        """Store the next piece after a sequence, 0 for the first piece; return its sequence, or raise `ConflictError`."""
        seq = await self._stream.publish_onto(_pieces(upload), data, last=after)
        if seq is None:
            raise ConflictError("The upload was removed, or continues elsewhere.")
        return seq

    async def complete(self, upload: str, artifact: Artifact) -> bool:
        """Make an upload readable; return False if another file has its name."""
        reference = encode(StoredFile(artifact=artifact, upload=upload))
        is_first = await self._stream.publish_onto(_named("M", artifact.object_name), reference) is not None
        await self._drop(artifact.object_name)
        return is_first

    async def owners(self, owner: str = "*") -> Mapping[str, OwnerBytes]:
        """Count the files of an owner or of all owners, by the subjects of their pieces, which incomplete files also have."""
        counted = dict[str, OwnerBytes]()
        for subject in await self._stream.subject_counts(_pieces(f"{owner}.*.*")):
            name, _, size = subject.split(".")[-3:]
            known = counted.get(name, OwnerBytes(owner=name, size_bytes=0, files=0))
            counted[name] = OwnerBytes(owner=name, size_bytes=known.size_bytes + counts_as(int(size)), files=known.files + 1)
        return counted

    async def drop_interrupted(self, begun_before: datetime) -> Sequence[str]:
        """Remove incomplete uploads that began before a time; return the names of their files."""
        names: list[str] = []
        async for message in self._stream.messages(f"$O.{FILES}.P.*"):
            begun = decode(_Begun, message.data)
            if begun.at < begun_before:
                await self._drop(begun.object_name)
                names.append(begun.object_name)
        return names

    async def remove(self, object_name: str) -> None:
        """Remove a file: its pieces, then its reference."""
        found = await self.find(object_name)
        if found is not None:
            await self._stream.purge(_pieces(found.upload))
        await self._stream.purge(_named("M", object_name))

    async def _drop(self, object_name: str) -> None:
        """Remove the note of an upload, and its pieces unless the complete file consists of them."""
        note = await self._stream.last(_named("P", object_name))
        if note is None:
            return
        upload, complete = decode(_Begun, note.data).upload, await self.find(object_name)
        if complete is None or complete.upload != upload:
            await self._stream.purge(_pieces(upload))
        await self._stream.purge(_named("P", object_name))


def _pieces(upload: str) -> str:
    return f"$O.{FILES}.C.{upload}"


def _named(kind: str, object_name: str) -> str:
    """Return the subject of a file's reference (`M`), or of the note of its upload (`P`)."""
    return f"$O.{FILES}.{kind}.{base64.urlsafe_b64encode(object_name.encode()).decode()}"
