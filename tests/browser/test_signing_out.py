"""Signing out in the page."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.looking import Looking
from tests.browser.staging import Stage


async def test_signing_out_deletes_the_cookie_or_reports_the_failure(looking: Looking, stage: Stage, url: str) -> None:
    """While the gateway does not answer, the session and the page continue."""
    page = await looking.signed_in(url)
    async with page.expect_response("**/v1/events?list=true"), page.expect_response("**/v1/agents"):
        await page.goto(url)
    out = page.get_by_role("button", name="Sign out")
    await expect(out).to_be_visible()
    await page.route("**/v1/session", lambda route: route.abort())
    await out.click()
    await expect(page.get_by_role("status").get_by_text("out of reach")).to_be_visible()
    await expect(out).to_be_visible()
    await page.unroute("**/v1/session")
    await out.click()
    await expect(out).to_have_count(0)
    assert await page.context.cookies() == []
