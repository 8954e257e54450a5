"""A key with labels: goals that are launched by it bear them, and it shows no others, whatever is asked and by which protocol."""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta

import httpx
import pytest

from tests.contract.system_client.members import Members
from tests.integration.gateway.serving import Door, followed, key
from tests.integration.gateway.test_keys import bearer

ORDER = {"goal": "Count to ten.", "agent": "ada"}
CALL = {"jsonrpc": "2.0", "id": 1}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
async def team(http: httpx.AsyncClient, door: Door) -> dict[str, str]:
    """How the key of a team is shown."""
    await door.keys.put(key("team").model_copy(update={"labels": {"team": "x"}}))
    door.clock.advance(timedelta(seconds=2))
    return bearer("team")


async def test_a_key_stamps_its_labels(http: httpx.AsyncClient, members: Members, team: dict[str, str]) -> None:
    """Goals bear the labels of the key that launched them, besides their own, by every protocol; another value is refused."""
    launched = await http.post("/goals", json={**ORDER, "labels": {"run": "7"}}, headers=team)
    other = await http.post("/goals", json={**ORDER, "labels": {"team": "y"}}, headers=team)
    host = str(http.base_url).removesuffix("/v1/")
    message = {
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]},
        "configuration": {"returnImmediately": True},
    }
    by_a2a = await http.post(f"{host}/a2a/agents/ada/message:send", json=message, headers={**team, "A2A-Version": "1.0"})
    tool = {**CALL, "method": "tools/call", "params": {"name": "start_group", "arguments": {"goal": "Sum.", "agent": "ada"}}}
    by_mcp = await http.post(f"{host}/mcp", json=tool, headers={**team, **ACCEPT})
    assert [one.status_code for one in (launched, other, by_a2a, by_mcp)] == [201, 403, 200, 200]
    rows = (await http.get("/goals", headers=team)).json()["goals"]
    assert [row["labels"].get("team") for row in rows] == ["x"] * 3
    assert (await http.get(launched.headers["location"].removeprefix("/v1"))).json()["labels"] == {"run": "7", "team": "x"}
    assert (await http.get("/goals?label=team%3Dy", headers=team)).json() == {"goals": [], "next": None}


async def test_list_stream_of_a_labelled_key_has_only_its_goals(
    http: httpx.AsyncClient, members: Members, team: dict[str, str]
) -> None:
    """Requests that name another goal are in `test_scopes` and `test_narrowed_keys`."""
    await http.post("/goals", json=ORDER)
    mine = (await http.post("/goals", json=ORDER, headers=team)).json()["goal_id"]
    async with aclosing(followed(http, "/events?list=true", **team)) as events:
        assert (await anext(events)).data["goal_id"] == mine
