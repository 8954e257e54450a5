"""nats-server that does not store durably: it is restarted, since it would never store again by itself."""

from __future__ import annotations

import asyncio
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.wire.embedded_server import STORE, open_nats_server
from ioa.concurrency import beside
from ioa.local.local_system import keep_server
from tests.rig.deadline import eventually

pytestmark = pytest.mark.slow


async def test_nats_server_whose_store_was_removed_is_restarted(tmp_path: Path) -> None:
    """The server acknowledges messages that no file contains; after its restart, acknowledged messages are durable."""
    async with (
        open_nats_server(tmp_path, None) as server,
        beside(keep_server(server, tmp_path, {}, asyncio.Event())),
    ):
        first = server.pid
        await asyncio.to_thread(shutil.rmtree, tmp_path / STORE)
        error = await server.write_error()
        await eventually(lambda: server.pid, lambda pid: pid != first, within=timedelta(seconds=30))
        await eventually(server.write_error, lambda found: found is None)

    assert error == f"the folder {tmp_path / STORE} was removed"
