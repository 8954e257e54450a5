"""The requests of one connection, by uvicorn: how many are read before they are answered, and how long a head may be.

One is answered at a time, and one more may wait behind it: the next one of whoever is quicker than the end of an answer whose bytes
he has. uvicorn by itself reads, and keeps, as many as come, and fields without end.
"""

from __future__ import annotations

import asyncio
from functools import partial
from http import HTTPStatus
from typing import Any, ClassVar

from httptools import HttpParserError
from starlette.types import Message, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ioa_gateway.arrivals import Arrivals
from ioa_gateway.problems import MEDIA_TYPE, problem

MOST_HEAD_BYTES = 2**16
"""How much may come that is neither a whole head nor a part of a body, such as the fields behind one."""
MOST_TARGET_BYTES = 8_000
"""How long the target of a request may be: each of its parts is read before anybody knows who asks."""
MOST_FIELDS = 100
"""How many fields a request may have, before and behind its body."""
MOST_LENGTH_DIGITS = 20
"""By how many digits the length of a body may be told, as many as the largest has: Python refuses to read thousands, also zeros."""
MOST_SMALL_CHUNKS, FEW_BYTES = 1_000, 256
"""Of how many chunks a body may be whose chunks have fewer bytes on average: each costs as much as one of many, before it is known
who sends it."""
_PIECE = 2**14
"""How much is parsed before it is looked at."""


def protocol_of(arrivals: Arrivals) -> type[asyncio.Protocol]:
    """Make the protocol of a server whose connections these are."""
    return type("Connection", (_Connection,), {"_arrivals": arrivals})


