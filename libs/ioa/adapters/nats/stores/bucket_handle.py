"""Handles of buckets, looked up once: nats-py asks the server about the stream each time one is opened."""

from __future__ import annotations

from nats.js import JetStreamContext
from nats.js.kv import KeyValue


class BucketHandle:
    """A key-value bucket, opened at its first use. The handle holds only names, so it outlives every reconnect."""

    def __init__(self, js: JetStreamContext, bucket: str) -> None:
        self._js = js
        self._bucket = bucket
        self._opened: KeyValue | None = None

    async def open(self) -> KeyValue:
        """Return the bucket."""
        if self._opened is None:
            self._opened = await self._js.key_value(self._bucket)
        return self._opened
