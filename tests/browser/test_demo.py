"""The page on a real system: the goal of the demonstration from launch to conclusion, while a gateway is killed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.async_api import expect

from ioa.hosting.place import listens
from tests.browser.looking import Looking
from tests.rig.deadline import eventually
from tests.rig.ports import held_ports

EXAMPLES = Path(__file__).parents[2] / "examples"
GOAL = "briefing:\n- sum of units by month\n- line chart of #1"
_WAIT_MS = 60_000
_OF_THE_LOG = """async (path) => {
    const {append, emptyStory} = await import('/page/room.js');
    const {entries} = await (await fetch(`/v1${path}/entries?limit=500`)).json();
    const {comm_id} = await (await fetch(`/v1${path}`)).json();
    return entries.reduce(append, emptyStory()).rooms.get(comm_id).rows
        .filter((row) => row.act !== "conclude").map((row) => row.key);
}"""


@asynccontextmanager
async def _running(*command: str, **environment: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *command), stdout=PIPE, stderr=DEVNULL, env={**os.environ, **environment}
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


@asynccontextmanager
async def _balanced(ports: list[int]) -> AsyncIterator[int]:
    """Hand each connection to the first of these ports that takes it, as a load balancer does."""

    async def pour(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while part := await source.read(65_536):
                target.write(part)
                await target.drain()
        target.close()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for port in ports:
            with suppress(OSError):
                behind, onward = await asyncio.open_connection("127.0.0.1", port)
                await asyncio.gather(pour(reader, onward), pour(behind, writer))
                return
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.fixture
def ports() -> Iterator[list[int]]:
    """Where the gateways listen."""
    with held_ports(2) as held:
        yield held


async def test_a_goal_is_watched_while_a_gateway_dies(looking: Looking, ports: list[int], tmp_path: Path) -> None:
    """A user who signs in by the link and launches a goal sees each entry once, although the gateway is killed."""
    up = ("ioa.cli", "up", "--json", "--port", "0", "--web", "--web-port", "0", "--data", str(tmp_path / "ioa"))
    async with _balanced(ports) as port, _running(*up, "--pool", str(EXAMPLES / "pool.toml")) as system:
        assert system.stdout is not None
        ready = json.loads(await system.stdout.readline())
        url = f"http://127.0.0.1:{port}"
        environment = {"IOA_NATS_URL": (tmp_path / "ioa" / "private-url").read_text(encoding="ascii").strip(), "IOA_HTTP_URLS": url}
        gateways = [_running("ioa_gateway", **environment, IOA_HTTP_PORT=str(one)) for one in ports]
        async with gateways[0] as first, gateways[1]:
            for one in ports:
                await eventually(partial(listens, f"http://127.0.0.1:{one}"))
            page = await looking.open()
            await page.goto(f"{url}/?{urlsplit(ready['page']).query}")
            await expect(page.get_by_role("heading", name="Goals", exact=True)).to_be_visible()
            assert "token" not in page.url
            await page.get_by_label("What do you want done?").fill(GOAL)
            await page.get_by_label("Who leads").select_option("report-writer")
            await page.set_input_files("input[type=file]", EXAMPLES / "data" / "sales.csv")
            await page.get_by_label("What do you want done?").press("Control+Enter")
            await expect(page.locator("#log .msg").nth(1)).to_be_visible(timeout=_WAIT_MS)
            first.kill()
            await expect(page.locator(".floor-bar")).to_contain_text("Concluded", timeout=_WAIT_MS)
            await expect(page.locator(".thread .msg").first).to_be_visible()
            await expect(page.locator(".thread")).not_to_contain_text("##")
            await page.get_by_role("tab", name="Files").click()
            await expect(page.locator(".art img").first).to_be_visible()
            await page.wait_for_timeout(300)
            await looking.keep(page, "demo")
            shown = await page.locator("#log > ol > [data-key]").evaluate_all("(rows) => rows.map((row) => row.dataset.key)")
            assert shown == await page.evaluate(_OF_THE_LOG, urlsplit(page.url).path)
    torn = [one for one in looking.complaints if "net::ERR" not in one]  # a browser reports these for a killed gateway
    assert torn == []
