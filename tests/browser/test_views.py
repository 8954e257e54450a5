"""The page in a real browser, on a control plane in memory."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.looking import KEY, Looking
from tests.browser.staging import GOAL, Stage


async def test_dev(looking: Looking, stage: Stage, url: str) -> None:
    """Dev."""
    page = await looking.open()
    await page.goto(url)
    await looking.keep(page, "sign-in")
    await page.fill("#key", KEY)
    await page.click("text=Sign in >> nth=-1")
    await expect(page.locator("h1")).to_have_text("Goals")
    goal_id = await stage.launched()
    room = await stage.talk(goal_id)
    await page.wait_for_timeout(3200)
    await looking.keep(page, "goals")
    await page.goto(f"{url}/goals/{goal_id}")
    await page.wait_for_timeout(1500)
    await looking.keep(page, "room")
    print(looking.complaints)
    assert not looking.complaints
