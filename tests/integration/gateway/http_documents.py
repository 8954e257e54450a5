"""The shapes of the gateway's documents: its OpenAPI description without prose, and one answer of each route as types.

`python -m tests.integration.gateway.http_documents` writes the golden files.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from ioa.concurrency import beside
from ioa.protocol.ids import GoalId, PoolId
from ioa.protocol.messages import AskUser
from ioa_gateway.app import describe_api
from ioa_testkit.planes import open_nats_plane
from tests.contract.system_client.members import ADA, BOB, Members
from tests.integration.gateway.serving import open_door, open_gateway
from tests.integration.gateway.test_keys import bearer

FOLDER = Path(__file__).parents[2] / "data" / "documents"
GOLDEN_OPENAPI, GOLDEN_SHAPES = FOLDER / "openapi.txt", FOLDER / "http_shapes.txt"
_PROSE = ("description", "summary", "title", "version", "operationId", "examples")
TEAM = {
    "team": "panel",
    "roles": {"chair": "ada", "peer": "bob"},
    "nodes": [{"name": "talk", "roles": ["chair", "peer"], "max": 4}],
}


def openapi() -> str:
    """Return the OpenAPI description without prose, one path and one schema a line."""
    document = describe_api()
    rows = [f"{group} {name} {json.dumps(_structure(value), sort_keys=True)}" for group, name, value in _parts(document)]
    return "\n".join([*sorted(rows), ""])


def _parts(document: dict[str, Any]) -> list[tuple[str, str, Any]]:
    operations = [("path", f"{method} {path}", one) for path, of in document["paths"].items() for method, one in of.items()]
    return operations + [("schema", name, value) for name, value in document["components"]["schemas"].items()]


def _structure(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _structure(one) for name, one in value.items() if name not in _PROSE or isinstance(one, dict | list)}
    return [_structure(one) for one in value] if isinstance(value, list) else value


async def shapes(http: httpx.AsyncClient, members: Members) -> str:
    """Use each route that answers with a document, and return the types of the values in the answers, one route a line."""
    found: dict[str, Any] = {}

    async def ask(method: str, path: str, **more: Any) -> Any:
        answer = await http.request(method, path, **more)
        document = answer.json() if answer.content else None
        found[f"{method} {path.replace(goal, 'GOAL').replace(group, 'GROUP')} {answer.status_code}"] = _shape(document)
        return document

    goal = group = "\0"
    file = await ask("PUT", "/uploads/ten.txt", content=b"10")
    order = {"goal": "Count to ten.", "agent": "ada", "inputs": [file], "labels": {"a": "b"}, "max_turns": 9}
    launched = await ask("POST", "/goals", json=order)
    goal, group = launched["goal_id"], launched["comm_id"]
    await members.launch(GoalId(goal))
    until = datetime.now(UTC) + timedelta(minutes=30)
    await members.say(ADA, AskUser(text="Which?", options=("red", "blue"), default="blue", until=until), group)
    [question] = (await ask("GET", "/questions"))["questions"]
    turn = int(question["item"].rpartition(".")[2])
    await ask("POST", f"/groups/{group}/answer", json={"turn": turn, "answer": "red"})
    await members.conclude(ADA, "Ten.", group)
    for path in ("", "/result", "/entries", "/state"):
        await ask("GET", f"/goals/{goal}{path}")
    for path in ("/goals", "/agents", "/models", "/seats", "/seats/anna", "/session"):
        await ask("GET", path)
    await ask("POST", "/agents/search", json={"needs": [{"text": "count"}]})
    for path, method in (("/teams/panel", "PUT"), ("/teams", "GET"), ("/teams/panel", "GET")):
        await ask(method, path, **({"json": TEAM} if method == "PUT" else {}))
    hook = await ask("POST", "/webhooks", json={"url": "https://93.184.215.14/hook"})
    await ask("GET", "/webhooks")
    found["GET /webhooks/ID"] = _shape((await http.get(f"/webhooks/{hook['webhook_id']}")).json())
    await ask("POST", f"/goals/{goal}/cancel", json={})
    await ask("GET", "/goals/none")
    await ask("POST", "/goals", json={"goal": ""})
    await ask("GET", "/goals", headers=bearer("web", "wrong"))
    return "\n".join([*(f"{route} {json.dumps(shape, sort_keys=True)}" for route, shape in sorted(found.items())), ""])


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shape(one) for name, one in value.items()}
    if isinstance(value, list):
        kinds = {json.dumps(_shape(one), sort_keys=True): _shape(one) for one in value}
        return [kinds[kind] for kind in sorted(kinds)]
    return type(value).__name__


async def _write(folder: Path) -> None:
    GOLDEN_OPENAPI.write_text(openapi(), encoding="utf-8")
    async with open_nats_plane(folder) as plane, open_door(plane) as door, open_gateway(plane, door) as http:
        members = Members(plane)
        async with beside(plane.network.take_goals(ADA, PoolId(ADA), members.given, max_concurrent=8, anybodys=False)):
            await members.register(ADA, BOB)
            GOLDEN_SHAPES.write_text(await shapes(http, members), encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(_write(Path(made)))
