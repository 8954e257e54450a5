"""The process of a gateway: an outage of NATS, and the first key."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import httpx
from structlog.testing import capture_logs

from ioa.adapters.nats.stores.api_key_store import NatsApiKeys
from ioa.adapters.nats.streams.topology import Topology
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import open_nats_server
from ioa.concurrency import beside
from ioa.hosting.place import listens
from ioa.runtime.process import StopSignal
from ioa_gateway.__main__ import serve
from ioa_gateway.settings import GatewaySettings
from tests.integration.gateway.serving import BEARER, key
from tests.rig.deadline import eventually
from tests.rig.reads import open_read_service


async def test_gateway_recovers_from_an_outage_of_nats(tmp_path: Path, port: int) -> None:
    """Without NATS a request is rejected with 503 within 3 s; when NATS is back, requests succeed again."""
    async with open_nats_server(tmp_path, None) as server, open_connection(NatsSettings(server.url, "test")) as client:
        await Topology().ensure(client.jetstream())
        await NatsApiKeys(client).put(key())
        stop = StopSignal()
        async with (
            open_read_service(client),
            beside(serve(GatewaySettings(nats_url=server.url, http_port=port), stop), stop=stop.set),
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/v1", headers=BEARER, verify=False) as http,
        ):

            async def status() -> int:
                try:
                    return (await http.get("/goals", timeout=3)).status_code
                except httpx.TransportError:
                    return 0

            assert await eventually(status, lambda told: told == 200) == 200
            await server.stop()
            assert await eventually(status, lambda told: told != 200, within=timedelta(seconds=3)) == 503
            await server.start()
            assert await eventually(status, lambda told: told == 200) == 200


async def test_public_port_is_opened_after_the_first_key(tmp_path: Path, port: int) -> None:
    """An address that other machines reach is not served before there is a key."""
    stop = StopSignal()
    async with open_nats_server(tmp_path, None) as server, open_connection(NatsSettings(server.url, "test")) as client:
        await Topology().ensure(client.jetstream())
        settings = GatewaySettings(nats_url=server.url, http_port=port, http_address="*")
        with capture_logs() as logs:
            async with beside(serve(settings, stop), stop=stop.set):
                await eventually(lambda: any(line["event"] == "no_key_yet" for line in logs))
                assert not await listens(f"http://127.0.0.1:{port}")
                await NatsApiKeys(client).put(key())
                assert await eventually(lambda: listens(f"http://127.0.0.1:{port}"))
