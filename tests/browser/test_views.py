"""The page in a real browser, on a control plane in memory: each view, by day and by night, on a desk and on a phone."""

from __future__ import annotations

from playwright.async_api import FilePayload, expect

from tests.browser.looking import KEY, LOOKS, PHONE, Looking
from tests.browser.staging import GOAL, Stage

SALES = FilePayload(name="sales.csv", mimeType="text/csv", buffer=b"product,units\nPen,3\n")


async def test_who_shows_a_key_is_let_in_and_stays(looking: Looking, stage: Stage, url: str) -> None:
    """A browser shows a key once; a wrong one is told so. Signed out, it is asked for it again."""
    page = await looking.open()
    await page.goto(url)
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await looking.keep(page, "sign-in")
    assert await looking.findings(page) == []
    await page.get_by_label("Key").fill(KEY)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Goals", exact=True)).to_be_visible()
    await page.reload()
    await expect(page.get_by_text("No goals yet")).to_be_visible()
    await looking.keep(page, "goals-empty")
    assert looking.complaints == []
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await page.get_by_label("Key").fill("ioa_web_wrong")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("lets nobody in")


async def test_a_room_is_followed_to_its_end(looking: Looking, stage: Stage, url: str) -> None:
    """Who launches a goal in the page sees its team talk, work and conclude, with the nested team and the files."""
    page = await looking.signed_in(url)
    await page.goto(url)
    await page.get_by_label("What do you want done?").fill(GOAL)
    await page.get_by_label("Who leads").select_option("analyst-desk")
    await page.set_input_files("input[type=file]", SALES)
    await looking.keep(page, "launch")
    await page.get_by_role("button", name="Launch").click()
    await expect(page.get_by_text("No team yet")).to_be_visible()
    goal_id = (await stage.goals())[0]
    room = await stage.talk(goal_id)
    await expect(page.get_by_role("status").filter(has_text="Paused")).to_be_visible()
    await expect(page.locator(".thread .msg")).to_have_count(2)
    for size, scheme in LOOKS:
        other = await looking.signed_in(url, size, scheme)
        await other.goto(f"{url}/goals/{goal_id}")
        await expect(other.get_by_role("status").filter(has_text="Paused")).to_be_visible()
        await other.wait_for_timeout(200)
        name = f"{'phone' if size == PHONE else 'desk'}-{scheme}"
        await looking.keep(other, f"room-{name}")
        assert (await looking.findings(other), await looking.wide(other)) == ([], False), name
        await other.context.close()
    await stage.finish(room)
    await expect(page.get_by_text("Notebooks sell best").first).to_be_visible()
    await expect(page.locator(".floor-bar")).to_contain_text("Concluded")
    await page.get_by_role("tab", name="Files").click()
    await page.wait_for_timeout(300)
    await looking.keep(page, "room-concluded")
    assert looking.complaints == []
