"""What keys tell that are for one thing alone, or somebody else's: nothing of a goal that its holder may not read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from ioa.protocol.api_keys import Scope
from ioa.protocol.ids import LOCAL, GoalId, UserId
from ioa.protocol.messages import AskUser
from tests.contract.system_client.members import ADA, Members
from tests.integration.gateway.serving import ROUTES, Door, key
from tests.integration.gateway.test_keys import bearer
from tests.integration.gateway.test_labels import ACCEPT, CALL

ASKED, SECRET = "Keep the first secret.", "The second secret is 4711."
EVE = UserId("eve")
BODIES = {"/answer": {"turn": 1, "answer": "x"}, "/messages": {"seat": "eve", "turn": 1, "payload": {"text": "x"}}}
MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}
TOOLS: dict[str, dict[str, object]] = {
    "wait": {},
    "get_status": {},
    "cancel": {},
    "post": {"item": "GROUP.1", "text": "x"},
}


def _every_request(goal: str, group: str) -> list[tuple[str, str, dict[str, Any]]]:
    """What names a goal or its group: each row of the table with and without whose goal it is, A2A, MCP, and what only chats."""
    names = {"{goal_id}": goal, "{comm_id}": group, "{seq}/{number}/{name}": "1/0/a", "{name}": "eve", "{pool}": "ada"}
    made: list[tuple[str, str, dict[str, Any]]] = []
    for row in ROUTES:
        if "{goal_id}" in row.path or "{comm_id}" in row.path:
            path = row.path
            for name, value in names.items():
                path = path.replace(name, value)
            body = next((body for end, body in BODIES.items() if row.path.endswith(end)), {})
            made += [(row.method, f"{path}{whose}", {"json": body}) for whose in ("", f"?user={LOCAL}")]
    made += [
        ("GET", f"/v1{path}goal={goal}{whose}", {}) for path in ("/questions?", "/events?") for whose in ("", f"&user={LOCAL}")
    ]
    made.append(("POST", "/v1/webhooks", {"json": {"url": "http://93.184.216.34/", "goal_id": goal}}))
    a2a = {"headers": {"A2A-Version": "1.0"}}
    made.append(("GET", f"/a2a/network/tasks/{goal}", a2a))
    made += [("POST", f"/a2a/network/tasks/{goal}:{verb}", {**a2a, "json": {}}) for verb in ("cancel", "subscribe")]
    made.append(("POST", "/a2a/network/message:send", {**a2a, "json": {"message": {**MESSAGE, "taskId": goal}}}))
    for tool, more in TOOLS.items():
        said = {"goal_id": goal, **{name: str(value).replace("GROUP", group) for name, value in more.items()}}
        order = {**CALL, "method": "tools/call", "params": {"name": tool, "arguments": said}}
        made.append(("POST", "/mcp", {"json": order, "headers": ACCEPT}))
    resource = {**CALL, "method": "resources/read", "params": {"uri": f"ioa://goal/{goal}/0/a"}}
    return [*made, ("POST", "/mcp", {"json": resource, "headers": ACCEPT})]


def _keys() -> dict[str, tuple[UserId, tuple[Scope, ...]]]:
    """Keys that may not read this goal: of another user without `goals:read-all`, and of its own user without `goals:read`."""
    blind = [scope for scope in Scope if scope is not Scope.GOALS_READ]
    return {
        **{f"eve-{scope.name.lower().replace('_', '-')}": (EVE, (scope,)) for scope in blind},
        **{f"own-{scope.name.lower().replace('_', '-')}": (LOCAL, (scope,)) for scope in blind},
        "eve-blind": (EVE, tuple(blind)),
        "eve-own": (EVE, (Scope.GOALS_READ, Scope.GOALS_WRITE, Scope.AGENTS_READ)),
    }


@pytest.mark.parametrize("ends", [False, True])
async def test_no_key_tells_of_a_goal_that_it_may_not_read(
    http: httpx.AsyncClient, members: Members, door: Door, ends: bool
) -> None:
    """Whatever is asked, by whichever protocol: not its words, and of another's goal not even whether it is there."""
    for name, (user, scopes) in _keys().items():
        await door.keys.put(key(name, *scopes).model_copy(update={"user": user}))
    await door.keys.put(key("team").model_copy(update={"labels": {"team": "x"}}))
    door.clock.advance(timedelta(seconds=2))
    host = str(http.base_url).removesuffix("/v1/")
    launched = (await http.post("/goals", json={"goal": ASKED, "agent": "ada"})).json()
    goal, group = launched["goal_id"], launched["comm_id"]
    await members.launch(GoalId(goal))
    if ends:
        await members.conclude(ADA, SECRET, group)

    async def asked(name: str, goal_id: str, comm_id: str) -> list[tuple[str, int, str]]:
        told = list[tuple[str, int, str]]()
        for method, path, more in _every_request(goal_id, comm_id):
            headers = {**bearer(name), **more.pop("headers", {})}
            answer = await http.request(method, host + path, headers=headers, **more)
            assert answer.status_code != 401, "every key lets in"
            told.append((f"{name}: {method} {path}", answer.status_code, answer.text))
        return told

    for name in ("team", *_keys()):  # its own last, since they may end it
        there = await asked(name, goal, group)
        for request, _, words in there:
            assert ASKED not in words and SECRET not in words, request
        if not name.startswith("own-"):
            for (request, status, words), (_, *absent) in zip(there, await asked(name, "none", "none"), strict=True):
                assert [status, words.replace(goal, "none").replace(group, "none")] == absent, request


async def test_who_only_launches_is_not_told_what_was_asked_or_answered(
    http: httpx.AsyncClient, members: Members, door: Door
) -> None:
    """Neither what may be answered nor what counted stands in what he is refused with; what he answers rightly counts."""
    await door.keys.put(key("launches", Scope.GOALS_WRITE))
    door.clock.advance(timedelta(seconds=2))
    launched = (await http.post("/goals", json={"goal": ASKED, "agent": "ada"})).json()
    path = f"/groups/{launched['comm_id']}/answer"
    await members.launch(GoalId(launched["goal_id"]))
    question = AskUser(text="Which?", options=("red", "blue"), default="blue", until=datetime.now(UTC) + timedelta(minutes=30))
    await members.say(ADA, question, launched["comm_id"])
    turn = int((await http.get("/questions")).json()["questions"][0]["item"].rpartition(".")[2])

    async def told(answer: str, name: str) -> tuple[int, bool]:
        answered = await http.post(path, json={"turn": turn, "answer": answer}, headers=bearer(name))
        return answered.status_code, "blue" in answered.text or "red" in answered.text.replace("answered", "")

    assert [await told("green", name) for name in ("launches", "web")] == [(422, False), (422, True)]
    assert await told("red", "web") == (200, True)
    assert [await told("white", name) for name in ("launches", "web")] == [(409, False), (409, True)]
    assert (await told("red", "launches"))[0] == 200
