"""Files of goals. Agents made them, so that nothing of one may run in a page, or be taken for another kind than it says it is."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Annotated
from urllib.parse import quote

from pydantic import Field
from starlette.responses import Response, StreamingResponse

from ioa.errors import InvalidInputError, NotFoundError
from ioa.foreign_text import shown, shown_name
from ioa.group.events import files_of
from ioa.protocol.goals import Artifact
from ioa_gateway.calls import ApiCall, Nothing, document
from ioa_gateway.drawings import MOST_DRAWN_BYTES, drawing, is_drawn
from ioa_gateway.routes.goals import WhoseQuery, sequence_in

_SHOWN = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif")
"""What browsers draw and never run."""
_PATIENCE = timedelta(seconds=10)
"""How long a file waits for its turn to be drawn."""
_WRITTEN_BYTES = 65_536
"""How much of a file is written at a time: what is not read yet of it waits in memory once more."""
_FRAME = re.compile(r"<(?=i?frame)", re.IGNORECASE)
_FRAME_CHARS = len("<iframe")
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class FileQuery(WhoseQuery):
    """Whose goal, and whether a file of text is to be shown."""

    view: Annotated[bool, Field(description="show text, Markdown and tables in the page, in a sandbox")] = False


async def upload(call: ApiCall, _query: Nothing, _body: Nothing) -> Response:
    """Store a file as it comes, for the inputs of goals."""
    said = call.headers.get("content-type", "").partition(";")[0].strip().lower()
    media_type = None if said in ("", "application/octet-stream", "application/x-www-form-urlencoded") else said
    artifact = await call.client.upload(call.path["name"], call.sent, media_type=media_type)
    return document(artifact.model_dump(mode="json"), 201)


async def fetch(call: ApiCall, query: FileQuery, _body: Nothing) -> Response:
    """Hand out a file that an entry of a goal's log tells of, or a range of it, or what it looks like."""
    artifact = await _find_file(call, query)
    known = _tag(artifact, query)
    if call.headers.get("if-none-match") == known:
        return Response(status_code=304, headers=_heads(artifact, query))
    if query.view and is_drawn(artifact):
        data = await call.client.fetch(artifact, 0, MOST_DRAWN_BYTES)
        async with call.limits.drawings.slot(call.caller.user, _PATIENCE):
            drawn = await drawing(artifact, data)
        return Response(drawn, 200, _heads(artifact, query))
    if query.view and artifact.media_type.startswith("text/"):
        pieces = _held_back(call.client.stream(artifact), artifact.size_bytes)
        first = await anext(pieces, b"")
        fit = _unframed if artifact.media_type == "text/html" else _fit
        return StreamingResponse(fit(_all_of(call, first, pieces)), 200, _heads(artifact, query))
    wanted = _range(call.headers.get("range"), artifact.size_bytes)
    heads = {**_heads(artifact, query), "Accept-Ranges": "bytes"}
    if wanted is not None and not wanted:
        return Response(status_code=416, headers={**heads, "Content-Range": f"bytes */{artifact.size_bytes}"})
    part = range(artifact.size_bytes) if wanted is None else wanted
    if wanted is not None:
        heads["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{artifact.size_bytes}"
    pieces = _held_back(call.client.stream(artifact, part.start, part.stop), len(part))
    first = await anext(pieces, b"")  # an error in a file of one piece becomes the status of the response
    status = 200 if wanted is None else 206
    return StreamingResponse(_all_of(call, first, pieces), status, {**heads, "Content-Length": str(len(part))})


async def _held_back(pieces: AsyncGenerator[bytes, None], size: int) -> AsyncGenerator[bytes, None]:
    """Hand on so many bytes as they come, little by little: the first piece when there is another, the last one if all was right.

    What is wrong with a file of which there is one piece is told by the status. Behind the first nothing is read ahead: whoever
    reads slowly has one piece in memory.
    """
    held, is_first = b"", True
    async with aclosing(pieces):
        async for piece in pieces:
            for part in _parts(held):
                yield part
            size, held = size - len(piece), piece
            if size > 0 and not is_first:
                for part in _parts(held):
                    yield part
                held = b""
            is_first = False
    for part in _parts(held):
        yield part


def _parts(piece: bytes) -> Iterator[bytes]:
    for start in range(0, len(piece), _WRITTEN_BYTES):
        yield piece[start : start + _WRITTEN_BYTES]


async def _all_of(call: ApiCall, first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Hand on a file, which takes as long as its reader does, for as long as he is let in."""
    async with aclosing(rest):
        yield first
        async for piece in rest:
            call.keyring.check(call.caller)
            yield piece


async def _fit(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Show what a page would obey of a text, such as marks that turn the reading order round."""
    async with aclosing(_read(pieces)) as texts:
        async for text in texts:
            yield shown(text).encode()


async def _unframed(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Have a page hold no frames: a browser connects to where one leads before it asks whether it may, and so tells who looks."""
    held = ""
    async with aclosing(_read(pieces)) as texts:
        async for text in texts:
            whole = held + text
            begun = whole.rfind("<", max(0, len(whole) - _FRAME_CHARS + 1))
            whole, held = (whole, "") if begun < 0 else (whole[:begun], whole[begun:])
            yield _FRAME.sub("<x-", whole).encode()
    yield held.encode()


async def _read(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[str, None]:
    """Read a text as UTF-8, which it then is, whatever its first bytes have a browser take it for."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("replace"), translate=True)
    async with aclosing(pieces):
        async for piece in pieces:
            yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


async def _find_file(call: ApiCall, query: WhoseQuery) -> Artifact:
    """Return the file that the path names by goal, entry and position."""
    seq, number, name = sequence_in(call.path["seq"]), sequence_in(call.path["number"]), call.path["name"]
    if seq is None or number is None:
        raise InvalidInputError("The sequence of an entry and the number of its file are numbers.")
    goal = await call.goal(query.user)
    async with call.limits.pages.slot(call.caller.user):
        page = await call.client.entries(goal, after=max(0, seq - 1), limit=1)
    told: Sequence[Artifact] = files_of(page[0].entry.event) if page and page[0].seq == seq else ()
    found = told[number] if number < len(told) else None
    if found is None or found.name != name:
        raise NotFoundError(f"The entry {seq} tells of no file {number} that is called {name!r}.")
    return found


def _heads(artifact: Artifact, query: FileQuery) -> dict[str, str]:
    """Say what a file is: a picture is drawn, text is shown where that is asked, and all else is saved."""
    name = quote(shown_name(artifact.name), safe="")
    kept = {"ETag": _tag(artifact, query), "Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}
    if query.view and artifact.media_type.startswith("text/"):
        policy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
        shown_as = "text/html" if is_drawn(artifact) or artifact.media_type == "text/html" else "text/plain"
        kind = f"{shown_as}; charset=utf-8"
        return {**kept, "Content-Type": kind, "Content-Disposition": "inline", "Content-Security-Policy": policy}
    is_shown = artifact.media_type in _SHOWN
    media_type = artifact.media_type if is_shown else "application/octet-stream"
    how = "inline" if is_shown else f"attachment; filename*=UTF-8''{name}"
    policy = "sandbox; default-src 'none'; frame-ancestors 'self'"
    return {**kept, "Content-Type": media_type, "Content-Disposition": how, "Content-Security-Policy": policy}


def _tag(artifact: Artifact, query: FileQuery) -> str:
    """Tell what is sent from what else is: a browser asks each time, so that nothing is shown to who has signed out."""
    return (
        f'"{artifact.sha256}{"-drawn" if query.view and (is_drawn(artifact) or artifact.media_type.startswith("text/")) else ""}"'
    )


def _range(asked: str | None, size: int) -> range | None:
    """Return which bytes are asked for; None for all, and an empty range for none that there are."""
    found = None if asked is None else _RANGE.fullmatch(asked.strip())
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        return range(max(0, size - int(last)), size)
    return range(int(first), min(size, int(last) + 1 if last else size))
