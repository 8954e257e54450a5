"""The files of the web page, which contain no secret.

A browser asks each time whether its copies are current, so that a page never mixes two releases.
"""

from __future__ import annotations

from pathlib import Path

from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent / "page"
VIEWS = ("/", "/goals/{goal_id}", "/traces/{goal_id}", "/turns/{person}/{comm_id}", "/agents", "/policies")
"""Paths of the page's views. The page reads the path itself."""


class _Files(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def page_routes() -> list[BaseRoute]:
    """Return the routes of the page: its views, which are one document, and its files below `/page/`."""
    files = _Files(directory=FOLDER)

    async def show(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    return [*(Route(path, show) for path in VIEWS), Mount("/page", GZipMiddleware(files))]
