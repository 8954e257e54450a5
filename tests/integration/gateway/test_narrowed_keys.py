"""Every route by a key with labels: what lies beside its part it cannot see, tell from what is not there, or change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx

from ioa.client.history import conversation
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import CommId, GoalId
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, Discussion
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, Members
from tests.integration.gateway import serving
from tests.integration.gateway.desk import QUESTION, open_desk
from tests.integration.gateway.serving import Door, key
from tests.integration.gateway.test_keys import bearer

MARK = "quokka"
"""Occurs in everything that belongs to others, and in no time or identifier."""
ORDER = {"goal": f"Keep {MARK}.", "agent": "ada"}
HOOK = {"url": f"http://93.184.216.34/{MARK}"}
_BY_ID = re.compile(r"\{(goal|comm|webhook)_id\}")
_DRAWN = re.compile(r"[0-9a-f]{32}")
"""What is drawn for each thing that is made, and so differs between two that are made alike."""


@dataclass(frozen=True)
class Asked:
    """A request.

    Attributes:
        path: Its path, with parameters; in braces whose thing it names.
        body: What is sent, as JSON; also with names in braces.
    """

    path: str
    body: Mapping[str, Any] = field(default_factory=dict)


ROUTES = {
    "POST /goals": Asked("/goals", {"goal": "Sum.", "agent": "ada", "labels": {"team": "y"}}),
    "GET /goals": Asked("/goals?limit=1"),
    "GET /goals/{goal_id}": Asked("/goals/{goal}"),
    "GET /goals/{goal_id}/result": Asked("/goals/{goal}/result?wait=0"),
    "POST /goals/{goal_id}/cancel": Asked("/goals/{goal}/cancel"),
    "POST /goals/{goal_id}/rerun": Asked("/goals/{goal}/rerun", {"at": 1, "message": "x"}),
    "GET /goals/{goal_id}/events": Asked("/goals/{goal}/events"),
    "GET /goals/{goal_id}/entries": Asked("/goals/{goal}/entries"),
    "GET /goals/{goal_id}/state": Asked("/goals/{goal}/state"),
    "GET /goals/{goal_id}/trace": Asked("/goals/{goal}/trace"),
    "GET /artifacts/{goal_id}/{seq}/{number}/{name}": Asked("/artifacts/{goal}/1/0/a"),
    "GET /groups/{comm_id}": Asked("/groups/{group}"),
    "GET /groups/{comm_id}/events": Asked("/groups/{group}/events"),
    "GET /events": Asked("/events?goal={goal}"),
    "PUT /uploads/{name}": Asked("/uploads/a.txt"),
    # Agents and named teams are everybody's.
    "GET /agents": Asked("/agents"),
    "POST /agents/search": Asked("/agents/search", {"needs": [{"text": "count"}]}),
    "POST /webhooks": Asked("/webhooks", {**HOOK, "goal_id": "{goal}"}),
    "GET /webhooks": Asked("/webhooks"),
    "GET /webhooks/{webhook_id}": Asked("/webhooks/{hook}"),
    "DELETE /webhooks/{webhook_id}": Asked("/webhooks/{hook}"),
    "GET /questions": Asked("/questions?goal={goal}"),
    "POST /groups/{comm_id}/answer": Asked("/groups/{group}/answer", {"turn": 1, "answer": "x"}),
    "GET /seats": Asked("/seats"),
    "GET /seats/{name}": Asked("/seats/anna"),
    "GET /seats/{name}/groups/{comm_id}": Asked("/seats/anna/groups/{desk}"),
    "POST /groups/{comm_id}/messages": Asked("/groups/{desk}/messages", {"seat": "anna", "turn": 1, "payload": {"text": "x"}}),
    "GET /teams": Asked("/teams"),
    "GET /teams/{name}": Asked("/teams/none"),
    "PUT /teams/{name}": Asked("/teams/none"),
    "POST /chat/completions": Asked("/chat/completions", {"model": "{goal}", "messages": []}),
    "GET /models": Asked("/models"),
    "POST /agui/{pool}": Asked("/agui/{goal}", {"threadId": "{goal}", "runId": "{goal}", "messages": []}),
    "POST /session": Asked("/session", {"token": "{goal}"}),
    "GET /session": Asked("/session"),
    "DELETE /session": Asked("/session"),
}


def test_each_route_says_what_it_tells_a_key_with_labels() -> None:
    """Whoever adds a route adds how it is asked for what belongs to others."""
    assert set(ROUTES) == {f"{one.method} {one.path.removeprefix('/v1')}" for one in serving.ROUTES}


async def test_no_route_tells_or_changes_what_belongs_to_others(
    http: httpx.AsyncClient, plane: Plane, members: Members, door: Door
) -> None:
    """A key with labels is answered alike, in status and words, whether what it names is there or not; and all stays as it was."""
    await door.keys.put(key("team").model_copy(update={"labels": {"team": "x"}, "scopes": (*key().scopes, "seats:anna")}))
    door.clock.advance(timedelta(seconds=2))
    desk = await open_desk(plane, members)
    launched = (await http.post("/goals", json=ORDER)).json()
    goal, group = launched["goal_id"], launched["comm_id"]
    await members.launch(GoalId(goal))
    await members.say(ADA, Discussion(content=f"It is {MARK}.", next_speaker=BOB), CommId(group))
    hook = (await http.post("/webhooks", json=HOOK)).json()["webhook_id"]
    there = {"goal": goal, "group": group, "hook": hook, "desk": desk}
    before = await _of_others(http, plane, there)
    for route, asked in ROUTES.items():
        method = route.partition(" ")[0]
        named = await _ask(http, method, asked, there)
        absent = await _ask(http, method, asked, dict.fromkeys(there, "none"))
        assert named == absent, route
        assert named[0] == 404 or not _BY_ID.search(route), "what is asked is right, but for whose it is"
        assert MARK not in named[1] and QUESTION not in named[1], route
    assert await _of_others(http, plane, there) == before


async def test_narrowed_key_reads_the_files_of_its_goals(
    http: httpx.AsyncClient, plane: Plane, members: Members, door: Door
) -> None:
    """By HTTP and by MCP, as files of an entry or a result; a reference that was made up opens nothing."""
    await door.keys.put(key("team").model_copy(update={"labels": {"team": "x"}}))
    door.clock.advance(timedelta(seconds=2))
    secret = Artifact.model_validate((await http.put("/uploads/a.txt", content=MARK.encode())).json())
    given = (await http.put("/uploads/c.txt", content=b"One.", headers=bearer("team"))).json()
    goal_id, room = await _launched_by_team(http, members, [given, {"name": "d.txt", "text": "x"}])
    own = await plane.network.put_file(ADA, room, "b", "b.txt", b"own", "text/plain")
    made_up = secret.model_copy(update={"object_name": own.object_name})
    await members.say(ADA, ConcludeGroupDiscussion(), room)
    seq = await members.say(ADA, Conclusion(content="Look.", artifacts=(made_up, own)), room)
    ways = [f"{number}/{file}{view}" for number, file in enumerate(("a.txt", "b.txt")) for view in ("", "?view=1")]
    refused, _, *others = [await http.get(f"/artifacts/{goal_id}/{seq}/{way}", headers=bearer("team")) for way in ways]
    assert (refused.status_code, [(one.status_code, one.text) for one in others]) == (404, [(200, "own"), (200, "own")])
    told = [await _resource(http, f"ioa://goal/{goal_id}/{number}/{name}") for number, name in enumerate(("a.txt", "b.txt"))]
    assert (MARK in told[0], '"text":"own"' in told[1]) == (False, True)


async def _launched_by_team(http: httpx.AsyncClient, members: Members, inputs: list[object]) -> tuple[str, CommId]:
    launched = (await http.post("/goals", json={**ORDER, "inputs": inputs}, headers=bearer("team"))).json()
    await members.launch(GoalId(launched["goal_id"]))
    return launched["goal_id"], CommId(launched["comm_id"])


async def _resource(http: httpx.AsyncClient, uri: str) -> str:
    url, heads = str(http.base_url).removesuffix("/v1/") + "/mcp", {"Accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}}
    return (await http.post(url, json=body, headers={**heads, "MCP-Protocol-Version": "2025-06-18", **bearer("team")})).text


async def _ask(http: httpx.AsyncClient, method: str, asked: Asked, names: Mapping[str, str]) -> tuple[int, str]:
    """Ask by the key with labels, and return what is told without the names that were asked for."""

    def named(text: str) -> str:
        for name, value in names.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    body = {one: named(value) if isinstance(value, str) else value for one, value in asked.body.items()}
    answer = await http.request(method, named(asked.path), json=body, headers=bearer("team"))
    told = answer.text
    for value in names.values():
        told = told.replace(value, "none")
    return answer.status_code, _DRAWN.sub("none", told)


async def _of_others(http: httpx.AsyncClient, plane: Plane, names: Mapping[str, str]) -> list[object]:
    """All that belongs to others, as its owner sees it."""
    logs = [[one.seq for one in await conversation(plane.client, CommId(names[group]))] for group in ("group", "desk")]
    paths = (f"/goals/{names['goal']}", f"/webhooks/{names['hook']}", "/webhooks", "/seats/anna", "/teams")
    return [*logs, *[(await http.get(path)).json() for path in paths]]
