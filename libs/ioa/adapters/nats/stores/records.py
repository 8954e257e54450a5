"""Records of a kind in a key-value bucket, by key. The stream's leader answers reads of a key with the last write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic, TypeVar

from nats.aio.client import Client
from nats.js.kv import KV_DEL, KV_OP

from ioa.adapters.nats.streams.compare_and_set import erase, last_message, publish_onto, stream_of, subject_of
from ioa.adapters.nats.streams.stream_reader import pages
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.protocol.codec import decode, encode
from ioa.protocol.model import Model

_PAGE = 256
_REMOVED = {KV_OP: KV_DEL}

M = TypeVar("M", bound=Model)


class Records(Generic[M]):
    """Records of a kind. A key may be a pattern where a method states so.

    Raises:
        UnavailableError: From every method.
    """

    def __init__(self, client: Client, bucket: str, kind: type[M]) -> None:
        self._client = client
        self._js = client.jetstream()
        self._bucket = bucket
        self._kind = kind
        self._what = f"The bucket {bucket}"

    async def find(self, key: str) -> M | None:
        """Return the last record whose key matches a pattern; None if it was removed."""
        return (await self.read(key))[0]

    async def read(self, key: str) -> tuple[M | None, int]:
        """Return the same record, and the sequence of its write; 0 if there was none."""
        data, seq = await self.stored(key)
        return (decode(self._kind, data) if data else None), seq

    async def stored(self, key: str) -> tuple[bytes, int]:
        """Return the same as it is stored; no bytes if there is no record."""
        with unavailable_unless_answered(self._what):
            found = await last_message(self._js, stream_of(self._bucket), subject_of(self._bucket, key))
        return (b"", 0) if found is None else (found.data or b"", found.seq or 0)

    async def put(self, key: str, record: M | None) -> None:
        """Store a record. None leaves a mark of its removal, for those who follow the bucket."""
        data, headers = _message(record)
        with unavailable_unless_answered(self._what):
            await self._js.publish(subject_of(self._bucket, key), data, stream=stream_of(self._bucket), headers=headers)

    async def put_onto(self, key: str, record: M | None, *, last: int = 0, last_of: str | None = None) -> int | None:
        """Store a record as `put` if the last write of the key, or of keys that match `last_of`, has the sequence `last`.

        Returns:
            The sequence of the write; None if the last write has another sequence.
        """
        data, headers = _message(record)
        among = None if last_of is None else subject_of(self._bucket, last_of)
        subject, stream = subject_of(self._bucket, key), stream_of(self._bucket)
        with unavailable_unless_answered(self._what):
            return await publish_onto(self._js, stream, subject, data, last=last, last_of=among, headers=headers)

    async def erase(self, key: str) -> None:
        """Remove all writes of keys that match a pattern."""
        with unavailable_unless_answered(self._what):
            await erase(self._js, self._bucket, key)

    async def all(self, keys: str = "*") -> AsyncIterator[M]:
        """Yield the records whose keys match a pattern, from any replica, which may lag."""
        async for page in pages(self._client, stream_of(self._bucket), subject_of(self._bucket, keys), limit=_PAGE):
            for message in page.messages:
                if message.data:
                    yield decode(self._kind, message.data)


def _message(record: Model | None) -> tuple[bytes, dict[str, str] | None]:
    return (b"", _REMOVED) if record is None else (encode(record), None)
