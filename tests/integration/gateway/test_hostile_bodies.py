"""Bodies that no client of a protocol writes, in place of those it does: each is answered, and none is a bug of the gateway's."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ioa.concurrency import beside
from tests.contract.system_client.members import GOAL, Members
from tests.integration.gateway.serving import Door

_EXAMPLES = 150
"""Where a number stands, or may."""
_INTERNAL_ERROR = -32603
_RPC = {"jsonrpc": "2.0", "id": 1}
_OF_MCP = {"io.modelcontextprotocol/protocolVersion": "2026-06-30", "io.modelcontextprotocol/clientCapabilities": {}}

_OLD_MESSAGE = {"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "Count."}]}
_MESSAGE = {
    "messageId": "m1",
    "role": "ROLE_USER",
    "contextId": "c1",
    "parts": [
        {"text": "Count.", "metadata": {"a": 1}},
        {"data": {"choose": "yes", "fields": {"a": 1}, "passes": True}},
        {"raw": "MTA=", "filename": "a.txt", "mediaType": "text/plain"},
        {"url": "https://example.org/a.csv"},
    ],
}
_PUSH = {"id": "p1", "url": "https://example.org/push", "token": "t", "authentication": {"scheme": "Bearer", "credentials": "c"}}
_SEEN = {"historyLength": 3}
_A2A: Mapping[str, object] = {
    "SendMessage": {
        "message": _MESSAGE,
        "configuration": {"returnImmediately": True, "taskPushNotificationConfig": _PUSH, **_SEEN},
    },
    "SendStreamingMessage": {"message": _MESSAGE, "configuration": {"acceptedOutputModes": ["text/plain"]}},
    "GetTask": {"id": GOAL, **_SEEN},
    "ListTasks": {"contextId": "c1", "status": "TASK_STATE_WORKING", "pageSize": 2, "pageToken": "", "includeArtifacts": True},
    "CancelTask": {"id": "none", "metadata": {}},
    "SubscribeToTask": {"id": "none"},
    "CreateTaskPushNotificationConfig": {"taskId": GOAL, **_PUSH},
    "GetTaskPushNotificationConfig": {"taskId": GOAL, "id": "p1"},
    "ListTaskPushNotificationConfigs": {"taskId": GOAL, "pageSize": 2, "pageToken": ""},
    "DeleteTaskPushNotificationConfig": {"taskId": GOAL, "id": "p1"},
    "GetExtendedAgentCard": {},
}
_A2A_OLD: Mapping[str, object] = {
    "message/send": {"message": _OLD_MESSAGE, "configuration": {"blocking": False, "pushNotificationConfig": _PUSH}},
    "message/stream": {"message": _OLD_MESSAGE},
    "tasks/get": {"id": GOAL, **_SEEN},
    "tasks/cancel": {"id": "none"},
    "tasks/resubscribe": {"id": "none"},
    "tasks/pushNotificationConfig/set": {"taskId": GOAL, "pushNotificationConfig": _PUSH},
    "tasks/pushNotificationConfig/get": {"id": GOAL, "pushNotificationConfigId": "p1"},
    "tasks/pushNotificationConfig/list": {"id": GOAL},
    "tasks/pushNotificationConfig/delete": {"id": GOAL, "pushNotificationConfigId": "p1"},
    "agent/getAuthenticatedExtendedCard": {},
}
_TOOLS: Mapping[str, object] = {
    "find_agents": {"need": "counts", "count": 2},
    "start_group": {"goal": "Count.", "agent": "ada", "files": [{"name": "a.csv", "text": "x"}], "max_turns": 3, "key": "k"},
    "wait": {"goal_id": GOAL, "seconds": 0, "after": 0},
    "ask_agent": {"agent": "ada", "task": "Count.", "seconds": 0, "key": "k"},
    "get_status": {"goal_id": GOAL},
    "post": {"item": "goal-1.1", "seat": "anna", "text": "x", "choose": "yes", "fields": {"a": "1"}, "passes": False},
    "cancel": {"goal_id": "none", "why": "x"},
}
_MCP: Sequence[tuple[str, object]] = (
    ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}),
    ("ping", {}),
    ("tools/list", {"cursor": "x"}),
    ("resources/read", {"uri": f"ioa://goal/{GOAL}/0/a.txt"}),
    ("resources/list", {}),
    ("notifications/cancelled", {"requestId": 1, "reason": "x"}),
    *(("tools/call", {"name": name, "arguments": arguments, "_meta": _OF_MCP}) for name, arguments in _TOOLS.items()),
)


@dataclass(frozen=True)
class Call:
    """What a client of a protocol sends, and where."""

    path: str
    body: object
    headers: Mapping[str, str]


def _calls() -> Iterator[Call]:
    for version, methods in (("1.0", _A2A), ("0.3", _A2A_OLD)):
        for method, params in methods.items():
            yield Call("/a2a/agents/ada", {**_RPC, "method": method, "params": params}, {"A2A-Version": version})
    yield Call("/a2a/network/message:send", _A2A["SendMessage"], {"A2A-Version": "1.0"})
    yield Call("/a2a/network/v1/message:send", {"message": _OLD_MESSAGE}, {"A2A-Version": "0.3"})
    yield Call(f"/a2a/network/tasks/{GOAL}/pushNotificationConfigs", _PUSH, {"A2A-Version": "1.0"})
    for method, params in _MCP:
        yield Call("/mcp", {**_RPC, "method": method, "params": params}, {"Accept": "application/json, text/event-stream"})


CALLS = tuple(_calls())

_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(st.characters(), max_size=20),  # half of a pair, too, which is no text
    st.sampled_from([GOAL, "ada", "1.0", "-1", "\x00", "../x", "https://[", "9" * 30]),
)
_ANYTHING = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)


def _places(value: object, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all values within one, itself first."""
    yield way
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from _places(one, (*way, key))


