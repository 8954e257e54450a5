"""What A2A 1.0 requires of a server (MUST), by the ids of its test kit (a2aproject/a2a-tck, 1.0-dev), in both bindings by HTTP.

The kit is no package, and its agent decides by the id of a message how a task goes; here members say it. What is pushed is checked
in `test_a2a_pushes.py`, and `docs/http.md` says which checks of the kit do not pass, and why.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from ioa.protocol.ids import CommId, GoalId
from tests.contract.system_client.members import ADA, Members
from tests.integration.gateway.serving import Door

_PUSHES = "/tasks/{taskId}/pushNotificationConfigs"
_ROUTES: Mapping[str, tuple[str, str]] = {
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "GetTask": ("GET", "/tasks/{id}"),
    "ListTasks": ("GET", "/tasks"),
    "CancelTask": ("POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": ("GET", "/tasks/{id}:subscribe"),
    "CreateTaskPushNotificationConfig": ("POST", _PUSHES),
    "GetTaskPushNotificationConfig": ("GET", f"{_PUSHES}/{{id}}"),
    "ListTaskPushNotificationConfigs": ("GET", _PUSHES),
    "DeleteTaskPushNotificationConfig": ("DELETE", f"{_PUSHES}/{{id}}"),
    "GetExtendedAgentCard": ("GET", "/extendedAgentCard"),
}
"""The operations, and how they are asked for by HTTP+JSON (11.3)."""

_STATUS = {
    "TASK_NOT_FOUND": (404, -32001),
    "TASK_NOT_CANCELABLE": (400, -32002),
    "UNSUPPORTED_OPERATION": (400, -32004),
    "CONTENT_TYPE_NOT_SUPPORTED": (400, -32005),
    "VERSION_NOT_SUPPORTED": (400, -32009),
}
"""How errors are told in each binding (5.4)."""

Said = dict[str, Any]


@dataclass
class Wire:
    """One binding, as a client that knows no library speaks it."""

    http: httpx.AsyncClient
    binding: str
    members: Members
    door: Door
    version: str = "1.0"
    sent: int = 0

    def request(self, operation: str, params: Said) -> httpx.Request:
        """Write a request."""
        base = str(self.http.base_url).removesuffix("/v1/") + "/a2a/agents/ada"
        headers = {"A2A-Version": self.version}
        if self.binding == "JSONRPC":
            body = {"jsonrpc": "2.0", "id": "r", "method": operation, "params": params}
            return self.http.build_request("POST", base, json=body, headers=headers)
        method, path = _ROUTES[operation]
        rest = {name: value for name, value in params.items() if f"{{{name}}}" not in path}
        url = base + path.format(**params)
        if method == "POST":
            return self.http.build_request(method, url, json=rest, headers=headers)
        query = urlencode({name: str(value).lower() if isinstance(value, bool) else value for name, value in rest.items()})
        return self.http.build_request(method, f"{url}?{query}" if query else url, headers=headers)

    async def ask(self, operation: str, **params: Any) -> Said:
        """Ask for something that has to succeed."""
        answer = await self.http.send(self.request(operation, params))
        assert answer.status_code == 200, answer.text
        told: Said = answer.json() if answer.content else {}
        return self._result(told)

    async def refusal(self, operation: str, **params: Any) -> str:
        """Ask for something that is refused, and return the reason, if the binding's code is the one of that reason."""
        answer = await self.http.send(self.request(operation, params))
        error = answer.json()["error"]
        infos = [one for one in error.get("data" if self.binding == "JSONRPC" else "details") or [] if "reason" in one]
        reason: str = infos[0]["reason"]
        assert infos[0]["domain"] == "a2a-protocol.org"
        status, code = _STATUS[reason]
        if self.binding == "JSONRPC":
            assert (answer.status_code, error["code"]) == (200, code)
        else:
            assert (answer.status_code, error["code"]) == (status, status)
        return reason

    async def stream(self, operation: str, **params: Any) -> AsyncGenerator[Said, None]:
        """Ask for a stream, to where the server ends it."""
        answer = await self.http.send(self.request(operation, params), stream=True)
        try:
            assert answer.headers["content-type"].startswith("text/event-stream"), await answer.aread()
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    yield self._result(json.loads(line.removeprefix("data: ")))
        finally:
            await answer.aclose()

    def message(self, text: str = "Count.", **more: Any) -> Said:
        """A message of its own."""
        self.sent += 1
        return {"messageId": f"m{self.sent}", "role": "ROLE_USER", "parts": [{"text": text}], **more}

    async def begun(self, **more: Any) -> Said:
        """Begin a task."""
        told = await self.ask("SendMessage", message=self.message(**more), configuration={"returnImmediately": True})
        task: Said = told["task"]
        return task

    async def opened(self) -> tuple[str, CommId]:
        """Begin a task at which a team works."""
        task_id = (await self.begun())["id"]
        return task_id, (await self.members.launch(GoalId(task_id))).state.comm_id

    async def ended(self) -> str:
        """Begin a task that comes to its end."""
        task_id, room = await self.opened()
        await self.members.conclude(ADA, "Ten.", room)
        return task_id

    def _result(self, told: Said) -> Said:
        if self.binding != "JSONRPC":
            return told
        assert (told["jsonrpc"], told["id"], "error" in told) == ("2.0", "r", False), told
        result: Said = told["result"] or {}
        return result


