"""Markdown of agents in the page."""

from __future__ import annotations

from playwright.async_api import expect

from ioa.protocol.ids import CommId, GoalId
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, Discussion
from tests.browser.looking import Looking
from tests.browser.staging import ANALYST, DESK, Stage

REPORT = """# How units sell

Notebooks **sell best**, at `7.57` units; see [the figures](https://example.com/figures).

- [x] read 500 rows
- [ ] ask *why* pens sell least
  1. by region
  2. by month

| product | units |
|:--|--:|
| Notebook | 7.57 |
| Pen | 5.95 |

```python
units = {"Notebook": 7.57}
```

> Averages are safe.
"""
_HOSTILE = """<script>window.hurt = 1</script> <img src="https://elsewhere.example/a.png" onerror="window.hurt = 1">

[harmless](javascript:window.hurt=1) ![seen](https://elsewhere.example/b.png) [https://bank.example](https://evil.example)

3 * 4 is 12, and so is snake_case_words.
"""
_DEEP = "> " * 4_000 + "deep"
"""Texts of at most 10,000 characters; of most the reader has more to do than there is of them."""


async def test_answers_are_drawn_as_they_were_meant(looking: Looking, stage: Stage, url: str) -> None:
    """Headings, lists, tables and code of an answer are drawn as such, wide and narrow, by day and by night."""
    goal_id, room = await _opened(stage)
    await stage.say(room, DESK, Discussion(content=REPORT, next_speaker=ANALYST))
    await stage.say(room, ANALYST, Discussion(content="Line by line:\n one\n two", next_speaker=DESK))
    await stage.say(room, DESK, ConcludeGroupDiscussion(content="All of it is there."))
    await stage.say(room, DESK, Conclusion(content=REPORT))
    page = await looking.signed_in(url)
    await page.goto(f"{url}/goals/{goal_id}")
    for drawn in (page.locator(".answer"), page.locator("#log .msg", has=page.locator(".k-talk")).first):
        await expect(drawn.get_by_role("heading", name="How units sell", include_hidden=True)).to_have_count(1)
        await expect(drawn.locator("td.right", has_text="7.57")).to_have_count(1)
        await expect(drawn.locator("pre code")).to_have_text('units = {"Notebook": 7.57}')
        await expect(drawn.locator("ol li")).to_have_text(["by region", "by month"])
    assert "#" not in await page.locator("#log").inner_text()
    await looking.examine_each_look(page, "markdown")
    assert looking.complaints == []


async def test_text_of_agents_is_no_markup(looking: Looking, stage: Stage, url: str) -> None:
    """Markup is shown as text, nothing is loaded from other hosts, and a link shows its target."""
    goal_id, room = await _opened(stage)
    await stage.say(room, DESK, Discussion(content=_HOSTILE, next_speaker=ANALYST))
    await stage.say(room, ANALYST, Discussion(content=_DEEP, next_speaker=DESK))
    page = await looking.signed_in(url)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(f"{url}/goals/{goal_id}")
    said = page.locator("#log .msg .body")
    await expect(said.nth(1)).to_contain_text("<script>window.hurt = 1</script>")
    await expect(said.nth(1)).to_contain_text("[harmless](javascript:window.hurt=1)")
    await expect(said.nth(1)).to_contain_text("https://bank.example (https://evil.example)")
    await expect(said.nth(1)).to_contain_text("3 * 4 is 12, and so is snake_case_words.")
    await expect(said.nth(1).get_by_role("link")).to_have_count(2)
    await expect(said.nth(2)).to_contain_text("deep")
    assert await page.evaluate("[window.hurt ?? 0, document.querySelectorAll('#log img, #log script').length]") == [0, 0]
    assert [one for one in asked if not one.startswith(url)] == []
    assert looking.complaints == []


async def _opened(stage: Stage) -> tuple[GoalId, CommId]:
    goal_id = await stage.launched()
    return goal_id, await stage.opened(goal_id, ANALYST)