@st.composite
def hostile(draw: st.DrawFn) -> Call:
    """A call in which up to three values are something else, or missing."""
    call = draw(st.sampled_from(CALLS))
    whole: Any = {"": deepcopy(call.body)}
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(list(_places(whole))[1:]))
        holder = whole
        for key in way:
            holder = holder[key]
        if way and draw(st.booleans()) and draw(st.booleans()):
            del holder[last]
        else:
            holder[last] = draw(_ANYTHING)
    return Call(call.path, whole[""], call.headers)


async def _bugs(http: httpx.AsyncClient, call: Call, caplog: pytest.LogCaptureFixture) -> list[object]:
    """Send a call; return an internal error of the answer, and the errors that the gateway or a library logged."""
    caplog.clear()
    with capture_logs() as logs:
        wrong = await _wrong_with(http, call)
    of_gateway = [one for one in logs if one["log_level"] in ("error", "critical") or one.get("exc_info")]
    return [
        *([wrong] if wrong else []),
        *of_gateway,
        *(one for one in caplog.records if one.levelno >= logging.ERROR or one.exc_info),
    ]


async def _wrong_with(http: httpx.AsyncClient, call: Call) -> str:
    """Send a call; return the answer if it is an internal error."""
    url = str(http.base_url).removesuffix("/v1/") + call.path
    headers = {"Content-Type": "application/json", **call.headers}
    content = call.body if isinstance(call.body, str) else json.dumps(call.body)
    answer = await http.post(url, content=content.encode(), headers=headers)
    is_bug = answer.status_code >= 500 or f'"code":{_INTERNAL_ERROR}' in answer.text.replace(" ", "")
    return f"{answer.status_code} {answer.text}" if is_bug else ""


async def test_no_body_is_answered_by_an_error_of_the_gateway(
    http: httpx.AsyncClient, members: Members, door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    """Any value in place of one of A2A or MCP is an error of the caller. Bodies of other routes: `tests/unit/decoding`."""
    loop = asyncio.get_running_loop()

    @settings(max_examples=_EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(hostile())
    def answered(call: Call) -> None:
        door.clock.advance(timedelta(minutes=1))  # what a key may ask in a minute is not what is tried
        assert asyncio.run_coroutine_threadsafe(_bugs(http, call, caplog), loop).result() == []

    await http.post("/goals", json={"goal": "Count.", "agent": "ada"}, headers={"Idempotency-Key": GOAL})
    async with beside(members.reach_goals()):
        assert [told for call in CALLS if (told := await _wrong_with(http, call))] == []
        await asyncio.to_thread(answered)


@pytest.mark.parametrize("depth", [150, 50_000])
async def test_deeply_nested_body_is_rejected_as_error_of_caller(
    http: httpx.AsyncClient, members: Members, door: Door, caplog: pytest.LogCaptureFixture, depth: int
) -> None:
    """No parser reports an error of the gateway."""
    nested = "[" * depth + "]" * depth
    await http.post("/goals", json={"goal": "Count.", "agent": "ada"}, headers={"Idempotency-Key": GOAL})
    async with beside(members.reach_goals()):
        for call in CALLS:
            door.clock.advance(timedelta(minutes=1))
            body: Any = deepcopy(call.body)
            holder = body.get("params", body)
            holder["x"] = holder["metadata"] = "THERE"
            hostile_call = Call(call.path, json.dumps(body).replace('"THERE"', nested), call.headers)
            assert await _bugs(http, hostile_call, caplog) == [], call.path


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_what_a_caller_wrote_wrong_is_told_the_caller_alone(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, version: str
) -> None:
    """The log of a gateway has no words of users, those that its library finds wrong among them."""
    words = "the patient's name"
    for path, body in (
        ("", {**_RPC, "method": "SendMessage", "params": {"message": words}}),
        ("", {**_RPC, "method": "message/send", "params": {"message": words}}),
        ("", {**_RPC, "method": words}),
        ("", [words]),
        ("/message:send", {"message": words}),
        ("/v1/message:send", {"message": words}),
    ):
        told = await _wrong_with(http, Call(f"/a2a/network{path}", body, {"A2A-Version": version}))
        assert (told, words in caplog.text) == ("", False), path
