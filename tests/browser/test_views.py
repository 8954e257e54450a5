"""The page in a real browser, on a control plane in memory: each view, by day and by night, on a desk and on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import FilePayload, expect

from ioa.concurrency import together
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import LOCAL, AgentId, GoalName, TaskId
from ioa.protocol.messages import Discussion, SyncTaskAssignment, TaskSpec
from ioa.protocol.operation.api_keys import KeyId
from ioa_testkit.planes import Plane
from tests.browser.looking import KEY, PHONE, Looking
from tests.browser.staging import ANALYST, DECIDED, DESK, GOAL, OFFER, Stage
from tests.integration.gateway.serving import Door

SALES = FilePayload(name="sales.csv", mimeType="text/csv", buffer=b"product,units\nPen,3\n")


async def test_key_signs_a_browser_in_until_it_signs_out(looking: Looking, stage: Stage, url: str) -> None:
    """A key is entered once; a wrong key is an error. After signing out the page asks for a key."""
    page = await looking.open()
    await page.goto(url)
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await looking.examine(page, "sign-in")
    await page.get_by_label("Key").fill(KEY)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Goals", exact=True)).to_be_visible()
    await page.reload()
    await expect(page.get_by_text("No goals yet")).to_be_visible()
    await looking.keep(page, "goals-empty")
    assert looking.complaints == []
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert await page.context.cookies() == []
    await page.get_by_label("Key").fill("ioa_web_wrong")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("key is unknown")


async def test_trace_page_lists_each_span_once(looking: Looking, url: str) -> None:
    """Also if messages in several teams have the same id."""
    page = await looking.signed_in(url)
    await page.goto(url)
    ids = await page.evaluate(
        """async () => {
          const { ordered } = await import("/page/views/trace.js");
          const one = (span_id, parent_id) => ({ span_id, parent_id, start: "2026-01-01T00:00:00Z", end: "2026-01-01T00:00:01Z" });
          const spans = [one("call-1", "turn"), one("turn", "group"), one("call-2", "turn"), one("turn", "other")];
          return ordered(spans).map((row) => row.span_id);
        }"""
    )
    assert ids == ["turn", "call-1", "call-2", "turn"]


async def test_a_room_is_followed_to_its_end(looking: Looking, stage: Stage, url: str) -> None:
    """The room shows messages, tasks, the nested team, files and the conclusion."""
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
    await looking.examine_each_look(page, "room")
    await stage.finish(room)
    await expect(page.get_by_text("Notebooks sell best").first).to_be_visible()
    await expect(page.locator(".floor-bar")).to_contain_text("Concluded")
    await page.get_by_role("tab", name="Files").click()
    await page.get_by_text("Show sales.csv").click()
    await expect(page.locator(".art .text td").first).to_have_text("product")
    await page.wait_for_timeout(300)
    await looking.keep(page, "room-concluded")
    assert looking.complaints == []


async def test_goal_is_run_again_from_a_message_and_as_a_whole(looking: Looking, stage: Stage, url: str) -> None:
    """A rerun is a new goal with the changed message; the goal that ended can be edited and launched with its files."""
    goal_id = await stage.launched()
    room = await stage.talk(goal_id)
    page = await looking.signed_in(url)
    await page.goto(f"{url}/goals/{goal_id}?user=local")
    await page.get_by_role("button", name="Run again from entry").first.click()
    await page.get_by_label("Run again with this message in its place").fill("Count the rows first.")
    await page.get_by_role("button", name="Run again", exact=True).click()
    await expect(page.get_by_text("Count the rows first.").first).to_be_visible()
    [rerun, _] = await stage.goals()
    await expect(page).to_have_url(re.compile(rerun))
    await stage.finish(room)
    await page.goto(f"{url}/goals/{goal_id}?user=local")
    await page.get_by_role("button", name="Edit and run again").click()
    await expect(page.get_by_label("What do you want done?")).to_have_value(GOAL)
    await page.get_by_role("button", name="Launch").click()
    await expect(page.get_by_text("No team yet")).to_be_visible()
    await expect(page.locator(".meta .file")).to_contain_text("sales.csv")
    await page.goto(url)
    await page.get_by_label("State").select_option("concluded")
    await expect(page.locator("tbody tr")).to_have_count(1)
    await stage.abandoned(rerun, "No agent fits.")
    await page.get_by_label("State").select_option("failed")
    await expect(page.locator("tbody tr")).to_contain_text("no agent")
    await stage.launched("Another goal")
    await page.wait_for_timeout(1500)
    await expect(page.locator("tbody tr")).to_have_count(1)
    assert looking.complaints == []


@pytest.mark.parametrize("is_stored", [False, True])
async def test_edited_goal_differs_in_edited_fields(
    looking: Looking, stage: Stage, plane: Plane, url: str, is_stored: bool
) -> None:
    """The team, the labels, the limits and the files stay; of a stored team also its version."""
    if is_stored:
        await plane.client.put_team(DECIDED)
    file = await plane.client.upload("sales.csv", b"product,units\nPen,3\n", media_type="text/csv")
    limits = {"max_turns": 12, "max_tokens": 60_000, "max_cost": 1.25, "timeout": 90, "repetition": "off"}
    team = "offer" if is_stored else DECIDED
    order = {"goal": OFFER, "team": team, "labels": {"desk": "2"}, "inputs": [file.model_dump()], **limits}
    earlier = await plane.client.submit(GoalOrder.model_validate(order))
    await stage.abandoned(earlier, "No agent fits.")
    page = await looking.signed_in(url)
    await page.goto(f"{url}/goals/{earlier}?user=local")
    await page.get_by_role("button", name="Edit and run again").click()
    await expect(page.get_by_label("Which team")).to_have_value("offer@1" if is_stored else "offer")
    await expect(page.get_by_label("Who leads")).to_have_value(DESK)
    await expect(page.get_by_label("Minutes at most")).to_have_value("1.5")
    await looking.keep(page, f"launch-again-{'stored' if is_stored else 'own'}")
    await page.get_by_label("What do you want done?").fill("Make another offer")
    await page.get_by_label("Turns at most").fill("20")
    await page.get_by_role("button", name="Launch").click()
    await expect(page.get_by_text("No team yet")).to_be_visible()
    newer, _ = [one.record.goal for one in (await plane.client.goals()).goals]
    was = (await plane.client.goal(GoalName(LOCAL, earlier))).record.goal
    edited = {"goal": "Make another offer", "max_turns": 20}
    assert newer == was.model_copy(update={**edited, "goal_id": newer.goal_id, "traceparent": newer.traceparent})
    assert looking.complaints == []


async def test_agents_of_all_pages_are_counted_and_listed(looking: Looking, stage: Stage, url: str) -> None:
    """A page of the gateway has at most 200 agents."""
    await together(*[stage.register(AgentId(f"agent-{number:03}"), "Counts to ten") for number in range(200)])
    page = await looking.signed_in(url)
    await page.goto(f"{url}/agents")
    await expect(page.locator(".live")).to_contain_text("of 205 agents")
    await expect(page.locator("header .muted")).to_contain_text("of 205 online")
    await expect(page.locator("tbody tr")).to_have_count(205)
    await looking.keep(page, "agents-many")
    assert looking.complaints == []


async def test_views_have_no_accessibility_violation(looking: Looking, stage: Stage, url: str) -> None:
    """Goals, agents and policies are drawn by day and by night, wide and narrow, and axe has nothing serious to say of any."""
    goal_id = await stage.launched()
    await stage.talk(goal_id)
    await stage.launched("Compare the three proposals and say which one to take")
    room = await stage.reviewed()
    policed = (await stage.goals())[0]
    page = await looking.signed_in(url)
    await page.goto(url)
    await expect(page.get_by_text("Compare the three proposals")).to_be_visible()
    await looking.examine_each_look(page, "goals")
    await page.goto(f"{url}/agents")
    await page.get_by_label("Who can …?").fill("draw a picture of these figures")
    await page.keyboard.press("Enter")
    await expect(page.locator(".why").first).to_be_visible()
    await looking.examine_each_look(page, "agents")
    await page.goto(f"{url}/goals/{policed}")
    await page.get_by_role("tab", name="Policy").click()
    await expect(page.locator(".g-now")).to_have_count(1)
    await expect(page.locator(".g-done")).to_have_count(2)
    await expect(page.get_by_role("heading", name="In “review”")).to_be_visible()
    await expect(page.locator("dd").get_by_text("csv-analyst").first).to_be_visible()
    await looking.examine_each_look(page, "policy")
    assert (looking.complaints, bool(room)) == ([], True)


async def test_the_past_is_looked_at_step_by_step(looking: Looking, stage: Stage, url: str) -> None:
    """The keyboard selects any entry; tasks and members are shown as of that entry."""
    goal_id = await stage.launched()
    room = await stage.talk(goal_id)
    page = await looking.signed_in(url)
    await page.goto(f"{url}/goals/{goal_id}")
    await expect(page.locator(".floor-bar")).to_contain_text("Paused")
    for _ in range(6):
        await page.keyboard.press("ArrowLeft")
    await expect(page.get_by_text("entry 6 of 12")).to_be_visible()
    await expect(page.locator(".floor-bar")).to_contain_text("analyst-desk has the floor")
    await expect(page.get_by_role("tab", name="Tasks 1")).to_be_visible()
    await looking.keep(page, "room-replay")
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_text("entry 7 of 12")).to_be_visible()
    await stage.finish(room)
    await expect(page.get_by_text("entry 7 of 16")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator(".floor-bar")).to_contain_text("Concluded")
    await page.get_by_role("button", name="Play 4×").press("Enter")
    await expect(page.get_by_role("button", name="Stop")).to_be_visible()
    await expect(page.locator(".floor-bar")).to_contain_text("has the floor")
    await expect(page.get_by_role("button", name="Play 4×")).to_be_visible(timeout=20_000)
    await page.get_by_role("link", name="Open room of the team for t4-1").press("Enter")
    await expect(page.get_by_role("log", name="Messages of Team for t4-1")).to_be_visible()
    await page.keyboard.press("/")
    await page.keyboard.type("blue hue")
    await expect(page.locator("#log .msg")).to_have_count(2)
    await page.keyboard.press("Escape")
    await page.get_by_role("tab", name="Tasks 1").focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("tab", name="Files")).to_be_focused()
    assert looking.complaints == []


async def test_nothing_is_cut_on_a_phone(looking: Looking, stage: Stage, url: str) -> None:
    """Words without a break are broken, all filters can be pressed, and what runs from right to left begins at the right."""
    word = "https://example.com/" + "a-very-long-path/" * 12
    goal_id = await stage.launched(word)
    room = await stage.opened(goal_id, ANALYST)
    await stage.say(room, DESK, Discussion(content=word, next_speaker=ANALYST))
    await stage.say(room, ANALYST, Discussion(content="500 صف، كلها تحتوي على وحدات.", next_speaker=DESK))
    await stage.say(
        room, DESK, SyncTaskAssignment(tasks=(TaskSpec(task_id=TaskId(f"t3-{'1' * 40}"), assignee=ANALYST, task_desc=word),))
    )
    page = await looking.signed_in(url, PHONE)
    await page.goto(f"{url}/goals/{goal_id}")
    for tab in ("Tasks", "Team", "Files", "Talk"):
        await page.locator(".tabs-phone button", has_text=tab).click()
        assert (tab, await page.evaluate(_CUT)) == (tab, [])
        await looking.examine(page, "room-long-words")
    side = await page.get_by_text("500 صف").evaluate("(one) => getComputedStyle(one).unicodeBidi")
    assert side == "plaintext"
    await page.goto(url)
    await expect(page.locator(".rows")).to_be_visible()
    assert await page.evaluate(_CUT) == []


_CUT = """[...document.querySelectorAll('.chip, .task, .task *, .who, .given, .given *, .file, .what, .what a')]
    .filter((one) => one.offsetParent && one.getBoundingClientRect().right > innerWidth).map((one) => one.className)"""


async def test_page_explains_errors(looking: Looking, stage: Stage, url: str, door: Door) -> None:
    """An unknown goal, an unreachable system and a revoked key have a message with a fix."""
    goal_id = await stage.launched()
    await stage.talk(goal_id)
    page = await looking.signed_in(url)
    await page.goto(f"{url}/goals/nobody-knows-it")
    await expect(page.get_by_role("alert")).to_contain_text("no goal")
    await looking.keep(page, "goal-unknown")
    await page.goto(f"{url}/goals/{goal_id}")
    await expect(page.locator(".floor-bar")).to_contain_text("Paused")
    await page.goto(url)
    await expect(page.locator(".rows")).to_be_visible()
    door.is_there = False
    await page.reload()
    await expect(page.get_by_role("alert")).to_contain_text("out of reach", timeout=8_000)
    await looking.keep(page, "out-of-reach")
    door.is_there = True
    await expect(page.get_by_role("alert")).to_have_count(0, timeout=8_000)
    await page.get_by_role("link", name=GOAL).click()
    await page.get_by_role("button", name="Cancel").click()
    await page.get_by_label("Cancel it?").fill("No need any more.")
    await page.keyboard.press("Enter")
    await expect(page.locator(".floor-bar")).to_contain_text("cancelled")
    await looking.keep(page, "room-cancelled")
    await door.keys.remove(KeyId("web"))
    await page.goto(url)
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


async def test_trace_page_shows_spans_with_durations(looking: Looking, stage: Stage, url: str) -> None:
    """From a goal's room one comes to its spans, by day and by night, wide and narrow; parts are folded, and the end is seen."""
    goal_id = await stage.launched()
    room = await stage.talk(goal_id)
    page, asked = await looking.signed_in(url), list[str]()
    await page.goto(f"{url}/goals/{goal_id}")
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/trace") else None)
    async with page.expect_request("**/events?*"):
        await page.get_by_role("link", name="trace").click()
    await expect(page.get_by_role("row", name="sync task assignment").first).to_contain_text("analyst-desk")
    await expect(page.get_by_role("row", name="sync task assignment").first).to_contain_text("1.2k")
    await page.clock.install()
    await page.clock.run_for(120_000)
    assert len(asked) == 1  # nothing has happened meanwhile, so that nothing is asked for
    await page.clock.resume()
    await stage.finish(room)
    await expect(page.get_by_role("row", name="goal").first).to_be_visible()
    async for look in looking.looks(page):
        await looking.examine(page, f"trace-{look}")
        cells = "[...document.querySelectorAll('.trace td, .trace th')]"
        cut = await page.evaluate(f"{cells}.filter((one) => one.getBoundingClientRect().right > innerWidth).length")
        assert cut == 0
    await page.get_by_role("button", name="Parts of goal").click()
    await expect(page.get_by_role("row")).to_have_count(2)
    assert looking.complaints == []
