"""JSON bodies, and limits of the size and the time of a body."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive

from ioa.concurrency import fail_at
from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.protocol.texts import check_texts

SILENCE = timedelta(seconds=60)
"""Time that a body may take in addition to its size at `_BYTES_PER_SECOND`."""
_BYTES_PER_SECOND = 10_000


class BodyTimeoutError(InvalidInputError):
    """The body did not arrive in time."""


def limited(receive: Receive, max_bytes: int) -> Receive:
    """Return a `receive` that limits the size and the time of a body.

    Args:
        receive: The `receive` of the server.
        max_bytes: The maximum size.

    Raises (at a call):
        PayloadTooLargeError: The body is too long.
        BodyTimeoutError: The body does not arrive, or too slowly.
    """
    begun_at, size, is_complete = asyncio.get_running_loop().time(), 0, False

    async def receive_limited() -> Message:
        nonlocal size, is_complete
        if is_complete:  # the next message is the disconnect of the client
            return await receive()
        try:
            async with fail_at(begun_at + SILENCE.total_seconds() + size / _BYTES_PER_SECOND):
                message = await receive()
        except TimeoutError:
            raise BodyTimeoutError("The body did not arrive in time.") from None
        size += len(message.get("body", b""))
        if size > max_bytes:
            raise PayloadTooLargeError(
                f"The body has more than {max_bytes:,} bytes.", hint="Files go to /v1/uploads, up to 100 MB each."
            )
        is_complete = not message.get("more_body", False)
        return message

    return receive_limited


class JsonRoute(APIRoute):
    """A route that rejects unknown query parameters, and texts and numbers of a JSON body that cannot be stored."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Return the handler."""
        handle, known = super().get_route_handler(), {one.alias for one in get_flat_params(self.dependant)}

        async def answer(request: Request) -> Response:
            if unknown := request.query_params.keys() - known:
                raise InvalidInputError(f"There is no query parameter {min(unknown)[:64]!r}.")
            return await handle(_JsonRequest(request.scope, request.receive))

        return answer


class _JsonRequest(Request):
    async def json(self) -> Any:
        return read_object(await self.body())


def read_object(data: bytes) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        InvalidInputError: It is not valid, is nested too deeply, or contains a text that cannot be stored.
    """
    found = read_json(data)
    if not isinstance(found, dict):
        raise InvalidInputError("The body is no JSON object.")
    try:
        check_texts(found, "body")
    except RecursionError:
        raise InvalidInputError("The body is nested too deeply.") from None
    return found


def read_json(data: bytes) -> object:
    """Parse JSON.

    Raises:
        InvalidInputError: It is not valid, is nested too deeply, or contains NaN or Infinity (RFC 8259).
    """
    try:
        return json.loads(data, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"The body is no JSON: {str(error)[:200]}.") from error


def _reject_constant(written: str) -> None:
    raise ValueError(f"{written} is no number")


async def checked_json(request: Request) -> Receive:
    """Read a whole body, and return a `receive` that returns it again.

    Raises:
        InvalidInputError: The body has NaN, Infinity, too long numbers or too deep nesting, which libraries fail to parse. They
            report syntax errors.
    """
    body = [await request.body()]
    try:
        read_json(body[0])
    except InvalidInputError as error:
        if not isinstance(error.__cause__, json.JSONDecodeError):
            raise

    async def receive() -> Message:
        if body:
            return {"type": "http.request", "body": body.pop(), "more_body": False}
        return await request.receive()

    return receive
