"""A gateway on a server with credentials: it acts only for the users of its keys."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path

import httpx
import nats.errors
import pytest

from ioa.adapters.nats.stores.api_key_store import NatsApiKeys
from ioa.adapters.nats.stores.webhook_store import NatsWebhooks
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import open_nats_server
from ioa.cli.credentials import authorization_file, create
from ioa.cli.output.terminal import Terminal
from ioa.concurrency import beside
from ioa.hosting.place import listens
from ioa.protocol.ids import UserId
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.runtime.process import StopSignal
from ioa_gateway.__main__ import serve
from ioa_gateway.settings import GatewaySettings
from ioa_groups.__main__ import serve as serve_groups
from tests.integration.gateway.serving import SECRET, key
from tests.rig.deadline import eventually
from tests.rig.hook_receiver import open_receiver

PATIENCE = timedelta(seconds=30)


async def test_goals_by_http_are_those_of_the_keys_user(tmp_path: Path, port: int) -> None:
    """A goal of anna's key is hers, and eve's key cannot cancel it; seats need their own keys; a webhook is called."""
    edit = partial(create, out=tmp_path / "keys", seat=["anna"], admin=["root"], gateway=["gateway"])
    await asyncio.to_thread(edit, Terminal(as_json=True))
    rendered = authorization_file(tmp_path / "keys").read_text(encoding="utf-8")
    seeds = {name: str(tmp_path / "keys" / name / "seed") for name in ("root", "groups", "gateway")}
    stop = StopSignal()
    async with open_nats_server(tmp_path / "nats", None, authorization=rendered) as server:
        groups = serve_groups(ControlPlaneSettings(nats_url=server.url, nats_seed=seeds["groups"]), stop)
        gateway = serve(
            GatewaySettings(
                nats_url=server.url, nats_seed=seeds["gateway"], http_port=port, seats=tmp_path / "keys", webhooks_inside=True
            ),
            stop,
        )
        async with (
            open_receiver() as receiver,
            beside(groups, gateway, stop=stop.set),
            open_connection(NatsSettings(server.url, "root", seed=seeds["root"]), patience=PATIENCE) as root,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/v1", timeout=20, verify=False) as http,
        ):
            await eventually(lambda: listens(f"http://127.0.0.1:{port}"), within=PATIENCE)
            for user in ("anna", "eve"):
                await NatsApiKeys(root).put(key(user).model_copy(update={"user": UserId(user)}))
            anna, eve = ({"Authorization": f"Bearer ioa_{user}_{SECRET}"} for user in ("anna", "eve"))

            async def launch() -> httpx.Response:
                return await http.post("/goals", json={"goal": "Count."}, headers={**anna, "Idempotency-Key": "one"})

            launched = await eventually(launch, lambda told: told.status_code in (200, 201), within=PATIENCE)
            path = f"/goals/{launched.json()['goal_id']}"
            assert launched.json()["user"] == "anna"
            assert [(await http.get(path, headers=one)).status_code for one in (anna, eve)] == [200, 404]
            assert (await http.get(f"{path}?user=anna", headers=eve)).json()["user"] == "anna"
            refused = [await http.post(f"{path}/cancel{whose}", json={}, headers=eve) for whose in ("", "?user=anna")]
            assert [one.status_code for one in refused] == [404, 403]
            made = await http.post("/webhooks", json={"url": receiver.url}, headers=anna)
            assert (made.status_code, (await http.post(f"{path}/cancel", json={}, headers=anna)).status_code) == (201, 202)
            await eventually(
                lambda: [headers["webhook-id"] for headers, _ in receiver.taken] == [f"{path[7:]}-ended"], within=PATIENCE
            )
            seats = [await http.get(f"/seats/{person}", headers=anna) for person in ("anna", "eve")]
            assert [one.status_code for one in seats] == [200, 403]
            assert seats[1].json()["detail"] == "This gateway has no key of human-eve, and cannot speak as eve."
            async with open_connection(NatsSettings(server.url, "gateway", seed=seeds["gateway"])) as intruder:
                assert len([one async for one in NatsWebhooks(intruder).all()]) == 1
                with pytest.raises(nats.errors.Error):
                    await intruder.jetstream().publish("$KV.IOA_API_KEYS.key.mine", b"x", timeout=1)
