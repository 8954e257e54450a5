"""Records of a kind in a key-value bucket, by key. The stream's leader answers reads of a key with the last write."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Generic, TypeVar

import structlog
from nats.aio.client import Client
from nats.js.api import Header
from nats.js.kv import KV_DEL, KV_OP, KV_PURGE

from ioa.adapters.nats.streams.stream import Stream
from ioa.adapters.nats.streams.topology import stream_of, subject_of
from ioa.errors import IoaError, UnavailableError
from ioa.protocol.codec import decode, encode
from ioa.protocol.model import Model

_REMOVED = {KV_OP: KV_DEL}
_PURGED = {KV_OP: KV_PURGE, Header.ROLLUP.value: "sub", Header.MSG_TTL.value: "3600"}

_log = structlog.get_logger(__name__)

M = TypeVar("M", bound=Model)


class Records(Generic[M]):
    """Records of a kind. A key may be a pattern where a method states so."""

    def __init__(self, client: Client, bucket: str, kind: type[M]) -> None:
        self.stream = Stream(client, stream_of(bucket))
        self._bucket = bucket
        self._kind = kind

    async def find(self, key: str) -> M | None:
        """Return the last record whose key matches a pattern; None if it was removed."""
        return (await self.read(key))[0]

    async def read(self, key: str) -> tuple[M | None, int]:
        """Return the same record, and the sequence of its write; 0 if there was none."""
        data, seq = await self.stored(key)
        return (decode(self._kind, data) if data else None), seq

    async def stored(self, key: str) -> tuple[bytes, int]:
        """Return the same as it is stored; no bytes if there is no record."""
        found = await self.stream.last(self.subject(key))
        return (b"", 0) if found is None else (found.data, found.seq)

    async def put(self, key: str, record: M | None) -> None:
        """Store a record. None leaves a mark of its removal, for processes that follow the bucket."""
        await self.stream.publish(self.subject(key), *_message(record))

    async def put_onto(self, key: str, record: M | None, *, last: int = 0, last_of: str | None = None) -> int | None:
        """Store a record as `put` if the last write of the key, or of keys that match `last_of`, has the sequence `last`.

        Return the sequence of the write; None if the last write has another sequence.
        """
        (data, headers), among = _message(record), None if last_of is None else self.subject(last_of)
        return await self.stream.publish_onto(self.subject(key), data, last=last, last_of=among, headers=headers)

    async def remove(self, key: str) -> None:
        """Remove a key, with a mark for followers for an hour. After a longer outage, a follower reads the whole bucket."""
        await self.stream.publish(self.subject(key), b"", _PURGED)

    async def written_at(self, key: str) -> datetime | None:
        """Return when the key was last written."""
        message = await self.stream.last(self.subject(key))
        return None if message is None else message.stored_at

    async def erase(self, key: str) -> None:
        """Remove all writes of keys that match a pattern, without a mark."""
        await self.stream.purge(self.subject(key))

    async def all(self, keys: str = "*") -> AsyncIterator[M]:
        """Yield the records whose keys match a pattern, from any replica, which may lag."""
        async for message in self.stream.messages(self.subject(keys)):
            if message.data:
                yield decode(self._kind, message.data)

    def subject(self, key: str) -> str:
        """Return the subject of a key."""
        return subject_of(self._bucket, key)


def _message(record: Model | None) -> tuple[bytes, dict[str, str] | None]:
    return (b"", _REMOVED) if record is None else (encode(record), None)


def read_value(bucket: str, key: str, kind: type[M], value: bytes) -> M | None:
    """Decode a value of a followed bucket; None, with a line in the log, if it cannot be decoded."""
    try:
        return decode(kind, value)
    except IoaError as error:
        _log.error("bucket_value_unreadable", bucket=bucket, key=key, error=error.message)
        return None


async def draw_once(client: Client, bucket: str, key: str, size_bytes: int) -> bytes:
    """Return the secret under a key of a bucket. The first replica that needs it creates it, again if it was removed."""
    stream, subject = Stream(client, stream_of(bucket)), subject_of(bucket, key)
    found = await stream.last(subject)
    if found is None or not found.data:  # `nats kv purge` leaves a marker
        await stream.publish_onto(subject, secrets.token_bytes(size_bytes), last=0 if found is None else found.seq)
        found = await stream.last(subject)
    if found is None or not found.data:
        raise UnavailableError(f"The secret {key} is gone from the bucket {bucket}.")
    return found.data
