"""Answers that go on for a while: each takes a place of its key for as long as it does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack

import structlog
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ioa.errors import IoaError, RateLimitedError
from ioa_gateway.calls import ApiCall
from ioa_gateway.problems import answer_to

_log = structlog.get_logger(__name__)


class StreamedAnswer(StreamingResponse):
    """A stream that begins only where its key has room for it, which is seen and taken in one step."""

    def __init__(
        self, call: ApiCall, content: AsyncIterator[bytes], status: int, headers: Mapping[str, str], media_type: str | None = None
    ) -> None:
        super().__init__(content, status, headers, media_type)
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer by the stream, or that there is no room for it."""
        with ExitStack() as places:
            try:
                self.take_places(self._call, places)
            except RateLimitedError as error:
                await answer_to(error)(scope, receive, send)
            else:
                await super().__call__(scope, receive, send)

    def take_places(self, call: ApiCall, places: ExitStack) -> None:
        """Take what places it needs, for as long as it goes on.

        Raises:
            RateLimitedError: There is no room.
        """
        places.enter_context(call.limits.new_stream(call.caller))

    async def stream_response(self, send: Send) -> None:
        """Send the stream. What is wrong with it by now only the log can say: the connection is closed before its end."""
        try:
            await super().stream_response(send)
        except IoaError as error:
            _log.warning("answer_broken_off", error=str(error))


class FileAnswer(StreamedAnswer):
    """A file that is handed out, which takes memory of its own."""

    def take_places(self, call: ApiCall, places: ExitStack) -> None:
        """Take that of a file, too.

        Raises:
            RateLimitedError: There is no room.
        """
        super().take_places(call, places)
        places.enter_context(call.limits.file(call.caller.user))
