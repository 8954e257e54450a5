"""Reading what a server of somebody else answers over HTTP, which may be much, and made to be hard to read.

Nothing is unpacked: a few hundred bytes unpack to as many megabytes as there is memory. It is asked for plainly, and what comes
packed all the same is not read. Bytes are counted as they come, and others have their turns between. Whatever charset an answer
names, its text is UTF-8, as all JSON is: Python knows some that are none, at which `httpx` fails. And of what a server has its
clients remember, few cookies are kept: each further request looks through all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from contextlib import suppress
from http.cookiejar import Cookie, CookieJar
from typing import Any, Final

import httpx

PLAINLY: Final = {"Accept-Encoding": "identity"}
"""What each request says whose answer is read here."""

_MOST_COOKIES, _MOST_COOKIE_CHARS = 20, 4_096
"""What is kept of a server's cookies, and read of those of one answer: balancers set one or two."""
_REFUSAL_BYTES = 100_000
"""How much is read of why a server refuses."""


class UnfitAnswerError(httpx.RemoteProtocolError):
    """An answer is packed, or longer than it may be."""


class FewCookies(CookieJar):
    """The cookies of a server, by which a balancer before it leads all requests of a client to the one process that knows it.

    An answer that sets many sets none, and one more than is kept is not kept, nor one that is not ASCII: no request could be sent
    with it.
    """

    def extract_cookies(self, response: Any, request: Any) -> None:
        """Take what an answer sets."""
        headers = response.info()
        told = [one for name in ("Set-Cookie", "Set-Cookie2") for one in headers.get_all(name, ())]
        if _fits(len(told), sum(map(len, told))):
            super().extract_cookies(response, request)

    def set_cookie(self, cookie: Cookie) -> None:
        """Keep a cookie, in the place of one of its name."""
        if not f"{cookie.name}{cookie.value}{cookie.path}".isascii():
            return
        super().set_cookie(cookie)
        if not _fits(len(self), sum(len(one.name) + len(one.value or "") for one in self)):
            self.clear(cookie.domain, cookie.path, cookie.name)


def _fits(cookies: int, chars: int) -> bool:
    return cookies <= _MOST_COOKIES and chars <= _MOST_COOKIE_CHARS


def create_client(headers: Mapping[str, str] | None = None, **how: Any) -> httpx.AsyncClient:
    """Return a client for the server of somebody else; whoever has it closes it.

    Args:
        headers: What each request carries.
        how: What else `httpx` takes.
    """
    return httpx.AsyncClient(headers={**(headers or {}), **PLAINLY}, cookies=FewCookies(), **how)


async def pieces_of(response: httpx.Response, most_bytes: int) -> AsyncGenerator[bytes, None]:
    """Yield an answer as it comes.

    Raises:
        UnfitAnswerError: It is packed, or there is more of it.
    """
    check_plain(response.headers)
    async for piece in counted(response.aiter_bytes(), most_bytes):
        yield piece
        await asyncio.sleep(0)  # what has come already is handed out at once


def check_plain(headers: Mapping[str, str]) -> None:
    """See that an answer with these headers is not packed.

    Raises:
        UnfitAnswerError: It is.
    """
    if (headers.get("content-encoding") or "identity").strip().lower() != "identity":
        raise UnfitAnswerError("its answer is packed")


async def counted(pieces: AsyncIterable[bytes], most_bytes: int) -> AsyncGenerator[bytes, None]:
    """Yield pieces as they come.

    Raises:
        UnfitAnswerError: They have more bytes together.
    """
    read = 0
    async for piece in pieces:
        read += len(piece)
        if read > most_bytes:
            raise UnfitAnswerError(f"its answer has more than {most_bytes:,} bytes")
        yield piece


async def whole_answer(response: httpx.Response, most_bytes: int) -> httpx.Response:
    """Return an answer that has been read. One that refuses keeps its status, and of what it says as much as is fit to be read.

    Raises:
        UnfitAnswerError: It is packed, or has more bytes than that.
    """
    if response.is_success:
        return as_read(response, b"".join([piece async for piece in pieces_of(response, most_bytes)]))
    said = bytearray()
    with suppress(UnfitAnswerError):
        async for piece in pieces_of(response, _REFUSAL_BYTES):
            said += piece
    return as_read(response, bytes(said))


def as_read(response: httpx.Response, content: bytes) -> httpx.Response:
    """Return an answer with this as its content. Its headers are the bytes that came, which need not be ASCII."""
    headers = [(name, value) for name, value in response.headers.raw if name.lower() != b"content-encoding"]
    read = httpx.Response(response.status_code, headers=headers, content=content)
    read.encoding = "utf-8"
    return read
