"""Files of goals. Agents made them, so that nothing of one may run in a page, or be taken for another kind than it says it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import quote

from pydantic import Field
from starlette.responses import Response

from ioa.errors import InvalidInputError, NotFoundError
from ioa.group.events import files_of
from ioa.protocol.goals import Artifact
from ioa_gateway.calls import ApiCall, Nothing
from ioa_gateway.routes.goals import MAX_SEQUENCE, WhoseQuery

MAX_BYTES = 100_000_000
"""How large a file may be that is handed out."""

_SHOWN = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif")
"""What browsers draw and never run."""
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class FileQuery(WhoseQuery):
    """Whose goal, and whether a file of text is to be shown."""

    view: Annotated[bool, Field(description="show text in the page, in a sandbox, instead of saving it")] = False


async def fetch(call: ApiCall, query: FileQuery, _body: Nothing) -> Response:
    """Hand out a file that an entry of a goal's log tells of, or a range of it."""
    artifact = await _told(call, query)
    if call.headers.get("if-none-match") == _tag(artifact):
        return Response(status_code=304, headers=_heads(artifact, query))
    if artifact.size_bytes > MAX_BYTES:
        raise InvalidInputError(f"{artifact.name!r} has more than {MAX_BYTES:,} bytes.", hint="`ioa goal show --out` writes it.")
    wanted = _range(call.headers.get("range"), artifact.size_bytes)
    heads = {**_heads(artifact, query), "Accept-Ranges": "bytes"}
    if wanted is not None and not wanted:
        return Response(status_code=416, headers={**heads, "Content-Range": f"bytes */{artifact.size_bytes}"})
    async with call.limits.fetches:
        data = await call.client.fetch(artifact)
    if wanted is None:
        return Response(data, 200, heads)
    heads["Content-Range"] = f"bytes {wanted.start}-{wanted.stop - 1}/{artifact.size_bytes}"
    return Response(data[wanted.start : wanted.stop], 206, heads)


async def _told(call: ApiCall, query: WhoseQuery) -> Artifact:
    """Find the file that the path names."""
    seq, number, name = call.path["seq"], call.path["number"], call.path["name"]
    if not all(one.isascii() and one.isdecimal() and int(one[:20]) <= MAX_SEQUENCE for one in (seq, number)):
        raise InvalidInputError("The sequence of an entry and the number of its file are numbers.")
    page = await call.client.entries(call.goal(query.user), after=max(0, int(seq) - 1), limit=1)
    told: Sequence[Artifact] = files_of(page[0].entry.event) if page and page[0].seq == int(seq) else ()
    found = told[int(number)] if int(number) < len(told) else None
    if found is None or found.name != name:
        raise NotFoundError(f"The entry {seq} tells of no file {number} that is called {name!r}.")
    return found


def _heads(artifact: Artifact, query: FileQuery) -> dict[str, str]:
    """Say what a file is: a picture is drawn, text is shown where that is asked, and all else is saved."""
    name = quote(artifact.name, safe="")
    kept = {"ETag": _tag(artifact), "Cache-Control": "private, max-age=3600", "X-Content-Type-Options": "nosniff"}
    if query.view and artifact.media_type.startswith("text/"):
        policy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
        return {**kept, "Content-Type": _plain(artifact), "Content-Disposition": "inline", "Content-Security-Policy": policy}
    is_drawn = artifact.media_type in _SHOWN
    media_type = artifact.media_type if is_drawn else "application/octet-stream"
    how = "inline" if is_drawn else f"attachment; filename*=UTF-8''{name}"
    policy = "sandbox; default-src 'none'; frame-ancestors 'self'"
    return {**kept, "Content-Type": media_type, "Content-Disposition": how, "Content-Security-Policy": policy}


def _plain(artifact: Artifact) -> str:
    """Return as what a text is shown: HTML as it is, since nothing of it runs in its sandbox, and all else as plain text."""
    return "text/html; charset=utf-8" if artifact.media_type == "text/html" else "text/plain; charset=utf-8"


def _tag(artifact: Artifact) -> str:
    return f'"{artifact.sha256}"'


def _range(asked: str | None, size: int) -> range | None:
    """Return which bytes are asked for; None for all, and an empty range for none that there are."""
    found = None if asked is None else _RANGE.fullmatch(asked.strip())
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        return range(max(0, size - int(last)), size)
    return range(int(first), min(size, int(last) + 1 if last else size))
