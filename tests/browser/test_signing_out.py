"""Signing out in the page: it is over, or the page says that it is not."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.looking import Looking
from tests.browser.staging import Stage
from tests.integration.gateway.serving import Door


async def test_who_signs_out_is_out_or_is_told_that_he_is_not(looking: Looking, stage: Stage, door: Door, url: str) -> None:
    """While the system is out of reach the session goes on, and the page with it; then it ends."""
    page = await looking.signed_in(url)
    await page.goto(url)
    out = page.get_by_role("button", name="Sign out")
    await expect(out).to_be_visible()
    door.is_there = False
    await out.click()
    await expect(page.get_by_role("status").get_by_text("out of reach")).to_be_visible()
    await expect(out).to_be_visible()
    door.is_there = True
    await out.click()
    await expect(out).to_have_count(0)
    assert await page.context.cookies() == []
