"""Authentication by keys and by sessions of browsers, until the key ends."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from datetime import timedelta

import httpx
import pytest

from ioa.errors import UnauthenticatedError
from ioa.protocol.operation.api_keys import KeyId, LoginToken, digest_of_secret, written_key
from ioa_gateway.auth import Keyring
from ioa_gateway.key_limits import MAX_REQUESTS
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import Members
from tests.integration.gateway.serving import ROUTES, SECRET, Door, key, open_gateway, root, sign_in
from tests.rig.deadline import eventually

PAGE = {"Sec-Fetch-Site": "same-origin"}
ORDER = {"goal": "Count to ten.", "agent": "ada"}
_OF_MCP = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


def bearer(key_id: str, secret: str = SECRET) -> dict[str, str]:
    """Return the header with a key."""
    return {"Authorization": f"Bearer {written_key(KeyId(key_id), secret)}"}


async def revoke(http: httpx.AsyncClient, door: Door, key_id: str) -> None:
    """Revoke a key, and wait until it is rejected."""
    await door.keys.remove(KeyId(key_id))
    await eventually(lambda: http.get("/goals", headers=bearer(key_id)), lambda answer: answer.status_code == 401)


async def test_request_without_valid_key_is_rejected(http: httpx.AsyncClient, door: Door) -> None:
    """No key, a malformed key, a wrong secret, and an expired key."""
    await door.keys.put(key("old", expires_at=door.clock.now()))
    shown = ["", "Bearer", "Basic eDp5", "Bearer ioa_web", "Bearer ioa_we.b_x", "Bearer ioa_none_x"]
    wrong = [*({"Authorization": one} for one in shown), bearer("web", "wrong"), bearer("old")]
    assert [(await http.get("/goals", headers=headers)).status_code for headers in wrong] == [401] * len(wrong)
    refused = await http.get("/goals", headers=bearer("web", "wrong"))
    assert (refused.headers["www-authenticate"], SECRET in refused.text, "wrong" in refused.text) == ("Bearer", False, False)


async def test_new_key_is_accepted_at_once(http: httpx.AsyncClient, door: Door) -> None:
    """The keys are read again, although an unknown key was rejected just before."""
    refused = (await http.get("/goals", headers=bearer("new"))).status_code
    await door.keys.put(key("new"))
    assert (refused, (await http.get("/goals", headers=bearer("new"))).status_code) == (401, 200)


async def test_key_with_too_many_open_requests_is_rejected_with_retry_after(http: httpx.AsyncClient, door: Door) -> None:
    """By every protocol; another key is not affected, and the end of requests makes room."""
    await door.keys.put(key("busy"))
    paths = [f"{root(http)}/{path}" for path in ("v1/goals", "a2a/network/tasks", "mcp")]
    with ExitStack() as held:
        for _ in range(MAX_REQUESTS):
            held.enter_context(door.limits.request("busy"))
        rejected = [await http.get(path, headers=bearer("busy")) for path in paths]
        assert [(one.status_code, one.headers.get("retry-after")) for one in rejected] == [(429, "1")] * 3
        assert (await http.get("/goals")).status_code == 200
    assert (await http.get("/goals", headers=bearer("busy"))).status_code == 200


async def test_revoked_key_ends_waiting_requests_of_each_protocol(http: httpx.AsyncClient, door: Door, members: Members) -> None:
    """Streams are aborted, and other requests that wait for a goal report the revocation long before their timeout."""
    await door.keys.put(key("thief"))
    goal_id = (await http.post("/goals", json=ORDER)).json()["goal_id"]
    await members.launch(goal_id)
    tool = {"name": "wait", "arguments": {"goal_id": goal_id, "seconds": 50}}
    message = {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "Count."}]}}
    a2a, version = f"{root(http)}/a2a/agents/ada", {"A2A-Version": "1.0"}
    chat = {"model": "ada", "stream": True, "messages": [{"role": "user", "content": "Count."}]}
    revoked = "This key was revoked"
    aborted = "incomplete chunked read"
    requests: list[tuple[str, str, Mapping[str, object] | None, Mapping[str, str], str]] = [
        ("GET", "/events?list=true", None, {}, aborted),
        ("GET", f"/goals/{goal_id}/events", None, {}, aborted),
        ("GET", f"/goals/{goal_id}/result?wait=50", None, {}, revoked),
        ("POST", f"{root(http)}/mcp", _rpc("tools/call", tool), _OF_MCP, aborted),
        ("POST", a2a, _rpc("SendMessage", message), version, revoked),
        ("POST", f"{a2a}/message:send", message, version, revoked),
        ("POST", "/chat/completions", chat, {}, aborted),
    ]

    async def respond(method: str, path: str, body: Mapping[str, object] | None, heads: Mapping[str, str]) -> str:
        try:
            return (await http.request(method, path, json=body, headers={**heads, **bearer("thief")})).text
        except httpx.RemoteProtocolError as error:
            return str(error)

    async with asyncio.timeout(15), asyncio.TaskGroup() as group:
        waiting = [group.create_task(respond(method, path, body, heads)) for method, path, body, heads, _ in requests]
        await eventually(lambda: door.limits.running["thief"] == len(waiting))
        await revoke(http, door, "thief")
    for (_, path, _, _, words), answer in zip(requests, [one.result() for one in waiting], strict=True):
        assert words in answer or revoked in answer, (path, answer)


def _rpc(method: str, params: object) -> Mapping[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def test_body_that_ends_after_the_revocation_of_its_key_is_rejected(
    http: httpx.AsyncClient, door: Door, plane: Plane, members: Members
) -> None:
    """On each route that reads a body, and by MCP and A2A: a stolen key starts nothing after its revocation."""
    await door.keys.put(key("thief"))
    with_body = [(one.method, root(http) + one.path) for one in ROUTES if one.needs_key and one.has_body]
    with_body += [("POST", f"{root(http)}/{path}") for path in ("mcp", "a2a/network", "a2a/network/message:send")]
    heads = {"Content-Type": "application/json", "A2A-Version": "1.0", **_OF_MCP, **bearer("thief")}
    revoked = asyncio.Event()

    async def send(method: str, path: str) -> int:
        async def parts() -> AsyncIterator[bytes]:
            yield json.dumps(ORDER).encode()[:-1]
            await revoked.wait()
            yield b"}"

        return (await http.request(method, re.sub(r"\{\w+\}", "ada", path), content=parts(), headers=heads)).status_code

    async with asyncio.TaskGroup() as group:
        sending = {route: group.create_task(send(*route)) for route in with_body}
        await eventually(lambda: door.limits.running["thief"] == len(sending))
        await revoke(http, door, "thief")
        revoked.set()
    assert {route: one.result() for route, one in sending.items()} == dict.fromkeys(with_body, 401)
    assert ((await http.get("/goals")).json()["goals"], (await plane.client.stored()).owners) == ([], ())


async def test_request_that_ends_slowly_after_a_revocation_does_not_stop_reads_of_keys(door: Door) -> None:
    """The keys are read several times while the cancelled request still cleans up."""
    await door.keys.put(key("thief"))
    keyring, begun, ends = Keyring(door.keys, door.clock.now), asyncio.Event(), asyncio.Event()
    caller = await keyring.holder_of(written_key(KeyId("thief"), SECRET))

    async def serve() -> None:
        async with keyring.cancel_on_revocation(caller):
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                begun.clear()
                await ends.wait()

    request = asyncio.create_task(serve())
    await begun.wait()
    await door.keys.remove(KeyId("thief"))
    await keyring.read()
    await eventually(lambda: begun, lambda waiting: not waiting.is_set())
    await keyring.read()
    ends.set()
    with pytest.raises(UnauthenticatedError):
        await request


async def test_session_is_limited_to_the_page_and_its_lifetime(http: httpx.AsyncClient, door: Door, members: Members) -> None:
    """Scripts cannot read the cookie; only pages of the gateway can change something with it; forged cookies are rejected."""
    begun = await http.post("/session", json={"key": written_key(KeyId("web"), SECRET)})
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(begun.headers["set-cookie"].split("; "))
    del http.headers["authorization"]
    origins = [PAGE, {"Origin": root(http)}, {}, {"Sec-Fetch-Site": "same-site"}]  # over plain HTTP a browser sends only the origin
    posted = [(await http.post("/goals", json=ORDER, headers=headers)).status_code for headers in origins]
    assert (posted, (await http.get("/goals")).status_code) == ([201, 201, 403, 403], 200)
    cookie = http.cookies["ioa_session"]
    key_id, until, signature = cookie.split(".")
    forged = [cookie.replace("web", "wob"), f"{key_id}.{until}9.{signature}", f"{key_id}.{until}.\u00e4", "..", "web"]
    http.cookies.clear()
    for one in forged:
        assert (await http.get("/goals", headers=[(b"cookie", f"ioa_session={one}".encode())])).status_code == 401
    door.clock.advance(timedelta(hours=12))
    assert (await http.get("/goals", headers={"Cookie": f"ioa_session={cookie}"})).status_code == 401


async def test_signing_out_deletes_the_cookie(http: httpx.AsyncClient) -> None:
    """A session is not stored, so only this browser is signed out."""
    del http.headers["authorization"]
    await sign_in(http)
    ended = await http.delete("/session")
    assert (ended.status_code, dict(http.cookies), (await http.get("/goals")).status_code) == (204, {}, 401)


async def test_session_ends_with_the_run_of_its_system(door: Door, plane: Plane) -> None:
    """Another user may have had the port in the meantime, and received the cookie. A restart of the gateway keeps sessions."""
    async with open_gateway(plane, door, "first") as begun:
        sent = {"Cookie": f"ioa_session={await sign_in(begun)}"}
    told = []
    for run in ("first", "second", "fir", ""):
        async with open_gateway(plane, door, run) as http:
            del http.headers["authorization"]
            told += [(await http.get(path, headers=sent)).status_code for path in ("/goals", "/session")]
    assert told == [200, 200, *[401, 204] * 3]


async def test_ending_all_sessions_ends_streams_and_keeps_keys(http: httpx.AsyncClient, door: Door, members: Members) -> None:
    """Earlier cookies are rejected, and their streams end; a key begins a new session."""
    by_key = http.headers.pop("authorization")
    cookie = await sign_in(http)
    async with http.stream("GET", "/events?list=true") as stream:
        before = (await http.get("/goals")).status_code
        await door.keys.end_sessions()
        async with asyncio.timeout(10):
            with pytest.raises(httpx.RemoteProtocolError):
                await stream.aread()
    ended = await eventually(lambda: http.get("/goals"), lambda answer: answer.status_code == 401)
    assert (before, "session is over" in ended.json()["detail"]) == (200, True)
    assert (await http.get("/goals", headers={"Authorization": by_key})).status_code == 200
    again = await sign_in(http)
    assert (again != cookie, (await http.get("/goals")).status_code) == (True, 200)


async def test_token_begins_one_session(http: httpx.AsyncClient, door: Door) -> None:
    """A token is valid once, until it expires."""
    for name, after in (("good", timedelta(minutes=1)), ("late", timedelta(0))):
        expires_at = door.clock.now() + after
        await door.keys.put_token(LoginToken(digest=digest_of_secret(name), key_id=KeyId("web"), expires_at=expires_at))
    told = [(await http.post("/session", json={"token": one})).status_code for one in ("good", "good", "late", "none")]
    assert told == [200, 401, 401, 401]
    assert [(await http.post("/session", json=one)).status_code for one in ({}, {"key": "a", "token": "b"})] == [422, 422]
