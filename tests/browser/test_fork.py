"""Forking in the page: from a message, in other words, into a new goal that says where it comes from."""

from __future__ import annotations

from playwright.async_api import expect

from ioa.client.client import Client
from ioa.client.history import conversation
from ioa.group.events import Said
from ioa.protocol.ids import comm_id_of_goal
from ioa.protocol.messages import ConcludeGroupDiscussion, Discussion
from ioa_testkit.planes import Plane
from tests.browser.looking import LOOKS, PHONE, Looking
from tests.browser.staging import ANALYST, CHARTS, DESK, WRITER, Stage

WORDS = "Both go on, and the report is in verse."


async def test_a_goal_is_forked_from_a_message(looking: Looking, stage: Stage, plane: Plane, url: str) -> None:
    """By keyboard: other words and another agent, once; the new goal stands where that one stood, links to it, and goes on."""
    goal_id = await stage.launched()
    room = await stage.talk(goal_id)
    before = await conversation(plane.client, room)
    page = await looking.signed_in(url)
    await page.goto(f"{url}/goals/{goal_id}")
    message = page.get_by_role("listitem").filter(has_text="Is there anything in the data").first
    await message.hover()
    await looking.keep(page, "fork-offered")
    await message.get_by_role("button", name="Fork at entry").press("Enter")
    form = page.get_by_role("form", name="Fork this goal")
    await expect(form.get_by_role("textbox")).to_be_focused()
    await expect(form.get_by_role("button", name="Fork from here")).to_be_visible()
    for size, scheme in LOOKS:
        other = await looking.signed_in(url, size, scheme)
        await other.goto(f"{url}/goals/{goal_id}")
        row = other.get_by_role("listitem").filter(has_text="Is there anything in the data").first
        await row.get_by_role("button", name="Fork at entry").click()
        await expect(other.get_by_role("form", name="Fork this goal")).to_be_visible()
        await other.get_by_role("textbox", name="What analyst-desk says").fill(WORDS)
        await other.wait_for_timeout(200)
        name = f"fork-{'phone' if size == PHONE else 'desk'}-{scheme}"
        await looking.keep(other, name)
        assert (name, await looking.findings(other), await looking.wide(other)) == (name, [], False)
        await other.keyboard.press("Escape")
        await expect(other.get_by_role("form", name="Fork this goal")).to_have_count(0)
        await other.context.close()
    await form.get_by_role("textbox", name="What analyst-desk says").fill(WORDS)
    await form.get_by_label("Replace").select_option("report-writer")
    await form.get_by_label("by", exact=True).fill("nobody-like-it.")
    await page.keyboard.press("Control+Enter")
    await expect(form.get_by_role("alert")).to_be_visible()  # such an id cannot be
    await form.get_by_label("Replace").select_option("")
    await form.get_by_role("textbox", name="What analyst-desk says").press("Control+Enter")
    await expect(page.get_by_role("link", name=f"forked from {goal_id}")).to_be_visible()
    await expect(page.get_by_text("up to here it was copied, and from here it goes on")).to_be_visible()
    await expect(page.locator(".floor-bar")).to_contain_text("csv-analyst")
    await page.wait_for_timeout(200)
    await looking.keep(page, "forked")
    assert (await looking.findings(page), await looking.wide(page)) == ([], False)
    [fork] = [one for one in await stage.goals() if one != goal_id]
    copied = await conversation(plane.client, comm_id_of_goal(fork))
    said = [one.entry.event.message.payload for one in copied if isinstance(one.entry.event, Said)]
    assert isinstance(said[-1], Discussion) and said[-1].content == WORDS
    assert (await conversation(plane.client, room))[: len(before)] == before  # what its timers add is its own
    state = (await Client(plane.client).state(fork))[comm_id_of_goal(fork)]
    assert {task.assignee for task in state.open_tasks} == {CHARTS, WRITER} and state.nested == ()
    await page.get_by_role("link", name=f"forked from {goal_id}").click()
    await expect(page.get_by_text("Nothing to say before the chart is there.")).to_be_visible()


async def test_a_message_without_words_is_forked_as_it_is(looking: Looking, stage: Stage, url: str) -> None:
    """Who announces a conclusion need not say anything, and whoever forks there need not either."""
    goal_id = await stage.launched()
    room = await stage.opened(goal_id, ANALYST)
    await stage.say(room, DESK, ConcludeGroupDiscussion())
    page = await looking.signed_in(url)
    await page.goto(f"{url}/goals/{goal_id}")
    await page.get_by_role("button", name="Fork at entry").first.click()
    await page.get_by_role("form", name="Fork this goal").get_by_role("button", name="Fork from here").click()
    await expect(page.get_by_role("link", name=f"forked from {goal_id}")).to_be_visible()
