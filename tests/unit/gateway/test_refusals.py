"""Whom the gateway refuses again and again is counted, by user or by network, and nobody else."""

from __future__ import annotations

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs

from ioa.ports.inspection import REFUSED, SlowedCaller
from ioa_gateway.refusals import RefusalCounter


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(status_code=int(Request(scope).url.path[1:]))(scope, receive, send)


def _user_of(scope: Scope) -> str | None:
    return Request(scope).headers.get("x-user")


@pytest.mark.parametrize(
    ("headers", "address", "status", "named"),
    [
        ({"x-user": "eve"}, "192.0.2.7", 429, "eve"),
        ({}, "192.0.2.7", 401, "192.0.2.7"),
        ({}, "2001:db8::7", 413, "2001:db8::/64"),
        ({"x-user": "eve"}, "192.0.2.7", 404, None),
        ({"x-user": "eve"}, "192.0.2.7", 200, None),
    ],
)
async def test_who_is_refused_again_and_again_is_named(
    headers: dict[str, str], address: str, status: int, named: str | None
) -> None:
    """More than sixty times at once; a few refusals are anybody's, and what is not found or answered is none."""
    refusals = RefusalCounter(_answer, _user_of, lambda: 1.0)
    transport = httpx.ASGITransport(refusals, client=(address, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        for _ in range(60):
            await http.get(f"/{status}", headers=headers)
        assert refusals.slowed() == []
        with capture_logs() as logs:
            for _ in range(40):
                await http.get(f"/{status}", headers=headers)
    assert [(line["event"], line["caller"]) for line in logs] == ([] if named is None else [("caller_named", named)])
    assert refusals.slowed() == ([] if named is None else [SlowedCaller(named, REFUSED, 40)])
