"""Goals by HTTP: launched once per idempotency key, listed, followed and cancelled."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest

from ioa.client.documents import GoalDocument, told
from ioa.client.history import conversation
from ioa.client.transcript import Transcript
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import CommId, GoalId
from ioa.protocol.messages import InformTaskProgress, SyncTaskAssignment, TaskSpec
from ioa_gateway.pagination import describe_entry
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, TASK, Members
from tests.integration.gateway.serving import Door, all_of, followed, open_gateway, root

ORDER = {"goal": "Count to ten.", "agent": "ada"}


async def _log(plane: Plane, room: CommId) -> list[dict[str, Any]]:
    """Return the entries of a group with their lines, read from the beginning."""
    transcript = Transcript()
    return [describe_entry(stored, transcript) for stored in await conversation(plane.client, room)]


async def _opened(http: httpx.AsyncClient, members: Members) -> tuple[str, CommId]:
    launched = (await http.post("/goals", json=ORDER)).json()
    await members.launch(GoalId(launched["goal_id"]))
    return f"/goals/{launched['goal_id']}", CommId(launched["comm_id"])


async def test_goal_sent_again_is_launched_once_and_shown(http: httpx.AsyncClient, members: Members, plane: Plane) -> None:
    """A repeated request returns the same goal, a different goal under its key is a conflict; the goal is one document."""
    key = {"Idempotency-Key": "night run"}
    first, again = [await http.post("/goals", json=ORDER, headers=key) for _ in range(2)]
    other = await http.post("/goals", json={**ORDER, "goal": "Count to nine."}, headers=key)
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert first.json() == again.json()
    assert (other.headers["content-type"], other.json()["type"]) == ("application/problem+json", "urn:ioa:error:conflict")
    goal_id = GoalId(first.json()["goal_id"])
    shown = await http.get(first.headers["location"].removeprefix("/v1"))
    assert shown.json() == told(GoalDocument.of(await plane.client.goal(goal_id)))
    assert [row["goal_id"] for row in (await http.get("/goals?open=true")).json()["goals"]] == [goal_id]


async def test_team_is_put_and_used_by_name(http: httpx.AsyncClient, members: Members) -> None:
    """A goal uses a version of a team by its name; an invalid team, or a team with another name, is rejected."""
    team = {
        "team": "duo",
        "max_turns": 9,
        "roles": {"ann": "ada", "joe": "bob"},
        "nodes": [{"name": "talk", "roles": ["ann", "joe"]}],
    }
    put = [await http.put("/teams/duo", json=one) for one in (team, {**team, "max_turns": 8})]
    assert [(one.status_code, one.json()["version"]) for one in put] == [(200, 1), (200, 2)]
    listed, shown = (await http.get("/teams")).json()["teams"], (await http.get("/teams/duo?version=1")).json()
    assert ([row["name"] for row in listed], shown["team"]["max_turns"], shown["team"]["roles"]) == (
        ["duo"],
        9,
        {"ann": {"agent": "ada"}, "joe": {"agent": "bob"}},
    )
    launched = await http.post("/goals", json={"goal": "Talk.", "team": "duo@1"})
    goal = (await http.get(f"/goals/{launched.json()['goal_id']}")).json()
    assert (goal["team_name"], goal["max_turns"]) == ("duo@1", 9)
    wrong = [await http.put("/teams/trio", json=team), await http.put("/teams/duo", json={}), await http.get("/teams/du")]
    assert [one.status_code for one in wrong] == [422, 422, 404]
    assert "did you mean `duo`?" in wrong[2].text


async def test_goals_are_listed_by_pages(http: httpx.AsyncClient, members: Members) -> None:
    """Goals are listed newest first; the last page has no `next`."""
    launched = [(await http.post("/goals", json=ORDER)).json()["goal_id"] for _ in range(3)]
    first = (await http.get("/goals?limit=2")).json()
    second = (await http.get(f"/goals?limit=2&cursor={first['next']}")).json()
    found = [row["goal_id"] for row in first["goals"] + second["goals"]]
    assert (found, second["next"]) == (launched[::-1], None)


async def test_goals_are_found_by_label_and_phase(http: httpx.AsyncClient, members: Members) -> None:
    """A list has only goals with the label or in the phase of the query; invalid filters are rejected."""
    launched = (await http.post("/goals", json={**ORDER, "labels": {"team": "x"}})).json()["goal_id"]
    await http.post("/goals", json=ORDER)
    asked = ("label=team%3Dx", "label=team%3Dy", "phase=concluded", "label=team", "phase=nowhere")
    told = [await http.get(f"/goals?{one}") for one in asked]
    assert [[row["goal_id"] for row in one.json()["goals"]] for one in told[:3]] == [[launched], [], []]
    assert [one.status_code for one in told[3:]] == [422, 422]
    assert "phase: Input should be waiting, discussing, " in told[4].json()["detail"]


@pytest.mark.parametrize("page_entries", [100, 2])
async def test_goal_is_followed_to_its_end_and_resumed(
    http: httpx.AsyncClient, members: Members, plane: Plane, monkeypatch: pytest.MonkeyPatch, page_entries: int
) -> None:
    """The stream has each entry once, with the lines of the whole transcript; a client resumes after its last event."""
    monkeypatch.setattr("ioa_gateway.event_streams._PAGE_ENTRIES", page_entries)
    path, room = await _opened(http, members)
    await members.conclude(ADA, "Ten.", room)
    events = await all_of(followed(http, f"{path}/events"))
    log = await _log(plane, room)
    assert [event.data for event in events] == [*log, {"seq": log[-1]["seq"], "phase": "concluded"}]
    resumed = await all_of(followed(http, f"{path}/events", **{"Last-Event-ID": str(events[0].seq)}))
    assert resumed == events[1:]
    assert (await http.get(f"{path}/events?after={events[-1].seq}")).status_code == 204


async def test_progress_of_a_task_is_streamed(http: httpx.AsyncClient, members: Members) -> None:
    """A report that is not appended to the log reaches followers as an event without an id."""
    path, room = await _opened(http, members)
    task = TaskSpec(task_id=TASK, assignee=BOB, task_desc="Count.")
    await members.say(ADA, SyncTaskAssignment(tasks=(task,)), room)
    async with aclosing(followed(http, f"{path}/events")) as events, asyncio.timeout(20):
        await anext(events)
        await members.say(BOB, InformTaskProgress(task_id=TASK, number=1), room)
        await members.say(BOB, InformTaskProgress(task_id=TASK, number=2, fraction=0.4, content="Half."), room)
        report = await anext(event async for event in events if event.kind == "progress")
    assert (report.seq, report.data["sender"], report.data["comm_id"]) == (0, BOB, room)
    assert (report.data["body"]["task_id"], report.data["body"]["fraction"]) == (TASK, 0.4)


async def test_log_is_read_by_pages_in_both_directions(http: httpx.AsyncClient, members: Members, plane: Plane) -> None:
    """The states of the groups are read as of any entry, in one request."""
    path, room = await _opened(http, members)
    await members.conclude(ADA, "Ten.", room)
    log = await _log(plane, room)
    first = (await http.get(f"{path}/entries?limit=2")).json()["entries"]
    behind = (await http.get(f"{path}/entries?after={first[-1]['seq']}")).json()["entries"]
    last = (await http.get(f"{path}/entries?before={log[-1]['seq']}&limit=1")).json()["entries"]
    assert (first + behind, last) == (log, log[-2:-1])
    stood = [(await http.get(f"{path}/state?at={entry['seq']}")).json()["groups"] for entry in log]
    assert [[group["phase"] for group in groups] for groups in stood] == [[entry["phase"]] for entry in log]
    assert (await http.get(f"{path}/state?at=0")).json() == {"groups": []}


async def test_cancelled_goal_ends(http: httpx.AsyncClient, members: Members) -> None:
    """Cancelling it again returns its result."""
    path, _ = await _opened(http, members)
    assert (await http.get(f"{path}/result")).status_code == 204
    assert (await http.post(f"{path}/cancel", json={"why": "no need"})).status_code == 202
    ended = await http.get(f"{path}/result?wait=10")
    again = await http.post(f"{path}/cancel", json={})
    assert (ended.json()["reason"], again.status_code) == ("cancelled", 202)


async def test_agents_are_listed_and_found(http: httpx.AsyncClient, members: Members) -> None:
    """Agents are listed by pages, and found by a need with the reasons."""
    first = (await http.get("/agents?limit=1")).json()
    second = (await http.get(f"/agents?limit=1&cursor={first['next']}")).json()
    found = (await http.post("/agents/search", json={"needs": [{"text": "ada counts"}]})).json()
    assert [agent["agent_id"] for agent in first["agents"] + second["agents"]] == ["ada", "bob"]
    assert second["next"] is None
    assert (found["by_need"][0]["hits"][0]["agent_id"], "why" in found["by_need"][0]["hits"][0]) == ("ada", True)


INVALID: list[tuple[str, object, int, str]] = [
    ("/goals", {"goal": "x", "goal_id": "mine"}, 422, "goal_id"),
    ("/goals", {"goal": "x", "colour": "red"}, 422, "colour"),
    ("/goals", {"goal": "x" * 300_000}, 413, "256,000"),
    ("/goals", {"goal": "x", "labels": {"owner": "me"}}, 422, "owner"),
    ("/goals", ["x"], 422, "dictionary"),
    ("/goals", {"goal": "\0"}, 422, "goal"),
    ("/goals", {"goal": "x", "team": "nobody"}, 422, "No team is called nobody"),
    ("/goals/none/cancel?user=a b", {}, 422, "query.user: 'a b' is not a valid id"),
    ("/goals/none/cancel", {}, 404, "none"),
    ("/goals/a.b/cancel", {}, 422, "valid id"),
    ("/agents/search", {"needs": []}, 422, "needs"),
]


async def test_invalid_request_is_rejected_with_the_reason(http: httpx.AsyncClient, members: Members) -> None:
    """The response contains problem details (RFC 9457)."""
    for path, body, status, said in INVALID:
        refused = await http.post(path, json=body)
        told = refused.json()
        assert (refused.status_code, told["status"], said in told["detail"] + told.get("hint", "")) == (status, status, True), told


async def test_goal_that_waits_to_be_accepted_has_no_result(
    http: httpx.AsyncClient, members: Members, plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While goals of its user wait, an unknown goal may be one of them; when none waits, it is not found."""
    monkeypatch.setattr(plane.client, "count_waiting", AsyncMock(return_value=1))
    assert [(await http.get(f"/goals/later/result{wait}")).status_code for wait in ("", "?wait=0.1")] == [204, 204]
    async with asyncio.TaskGroup() as group:
        waits = group.create_task(http.get("/goals/later/result?wait=20"))
        await plane.client.submit(GoalOrder(goal="Count to ten.", agent=ADA, goal_id=GoalId("later")))
        await members.launch(GoalId("later"))
        await members.conclude(ADA, "Ten.", CommId((await http.get("/goals/later")).json()["comm_id"]))
    monkeypatch.setattr(plane.client, "count_waiting", AsyncMock(return_value=0))
    assert (waits.result().json()["content"], (await http.get("/goals/none/result?wait=20")).status_code) == ("Ten.", 404)


