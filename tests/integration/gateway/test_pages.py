"""What one page of a browser needs: one stream for the list and a room, files as they come, and what they look like."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta

import httpx
import pytest

from ioa.client.documents import GoalRow, told
from ioa.protocol.ids import LOCAL, CommId, GoalId
from ioa.protocol.messages import Discussion
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, Members
from tests.integration.gateway.serving import Door, Event, followed

ORDER = {"goal": "Count to ten.", "agent": "ada"}
SOON = timedelta(milliseconds=20)
MARKDOWN = "# Sales\n\n<script>alert(1)</script>\n\n[x](javascript:alert(1)) **bold**\n"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the list often enough that no test waits for it."""
    monkeypatch.setattr("ioa_gateway.rooms._LOOK", SOON)


async def _launched(http: httpx.AsyncClient, **besides: object) -> tuple[GoalId, CommId]:
    launched = (await http.post("/goals", json={**ORDER, **besides})).json()
    return GoalId(launched["goal_id"]), CommId(launched["comm_id"])


async def _until(events: AsyncIterator[Event], kind: str, **fields: object) -> list[Event]:
    """Collect events up to the first of a kind whose data has these fields."""
    seen = []
    async for event in events:
        seen.append(event)
        if event.kind == kind and fields.items() <= event.data.items():
            return seen
    raise AssertionError("the stream has ended")


async def test_one_stream_tells_of_the_list_and_of_a_room(http: httpx.AsyncClient, members: Members, plane: Plane) -> None:
    """A page hears by one connection what it shows: each row of its list that changes, and all that happens in one room."""
    goal_id, room = await _launched(http)
    await members.launch(goal_id)
    async with aclosing(followed(http, f"/events?list=true&goal={goal_id}")) as events:
        first = await _until(events, "goal", goal_id=goal_id)
        other, _ = await _launched(http, goal="Count to nine.")
        later = await _until(events, "goal", goal_id=other)
        await members.conclude(ADA, "Ten.", room)
        seen = [*first, *later, *await _until(events, "goal", goal_id=goal_id, status="concluded")]
        row = seen[-1].data
        if "end" not in {event.kind for event in seen}:  # of the list and the room either may be told first
            seen += await _until(events, "end")
    log = [entry["seq"] for entry in (await http.get(f"/goals/{goal_id}/entries")).json()["entries"]]
    assert [event.seq for event in seen if event.kind == "entry"] == log
    assert row == told(GoalRow.of(await plane.client.goal(goal_id)))
    assert (await http.get("/events")).status_code == 422


async def test_a_list_goes_on_behind_the_end_of_a_room(http: httpx.AsyncClient, members: Members) -> None:
    """A page that comes back to a goal that has ended still hears of other goals by the same stream."""
    goal_id, room = await _launched(http)
    await members.launch(goal_id)
    await members.conclude(ADA, "Ten.", room)
    async with aclosing(followed(http, f"/events?list=true&goal={goal_id}", **{"Last-Event-ID": "1"})) as events:
        await _until(events, "end", phase="concluded")
        other, _ = await _launched(http, goal="Count to nine.")
        assert (await _until(events, "goal", goal_id=other))[-1].data["goal"] == "Count to nine."
    alone = [event async for event in followed(http, f"/events?goal={goal_id}")]
    assert (alone[-1].kind, (await http.get(f"/events?goal={goal_id}&after={alone[-1].seq}")).status_code) == ("end", 204)
    assert (await http.get("/events?list=true&goal=none")).status_code == 404


async def test_a_file_is_sent_as_it_comes_and_given_to_a_goal(http: httpx.AsyncClient, members: Members) -> None:
    """What a program uploads is an input of the goal that names it, byte for byte."""
    data = bytes(range(256)) * 5_000

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(data), 100_000):
            yield data[start : start + 100_000]

    stored = await http.put("/uploads/all%20bytes.bin", content=parts())
    goal_id, _ = await _launched(http, inputs=[stored.json()])
    seq = (await members.launch(goal_id)).seq
    path = f"/artifacts/{goal_id}/{seq}/0/all%20bytes.bin"
    fetched, part = await http.get(path), await http.get(path, headers={"Range": "bytes=600000-600009"})
    assert (stored.status_code, stored.json()["media_type"], fetched.content == data) == (201, "application/octet-stream", True)
    assert (part.status_code, part.content) == (206, data[600_000:600_010])
    assert (await http.put("/uploads/..", content=b"x")).status_code in (404, 422)


async def _in_words(http: httpx.AsyncClient, members: Members, *said: str) -> GoalId:
    """Launch a goal in whose group this is said."""
    goal_id, room = await _launched(http)
    await members.launch(goal_id)
    for number, text in enumerate(said):
        speaker, other = (ADA, BOB) if number % 2 == 0 else (BOB, ADA)
        await members.say(speaker, Discussion(content=text, next_speaker=other), room)
    return goal_id


