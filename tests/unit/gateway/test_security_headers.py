"""The check of `Host`."""

from __future__ import annotations

import pytest
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from ioa_gateway.security_headers import OriginGuard


@pytest.mark.parametrize(
    ("host", "admitted"),
    [
        ("localhost:4280", ["localhost:4280"]),
        ("LocalHost:4280", ["localhost:4280"]),
        ("agents.example.com.", []),
        ("agents.example.com:443", []),
        ("agents.example.com:", []),
        ("localhost.:4280", []),
        ("localhost", []),
    ],
)
async def test_host_is_admitted_in_lower_case_if_it_equals_a_name(host: str, admitted: list[str]) -> None:
    """A dot at the end, or the default port of the scheme, makes another name."""
    found = list[str]()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        found.append(request.headers["host"])
        assert request.url.netloc == request.headers["host"]

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(_message: Message) -> None:
        """Discard the response."""

    guard = OriginGuard(answer, {"localhost:4280": "http", "agents.example.com": "https"})
    await guard({"type": "http", "method": "GET", "path": "/", "headers": [(b"host", host.encode())]}, receive, send)
    assert found == admitted