async def test_request_of_a_foreign_page_is_rejected(http: httpx.AsyncClient, members: Members) -> None:
    """Another Host, another Origin and a form are rejected, although the browser sends a valid key."""
    port = http.base_url.port
    own = f"127.0.0.1:{port}"
    hosts = ["evil.example", "127.0.0.1", f"localhost:{port}", f"{own}.evil.example", f"{own}@evil.example", ""]
    origins = ["null", "https://evil.example", f"https://{own}", f"http://{own}.evil.example", f"http://{own} http://a.example", ""]
    by_host = [(await http.post("/goals", json=ORDER, headers={"Host": one})).status_code for one in hosts]
    by_origin = [(await http.post("/goals", json=ORDER, headers={"Origin": one})).status_code for one in origins]
    twice = await http.post(
        "/goals", json=ORDER, headers=[("Host", own), ("Origin", f"http://{own}"), ("Origin", "http://evil.example")]
    )
    mcp = root(http) + "/mcp"
    by_mcp = [(await http.post(mcp, json={}, headers=one)).status_code for one in ({"Host": hosts[0]}, {"Origin": origins[1]})]
    form = await http.post("/goals", content='{"goal": "x"}', headers={"Content-Type": "text/plain"})
    assert (set(by_host) <= {400, 421}, by_origin) == (True, [403] * len(origins)), by_host
    assert (twice.status_code, form.status_code, by_mcp) == (403, 422, [421, 403])
    assert (await http.get("/goals")).json()["goals"] == []


async def test_request_without_connection_to_the_system_is_rejected_at_once(plane: Plane, door: Door) -> None:
    """The response states when to try again."""
    door.is_there = False
    async with open_gateway(plane, door) as http:
        refused = await http.get("/goals")
    assert (refused.status_code, refused.headers["retry-after"], refused.json()["type"]) == (503, "1", "urn:ioa:error:unavailable")
