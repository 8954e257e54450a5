"""Answers of foreign servers over HTTP, read within a limit.

Compressed answers are rejected, because a small answer may become large. Text is UTF-8, whatever charset an answer names.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

import httpx

PLAINLY: Final = {"Accept-Encoding": "identity"}
"""Headers of requests whose answers are read here."""
_MAX_REJECTION_BYTES = 100_000


class UnfitAnswerError(httpx.RemoteProtocolError):
    """An answer is compressed, or above the limit."""


def create_client(**options: Any) -> httpx.AsyncClient:
    """Return a client that requests uncompressed answers. `options` are more arguments of `httpx.AsyncClient`."""
    return httpx.AsyncClient(headers=PLAINLY, **options)


async def pieces_of(response: httpx.Response, most_bytes: int) -> AsyncGenerator[bytes, None]:
    """Yield the chunks of an answer.

    Raises:
        UnfitAnswerError: The answer is compressed, or has more bytes.
    """
    if (response.headers.get("content-encoding") or "identity").strip().lower() != "identity":
        raise UnfitAnswerError("its answer is packed")
    size = 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > most_bytes:
            raise UnfitAnswerError(f"its answer has more than {most_bytes:,} bytes")
        yield chunk
        await asyncio.sleep(0)  # buffered chunks do not suspend


async def whole_answer(response: httpx.Response, most_bytes: int) -> httpx.Response:
    """Return an answer with its content. The content of a rejection is cut, or empty if it cannot be read.

    Raises:
        UnfitAnswerError: The answer is compressed, or has more bytes.
    """
    content = bytearray()
    try:
        async for piece in pieces_of(response, most_bytes if response.is_success else _MAX_REJECTION_BYTES):
            content += piece
    except UnfitAnswerError:
        if response.is_success:
            raise
    # Headers stay bytes, because they may not be ASCII.
    headers = [(name, value) for name, value in response.headers.raw if name.lower() != b"content-encoding"]
    read = httpx.Response(response.status_code, headers=headers, content=bytes(content))
    read.encoding = "utf-8"
    return read
