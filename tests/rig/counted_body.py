"""The bytes of an answer over HTTP, of which it is counted how much has been read."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx

PIECE = b" " * 50_000


class CountedBody(httpx.AsyncByteStream):
    """An answer's bytes; `taken` says how many pieces of it have been read."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            self.taken += 1
            yield piece
