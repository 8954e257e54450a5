"""Files by reference, by what an agent may do with JetStream.

What the system stores lies in a stream of its own, laid out as an object store (NATS ADR-20) but without roll-ups: one message with
that header could delete everything, and no permission covers headers. `IOA_ARTIFACTS` is an object store as others know it, into
which users put files, such as with `nats object put`; agents only read it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from nats.js import JetStreamContext
from nats.js.api import ObjectInfo, ObjectMetaOptions
from nats.js.errors import NotFoundError as StoreNotFoundError

from ioa.adapters.nats.keys import last_message
from ioa.adapters.nats.topology import ARTIFACTS, FILES
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.errors import InvalidInputError, NotFoundError
from ioa.protocol.codec import check_text, validate
from ioa.protocol.goals import Artifact, plain_file_name

_NAME, _MEDIA_TYPE = "Ioa-Name", "Ioa-Media-Type"
_DIGEST = "SHA-256="
_CHUNK_BYTES = 128 * 1024
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


class NatsArtifacts:
    """Store and fetch files; what is fetched is checked against the digest in its reference."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def put(self, object_name: str, name: str, data: bytes, media_type: str) -> Artifact:
        """Store a file, unless this very file is there already. What it replaces is referenced no more, but its bytes stay."""
        digest = hashlib.sha256(data)
        chunks = [data[at : at + _CHUNK_BYTES] for at in range(0, len(data), _CHUNK_BYTES)]
        info = ObjectInfo(
            name=object_name,
            bucket=FILES,
            nuid=secrets.token_hex(11),
            size=len(data),
            chunks=len(chunks),
            mtime=datetime.now(UTC).isoformat(),
            digest=_DIGEST + base64.urlsafe_b64encode(digest.digest()).decode(),
            headers={_NAME: name, _MEDIA_TYPE: media_type},
            options=ObjectMetaOptions(max_chunk_size=_CHUNK_BYTES),
        )
        with unavailable_unless_answered("The artifact store"):
            try:
                found = await self._find(FILES, object_name)
            except InvalidInputError:
                found = None  # what cannot be read is replaced
            if found is None or (found.digest, found.headers) != (info.digest, info.headers):
                for chunk in chunks:
                    await self._js.publish(_chunks(info), chunk, stream=_stream(FILES))
                meta = json.dumps(info.as_dict()).encode()
                await self._js.publish(_meta(FILES, object_name), meta, stream=_stream(FILES))
        return Artifact(name=name, object_name=object_name, size_bytes=len(data), sha256=digest.hexdigest(), media_type=media_type)

    async def get(self, artifact: Artifact) -> bytes:
        """Fetch a file and check it."""
        with unavailable_unless_answered("The artifact store"):
            found = await self._find_anywhere(artifact.object_name)
            if found is None:
                raise NotFoundError(f"The file {artifact.name!r} is not in the artifact store.")
            data = b"".join([chunk async for chunk in self._read(found)])
        if hashlib.sha256(data).hexdigest() != artifact.sha256:
            raise InvalidInputError(f"The file {artifact.name!r} has changed since it was referenced.")
        return data

    async def describe(self, object_name: str) -> Artifact:
        """Build the reference of an object that somebody else stored, such as with `nats object put`."""
        with unavailable_unless_answered("The artifact store"):
            info = await self._find_anywhere(object_name)
        if info is None:
            raise NotFoundError(
                f"There is no object {object_name!r} in the artifact store.",
                hint=f"Put it there first: nats object put {ARTIFACTS} FILE",
            )
        return _reference(object_name, info)

    async def remove(self, object_name: str) -> None:
        """Remove a file that the system stores: its bytes, then what says where they lie. One that users put stays."""
        with unavailable_unless_answered("The artifact store"):
            try:
                found = await self._find(FILES, object_name)
            except InvalidInputError:
                found = None  # nothing tells which bytes are its own
            if found is not None:
                await self._js.purge_stream(_stream(FILES), subject=f"$O.{FILES}.C.{found.nuid}")
            await self._js.purge_stream(_stream(FILES), subject=_meta(FILES, object_name))

    async def _find_anywhere(self, object_name: str) -> ObjectInfo | None:
        return await self._find(FILES, object_name) or await self._find(ARTIFACTS, object_name)

    async def _find(self, bucket: str, object_name: str) -> ObjectInfo | None:
        if not object_name:
            return None
        check_text(object_name)
        message = await last_message(self._js, _stream(bucket), _meta(bucket, object_name))
        if message is None:
            return None
        try:
            info = ObjectInfo.from_response(json.loads(message.data or b"{}"))
            _check_ids(info, bucket)
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            raise _unreadable(object_name, error) from None
        return None if info.deleted else info

    async def _read(self, info: ObjectInfo) -> AsyncIterator[bytes]:
        """Read a file's chunks one by one. Not by a consumer: who may create one may have it deliver to any subject."""
        seq = 0
        for _ in range(info.chunks or 0):
            try:
                message = await self._js.get_msg(_stream(info.bucket), seq=seq + 1, subject=_chunks(info), next=True)
            except StoreNotFoundError:
                return
            seq = message.seq or 0
            yield message.data or b""


def _check_ids(info: ObjectInfo, bucket: str) -> None:
    """See that what anybody may have written of an object leads to its own bytes: subjects are built of it.

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
        f"What the artifact store says of the object {object_name[:80]!r} cannot be read ({type(error).__name__}).",
        hint="Put the object again, for instance with `nats object put`.",
    )


def _stream(bucket: str) -> str:
    return f"OBJ_{bucket}"


def _chunks(info: ObjectInfo) -> str:
    return f"$O.{info.bucket}.C.{info.nuid}"


def _meta(bucket: str, object_name: str) -> str:
    return f"$O.{bucket}.M.{base64.urlsafe_b64encode(object_name.encode()).decode()}"
