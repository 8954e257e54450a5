"""Files of goals. Agents made them, so no browser runs one, or guesses its type."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Header, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ioa.errors import NotFoundError
from ioa.foreign_text import shown_name
from ioa.group.events import files_of
from ioa.protocol.goals import Artifact
from ioa_gateway.api.goal_routes import GoalPath, NumberPath
from ioa_gateway.context import LaunchCall, ReadCall

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif")
"""Media types that browsers show and never run."""
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")

router = APIRouter()

_BINARY = {"type": "string", "format": "binary"}
_FETCHED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": {"application/octet-stream": {"schema": _BINARY}}},
    206: {"description": "The requested range."},
    304: {"description": "The file is the one that `If-None-Match` names."},
    416: {"description": "The file has no such range."},
}


@router.put(
    "/uploads/{name}",
    status_code=201,
    openapi_extra={"requestBody": {"content": {"application/octet-stream": {"schema": _BINARY}}, "required": True}},
)
async def upload(call: LaunchCall, name: str, request: Request) -> Artifact:
    """Store a file for the inputs of goals, at most 100 MB. The response is an item of `inputs`."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_general = content_type in ("", "application/octet-stream", "application/x-www-form-urlencoded")
    return await call.client.upload(name, request.stream(), media_type=None if is_general else content_type)


@router.get("/artifacts/{goal_id}/{seq}/{number}/{name}", response_class=StreamingResponse, responses=_FETCHED)
async def fetch(
    call: ReadCall,
    goal: GoalPath,
    seq: NumberPath,
    number: NumberPath,
    name: str,
    view: Annotated[bool, Query(description="show a text in the page, in a sandbox, instead of saving it")] = False,
    range_: Annotated[str | None, Header(alias="Range", description="the bytes, such as `bytes=0-99`")] = None,
    if_none_match: Annotated[str | None, Header(description="the `ETag` of the file that the client has")] = None,
) -> Response:
    """Return a file that an entry of a goal's log references, or a range of it."""
    page = await call.client.entries(goal, after=max(0, seq - 1), limit=1)
    files: Sequence[Artifact] = files_of(page[0].entry.event) if page and page[0].seq == seq else ()
    if number >= len(files) or files[number].name != name:
        raise NotFoundError(f"The entry {seq} has no file {number} with the name {name!r}.")
    artifact = files[number]
    heads = _heads(artifact, is_shown=view and artifact.media_type.startswith("text/"))
    if if_none_match == heads["ETag"]:
        return Response(status_code=304, headers=heads)
    part, size = _range(range_, artifact.size_bytes), artifact.size_bytes
    if part is not None:
        heads["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{size}" if part else f"bytes */{size}"
        if not part:
            return Response(status_code=416, headers=heads)
    status, part = (200, range(size)) if part is None else (206, part)
    pieces = call.client.stream(artifact, part.start, part.stop)
    first = await anext(pieces, b"")  # an error in a file of one piece becomes the status of the response
    return StreamingResponse(_chain(first, pieces), status, {**heads, "Content-Length": str(len(part))})


async def _chain(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(rest):
        yield first
        async for piece in rest:
            yield piece


def _heads(artifact: Artifact, *, is_shown: bool) -> dict[str, str]:
    """Return the headers of a file. Browsers show pictures, and texts if `is_shown`; they save any other file.

    A browser asks each time whether its copy is current, so that no file is shown after its user has signed out.
    """
    is_picture = artifact.media_type in _PICTURES
    policy, media_type = "sandbox; default-src 'none'; frame-ancestors 'self'", "application/octet-stream"
    if is_shown:
        policy += "; style-src 'unsafe-inline'; img-src data:"
        media_type = f"text/{'html' if artifact.media_type == 'text/html' else 'plain'}; charset=utf-8"
    elif is_picture:
        media_type = artifact.media_type
    saved = f"attachment; filename*=UTF-8''{quote(shown_name(artifact.name), safe='')}"
    return {
        "ETag": f'"{artifact.sha256}{"-shown" if is_shown else ""}"',
        "Cache-Control": "private, no-cache",
        "Content-Type": media_type,
        "Content-Disposition": "inline" if is_shown or is_picture else saved,
        "Content-Security-Policy": policy,
        "Accept-Ranges": "bytes",
    }


def _range(header: str | None, size: int) -> range | None:
    """Return the requested bytes; None for all, and an empty range if the file has none of them."""
    found = _RANGE.fullmatch((header or "").strip())
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        return range(max(0, size - int(last)), size)
    return range(int(first), min(size, int(last) + 1 if last else size))
