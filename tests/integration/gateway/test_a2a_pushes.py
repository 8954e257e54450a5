"""Push notifications of A2A: a task is sent to a URL, with the client's token, until it has ended."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from a2a.client import A2AClientError, Client
from a2a.types import (
    AuthenticationInfo,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    SendMessageRequest,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError

from ioa.adapters.nats.stores.api_key_store import NatsApiKeys
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.concurrency import beside
from ioa.hosting.place import listens
from ioa.protocol.ids import GoalId, PoolId
from ioa.protocol.messages import AskUser, Discussion
from ioa.protocol.operation.api_keys import KeyId, Scope
from ioa.runtime.process import StopSignal
from ioa_gateway.__main__ import serve
from ioa_gateway.settings import GatewaySettings
from ioa_testkit.planes import Plane, open_plane
from tests.contract.system_client.members import ADA, BOB, Members
from tests.integration.gateway.serving import BEARER, Door, key
from tests.integration.gateway.test_a2a import BINDINGS, asking, sent, speaking
from tests.integration.gateway.test_keys import bearer
from tests.integration.gateway.test_webhooks import OUTSIDE
from tests.rig.deadline import eventually
from tests.rig.hook_receiver import Receiver, open_receiver


def _pushing(url: str, **config: Any) -> SendMessageRequest:
    request = asking(waits=False)
    request.configuration.task_push_notification_config.CopyFrom(TaskPushNotificationConfig(url=url, **config))
    return request


@BINDINGS
async def test_task_is_pushed_to_its_end(nats_url: str, port: int, binding: str, version: str) -> None:
    """A URL receives the task when it needs input and when it ends; then the configuration is removed."""
    stop = StopSignal()
    async with open_plane(nats_url) as plane, open_receiver() as receiver:
        members, url = Members(plane), f"http://127.0.0.1:{port}"
        settings = GatewaySettings(nats_url=plane.url or "", http_port=port, webhooks_inside=True)
        async with (
            beside(plane.network.take_goals(ADA, PoolId(ADA), members.given, max_concurrent=8, anybodys=False)),
            beside(serve(settings, stop), stop=stop.set),
            open_connection(NatsSettings(plane.url or "", "test")) as keys,
            httpx.AsyncClient(base_url=f"{url}/v1/", headers=BEARER, verify=False) as http,
        ):
            await NatsApiKeys(keys).put(key())
            await members.register(ADA, BOB)
            await eventually(lambda: listens(url))
            async with speaking(http, binding=binding, version=version) as client:
                shown = AuthenticationInfo(scheme="Bearer", credentials="receiver's own")
                task = await sent(client, _pushing(receiver.url, token="t0k", authentication=shown))
                room = (await members.launch(GoalId(task.id))).state.comm_id
                until = datetime.now(UTC) + timedelta(minutes=5)
                await members.say(ADA, AskUser(text="In which language?", options=(), default="English", until=until), room)
                await eventually(lambda: "input-required" in _states(receiver))
                await sent(client, asking("m2", "Danish", task_id=task.id, waits=False))
                await members.say(ADA, Discussion(content="One?", next_speaker=BOB), room)
                await members.conclude(BOB, "Ten.", room)
                await eventually(lambda: "completed" in _states(receiver))
                await eventually(lambda: http.get("webhooks"), lambda told: told.json() == {"webhooks": []})
    for headers, body in receiver.taken:
        assert (headers["x-a2a-notification-token"], headers["authorization"]) == ("t0k", "Bearer receiver's own")
        assert ("status" in json.loads(body)) == (version == "0.3")
        assert b"One?" not in body
    [last] = [_task(body) for headers, body in receiver.taken if headers["webhook-id"] == f"{task.id}-ended"]
    assert (last["id"], [one["name"] for one in last["artifacts"]]) == (task.id, ["conclusion"])


def _task(body: bytes) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(body)
    return dict(told.get("task", told))


def _states(receiver: Receiver) -> list[str]:
    return [_task(body)["status"]["state"].removeprefix("TASK_STATE_").replace("_", "-").lower() for _, body in receiver.taken]


async def _listed(client: Client, task_id: str) -> list[str]:
    found = await client.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=task_id))
    return sorted(one.id for one in found.configs)


@pytest.mark.parametrize(("binding", "version"), [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")])
async def test_push_configuration_is_kept_until_it_is_removed(
    http: httpx.AsyncClient, members: Members, binding: str, version: str
) -> None:
    """A configuration replaces one with the same id, and answers contain no credentials (PUSH-CREATE, -GET, -LIST, -DEL)."""
    async with speaking(http, binding=binding, version=version) as client:
        task = await sent(client, asking(waits=False))
        shown = AuthenticationInfo(scheme="Basic", credentials="c2VjcmV0")
        for one in ("a", "b", "a"):
            config = TaskPushNotificationConfig(task_id=task.id, id=one, url=OUTSIDE, token="t", authentication=shown)
            made = await client.create_task_push_notification_config(config)
            assert (made.id, made.task_id, made.url, made.token) == (one, task.id, OUTSIDE, "t")
            assert "c2VjcmV0" not in str(made)
        found = await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(task_id=task.id, id="b"))
        assert (found.id, found.authentication.scheme, await _listed(client, task.id)) == ("b", "Basic", ["a", "b"])
        for _ in range(2):
            await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="b"))
        assert await _listed(client, task.id) == ["a"]
        with pytest.raises(TaskNotFoundError):
            await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(task_id=task.id, id="b"))
        hooks = (await http.get("/webhooks")).json()["webhooks"]
        assert [(one["goal_id"], one["url"]) for one in hooks] == [(task.id, OUTSIDE)]


@asynccontextmanager
async def _client_of(http: httpx.AsyncClient, key_id: str) -> AsyncIterator[Client]:
    http.headers.update(bearer(key_id))
    async with speaking(http) as client:
        yield client


async def test_push_configurations_of_keys_are_separate(http: httpx.AsyncClient, members: Members, door: Door) -> None:
    """A key that reads the same task has its own configurations under the same ids, and sees no others."""
    await door.keys.put(key("acme").model_copy(update={"labels": {"team": "acme"}}))
    async with _client_of(http, "acme") as client:
        task = await sent(client, asking(waits=False))
    for name in ("web", "acme"):
        async with _client_of(http, name) as client:
            config = TaskPushNotificationConfig(task_id=task.id, id="a", url=f"{OUTSIDE}/{name}", token="t0k")
            await client.create_task_push_notification_config(config)
    for name in ("web", "acme"):
        async with _client_of(http, name) as client:
            found = await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(task_id=task.id, id="a"))
            assert (found.url, found.token, await _listed(client, task.id)) == (f"{OUTSIDE}/{name}", "t0k", ["a"])


async def test_invalid_push_configuration_starts_no_task(
    http: httpx.AsyncClient, members: Members, plane: Plane, door: Door
) -> None:
    """Private addresses, invalid tokens, and keys without `webhooks:write` are rejected before a goal is launched."""
    await door.keys.put(key("plain", Scope.GOALS_READ, Scope.GOALS_WRITE, Scope.AGENTS_READ))
    async with speaking(http) as client:
        nowhere = _pushing("https://no..name/hook")
        inside, of_files = _pushing("http://169.254.169.254/"), _pushing("file:///etc")
        for wrong in (nowhere, inside, of_files, _pushing(OUTSIDE, token="a\r\nHost: b")):
            with pytest.raises(InvalidParamsError):
                await sent(client, wrong)
        http.headers.update(bearer("plain"))
    assert KeyId("plain") in {one.key_id for one in await door.keys.keys()}
    async with speaking(http) as client:
        with pytest.raises(A2AClientError, match="403"):
            await sent(client, _pushing(OUTSIDE))
    assert list((await plane.client.goals()).goals) == []
