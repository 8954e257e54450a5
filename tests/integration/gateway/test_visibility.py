"""What a key cannot see: goals of other users, goals without its labels, and the content of goals without `goals:read`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import httpx
import pytest

from ioa.client.history import conversation
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import LOCAL, CommId, GoalId, UserId
from ioa.protocol.messages import AskUser, ConcludeGroupDiscussion, Conclusion, Discussion
from ioa.protocol.operation.api_keys import Scope
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, Members
from tests.integration.gateway.desk import QUESTION, open_desk
from tests.integration.gateway.serving import ROUTES, Door, followed, key, root
from tests.integration.gateway.test_keys import bearer

MARK = "quokka"
"""Occurs in everything that belongs to others, and in no time or identifier."""
ORDER = {"goal": f"Keep {MARK}.", "agent": "ada"}
HOOK = {"url": f"http://93.184.216.34/{MARK}"}
CALL = {"jsonrpc": "2.0", "id": 1}
_MCP = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
_A2A = {"A2A-Version": "1.0"}
_BY_ID = re.compile(r"\{(goal|comm|webhook)_id\}")
_RANDOM = re.compile(r"(goal-)?[0-9a-f]{16,32}|whsec_[^\"]+")
"""Random ids, which differ between two things of the same kind."""
_MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}


class Request(NamedTuple):
    """A request. Names in braces stand for ids of others, in the path and the body.

    Attributes:
        route: The method and the route.
        path: The path with a query; empty if it is the route.
    """

    route: str
    path: str = ""
    body: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}


_SEARCH = {"needs": [{"text": "count"}]}
_SAID = {"seat": "anna", "turn": 1, "payload": {"text": "x"}}
_CHAT = {"model": "{goal}", "messages": []}
_RUN = {"threadId": "{goal}", "runId": "{goal}", "messages": []}
OF_API = (
    Request("POST /v1/goals", "", {"goal": "Sum.", "agent": "ada", "labels": {"team": "y"}}),
    Request("GET /v1/goals", "/v1/goals?limit=1"),
    Request("GET /v1/goals/{goal_id}", "/v1/goals/{goal}"),
    Request("GET /v1/goals/{goal_id}/result", "/v1/goals/{goal}/result"),
    Request("POST /v1/goals/{goal_id}/cancel", "/v1/goals/{goal}/cancel"),
    Request("POST /v1/goals/{goal_id}/rerun", "/v1/goals/{goal}/rerun", {"at": 1, "message": "x"}),
    Request("GET /v1/goals/{goal_id}/events", "/v1/goals/{goal}/events"),
    Request("GET /v1/goals/{goal_id}/entries", "/v1/goals/{goal}/entries"),
    Request("GET /v1/goals/{goal_id}/state", "/v1/goals/{goal}/state"),
    Request("GET /v1/goals/{goal_id}/trace", "/v1/goals/{goal}/trace"),
    Request("GET /v1/artifacts/{goal_id}/{seq}/{number}/{name}", "/v1/artifacts/{goal}/1/0/a"),
    Request("GET /v1/events", "/v1/events?goal={goal}"),
    Request("PUT /v1/uploads/{name}", "/v1/uploads/a.txt"),
    # All keys with the scope see agents and named teams.
    Request("GET /v1/agents"),
    Request("POST /v1/agents/search", "", _SEARCH),
    Request("GET /v1/webhooks"),
    Request("POST /v1/webhooks", "", {"url": "http://93.184.216.34/", "goal_id": "{goal}"}),
    Request("GET /v1/webhooks/{webhook_id}", "/v1/webhooks/{hook}"),
    Request("DELETE /v1/webhooks/{webhook_id}", "/v1/webhooks/{hook}"),
    Request("GET /v1/questions", "/v1/questions?goal={goal}"),
    Request("POST /v1/groups/{comm_id}/answer", "/v1/groups/{group}/answer", {"turn": 1, "answer": "x"}),
    Request("GET /v1/seats"),
    Request("GET /v1/seats/{name}", "/v1/seats/anna"),
    Request("GET /v1/seats/{name}/groups/{comm_id}", "/v1/seats/anna/groups/{desk}"),
    Request("POST /v1/groups/{comm_id}/messages", "/v1/groups/{desk}/messages", _SAID),
    Request("GET /v1/teams"),
    Request("GET /v1/teams/{name}", "/v1/teams/none"),
    Request("PUT /v1/teams/{name}", "/v1/teams/none"),
    Request("POST /v1/chat/completions", "", _CHAT),
    Request("GET /v1/models"),
    Request("POST /v1/agui/{pool}", "/v1/agui/{goal}", _RUN),
    Request("POST /v1/session", "", {"token": "{goal}"}),
    Request("GET /v1/session"),
    Request("DELETE /v1/session"),
)
OF_A2A = (
    Request("GET", "/a2a/network/tasks/{goal}", headers=_A2A),
    Request("POST", "/a2a/network/tasks/{goal}:cancel", headers=_A2A),
    Request("POST", "/a2a/network/tasks/{goal}:subscribe", headers=_A2A),
    Request("POST", "/a2a/network/message:send", {"message": {**_MESSAGE, "taskId": "{goal}"}}, _A2A),
)


def _tool(name: str, **arguments: object) -> Request:
    call = {**CALL, "method": "tools/call", "params": {"name": name, "arguments": {"goal_id": "{goal}", **arguments}}}
    return Request("POST", "/mcp", call, _MCP)


def _resource(uri: str) -> Request:
    return Request("POST", "/mcp", {**CALL, "method": "resources/read", "params": {"uri": uri}}, _MCP)


OF_MCP = (
    _tool("wait"),
    _tool("get_status"),
    _tool("cancel"),
    _tool("post", item="{group}.1", text="x"),
    _resource("ioa://goal/{goal}/0/a"),
)


async def _send(http: httpx.AsyncClient, key_id: str, request: Request, ids: Mapping[str, str], whose: str) -> tuple[int, str]:
    """Send a request; return the status and the text of the response, in which ids are replaced by `none`."""

    def named(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: named(one) for name, one in value.items()}
        if isinstance(value, str):
            for name, written in ids.items():
                value = value.replace(f"{{{name}}}", written)
        return value

    method, _, route = request.route.partition(" ")
    path = request.path or route
    if whose and "{goal}" in path and path.startswith("/v1/"):
        path += f"{'&' if '?' in path else '?'}user={whose}"
    headers = {**bearer(key_id), **request.headers}
    response = await http.request(method, root(http) + named(path), json=named(request.body), headers=headers)
    text = response.text
    for written in ids.values():
        text = text.replace(written, "none")
    return response.status_code, _RANDOM.sub("none", text)


async def _snapshot(http: httpx.AsyncClient, plane: Plane, ids: Mapping[str, str]) -> list[object]:
    """Return what belongs to others, as its owner sees it."""
    logs = [[one.seq for one in await conversation(plane.client, CommId(ids[group]))] for group in ("group", "desk")]
    paths = (f"/goals/{ids['goal']}", f"/webhooks/{ids['hook']}", "/webhooks", "/seats/anna", "/teams")
    return [*logs, *[(await http.get(path)).json() for path in paths]]


def test_requests_include_each_route() -> None:
    """A new route needs a request that names a goal, group or webhook of others."""
    assert [one.route for one in OF_API if one.route] == sorted(
        (f"{one.method} {one.path}" for one in ROUTES), key=[one.route for one in OF_API].index
    )


@pytest.mark.parametrize("ends", [False, True])
async def test_no_request_shows_or_changes_what_a_key_cannot_see(
    http: httpx.AsyncClient, plane: Plane, members: Members, door: Door, ends: bool
) -> None:
    """The response is the same as for ids that do not exist, and everything stays as it was."""
    own = [scope for scope in Scope if scope not in (Scope.GOALS_READ_ALL, Scope.SEATS)]
    blind = [scope for scope in Scope if scope is not Scope.GOALS_READ]
    await door.keys.put(key("team", *Scope, "seats:anna").model_copy(update={"labels": {"team": "x"}}))
    await door.keys.put(key("eve", *own).model_copy(update={"user": UserId("eve")}))
    await door.keys.put(key("blind", *blind))
    desk = await open_desk(plane, members)
    launched = (await http.post("/goals", json=ORDER)).json()
    goal, group = launched["goal_id"], launched["comm_id"]
    await members.launch(GoalId(goal))
    await members.say(ADA, Discussion(content=f"It is {MARK}.", next_speaker=BOB), group)
    hook = (await http.post("/webhooks", json=HOOK)).json()["webhook_id"]
    if ends:
        await members.conclude(BOB, MARK, group)
    ids = {"goal": goal, "group": group, "hook": hook, "desk": desk}
    before = await _snapshot(http, plane, ids)
    for key_id, whose in (("team", ""), ("eve", ""), ("eve", LOCAL)):
        for request in (*OF_API, *OF_A2A, *OF_MCP):
            door.clock.advance(timedelta(seconds=1))
            found = await _send(http, key_id, request, ids, whose)
            assert found == await _send(http, key_id, request, dict.fromkeys(ids, "none"), whose), request
            assert MARK not in found[1] and QUESTION not in found[1], request
            assert found[0] == 404 or key_id != "team" or not _BY_ID.search(request.route), "only its visibility is wrong"
    assert await _snapshot(http, plane, ids) == before
    for request in (*OF_API, *OF_A2A, *OF_MCP):
        assert MARK not in (await _send(http, "blind", request, ids, ""))[1], request


async def test_key_with_labels_reads_the_files_of_its_goals(
    http: httpx.AsyncClient, plane: Plane, members: Members, door: Door
) -> None:
    """By HTTP and by MCP, as files of an entry or a result; an invented reference opens nothing."""
    await door.keys.put(key("team").model_copy(update={"labels": {"team": "x"}}))
    secret = Artifact.model_validate((await http.put("/uploads/a.txt", content=MARK.encode())).json())
    given = (await http.put("/uploads/c.txt", content=b"One.", headers=bearer("team"))).json()
    order = {**ORDER, "inputs": [given, {"name": "d.txt", "text": "x"}]}
    launched = (await http.post("/goals", json=order, headers=bearer("team"))).json()
    goal_id, group = launched["goal_id"], CommId(launched["comm_id"])
    await members.launch(GoalId(goal_id))
    own = await plane.network.put_file(ADA, group, "b", "b.txt", b"own", "text/plain")
    invented = secret.model_copy(update={"object_name": own.object_name})
    await members.say(ADA, ConcludeGroupDiscussion(), group)
    seq = await members.say(ADA, Conclusion(content="Look.", artifacts=(invented, own)), group)
    paths = [f"{number}/{file}{view}" for number, file in enumerate(("a.txt", "b.txt")) for view in ("", "?view=1")]
    rejected, _, *others = [await http.get(f"/artifacts/{goal_id}/{seq}/{path}", headers=bearer("team")) for path in paths]
    assert (rejected.status_code, [(one.status_code, one.text) for one in others]) == (404, [(200, "own"), (200, "own")])
    uris = [f"ioa://goal/{goal_id}/{number}/{name}" for number, name in enumerate(("a.txt", "b.txt"))]
    by_mcp = [(await _send(http, "team", _resource(uri), {}, ""))[1] for uri in uris]
    assert (MARK in by_mcp[0], '"text":"own"' in by_mcp[1]) == (False, True)


async def test_key_adds_its_labels_to_goals_and_lists_only_these(http: httpx.AsyncClient, members: Members, door: Door) -> None:
    """By every protocol, in addition to the labels of the goal; another value is rejected."""
    await door.keys.put(key("team").model_copy(update={"labels": {"team": "x"}}))
    team, order = bearer("team"), {"goal": "Count to ten.", "agent": "ada"}
    await http.post("/goals", json=order)
    launched = await http.post("/goals", json={**order, "labels": {"run": "7"}}, headers=team)
    other = await http.post("/goals", json={**order, "labels": {"team": "y"}}, headers=team)
    message = {"message": _MESSAGE, "configuration": {"returnImmediately": True}}
    by_a2a = await http.post(f"{root(http)}/a2a/agents/ada/message:send", json=message, headers={**team, **_A2A})
    call = {**CALL, "method": "tools/call", "params": {"name": "start_group", "arguments": {"goal": "Sum.", "agent": "ada"}}}
    by_mcp = await http.post(f"{root(http)}/mcp", json=call, headers={**team, **_MCP})
    assert [one.status_code for one in (launched, other, by_a2a, by_mcp)] == [201, 403, 200, 200]
    rows = (await http.get("/goals", headers=team)).json()["goals"]
    assert [row["labels"].get("team") for row in rows] == ["x"] * 3
    assert (await http.get(launched.headers["location"].removeprefix("/v1"))).json()["labels"] == {"run": "7", "team": "x"}
    assert (await http.get("/goals?label=team%3Dy", headers=team)).json() == {"goals": [], "next": None}
    async with aclosing(followed(http, "/events?list=true", **team)) as events:
        assert {(await anext(events)).data["labels"]["team"] for _ in range(3)} == {"x"}


async def test_key_that_only_launches_answers_without_reading_the_question(
    http: httpx.AsyncClient, members: Members, door: Door
) -> None:
    """Errors contain neither the options nor the answer that counts; a valid answer counts."""
    await door.keys.put(key("launches", Scope.GOALS_WRITE))
    launched = (await http.post("/goals", json=ORDER)).json()
    await members.launch(GoalId(launched["goal_id"]))
    question = AskUser(text="Which?", options=("red", "blue"), default="blue", until=datetime.now(UTC) + timedelta(minutes=30))
    await members.say(ADA, question, launched["comm_id"])
    turn = int((await http.get("/questions")).json()["questions"][0]["item"].rpartition(".")[2])

    async def answer(text: str, name: str) -> tuple[int, bool]:
        path = f"/groups/{launched['comm_id']}/answer"
        answered = await http.post(path, json={"turn": turn, "answer": text}, headers=bearer(name))
        return answered.status_code, "blue" in answered.text or "red" in answered.text.replace("answered", "")

    assert [await answer("green", name) for name in ("launches", "web")] == [(422, False), (422, True)]
    assert await answer("red", "web") == (200, True)
    assert [await answer("white", name) for name in ("launches", "web")] == [(409, False), (409, True)]
    assert (await answer("red", "launches"))[0] == 200
