"""Ten thousand messages, and a thousand groups, in a page: how quick and how large it is. The log is made up, the page is real."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from playwright.async_api import CDPSession, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ioa.client.documents import EntryDocument, told
from ioa_gateway.guard import OriginGuard
from ioa_gateway.page_files import page_routes
from ioa_gateway.server import bound, open_server
from tests.browser.looking import Looking
from tests.unit.client import golden_documents

MESSAGES, GROUPS = 10_000, 1_000
_MAX_APPEND_MS, _MAX_FRAME_MS, _MAX_PAINT_MS, _MAX_HEAP_BYTES, _MAX_ROWS = 16, 16, 1_000, 60_000_000, 200
_WORDS = "The figures of the north are higher than those of the south, and nobody has said why; somebody should look at it. "


@dataclass
class MadeUp:
    """A long log, and what is said next."""

    entries: list[dict[str, Any]]
    goal: dict[str, Any]
    coming: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)

    def app(self) -> Starlette:
        """Answer as a gateway would."""
        routes = [
            Route("/v1/session", lambda _: JSONResponse({"user": "local", "scopes": []})),
            Route("/v1/agents", lambda _: JSONResponse({"agents": [], "next": None})),
            Route("/v1/goals/long", lambda _: JSONResponse(self.goal)),
            Route("/v1/goals/long/entries", self._page),
            Route("/v1/goals/long/events", lambda _: StreamingResponse(self._events(), media_type="text/event-stream")),
        ]
        return Starlette(routes=[*routes, *page_routes()])

    async def _page(self, request: Request) -> Response:
        asked = request.query_params
        limit, before = int(asked.get("limit", "100")), int(asked.get("before", "0"))
        last = min(before - 1, len(self.entries)) if before else limit
        first = max(0, last - limit)
        return JSONResponse({"entries": self.entries[first:last], "next": first + 1 if before and first else None})

    async def _events(self) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        while (event := await self.coming.get()) is not None:
            yield event

    def say(self) -> None:
        """Say one more thing."""
        seq = len(self.entries) + 1
        last = next(one for one in reversed(self.entries) if one["type"] == "DISCUSSION" and not one["depth"])
        self.entries.append({**last, "seq": seq, "body": {**last["body"], "content": f"News {seq}."}})
        self.coming.put_nowait(f"event: entry\nid: {seq}\ndata: {json.dumps(self.entries[-1])}\n\n".encode())


def made_up(messages: int, groups: int) -> MadeUp:
    """Make up a log: messages of the root group, and some of each nested team in between."""
    launched, said = (told(EntryDocument.of(one)) for one in golden_documents.LOG[:2])
    goal = golden_documents.documents()["goal"]
    entries = [{**launched, "comm_id": goal["comm_id"]}]
    every = max(1, messages // groups) if groups else messages + 1
    while len(entries) < messages:
        seq = len(entries) + 1
        nested = f"team-{seq // every}"
        if seq % every == 0:
            body = {"task_id": f"t{seq}", "by": "bob", "subgroup": nested}
            entries.append(
                {**said, "comm_id": goal["comm_id"], "seq": seq, "type": "subgroup_opened", "sender": None, "body": body}
            )
            continue
        said_now = {"content": f"{seq}. {_WORDS * (1 + seq % 3)}", "next_speaker": "bob", "rejects": []}
        at = f"2026-01-02T{3 + seq // 3600:02}:{seq // 60 % 60:02}:{seq % 60:02}+00:00"
        inside = groups and seq % every in (1, 2) and seq > every
        comm = nested if inside else goal["comm_id"]
        entries.append({**said, "comm_id": comm, "depth": int(bool(inside)), "seq": seq, "at": at, "turn": seq, "body": said_now})
    return MadeUp(entries, {**goal, "goal_id": "long"})


@asynccontextmanager
async def served(log: MadeUp) -> AsyncIterator[str]:
    """Serve a log."""
    with bound("127.0.0.1", 0) as listening:
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        async with open_server(partial(OriginGuard, hosts={host: "http"})(log.app()), listening):
            yield f"http://{host}"


_TIMED = """
window.drawn = [];
const frame = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (draw) => frame((at) => {
    const from = performance.now();
    draw(at);
    document.body.offsetHeight; // what it costs to lay it out, too
    window.drawn.push(performance.now() - from);
});
"""

_SCROLLED = """async () => {
    const log = document.getElementById('log');
    const frames = [];
    let last = performance.now();
    for (let step = 0; step < 60; step += 1) {
        log.scrollTop -= 400;
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        frames.push(now - last);
        last = now;
    }
    return frames;
}"""


async def _busy_ms(devtools: CDPSession) -> float:
    """How long the page has computed so far, whatever else the machine does."""
    found = {one["name"]: one["value"] for one in (await devtools.send("Performance.getMetrics"))["metrics"]}
    return float(found["TaskDuration"]) * 1000


@pytest.mark.parametrize("groups", [0, GROUPS], ids=["messages", "groups"])
async def test_long_conversations_do_not_stutter(looking: Looking, groups: int) -> None:
    """A page that follows a conversation of 10,000 messages, or one with 1,000 nested teams, stays quick and small."""
    log = made_up(MESSAGES, groups)
    async with served(log) as url:
        page = await looking.open()
        devtools = await page.context.new_cdp_session(page)
        await devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        await page.add_init_script(_TIMED)
        await page.goto(f"{url}/goals/long")
        await expect(page.locator("#log .msg").first).to_be_visible()
        paint = await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        await expect(page.get_by_text("are loading")).to_have_count(0, timeout=30_000)
        await page.evaluate("window.drawn = []")
        for _ in range(20):
            log.say()
            await expect(page.get_by_text(f"News {len(log.entries)}.", exact=True)).to_be_visible()
        drawn = sorted(await page.evaluate("window.drawn"))
        before = await _busy_ms(devtools)
        frames = sorted(await page.evaluate(_SCROLLED))
        frame = (await _busy_ms(devtools) - before) / len(frames)
        rows = await page.locator("#log [data-key]").count()
        await devtools.send("HeapProfiler.collectGarbage")
        heap = (await devtools.send("Runtime.getHeapUsage"))["usedSize"]
        await looking.keep(page, f"room-long-{groups}")
        await page.close()
        log.coming.put_nowait(None)
    usual = {"append": drawn[len(drawn) // 2], "frame": frame, "heap": heap, "rows": rows, "paint": paint}
    print(usual, "nine frames in ten", frames[len(frames) * 9 // 10])
    most = {"append": _MAX_APPEND_MS, "frame": _MAX_FRAME_MS, "heap": _MAX_HEAP_BYTES, "rows": _MAX_ROWS, "paint": _MAX_PAINT_MS}
    assert {name: value for name, value in usual.items() if value > most[name]} == {}, usual
    assert looking.complaints == []
