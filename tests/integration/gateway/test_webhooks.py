"""Webhooks: made by HTTP, and told from a nats-server by gateways that come and go."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from nats.aio.client import Client
from standardwebhooks import Webhook

from ioa.adapters.nats.delivery.nats_delivery import NatsResults
from ioa.adapters.nats.stores.api_key_store import NatsApiKeys
from ioa.adapters.nats.streams.topology import Topology
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import open_nats_server
from ioa.concurrency import beside
from ioa.hosting.place import listens
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import LOCAL, CommId, GoalId
from ioa.protocol.messages import AskUser
from ioa.runtime.process import StopSignal
from ioa.testing.manual_clock import NEW_YEAR
from ioa_gateway.__main__ import serve
from ioa_gateway.caller import Caller
from ioa_gateway.settings import GatewaySettings
from ioa_gateway.webhooks.webhook_service import WebhookService
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, Members
from tests.integration.gateway.serving import BEARER, Door, key
from tests.integration.gateway.test_keys import bearer
from tests.rig.deadline import eventually
from tests.rig.hook_receiver import open_receiver
from tests.rig.ports import held_ports
from tests.rig.reads import open_read_service

OUTSIDE = "https://93.184.215.14/hook"


@dataclass
class Served:
    """Gateways on a nats-server, and how to call the first of them."""

    nats: Client
    http: httpx.AsyncClient


@asynccontextmanager
async def open_served(folder: Path, replicas: int) -> AsyncIterator[tuple[Served, Callable[[], GatewaySettings]]]:
    """Serve gateways whose webhooks may lead inside, and yield what is needed to start more of them."""
    async with (
        AsyncExitStack() as ports,
        open_nats_server(folder, None) as server,
        open_connection(NatsSettings(server.url, "test")) as client,
    ):
        await Topology().ensure(client.jetstream())
        await ports.enter_async_context(open_read_service(client))
        await NatsApiKeys(client).put(key())

        def settings() -> GatewaySettings:
            [port] = ports.enter_context(held_ports(1))
            return GatewaySettings(nats_url=server.url, http_port=port, webhooks_inside=True)

        started, stop = [settings() for _ in range(replicas)], StopSignal()
        url = f"http://127.0.0.1:{started[0].http_port if started else 1}"
        async with (
            beside(*(serve(one, stop) for one in started), stop.wait(), stop=stop.set),
            httpx.AsyncClient(base_url=f"{url}/v1", headers=BEARER, verify=False) as http,
        ):
            if started:
                await eventually(lambda: listens(url))
            yield Served(client, http), settings


def ended(goal_id: str) -> GoalResult:
    """How a goal ended."""
    return GoalResult(
        goal_id=GoalId(goal_id),
        user=LOCAL,
        reason=Reason.CONCLUDED,
        content="Ten.",
        comm_id=CommId(f"g{goal_id}"),
        turns=3,
        finished_at=NEW_YEAR,
    )


async def test_webhook_is_made_listed_and_removed(http: httpx.AsyncClient, door: Door) -> None:
    """Its secret is returned once. Other keys of the user see the host, since a path can be a secret; other users see nothing."""
    inside = await http.post("/webhooks", json={"url": "http://169.254.169.254/latest/meta-data"})
    assert (inside.status_code, inside.json()["type"]) == (422, "urn:ioa:error:invalid_input")
    url = "https://93.184.215.14:8443/services/T0/s3cret?k=s3cret"
    made = await http.post("/webhooks", json={"url": url, "labels": {"team": "x"}, "events": ["ended", "asked"]})
    assert (made.status_code, made.json()["secret"][:6], made.json()["url"]) == (201, "whsec_", url)
    document = {name: value for name, value in made.json().items() if name != "secret"}
    path = f"/webhooks/{document['webhook_id']}"
    await door.keys.put(key("other", "webhooks:write", "goals:read"))
    await door.keys.put(key("eve").model_copy(update={"user": "eve"}))
    for name, shown in (("web", document), ("other", {**document, "url": "https://93.184.215.14:8443"})):
        assert (await http.get("/webhooks", headers=bearer(name))).json() == {"webhooks": [shown]}
        assert (await http.get(path, headers=bearer(name))).json() == shown
    requests = (("GET", "eve"), ("DELETE", "eve"), ("DELETE", "other"), ("DELETE", "web"))
    assert [(await http.request(one, path, headers=bearer(name))).status_code for one, name in requests] == [404, 404, 204, 404]


async def test_webhook_above_the_limit_of_its_key_is_rejected(
    http: httpx.AsyncClient, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another key of the user has its own limit. Labels of the key count as labels."""
    await door.keys.put(key("team").model_copy(update={"labels": {"team": "x"}}))
    monkeypatch.setattr("ioa_gateway.api.webhook_routes.MOST", 3)
    assert [(await http.post("/webhooks", json={"url": OUTSIDE})).status_code for _ in range(4)] == [201, 201, 201, 409]
    labels = {f"l{number}": "v" for number in range(16)}
    orders = ({"url": OUTSIDE}, {"url": OUTSIDE, "labels": labels})
    assert [(await http.post("/webhooks", json=one, headers=bearer("team"))).status_code for one in orders] == [201, 422]


