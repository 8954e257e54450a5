"""The files of goals in JetStream, which only group setup reads and writes.

What the system stores lies in a stream of its own, laid out as an object store (NATS ADR-20) but without roll-ups. The subject of a
file's bytes names its owner and its size, so that the stream itself tells what everybody stores, files that are not complete and
what they have left counted in. `IOA_ARTIFACTS` is an object store as others know it, for whoever may put objects there by hand.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from nats.aio.client import Client
from nats.js.api import Header, ObjectInfo, ObjectMetaOptions
from nats.js.errors import APIError
from nats.js.errors import NotFoundError as NoMessageError

from ioa.adapters.nats.streams.compare_and_set import last_message, publish_onto
from ioa.adapters.nats.streams.stream_names import subjects_of
from ioa.adapters.nats.streams.stream_reader import next_messages, pages
from ioa.adapters.nats.streams.topology import ARTIFACTS, FILES
from ioa.adapters.nats.wire.translated_errors import lost_race, unavailable_unless_answered
from ioa.errors import ConflictError, InvalidInputError, NotFoundError
from ioa.json_text import parse_json
from ioa.protocol.codec import decode, encode, validate
from ioa.protocol.files import PIECE_BYTES
from ioa.protocol.goals import Artifact, plain_file_name
from ioa.protocol.model import Model, Time
from ioa.protocol.texts import check_text

_NAME, _MEDIA_TYPE = "Ioa-Name", "Ioa-Media-Type"
_DIGEST = "SHA-256="
_PLAIN = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_STORE = "The store of files"
_PAGE_BYTES, _PAGE_PIECES = 384 * 1024, 8
"""The bytes and the pieces after which an answer is complete."""


@dataclass(frozen=True)
class StoredFile:
    """A complete file: its reference, and the place of its bytes."""

    artifact: Artifact
    bucket: str
    upload: str

    @property
    def owner(self) -> str:
        """The owner, the first part of the upload's name; empty if the file was not uploaded through group setup."""
        owner, mark, _ = self.upload.partition(".")
        return owner if mark else ""


@dataclass(frozen=True)
class Page:
    """Bytes of a file, and the number of the last piece read. No bytes mean the end."""

    data: bytes
    after: int


_LEAST_BYTES = 4_096
"""Minimum bytes that a file counts for its owner, because an empty file also uses space."""


def counts_as(size_bytes: int) -> int:
    """Return the bytes that a file of this size counts for its owner."""
    return max(size_bytes, _LEAST_BYTES)


@dataclass(frozen=True)
class OwnBytes:
    """The bytes and files of an owner."""

    size_bytes: int = 0
    files: int = 0


class _Begun(Model):
    """That an upload has begun, kept until it is complete or dropped."""

    upload: str
    at: Time


