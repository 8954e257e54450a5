"""The files of the web page, which contain no secret.

A browser asks each time whether its copies are current, so that a page never mixes two releases.
"""

from __future__ import annotations

from pathlib import Path

from starlette.middleware.gzip import GZipMiddleware
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


class _Index(_Files):
    def get_path(self, scope: Scope) -> str:  # noqa: ARG002 - the signature of Starlette
        return "index.html"


def page_routes() -> list[BaseRoute]:
    """Return the routes of the page: its views, which are one document, and its files below `/page/`."""
    index = GZipMiddleware(_Index(directory=FOLDER))
    return [*(Route(path, index) for path in VIEWS), Mount("/page", GZipMiddleware(_Files(directory=FOLDER)))]