async def test_pages_end_by_their_bytes(http: httpx.AsyncClient, members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads a conversation of large entries by pages, either way, gets all of it, and no page is larger than it may be."""
    monkeypatch.setattr("ioa_gateway.entry_pages.MOST_BYTES", 20_800)
    goal_id = await _in_words(http, members, *("x" * size for size in (10, 9_000, 9_000, 30_000, *[10] * 9, 9_000)))
    path = f"/goals/{goal_id}/entries"

    async def walk(ask: str, following: int | None) -> list[list[int]]:
        pages = list[list[int]]()
        while following is not None:
            page = await http.get(f"{path}?{ask}={following}&limit=500")
            seqs, following = [one["seq"] for one in page.json()["entries"]], page.json()["next"]
            assert (len(page.content) < 21_000 or len(seqs) == 1, seqs == sorted(seqs)) == (True, True)
            pages.append(seqs)
        return pages

    forward, back = await walk("after", 0), await walk("before", 2**53)
    whole = [seq for page in forward for seq in page]
    assert (whole, len(whole)) == ([seq for page in back[::-1] for seq in page], 15)
    assert (len(forward), len(back)) == (4, 4)
    short = (await http.get(f"{path}?limit=2")).json()
    assert ([one["seq"] for one in short["entries"]], short["next"]) == (whole[:2], whole[1])


async def test_lists_of_goals_end_by_their_bytes(http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever lists goals of many words gets all of them, on pages that are no larger than they may be, but for the first eight."""
    monkeypatch.setattr("ioa_gateway.goal_pages.MOST_BYTES", 40_000)
    for number in range(30):
        await http.post("/goals", json={"goal": f"{number} " + "x" * 4_000, "agent": "ada"})
    pages = list[list[str]]()
    following: str | None = ""
    while following is not None:
        page = await http.get(f"/goals?limit=200{following}")
        assert len(page.content) < 60_000
        pages.append([one["goal"].partition(" ")[0] for one in page.json()["goals"]])
        following = None if page.json()["next"] is None else f"&cursor={page.json()['next']}"
    assert [one for page in pages for one in page] == [str(number) for number in reversed(range(30))]
    assert len(pages) > 2


async def test_tasks_and_waits_end_by_their_bytes(
    http: httpx.AsyncClient, members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task of A2A tells of the last entries that fit, a list of tasks says where it goes on, and so does a wait by MCP."""
    for part in ("entry_pages", "a2a.handler"):
        monkeypatch.setattr(f"ioa_gateway.{part}.MOST_BYTES", 20_500)
    url, version = str(http.base_url).removesuffix("/v1/"), {"A2A-Version": "1.0"}
    ids = list[str]()
    for number in range(2):
        said = {"messageId": f"m{number}", "role": "ROLE_USER", "parts": [{"text": "Count."}]}
        body = {"message": said, "configuration": {"returnImmediately": True}}
        ids.append((await http.post(f"{url}/a2a/agents/ada/message:send", json=body, headers=version)).json()["task"]["id"])
        room = (await members.launch(GoalId(ids[-1]))).state.comm_id
        for text, speaker, other in (("x" * 9_000, ADA, BOB), ("y" * 9_000, BOB, ADA), ("z" * 9_000, ADA, BOB)):
            await members.say(speaker, Discussion(content=text, next_speaker=other), room)
    task = (await http.get(f"{url}/a2a/agents/ada/tasks/{ids[0]}", headers=version)).json()
    assert [one["parts"][0]["text"][0] for one in task["history"]] == ["C", "y", "z"]
    first = (await http.get(f"{url}/a2a/agents/ada/tasks", headers=version)).json()
    rest = (await http.get(f"{url}/a2a/agents/ada/tasks?pageToken={first['nextPageToken']}", headers=version)).json()
    assert ([one["id"] for one in (*first["tasks"], *rest["tasks"])], len(first["tasks"])) == (ids[::-1], 1)
    assert (rest.get("nextPageToken", ""), first["totalSize"]) == ("", 2)
    after, lines = 0, list[str]()
    for _ in range(2):
        arguments = {"goal_id": ids[0], "seconds": 0, "after": after}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait", "arguments": arguments}}
        heads = {"Accept": "application/json, text/event-stream"}
        answer = (await http.post(f"{url}/mcp", json=asked, headers=heads)).text
        told_of = json.loads(answer[answer.index("{") :])["result"]["structuredContent"]
        after, lines = told_of["after"], [*lines, *told_of["lines"]]
        assert told_of["next"].startswith("More was said." if len(lines) < 3 else "It goes on."), told_of["next"]
    assert [line[-1] for line in lines if len(line) > 9_000] == ["x", "y", "z"]


async def test_pages_of_one_user_are_read_by_turns(http: httpx.AsyncClient, members: Members, door: Door) -> None:
    """Who asks for many pages at once is given them one after another, and other things meanwhile."""
    goal_id = await _in_words(http, members, "One.")
    async with asyncio.TaskGroup() as group, door.limits.pages.slot(LOCAL), door.limits.pages.slot(LOCAL):
        asked = group.create_task(http.get(f"/goals/{goal_id}/entries"))
        assert [(await http.get("/goals")).status_code for _ in range(3)] == [200] * 3
        assert not asked.done()
    assert len(asked.result().json()["entries"]) == 2


async def test_markdown_and_tables_are_drawn(http: httpx.AsyncClient, members: Members) -> None:
    """A page shows Markdown as it is meant and a table as one, and nothing that stands in them is markup or runs."""
    table = "name,count\n" + "".join(f"<b>{number}</b>,1\n" for number in range(300))
    inputs = [{"name": "a.md", "text": MARKDOWN}, {"name": "b.csv", "text": table}]
    goal_id, _ = await _launched(http, inputs=inputs)
    seq = (await members.launch(goal_id)).seq
    drawn = [await http.get(f"/artifacts/{goal_id}/{seq}/{name}?view=1") for name in ("0/a.md", "1/b.csv")]
    saved = await http.get(f"/artifacts/{goal_id}/{seq}/0/a.md")
    for one in drawn:
        assert one.headers["content-type"] == "text/html; charset=utf-8"
        assert one.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    text, rows = drawn[0].text, drawn[1].text
    assert ("<h1>Sales</h1>" in text, "<script" in text, 'href="javascript' in text, saved.text) == (True, False, False, MARKDOWN)
    assert (rows.count("<tr>"), "<b>" in rows, "not shown" in rows) == (200, False, True)
    assert drawn[0].headers["etag"] != saved.headers["etag"]
