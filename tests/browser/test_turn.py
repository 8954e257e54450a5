"""A person's turn in the page: the question, the possible answers, and an answer that is sent once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from playwright.async_api import Page, Route, expect

from ioa.group.events import Said
from ioa.protocol.ids import CommId
from ioa.protocol.messages import AskUser, Discussion
from ioa.protocol.operation.api_keys import KeyId, written_key
from ioa_testkit.planes import Plane
from tests.browser.looking import PHONE, Looking
from tests.browser.staging import DECIDED, DESK, OFFER, WRITER, Stage
from tests.integration.gateway.serving import SECRET, Door, key

WORDS = "Yes, but two:\n\n  not three — “half” is enough. "


async def _said(plane: Plane, room: CommId) -> list[str]:
    """Return the person's messages in the log."""
    log = [one.entry.event for one in await plane.client.group_entries(room)]
    said = [one.message.payload for one in log if isinstance(one, Said) and one.message.header.sender == "human-anna"]
    return [getattr(one, "content", "") for one in said]


async def test_a_person_takes_its_turns_in_the_page(looking: Looking, stage: Stage, plane: Plane, url: str) -> None:
    """From launch to conclusion by keyboard: a form, a review and the result; a disabled choice has a reason."""
    await plane.client.put_team(DECIDED)
    page = await looking.signed_in(url)
    await page.goto(url)
    await page.get_by_label("Which team").select_option("offer")
    await page.get_by_label("What do you want done?").fill(OFFER)
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_text("No team yet")).to_be_visible()
    _, room = await stage.decided((await stage.goals())[0])
    await expect(page.get_by_role("form", name="Your turn")).to_be_visible()
    await stage.launched("Compare the three proposals and say which one to take")
    await page.goto(url)
    mine = page.get_by_role("region", name="Waits for you")
    await expect(mine).to_contain_text("Shall we offer three")
    await expect(page.locator("tbody tr").first).to_contain_text("waits for you")
    await looking.examine(page, "goals-yours")
    assert await page.title() == "(1) Goals · IoA"
    await mine.get_by_role("link").press("Enter")
    form = page.get_by_role("form", name="Your turn")
    await expect(form.get_by_role("heading", name="anna, it is your turn")).to_be_visible()
    await expect(form).to_contain_text("conclude: from here you lead on to write")
    await expect(form.get_by_role("radio", name="Conclude")).to_be_disabled()
    await looking.examine_each_look(page, "turn")
    await form.get_by_label("What you say").fill(WORDS)
    await page.keyboard.press("Tab")
    await page.keyboard.type("yes")  # agrees
    await page.keyboard.press("Tab")
    await page.keyboard.type("2")  # amount
    await page.keyboard.press("Tab")
    await page.keyboard.type("on to write")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator(".floor-bar")).to_contain_text("report-writer has the floor")
    draft = Discussion(content="Dear customer, two notebooks at half the price.")
    await stage.say(room, WRITER, draft)
    await expect(form.get_by_role("heading", name="anna, you decide whether this draft is passed")).to_be_visible()
    await form.get_by_role("radio", name="pass").focus()
    await page.keyboard.press("Space")
    await looking.examine_each_look(page, "turn-review")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator(".floor-bar")).to_contain_text("report-writer has the floor")
    await stage.say(room, WRITER, draft)
    await expect(form.get_by_role("heading", name="anna, you state the conclusion")).to_be_visible()
    await form.get_by_label("The conclusion").fill("Two notebooks at half the price.")
    await looking.examine_each_look(page, "turn-conclusion")
    await form.get_by_label("The conclusion").focus()
    await page.keyboard.press("Control+Enter")
    await expect(page.locator(".floor-bar")).to_contain_text("Concluded")
    await expect(page.get_by_text("Two notebooks at half the price.").first).to_be_visible()
    assert await _said(plane, room) == [WORDS, "", "Two notebooks at half the price."]
    assert looking.complaints == []


async def test_an_answer_lands_once_however_often_it_is_sent(looking: Looking, stage: Stage, plane: Plane, url: str) -> None:
    """The page repeats an answer without a response, and the log contains it once."""
    goal_id, room = await stage.decided()
    page, lost = await looking.signed_in(url), list[int]()

    async def lose(route: Route) -> None:
        taken = await route.fetch()
        lost.append(taken.status)
        await (route.abort() if len(lost) == 1 else route.fulfill(response=taken))

    await page.route("**/messages", lose)
    async with page.expect_response("**/messages"):
        await _answer(page, f"{url}/goals/{goal_id}")
    await expect(page.locator(".floor-bar")).to_contain_text("has the floor")
    assert (lost, await _said(plane, room)) == ([201, 201], ["Yes."])
    assert [one for one in looking.complaints if "net::ERR" not in one] == []


async def test_a_goal_asks_its_user(looking: Looking, stage: Stage, plane: Plane, url: str, door: Door) -> None:
    """The user of a goal sees the question in the list and in the room, with its default, and answers there."""
    goal_id = await stage.launched()
    room = await stage.opened(goal_id, WRITER)
    until = datetime.now(UTC) + timedelta(minutes=30)
    await stage.say(room, DESK, AskUser(text="In which language?", options=("English", "Danish"), default="English", until=until))
    await door.keys.put(key("reads", "goals:read"))
    other = await looking.signed_in(url, shown=written_key(KeyId("reads"), SECRET))
    await other.goto(f"{url}/goals/{goal_id}")
    await expect(other.locator(".floor-bar")).to_contain_text(
        "analyst-desk waits for the user of the goal to answer; “English” stands"
    )
    page = await looking.signed_in(url)
    await page.goto(url)
    mine = page.get_by_role("region", name="Waits for you")
    await expect(mine).to_contain_text("analyst-desk asks you")
    await mine.get_by_role("link", name="In which language?").click()
    form = page.get_by_role("form", name="A question for you")
    await expect(form).to_contain_text("then “English” stands")
    await page.wait_for_timeout(200)
    await looking.examine_each_look(page, "turn-question")
    await form.get_by_role("radio", name="Danish").focus()
    await page.keyboard.press("Space")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator("#log")).to_contain_text("Danish")
    await expect(page.locator(".floor-bar")).to_contain_text("analyst-desk has the floor")
    assert looking.complaints == []


async def _answer(page: Page, address: str) -> None:
    await page.goto(address)
    form = page.get_by_role("form", name="Your turn")
    await form.get_by_label("What you say").fill("Yes.")
    await form.get_by_label("agrees").select_option("yes")
    await form.get_by_role("button", name="Send").click()


async def test_key_of_one_seat_shows_only_the_view_of_its_person(
    looking: Looking, stage: Stage, plane: Plane, url: str, door: Door
) -> None:
    """The page shows the turns of the seat, the group in the view of its person, and no list of goals."""
    await door.keys.put(key("anna", "seats:anna"))
    _, room = await stage.decided()
    page = await looking.signed_in(url, PHONE, shown=written_key(KeyId("anna"), SECRET))
    await page.goto(url)
    await page.get_by_role("region", name="Waits for you").get_by_role("link").click()
    form = page.get_by_role("form", name="Your turn")
    await form.get_by_label("What you say").fill("Yes.")
    await expect(page.get_by_role("log")).to_contain_text("Shall we offer three")
    await looking.examine_each_look(page, "turn-alone")
    await form.get_by_label("agrees").select_option("yes")
    await form.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("log")).to_contain_text("Yes.")
    assert (await _said(plane, room), looking.complaints) == (["Yes."], [])
