"""Run one replica of the gateway: `python -m ioa_gateway`. It keeps nothing, so that any replica serves anybody."""

from __future__ import annotations

from functools import partial

import structlog

from ioa.adapters.nats.connection import open_connection
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.errors import InvalidInputError
from ioa.protocol.api_keys import Scope
from ioa.runtime.process import StopSignal, run_process
from ioa.telemetry import readiness
from ioa_gateway.app import create_app
from ioa_gateway.callers import Caller
from ioa_gateway.guard import Guard
from ioa_gateway.reach import Reach
from ioa_gateway.rooms import open_rooms
from ioa_gateway.server import bound, open_server
from ioa_gateway.settings import GatewaySettings

_log = structlog.get_logger(__name__)


async def serve(settings: GatewaySettings, stop: StopSignal) -> None:
    """Answer until `stop` is set."""
    if not settings.is_loopback:
        raise InvalidInputError(
            f"There is no key, so that {settings.http_address} would let in anybody.", hint="Leave out IOA_HTTP_ADDRESS."
        )
    with bound(settings.http_address, settings.http_port) as listening:
        port = listening.getsockname()[1]
        hosts = settings.hosts(port)
        async with open_connection(settings.nats("ioa-gateway")) as connection:
            everybody = NatsSystemClient(connection)
            async with open_rooms(everybody, lambda _caller: True) as rooms:
                with readiness.needs("NATS", lambda: connection.is_connected):
                    reach = Reach(rooms, partial(NatsSystemClient, connection), lambda: connection.is_connected)
                    anybody = Caller("local", await everybody.user(), frozenset(Scope))

                    async def let_in(_request: object) -> Caller:
                        return anybody

                    async with open_server(create_app(reach, let_in, partial(Guard, hosts=hosts)), listening):
                        _log.info("http_served", port=port)
                        await stop.wait()
                        rooms.close()


if __name__ == "__main__":
    run_process(GatewaySettings, serve)
