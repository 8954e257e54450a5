"""What the guard hands on of the name by which somebody asks."""

from __future__ import annotations

from itertools import product

import pytest
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from ioa_gateway.guard import OriginGuard


async def _named_behind(*hosts: str) -> list[str]:
    """Ask by each name; return those that came through, as what is behind the guard is told them."""
    named = list[str]()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        named.append(request.headers["host"])
        assert request.url.netloc == request.headers["host"]

    async def hear() -> Message:
        return {"type": "http.disconnect"}

    async def tell(_message: Message) -> None:
        """Nobody listens."""

    guard = OriginGuard(answer, {"localhost:4280": "http", "agents.example.com": "https"})
    for host in hosts:
        await guard({"type": "http", "method": "GET", "path": "/", "headers": [(b"host", host.encode())]}, hear, tell)
    return named


async def test_a_name_has_one_form_however_it_is_written() -> None:
    """What is kept by name, such as cards, is kept once: a name of nine letters may be written in 512 ways."""
    written = ["".join(letters) for letters in product(*zip("localhost", "LOCALHOST", strict=True))]
    named = await _named_behind(*(f"{one}:4280" for one in written))
    assert (len(named), set(named)) == (512, {"localhost:4280"})


@pytest.mark.parametrize(
    "host", ["agents.example.com.", "agents.example.com:443", "agents.example.com:", "localhost.:4280", "localhost"]
)
async def test_no_other_form_of_a_name_comes_through(host: str) -> None:
    """A dot behind it, or the port that the scheme means, makes another name."""
    assert await _named_behind(host) == []