class _Connection(HttpToolsProtocol):
    _arrivals: ClassVar[Arrivals]

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._answer, self.app = self.app, self._in_turn
        self._running: RequestResponseCycle | None = None
        self._begun: Scope | None = None
        self._unplaced = self._fields = self._chunks = self._body_bytes = 0
        self._is_spent = False

    async def _in_turn(self, scope: Any, receive: Any, send: Any) -> None:
        await self.flow.drain()  # else each answer that nobody reads is made, and kept
        if not await self._arrivals.begin(self.transport, scope):
            return
        self._begun = scope
        self._look()
        try:
            await self._answer(scope, receive, partial(self._tell, send))
        finally:
            if self._begun is scope:  # it was not answered whole
                self._begun = None
                self._look()

    def _look(self) -> None:
        if self._begun is None or self.flow.write_paused or self.pipeline:
            self._arrivals.rest(self.transport)
        else:
            self._arrivals.stir(self.transport)

    async def _tell(self, send: Send, message: Message) -> None:
        """Say with an answer that comes before its request's body is whole that the connection ends: see `_spend`."""
        cycle = self._running
        is_early = cycle is not None and cycle.more_body and message["type"] == "http.response.start"
        if is_early:
            message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        await send(message)
        if is_early and cycle is not None:
            cycle.keep_alive = True  # else uvicorn closes at once, with bytes unread

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self._arrivals.come(transport):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrivals.go(self.transport)
        self.pipeline.clear()
        if self._running is not None:  # uvicorn tells the last request alone, which may be the one behind
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_spent:
            return
        for start in range(0, len(data), _PIECE):
            if self.transport.is_closing():
                break
            piece = data[start : start + _PIECE]
            self._unplaced += len(piece)
            super().data_received(piece)
            if self._unplaced > MOST_HEAD_BYTES:
                self._refuse(_TOO_LONG)

    def on_message_begin(self) -> None:
        if self.pipeline:
            self.transport.abort()
            raise HttpParserError("More requests came than one behind the one that is answered.")
        self._fields = self._chunks = self._body_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += 1
        if self._fields > MOST_FIELDS:
            self._refuse(_TOO_LONG)
            raise HttpParserError("The request has too many fields.")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unplaced = 0
        if len(self.url) > MOST_TARGET_BYTES:
            self._refuse(_TARGET_TOO_LONG)
            raise HttpParserError("The target of the request is too long.")
        if self._is_read_otherwise():
            self._refuse(_NOT_THAT_BODY)
            raise HttpParserError("The body would be read otherwise than it is sent.")
        if any(len(value) > MOST_LENGTH_DIGITS for name, value in self.headers if name == b"content-length"):
            self._refuse(_NO_LENGTH)
            raise HttpParserError("The length of the body has too many digits.")
        super().on_headers_complete()
        if self.pipeline:
            self._look()

    def on_chunk_header(self) -> None:
        """Count the chunks of a body."""
        if self._chunks >= MOST_SMALL_CHUNKS and self._body_bytes < self._chunks * FEW_BYTES:
            self._refuse(_TOO_SMALL_CHUNKS)
            raise HttpParserError("The body comes in very many, very small chunks.")
        self._chunks += 1

    def on_body(self, body: bytes) -> None:
        self._unplaced = 0
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unplaced = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        is_unread = self._running is not None and self._running.more_body
        self._begun = None
        self._look()
        super().on_response_complete()
        if is_unread and not self.transport.is_closing():
            self._spend()

    def _spend(self) -> None:
        """Parse nothing more, neither the rest of a body that was answered before it was whole nor what comes behind it.

        Whoever sends it reads the answer and its end first: to close with bytes unread would take the answer from him, too. uvicorn
        closes what is idle.
        """
        self._is_spent = True
        self.transport.write_eof()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._look()

    def _is_owed(self) -> bool:
        """Tell whether what is said now would be taken for the answer to a request that came whole, or for a part of it."""
        one = self._running
        return one is not None and not one.response_complete and (one.response_started or not one.more_body)

    def _is_read_otherwise(self) -> bool:
        """Tell whether a body is coded otherwise than by chunks, or comes with a wish for another protocol.

        With that the parser takes the request for whole without its body, and the body for the next request: whoever stands before
        this server, and sends requests of several over one connection, would hand the answers to others than have asked.
        """
        coded = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        sized = [value.strip(b"0") for name, value in self.headers if name == b"content-length"]
        return coded not in ([], [b"chunked"]) or (self.parser.should_upgrade() and (coded != [] or any(sized)))

    def _refuse(self, why: bytes) -> None:
        if self._is_owed():
            self.transport.abort()
        elif not self.transport.is_closing():
            self.transport.write(why)
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        if self._is_owed():
            self.transport.abort()
        elif not self.transport.is_closing():
            super().send_400_response(msg)


def _last_answer(status: HTTPStatus, detail: str, hint: str) -> bytes:
    told = problem(status, "invalid_input", detail, hint).model_dump_json(exclude_none=True).encode()
    head = f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(told)}\r\n"
    return head.encode() + b"connection: close\r\n\r\n" + told


_TOO_LONG = _last_answer(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "The head of the request, or what stands behind its body, is too long.",
    f"Send at most {MOST_HEAD_BYTES // 1024} kB and {MOST_FIELDS} fields.",
)
_TARGET_TOO_LONG = _last_answer(
    HTTPStatus.REQUEST_URI_TOO_LONG,
    "The target of the request is too long.",
    f"Send at most {MOST_TARGET_BYTES // 1000} kB.",
)
_NOT_THAT_BODY = _last_answer(
    HTTPStatus.NOT_IMPLEMENTED,
    "The body is coded otherwise than by chunks, or comes with a wish for another protocol.",
    "Send it by HTTP/1.1, without Upgrade.",
)
_TOO_SMALL_CHUNKS = _last_answer(
    HTTPStatus.BAD_REQUEST,
    "The body comes in very many, very small chunks.",
    f"Send chunks of {FEW_BYTES} bytes at least, or its length.",
)
_NO_LENGTH = _last_answer(
    HTTPStatus.BAD_REQUEST, "The length of the body has too many digits.", f"Send at most {MOST_LENGTH_DIGITS}."
)
