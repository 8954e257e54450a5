"""JSON bodies, and limits of the size and the time of a body."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
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


class JsonRoute(APIRoute):
    """A route whose JSON body must be valid by RFC 8259: without NaN, halves of surrogate pairs, and too deep nesting."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Return the handler."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return answer


class _JsonRequest(Request):
    async def json(self) -> Any:
        return parse_json(await self.body())


def parse_json(data: bytes) -> Any:
    """Parse JSON, or raise `InvalidInputError`."""
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInputError(f"The body is no JSON: {error}.") from None


async def checked_json(request: Request) -> Receive:
    """Read a whole body, and return a `receive` that returns it again; no bytes if it is no JSON, for an error of the library."""
    body = [await request.body()]
    try:
        parse_json(body[0])
    except InvalidInputError:
        body = [b""]

    async def receive() -> Message:
        if body:
            return {"type": "http.request", "body": body.pop(), "more_body": False}
        return await request.receive()

    return receive
