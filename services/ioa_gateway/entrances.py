"""Entrances by other protocols. Each is imported by the first request for it, since it takes long and few need it."""

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
    """Hands requests on to an application that is made for the first of them.

    Args:
        reach: The system.
        name: What metrics and errors call it.
        module: Where `create_application` is.
        extra: What brings it.
    """

    def __init__(self, reach: Reach, name: str, module: str, extra: str) -> None:
        self._reach = reach
        self._name = name
        self._module = module
        self._extra = extra
        self._app: ASGIApp | None = None
        self._making = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
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
                await Response(status_code=499)(scope, receive, counted)  # nobody reads it
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
                gc.collect()
                gc.freeze()  # what was imported stays, and is not looked through again and again (see `run_process`)
        return self._app

    def _make(self) -> ASGIApp:
        app: ASGIApp = import_module(self._module).create_application(self._reach)
        return app


def _leave_streams_alone() -> None:
    """Keep the library that writes their events from starting a task that looks for uvicorn: streams end by themselves."""
    from sse_starlette.sse import _get_shutdown_state

    _get_shutdown_state().watcher_started = True
