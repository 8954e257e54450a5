"""Other ports of the gateway's host, on which others may listen: browsers send cookies to all of them (RFC 6265, 8.5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from playwright.async_api import expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from ioa.protocol.api_keys import KeyId, written_key
from ioa.protocol.ids import UserId
from ioa_gateway.server import bound, open_server
from tests.browser.looking import Looking
from tests.browser.staging import Stage
from tests.integration.gateway.serving import SECRET, Door, key

_PAGE = (
    "<script>Promise.all(['/v1/goals', '/s/', '/'].map((path) => fetch(path))).then(() => { document.title = 'done'; })</script>"
)


@asynccontextmanager
async def _listening(sent: list[str], sets: str) -> AsyncIterator[str]:
    """Listen at another port, for as long as the block; take note of the cookies that come, and set one."""

    async def take(request: Request) -> Response:
        sent.extend(request.headers.getlist("cookie"))
        return HTMLResponse(_PAGE, headers={"Set-Cookie": f"ioa_session={sets}; Path=/; HttpOnly"})

    with bound("127.0.0.1", 0) as listening:
        async with open_server(Starlette(routes=[Route("/{path:path}", take)]), listening):
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"


async def test_another_port_is_told_no_session_and_sets_none(looking: Looking, stage: Stage, door: Door, url: str) -> None:
    """Who is signed in opens a link to there: what its own page asks comes without his cookie, and he stays who he is."""
    await door.keys.put(key("eve").model_copy(update={"user": UserId("eve")}))
    async with httpx.AsyncClient() as http:
        shown = written_key(KeyId("eve"), SECRET)
        hers = (await http.post(f"{url}/v1/session", json={"key": shown})).cookies["ioa_session"]
    page, sent = await looking.signed_in(url), list[str]()
    async with _listening(sent, hers) as elsewhere:
        await page.goto(elsewhere)
        await expect(page).to_have_title("done")
        await page.goto(elsewhere)
        await expect(page).to_have_title("done")
    assert {one.partition("=")[2] for one in sent} == {hers}, "what it has set itself comes back, and nothing else"
    await page.goto(url)
    await expect(page.get_by_role("heading", name="Goals", exact=True)).to_be_visible()
    who = await page.evaluate("fetch(localStorage.ioa + '/v1/session').then((told) => told.json())")
    assert who["user"] == "local"
    assert looking.complaints == []