class NatsFileStore:
    """Files that are written once, piece by piece, and visible when they are complete.

    Raises:
        UnavailableError: From every method; a `StoreFullError` if the store is full.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()

    async def find(self, object_name: str, sha256: str) -> StoredFile | None:
        """Look in the system's stream, then in the object store of users."""
        for bucket in (FILES, ARTIFACTS):
            info = await self._find(bucket, object_name)
            if info is not None and (found := _reference(object_name, info)).sha256 == sha256:
                return StoredFile(found, bucket, info.nuid or "")
        return None

    async def named(self, object_name: str) -> Artifact | None:
        """Look in the system's stream."""
        info = await self._find(FILES, object_name)
        return None if info is None else _reference(object_name, info)

    async def describe(self, object_name: str) -> Artifact:
        """Look in the object store of users, and nowhere else."""
        info = await self._find(ARTIFACTS, object_name)
        if info is None:
            raise NotFoundError(
                f"There is no object {object_name!r} in the store of files.",
                hint="Send the file with the goal: ioa run --input FILE",
            )
        return _reference(object_name, info)

    async def read(self, stored: StoredFile, after: int) -> Page:
        """Read from any replica of the stream, and ask its leader when there seems to be no more."""
        subject = _bytes(stored.bucket, stored.upload)
        if stored.bucket == FILES:
            page = await next_messages(
                self._client, _stream(FILES), subject, after=after, limit=_PAGE_PIECES, max_bytes=_PAGE_BYTES
            )
            if page.messages:
                return Page(b"".join(message.data for message in page.messages), page.messages[-1].seq)
        with unavailable_unless_answered(_STORE):
            try:
                message = await self._js.get_msg(_stream(stored.bucket), seq=after + 1, subject=subject, next=True)
            except NoMessageError:
                return Page(b"", after)
        return Page(message.data or b"", message.seq or 0)

    async def begin(self, owner: str, object_name: str, size_bytes: int, at: datetime) -> str:
        """Note the upload where what was interrupted is looked for."""
        await self._drop(object_name)
        upload = f"{owner}.{secrets.token_hex(11)}.{size_bytes}"
        await self._publish(_begun(object_name), encode(_Begun(upload=upload, at=at)))
        return upload

    async def append(self, upload: str, data: bytes, after: int) -> int:
        """Publish on top of the last piece."""
        with unavailable_unless_answered(_STORE):
            try:
                headers = {Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(after)}
                stored = await self._js.publish(_bytes(FILES, upload), data, stream=_stream(FILES), headers=headers)
            except APIError as error:
                if lost_race(error):
                    raise ConflictError("The upload has been dropped, or goes on elsewhere.") from None
                raise
        return stored.seq

    async def complete(self, upload: str, artifact: Artifact, pieces: int) -> bool:
        """Publish what is said of the file, unless something is said already under its name."""
        info = ObjectInfo(
            name=artifact.object_name,
            bucket=FILES,
            nuid=upload,
            size=artifact.size_bytes,
            chunks=pieces,
            digest=_DIGEST + base64.urlsafe_b64encode(bytes.fromhex(artifact.sha256)).decode(),
            headers={_NAME: artifact.name, _MEDIA_TYPE: artifact.media_type},
            options=ObjectMetaOptions(max_chunk_size=PIECE_BYTES),
        )
        said = json.dumps(info.as_dict()).encode()
        with unavailable_unless_answered(_STORE):
            is_first = await publish_onto(self._js, _stream(FILES), _meta(FILES, artifact.object_name), said) is not None
        await self._drop(artifact.object_name)
        return is_first

    async def stored_by(self, owner: str) -> OwnBytes:
        """Add up what the subjects of the owner's files say."""
        return (await self._count(f"{owner}.>"))[owner]

    async def owners(self) -> Mapping[str, OwnBytes]:
        """Add up the sizes in the subjects of all files."""
        return await self._count("*.*.*")

    async def drop_interrupted(self, begun_before: datetime) -> Sequence[str]:
        """Look at the notes of uploads that began."""
        names: list[str] = []
        async for page in pages(self._client, _stream(FILES), f"$O.{FILES}.P.*", limit=_PAGE_PIECES):
            for message in page.messages:
                if decode(_Begun, message.data).at < begun_before:
                    name = base64.urlsafe_b64decode(message.subject.rpartition(".")[2]).decode()
                    await self._drop(name)
                    names.append(name)
        return names

    async def remove(self, object_name: str) -> None:
        """Remove the bytes, then what says where they lie."""
        found = await self._find(FILES, object_name)
        if found is not None:
            await self._purge(_bytes(FILES, found.nuid or ""))
        await self._purge(_meta(FILES, object_name))

    async def _drop(self, object_name: str) -> None:
        """Forget an upload of this name; its bytes go with it unless they are the file's."""
        with unavailable_unless_answered(_STORE):
            note = await last_message(self._js, _stream(FILES), _begun(object_name))
        if note is None:
            return
        upload = decode(_Begun, note.data or b"").upload
        whole = await self._find(FILES, object_name)
        if whole is None or whole.nuid != upload:
            await self._purge(_bytes(FILES, upload))
        await self._purge(_begun(object_name))

    async def _count(self, pattern: str) -> defaultdict[str, OwnBytes]:
        counted: defaultdict[str, OwnBytes] = defaultdict(OwnBytes)
        async for subjects in subjects_of(self._client, _stream(FILES), _bytes(FILES, pattern)):
            for subject in subjects:
                owner, _, size = subject.split(".")[-3:]
                of_owner = counted[owner]
                counted[owner] = OwnBytes(of_owner.size_bytes + counts_as(int(size)), of_owner.files + 1)
        return counted

    async def _find(self, bucket: str, object_name: str) -> ObjectInfo | None:
        """Read what is said of an object. In this one place, since in the store of users it may be anything."""
        if not object_name:
            return None
        check_text(object_name)
        with unavailable_unless_answered(_STORE):
            message = await last_message(self._js, _stream(bucket), _meta(bucket, object_name))
        if message is None:
            return None
        try:
            info = ObjectInfo.from_response(parse_json(message.data or b"{}"))
            _check_ids(info, bucket)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise _unreadable(object_name, error) from None
        return None if info.deleted else info

    async def _publish(self, subject: str, data: bytes) -> None:
        with unavailable_unless_answered(_STORE):
            await self._js.publish(subject, data, stream=_stream(FILES))

    async def _purge(self, subject: str) -> None:
        with unavailable_unless_answered(_STORE):
            await self._js.purge_stream(_stream(FILES), subject=subject)


def _check_ids(info: ObjectInfo, bucket: str) -> None:
    """See that what is said of an object leads to its own bytes: subjects are built of it.

    With a wildcard everybody's would be read or removed, with a line break the server would be told another command.
    """
    if info.bucket != bucket or not (info.deleted or _PLAIN.fullmatch(info.nuid or "")):
        raise ValueError


def _reference(object_name: str, info: ObjectInfo) -> Artifact:
    """Make the reference of an object, whose name and description may come from anybody."""
    try:
        headers = info.headers or {}
        fields = {
            "name": plain_file_name(headers.get(_NAME, object_name)),
            "object_name": object_name,
            "size_bytes": info.size or 0,
            "sha256": base64.urlsafe_b64decode((info.digest or "").removeprefix(_DIGEST)).hex(),
            "media_type": headers.get(_MEDIA_TYPE, "application/octet-stream"),
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise _unreadable(object_name, error) from None
    return validate(Artifact, fields)


def _unreadable(object_name: str, error: Exception) -> InvalidInputError:
    return InvalidInputError(
        f"What the store says of the object {object_name[:80]!r} cannot be read ({type(error).__name__}).",
        hint="Put the object again.",
    )


def _stream(bucket: str) -> str:
    return f"OBJ_{bucket}"


def _bytes(bucket: str, upload: str) -> str:
    return f"$O.{bucket}.C.{upload}"


def _meta(bucket: str, object_name: str) -> str:
    return f"$O.{bucket}.M.{_token(object_name)}"


def _begun(object_name: str) -> str:
    return f"$O.{FILES}.P.{_token(object_name)}"


def _token(object_name: str) -> str:
    return base64.urlsafe_b64encode(object_name.encode()).decode()