async def test_webhook_of_an_ended_goal_is_notified_at_once(
    http: httpx.AsyncClient, door: Door, members: Members, plane: Plane
) -> None:
    """The goal was cancelled, or was rejected and has no labels."""
    goal_id = (await http.post("/goals", json={"goal": "Count.", "agent": "ada"})).json()["goal_id"]
    await members.launch(goal_id)
    await http.post(f"/goals/{goal_id}/cancel", json={})
    await plane.client.submit(GoalOrder(goal="x", goal_id=GoalId("rejected"), team="nobody"))
    for ended_id in (goal_id, "rejected"):
        await eventually(partial(http.get, f"/goals/{ended_id}/result"), lambda answer: answer.status_code == 200)
    filters = ({"goal_id": goal_id}, {"goal_id": "rejected"}, {"goal_id": "rejected", "labels": {"team": "x"}}, {"goal_id": "none"})
    assert [(await http.post("/webhooks", json={"url": OUTSIDE, **one})).status_code for one in filters] == [201] * 4
    notices = [(notice.goal_id, notice.message_id) for notice in await door.notices()]
    assert notices == [(goal_id, f"{goal_id}-ended"), ("rejected", "rejected-ended")]


async def test_open_question_is_noted_once_for_its_webhook(
    http: httpx.AsyncClient, door: Door, members: Members, plane: Plane
) -> None:
    """By two gateways. A webhook of another event or goal is not notified."""
    for order in ({"events": ["asked"]}, {"events": ["ended"]}, {"events": ["asked"], "labels": {"team": "x"}}):
        assert (await http.post("/webhooks", json={"url": OUTSIDE, **order})).status_code == 201
    goal_id = (await http.post("/goals", json={"goal": "Count.", "agent": "ada"})).json()["goal_id"]
    room = (await members.launch(goal_id)).state.comm_id
    until = datetime.now(UTC) + timedelta(minutes=5)
    await members.say(ADA, AskUser(text="From zero?", options=("yes", "no"), default="no", until=until), room)
    unused: Any = None
    service = WebhookService(door.hooks, plane.client, unused, unused, lambda _: Caller("web", LOCAL, ()), lambda: NEW_YEAR, print)
    async with beside(service.follow_items(), replace(service, _noted=set()).follow_items()):
        await eventually(door.notices, bool)
        await asyncio.sleep(2)
    [asked] = (await http.get("/questions")).json()["questions"]
    assert [(one.event, one.goal_id, one.item) for one in await door.notices()] == [("asked", goal_id, asked["item"])]


async def test_each_webhook_is_told_what_it_asked_for(tmp_path: Path) -> None:
    """By two gateways, once each, in a form that the public library verifies; a failure is made good, and 410 ends it."""
    async with open_receiver(500) as receiver, open_receiver(410) as gone, open_served(tmp_path, replicas=2) as (served, _):
        await NatsResults(served.nats).publish(ended("before"))
        made = (await served.http.post("/webhooks", json={"url": receiver.url})).json()
        left = (await served.http.post("/webhooks", json={"url": gone.url})).json()
        await NatsResults(served.nats).publish(ended("goal-1"))
        await eventually(lambda: len(receiver.taken) >= 2)
        first, *_ = [one for one in receiver.taken if one[0]["webhook-id"] == "goal-1-ended"]
        data: dict[str, Any] = Webhook(made["secret"]).verify(first[1], first[0])["data"]
        assert (data["goal_id"], data["result"]["content"], "before" in str(receiver.taken)) == ("goal-1", "Ten.", False)
        ids = [headers["webhook-id"] for headers, _ in receiver.taken]
        assert len(ids) - len(set(ids)) == 1, "one was refused, and came again"
        assert {json.loads(body)["type"] for _, body in receiver.taken} == {"goal.ended"}
        await eventually(lambda: served.http.get(f"/webhooks/{left['webhook_id']}"), lambda answer: answer.status_code == 404)
        assert len(gone.taken) == 1


@pytest.mark.faults
async def test_killed_gateways_lose_nothing(tmp_path: Path) -> None:
    """A gateway dies while it tells of an end, and before it has seen the next one: another tells of both, each by its one id."""
    async with open_receiver(0) as receiver, open_served(tmp_path, replicas=0) as (served, settings):
        first = settings()
        env = {"IOA_NATS_URL": first.nats_url, "IOA_HTTP_PORT": str(first.http_port), "IOA_WEBHOOKS_INSIDE": "true"}
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "ioa_gateway", env={**os.environ, **env})
        base = f"http://127.0.0.1:{first.http_port}"
        await eventually(lambda: listens(base), within=timedelta(seconds=30))
        async with httpx.AsyncClient(base_url=f"{base}/v1", headers=BEARER, verify=False) as http:
            assert (await http.post("/webhooks", json={"url": receiver.url})).status_code == 201
        results = NatsResults(served.nats)
        await results.publish(ended("one"))
        await eventually(lambda: len(receiver.taken) == 1)
        process.kill()
        await process.wait()
        await results.publish(ended("two"))
        stop = StopSignal()
        async with beside(serve(settings(), stop), stop=stop.set):
            await eventually(lambda: len(receiver.taken) == 3, within=timedelta(seconds=40))
        ids = [headers["webhook-id"] for headers, _ in receiver.taken]
        assert sorted(ids) == ["one-ended"] * 2 + ["two-ended"]
        assert len({body for headers, body in receiver.taken if headers["webhook-id"] == "one-ended"}) == 1
