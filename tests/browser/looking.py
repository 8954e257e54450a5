"""A browser for tests: pages, their console and policy errors, and accessibility checks by axe."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, Page, async_playwright

from tests.integration.gateway.serving import BEARER

KEY = BEARER["Authorization"].removeprefix("Bearer ")
DESKTOP, PHONE = (1280, 800), (390, 844)
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
LOOKS = [(size, scheme) for size in (DESKTOP, PHONE) for scheme in SCHEMES]
_EXAMINED = """axe.run({
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations'],
}).then((found) => found.violations.filter((one) => ['serious', 'critical'].includes(one.impact))
    .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.target} ${node.failureSummary}`)))"""


@lru_cache
def axe() -> str:
    """Return the script of axe-core."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


@dataclass
class Looking:
    """A browser, and what the pages in it have complained of.

    Attributes:
        complaints: Console errors, uncaught exceptions and policy violations.
    """

    browser: Browser
    screenshots: Path
    complaints: list[str] = field(default_factory=list)

    async def open(self, size: tuple[int, int] = DESKTOP, scheme: Scheme = "light") -> Page:
        """Open a page of its own, with nothing remembered."""
        context = await self.browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce", locale="en-GB"
        )
        page = await context.new_page()
        page.on("console", lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    async def signed_in(self, url: str, size: tuple[int, int] = DESKTOP, scheme: Scheme = "light", shown: str = KEY) -> Page:
        """Open a page that is signed in by a key."""
        page = await self.open(size, scheme)
        await page.goto(url)
        await page.request.post(f"{url}/v1/session", data={"key": shown})
        return page

    async def keep(self, page: Page, name: str) -> None:
        """Save a screenshot."""
        await page.screenshot(path=self.screenshots / f"{name}.png")

    async def examine(self, page: Page, name: str) -> None:
        """Keep a picture; axe finds no serious violation, and the page does not scroll sideways."""
        await self.keep(page, name)
        found: list[str] = await page.evaluate(f"{axe()};{_EXAMINED}")
        is_wide: bool = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert (name, found, is_wide) == (name, [], False)

    async def looks(self, page: Page) -> AsyncIterator[str]:
        """Show the page by night and by day, on a phone and at last on a desk; yield each look's name."""
        for size, scheme in reversed(LOOKS):
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size({"width": size[0], "height": size[1]})
            yield f"{'phone' if size == PHONE else 'desk'}-{scheme}"

    async def examine_each_look(self, page: Page, name: str) -> None:
        """Examine a page in each look."""
        async for look in self.looks(page):
            await self.examine(page, f"{name}-{look}")


@asynccontextmanager
async def open_looking(chromium: str, screenshots: Path) -> AsyncIterator[Looking]:
    """Run a browser for as long as the block."""
    async with async_playwright() as playwright:
        # as root, in a container, Chromium's own sandbox cannot be had
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = await playwright.chromium.launch(executable_path=chromium, args=options)
        try:
            yield Looking(browser, screenshots)
        finally:
            await browser.close()
