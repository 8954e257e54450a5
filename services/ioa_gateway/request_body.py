"""JSON bodies, and limits of the size and the time of a body."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive

from ioa.concurrency import fail_at
from ioa.errors import InvalidInputError, PayloadTooLargeError

SILENCE = timedelta(seconds=60)
"""Time that a body may take in addition to its size at `_BYTES_PER_SECOND`."""
_BYTES_PER_SECOND = 10_000


def limited(receive: Receive, max_bytes: int) -> Receive:
    """Return a `receive` that raises an error if the body is too long, or arrives too slowly."""
    begun_at, size, is_complete = asyncio.get_running_loop().time(), 0, False

    async def receive_limited() -> Message:
        nonlocal size, is_complete
        if is_complete:  # the next message is the disconnect of the client
            return await receive()
        try:
            async with fail_at(begun_at + SILENCE.total_seconds() + size / _BYTES_PER_SECOND):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, "The body did not arrive in time.") from None
        size += len(message.get("body", b""))
        if size > max_bytes:
            raise PayloadTooLargeError(
                f"The body has more than {max_bytes:,} bytes.", hint="Files go to /v1/uploads, up to 100 MB each."
            )
        is_complete = not message.get("more_body", False)
        return message

    return receive_limited


async def read_json(receive: Receive, *, rejects: bool) -> Receive:
    """Read a whole body, and return a `receive` that returns it again.

    A body that is no JSON by RFC 8259 (with NaN, halves of surrogate pairs, or too deep nesting) is rejected, or without `rejects`
    replaced by no bytes, which the library of a protocol reports in its own way.
    """
    body = [await Request({"type": "http"}, receive).body()]
    try:
        from_json(body[0] or b"null", allow_inf_nan=False)
    except ValueError as error:
        if rejects:
            raise InvalidInputError(f"The body is no JSON: {error}.") from None
        body = [b""]

    async def receive_again() -> Message:
        if body:
            return {"type": "http.request", "body": body.pop(), "more_body": False}
        return await receive()

    return receive_again
