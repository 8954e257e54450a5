"""The files of the web page, which contain no secret. They are read once.

A browser asks each time whether its copies are current, so that a page never mixes two releases.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER = Path(__file__).parent / "page"
VIEWS = ("/", "/goals/{goal_id}", "/traces/{goal_id}", "/turns/{person}/{comm_id}", "/agents", "/policies", "/policies/{goal_id}")
"""Paths of the page's views. The page reads the path itself."""

_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class PageFile:
    """A file of the page.

    Attributes:
        packed: The data, compressed by gzip.
    """

    media_type: str
    data: bytes
    packed: bytes
    tag: str

    def answer(self, request: Request) -> Response:
        """Return the file, or 304 if the client has it."""
        headers = {"ETag": self.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=self.media_type)
        return Response(self.data, headers=headers, media_type=self.media_type)


def read_page() -> Mapping[str, PageFile]:
    """Read all files of the page, by their paths below it."""
    found = sorted(path for path in FOLDER.rglob("*") if path.suffix in _TYPES)
    return MappingProxyType({path.relative_to(FOLDER).as_posix(): _read(path) for path in found})


def page_routes() -> list[Route]:
    """Return the routes of the page: its views, which are one document, and its files below `/page/`."""
    files = read_page()
    index = files["index.html"]

    def served(file: PageFile, path: str) -> Route:
        async def answer(request: Request) -> Response:
            return file.answer(request)

        return Route(path, answer)

    return [*(served(index, path) for path in VIEWS), *(served(file, f"/page/{path}") for path, file in files.items())]


def _read(path: Path) -> PageFile:
    data = path.read_bytes()
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    return PageFile(_TYPES[path.suffix], data, gzip.compress(data, 9, mtime=0), tag)
