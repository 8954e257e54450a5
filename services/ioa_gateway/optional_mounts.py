"""A2A and MCP applications, which are imported at their first request: the import takes seconds."""

from __future__ import annotations

import asyncio
from importlib import import_module

from starlette.types import ASGIApp, Receive, Scope, Send

from ioa.errors import MissingExtraError


class OptionalMount:
    """An ASGI application that is created at its first request. Its package and its extra have the name of the protocol."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if self._app is None:
            try:
                self._app = (
                    await asyncio.to_thread(import_module, f"ioa_gateway.{self._name}.{self._name}_application")
                ).application
                from sse_starlette.sse import _get_shutdown_state
            except ModuleNotFoundError as error:
                raise MissingExtraError.of(f"The entrance by {self._name.upper()}", self._name) from error
            _get_shutdown_state().watcher_started = True  # no task that searches for the uvicorn server: streams end without it
        await self._app(scope, receive, send)
