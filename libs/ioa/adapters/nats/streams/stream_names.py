"""Names of streams and the subjects in them, by all pages of JetStream's replies: nats-py reads only the first page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from nats.aio.client import Client
from nats.js.errors import APIError
from pydantic_core import from_json, to_json

from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered

_TIMEOUT = timedelta(seconds=10)


async def subjects_of(client: Client, stream: str, pattern: str) -> AsyncIterator[Sequence[str]]:
    """List the subjects of a stream that match a pattern, sorted, a page at a time as the server makes them (100,000 at most).

    What is removed meanwhile can make a page skip others: for what lives no longer than a listing use `next_messages`.

    Raises:
        UnavailableError: The stream cannot be asked now.
    """
    async for page in counts_of(client, stream, pattern):
        yield sorted(page)


async def counts_of(client: Client, stream: str, pattern: str) -> AsyncIterator[Mapping[str, int]]:
    """Count the messages of each subject of a stream that matches a pattern, as `subjects_of` lists them.

    Raises:
        UnavailableError: The stream cannot be asked now.
    """
    seen = 0
    while True:
        with unavailable_unless_answered(f"The stream {stream}"):
            answer = await ask(client, f"STREAM.INFO.{stream}", {"subjects_filter": pattern, "offset": seen})
        page: Mapping[str, int] = answer["state"].get("subjects") or {}
        if page:
            yield page
        seen += len(page)
        if not page or seen >= answer.get("total", 0):
            return


async def stream_names(client: Client) -> set[str]:
    """Ask JetStream which streams there are.

    Raises:
        UnavailableError: JetStream does not answer.
    """
    names: set[str] = set()
    while True:
        with unavailable_unless_answered("JetStream"):
            answer = await ask(client, "STREAM.NAMES", {"offset": len(names)})
        page = answer.get("streams") or ()
        names.update(page)
        if not page or len(names) >= answer.get("total", 0):
            return names


async def ask(client: Client, what: str, request: dict[str, object]) -> dict[str, Any]:
    """Ask JetStream itself (`$JS.API.…`) and return its answer.

    Raises:
        APIError: It refuses.
        nats.errors.Error: It does not answer, as `TimeoutError` too.
    """
    message = await client.request(f"$JS.API.{what}", to_json(request), timeout=_TIMEOUT.total_seconds())
    answer: dict[str, Any] = from_json(message.data)
    if "error" in answer:
        raise APIError.from_error(answer["error"])
    return answer