Check = Callable[[Wire], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def must(*ids: str) -> Callable[[Check], Check]:
    """Say which requirements a check is of."""

    def note(check: Check) -> Check:
        CHECKS.update(dict.fromkeys(ids, check))
        return check

    return note


@must("CORE-SEND-001", "CORE-EXECUTION-MODE-002", "CORE-MULTI-001a", "DM-TASK-001", "DM-STATUS-001")
async def _a_message_is_answered_by_a_task(wire: Wire) -> None:
    task = await wire.begun()
    assert task["id"] and task["contextId"]
    assert task["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")


@must("CORE-SEND-002")
async def _what_has_ended_takes_no_message(wire: Wire) -> None:
    message = wire.message(taskId=await wire.ended())
    assert await wire.refusal("SendMessage", message=message) == "UNSUPPORTED_OPERATION"


@must("CORE-SEND-003")
async def _of_a_malformed_media_type_nothing_begins(wire: Wire) -> None:
    await wire.begun(parts=[{"text": "Count."}, {"raw": "dGNr", "mediaType": "application/vnd.apache.parquet; v=1"}])
    odd = wire.message(parts=[{"text": "Count."}, {"raw": "dGNr", "mediaType": "parquet\r\nX: y"}])
    assert await wire.refusal("SendMessage", message=odd) == "CONTENT_TYPE_NOT_SUPPORTED"
    assert len((await wire.ask("ListTasks"))["tasks"]) == 1


@must("CORE-GET-001", "DM-TASK-002", "DM-ART-001", "DM-SERIAL-001", "DM-SERIAL-002", "DM-SERIAL-003", "DM-MSG-002")
async def _a_task_is_told_in_the_words_of_the_protocol(wire: Wire) -> None:
    task = await wire.ask("GetTask", id=await wire.ended())
    assert (task["status"]["state"], {one["role"] for one in task["history"]}) == (
        "TASK_STATE_COMPLETED",
        {"ROLE_USER", "ROLE_AGENT"},
    )
    assert all(one["artifactId"] and one["parts"] for one in task["artifacts"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", task["status"]["timestamp"])
    assert [name for name in _names(task) if "_" in name] == []


def _names(told: object) -> Iterator[str]:
    """Every name of a field, but for those that are no protocol's: of metadata."""
    if isinstance(told, dict):
        for name, inner in told.items():
            yield name
            if name != "metadata":
                yield from _names(inner)
    elif isinstance(told, list):
        for one in told:
            yield from _names(one)


@must("CORE-GET-002", "CORE-CANCEL-003", "STREAM-SUB-004", "CORE-MULTI-004", "PUSH-GET-002")
async def _a_task_that_is_none_is_not_found(wire: Wire) -> None:
    asked = [await wire.refusal(operation, id="none") for operation in ("GetTask", "CancelTask", "SubscribeToTask")]
    asked.append(await wire.refusal("SendMessage", message=wire.message(taskId="none")))
    task = await wire.begun()
    asked.append(await wire.refusal("GetTaskPushNotificationConfig", taskId=task["id"], id="none"))
    assert asked == ["TASK_NOT_FOUND"] * 5


@must("CORE-LIST-002", "CORE-LIST-004", "CORE-LIST-005", "HTTP_JSON-QP-001")
async def _tasks_are_listed_a_page_at_a_time(wire: Wire) -> None:
    begun = {await wire.ended(), (await wire.begun())["id"], (await wire.begun())["id"]}
    first = await wire.ask("ListTasks", pageSize=2)
    last = await wire.ask("ListTasks", pageSize=2, pageToken=first["nextPageToken"])
    whole = await wire.ask("ListTasks", includeArtifacts=True)
    assert {task["id"] for page in (first, last) for task in page["tasks"]} == begun
    assert (bool(first["nextPageToken"]), last["nextPageToken"]) == (True, "")
    assert ["artifacts" in task for page in (first, last) for task in page["tasks"]] == [False] * 3
    assert any("artifacts" in task for task in whole["tasks"])


@must("CORE-CANCEL-001", "CORE-CANCEL-002")
async def _a_task_is_cancelled_once(wire: Wire) -> None:
    task_id, _ = await wire.opened()
    assert (await wire.ask("CancelTask", id=task_id))["status"]["state"] == "TASK_STATE_CANCELED"
    assert await wire.refusal("CancelTask", id=task_id) == "TASK_NOT_CANCELABLE"


@must("CORE-CAP-003", "CARD-EXT-001")
async def _there_is_no_extended_card(wire: Wire) -> None:
    assert await wire.refusal("GetExtendedAgentCard") == "UNSUPPORTED_OPERATION"


@must("CORE-MULTI-003", "CORE-MULTI-005", "CORE-MULTI-006", "CORE-ERR-002", "DM-SERIAL-004")
async def _a_conversation_holds_its_tasks(wire: Wire) -> None:
    one, other = await wire.begun(contextId="talk"), await wire.begun(contextId="talk")
    assert (one["id"] != other["id"], one["contextId"]) == (True, "talk")
    hollow = {"messageId": "h", "role": "ROLE_USER", "parts": []}
    mismatched = wire.message(taskId=one["id"], contextId="another")
    for wrong in (mismatched, hollow):
        answer = await wire.http.send(wire.request("SendMessage", {"message": wrong}))
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) in ((200, -32602), (400, 400)), error


@must("CORE-HIST-002")
async def _no_more_is_told_of_what_was_said_than_is_asked_for(wire: Wire) -> None:
    task_id = await wire.ended()
    told = [await wire.ask("GetTask", id=task_id, historyLength=length) for length in (0, 1)]
    assert [len(task.get("history", [])) for task in told] == [0, 1]


@must("STREAM-SUB-001", "STREAM-SUB-002", "STREAM-SUB-003", "STREAM-ORDER-002", "STREAM-ORDER-003", "STREAM-ORDER-004")
async def _all_who_follow_are_told_the_same(wire: Wire) -> None:
    task_id, room = await wire.opened()
    async with (
        aclosing(wire.stream("SubscribeToTask", id=task_id)) as one,
        aclosing(wire.stream("SubscribeToTask", id=task_id)) as other,
        aclosing(wire.stream("SubscribeToTask", id=task_id)) as leaving,
    ):
        assert [next(iter(await anext(stream))) for stream in (one, other, leaving)] == ["task"] * 3
        await leaving.aclose()
        await wire.members.conclude(ADA, "Ten.", room)
        told = [[event async for event in stream] for stream in (one, other)]
    assert told[0] == told[1]
    assert told[0][-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert await wire.refusal("SubscribeToTask", id=task_id) == "UNSUPPORTED_OPERATION"


@must("VER-SERVER-001", "VER-SERVER-002", "VER-CLIENT-002", "JSONRPC-SVC-002", "HTTP_JSON-SVC-002")
async def _a_version_is_spoken_or_refused(wire: Wire) -> None:
    wire.version = "1.0.7"
    task = await wire.begun()
    wire.version = "9.9"
    assert await wire.refusal("GetTask", id=task["id"]) == "VERSION_NOT_SUPPORTED"


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize("check", dict.fromkeys(CHECKS.values()), ids=lambda check: "+".join(_ids_of(check)))
async def test_what_a2a_requires(http: httpx.AsyncClient, members: Members, door: Door, check: Check, binding: str) -> None:
    """A server keeps to what clients of any library go by."""
    await check(Wire(http, binding, members, door))


def _ids_of(check: Check) -> list[str]:
    return [name for name, known in CHECKS.items() if known is check]
