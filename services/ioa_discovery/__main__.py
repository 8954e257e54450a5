"""Run one replica of discovery: `python -m ioa_discovery`."""

from __future__ import annotations

from functools import partial

from ioa.adapters.nats.wire.connection import open_connection
from ioa.runtime.control_plane import open_topology
from ioa.runtime.process import StopSignal, run_process
from ioa_discovery.answering import open_answering
from ioa_discovery.engines import open_engines
from ioa_discovery.settings import DiscoverySettings
from ioa_discovery.terms import english_stem


async def serve(settings: DiscoverySettings, stop: StopSignal) -> None:
    """Answer searches until `stop` is set."""
    async with (
        open_connection(settings.nats("ioa-discovery")) as client,
        open_topology(client, settings, make=False),
        open_answering(client, settings, partial(open_engines, settings), english_stem),
    ):
        await stop.wait()


if __name__ == "__main__":
    run_process(DiscoverySettings, serve)
