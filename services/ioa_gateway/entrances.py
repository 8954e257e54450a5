"""A2A and MCP applications, which are imported at their first request: the import takes seconds."""

from __future__ import annotations

import asyncio
import gc
from importlib import import_module

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ioa.errors import MissingExtraError
from ioa_gateway.problems import answer_to
from ioa_gateway.reach import Reach, requests


class Entrance:
    """An ASGI application that is created at its first request.

    Args:
        reach: The parts of the gateway that all requests share.
        name: The name of the protocol in metrics and errors.
        module: The module with `create_application`.
        extra: The extra of the distribution that contains its dependencies.
    """

    def __init__(self, reach: Reach, name: str, module: str, extra: str) -> None:
        self._reach = reach
        self._name = name
        self._module = module
        self._extra = extra
        self._app: ASGIApp | None = None
        self._making = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        has_begun = False

        async def counted(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                requests.labels(self._name, message["status"]).inc()
            await send(message)

        try:
            await (await self._application())(scope, receive, counted)
        except ClientDisconnect:
            if not has_begun:
                await Response(status_code=499)(scope, receive, counted)
        except Exception as error:
            if has_begun or isinstance(error, HTTPException):
                raise
            await answer_to(error)(scope, receive, counted)

    async def _application(self) -> ASGIApp:
        async with self._making:
            if self._app is None:
                try:
                    self._app = await asyncio.to_thread(self._make)
                except ModuleNotFoundError as error:
                    raise MissingExtraError.of(f"The entrance by {self._name}", self._extra) from error
                _leave_streams_alone()
                gc.freeze()  # imported modules stay, so the collector skips them
        return self._app

    def _make(self) -> ASGIApp:
        app: ASGIApp = import_module(self._module).create_application(self._reach)
        return app


def _leave_streams_alone() -> None:
    """Keep `sse_starlette` from starting a task that searches for the uvicorn server. Streams end without it."""
    from sse_starlette.sse import _get_shutdown_state

    _get_shutdown_state().watcher_started = True
