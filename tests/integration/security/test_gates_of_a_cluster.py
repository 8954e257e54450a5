"""A cluster of three nats-servers, each with a gate of its own: who floods one of them is kept out of all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from nats.aio.client import Client

from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.inspection import open_inspection
from ioa.adapters.nats.server import ClusterNode, open_nats_server
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.cli.credentials import AUTHORIZATION, FolderSecrets, plan_of
from ioa.hosting.cluster_credentials import make_credentials
from ioa.hosting.gate import Gate
from ioa.local.fork_server import Program
from ioa.protocol import subjects
from ioa.protocol.kept_out import Readmit
from ioa.testing.manual_clock import NEW_YEAR
from ioa_authcallout import withdrawal
from tests.integration.security.secured import (
    Secured,
    flooding,
    include,
    is_refused,
    open_intruder,
    open_processes,
    secured_by,
)
from tests.integration.security.test_third_parties import House, open_callout
from tests.integration.security.town import EVE, USER
from tests.rig.deadline import eventually
from tests.rig.identity_provider import Provider
from tests.rig.nats_cluster import NODES
from tests.rig.ports import held_ports

_SOON = timedelta(seconds=60)


@pytest.mark.slow
async def test_who_floods_one_node_is_kept_out_of_all(tmp_path: Path) -> None:
    """He comes back at another node to no avail, until an admin readmits him; others stay connected, wherever they are."""
    async with AsyncExitStack() as stack:
        nodes = await stack.enter_async_context(_open_nodes(tmp_path))
        await stack.enter_async_context(open_processes(nodes[0], [*map(_gate, nodes), nodes[0].service("registry")]))
        inspection = await stack.enter_async_context(open_inspection(nodes[0].settings("observer"), patience=_SOON))
        await eventually(lambda: inspection.answers("ioa-registry"), within=_SOON)
        users = [await stack.enter_async_context(open_intruder(node, USER)) for node in nodes]
        admin = await stack.enter_async_context(open_intruder(nodes[2], "admin"))
        async with flooding(nodes[1], EVE, "seed", subjects.goal_of(EVE), bytes(10), again_after=0):
            for node in nodes:
                await eventually(lambda: is_refused(node, EVE), within=_SOON)  # noqa: B023
        await NatsSystemClient(admin).readmit(Readmit(name=EVE))
        for node in nodes:
            await eventually(lambda: is_refused(node, EVE), lambda refused: not refused, within=_SOON)  # noqa: B023
        assert [user.stats["reconnects"] for user in users] == [0] * NODES


@pytest.mark.slow
async def test_guests_at_each_node_are_ended_whose_key_is_withdrawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a callout that is connected to one of them; who came by another key stays, at each."""
    monkeypatch.setattr(withdrawal, "SURE_SECONDS", 0.5)
    async with AsyncExitStack() as stack:
        nodes = await stack.enter_async_context(_open_nodes(tmp_path, callout=True))
        house = House(Provider("https://id.example.com"), nodes[0])
        house.provider.keys["k2"] = ec.generate_private_key(ec.SECP256R1())
        before, after = tmp_path / "before.json", tmp_path / "after.json"
        before.write_text(json.dumps(house.provider.answer("/keys")))
        left = Provider(keys={"k2": house.provider.keys["k2"]})
        after.write_text(json.dumps(left.answer("/keys")))
        guests: dict[str, list[Client]] = {"k1": [], "k2": []}
        async with open_callout(house, before):
            for key, clients in guests.items():
                token = house.provider.token({"role": "user", "name": "bob"}, key_id=key)
                for node in nodes:
                    settings = NatsSettings(node.server.url, "guest", token=token)
                    clients.append(await stack.enter_async_context(open_connection(settings, patience=_SOON)))
        async with open_callout(house, after):
            await eventually(lambda: [one.is_connected for one in guests["k1"]], lambda are: not any(are), within=_SOON)
            assert [one.stats["reconnects"] for one in guests["k2"]] == [0] * NODES


@asynccontextmanager
async def _open_nodes(folder: Path, *, callout: bool = False) -> AsyncIterator[Sequence[Secured]]:
    """Run the servers, of which each includes what its gate writes."""
    credentials = folder / "credentials"
    plan = plan_of([], [USER, EVE], ["observer"], ["admin"], [], callout=callout)
    await asyncio.to_thread(make_credentials, plan, FolderSecrets(credentials), NEW_YEAR)
    async with AsyncExitStack() as stack:
        nodes, ports = list[Secured](), stack.enter_context(held_ports(NODES))
        for number, port in enumerate(ports):
            node, let_in = ClusterNode(f"n{number}", "ioa", port, ports), _let_in(folder, number)
            await (await asyncio.to_thread(Gate, credentials / AUTHORIZATION / "authorization.conf", let_in)).write(frozenset())
            allowed = await asyncio.to_thread(let_in.read_text)
            server = await stack.enter_async_context(
                open_nats_server(folder / f"n{number}", None, node=node, authorization=allowed)
            )
            nodes.append(secured_by(server, credentials, folder / "logs"))
            await asyncio.to_thread(include, nodes[-1], let_in)
        yield nodes


def _let_in(folder: Path, number: int) -> Path:
    return folder / f"gate-{number}" / "let-in.conf"


def _gate(node: Secured) -> Program:
    name = node.server.log_path.parent.name
    gate = node.gate()
    let_in = {"IOA_GATE_LET_IN": str(_let_in(node.folder.parent, int(name[1:]))), "IOA_NATS_URL": node.server.url}
    return replace(gate, name=f"{gate.name}_{name}", env={**(gate.env or {}), **let_in})
