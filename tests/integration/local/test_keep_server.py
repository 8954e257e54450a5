"""nats-server that does not store durably: it is restarted, since it would never store again by itself."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import nats.errors
import pytest
from nats.js import JetStreamContext

from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import STORE, open_nats_server
from ioa.concurrency import beside
from ioa.local.system import keep_server
from tests.rig.deadline import eventually
from tests.rig.small_volume import SmallVolume, open_small_volume

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")]


@pytest.fixture
async def volume(tmp_path: Path) -> AsyncIterator[SmallVolume]:
    """A disk with room for 32 MiB."""
    async with open_small_volume(tmp_path / "volume", size_bytes=32 * 1024 * 1024) as volume:
        yield volume


async def _stores(js: JetStreamContext) -> bool:
    try:
        await js.publish("kept.a", b"x" * 4_000, timeout=1)
    except (nats.errors.Error, TimeoutError):
        return False
    return True


@pytest.mark.nightly
async def test_nats_server_stores_again_when_there_is_room(volume: SmallVolume) -> None:
    """Acknowledged messages are stored; messages that were rejected while the disk was full have no acknowledgement."""
    folder = volume.folder / "nats"
    async with (
        open_nats_server(folder, None) as server,
        beside(keep_server(server, folder, {}, asyncio.Event())),
        open_connection(NatsSettings(server.url, "test")) as client,
    ):
        js = client.jetstream()
        await js.add_stream(name="kept", subjects=["kept.>"])
        acknowledged = [await _stores(js) for _ in range(10)].count(True)
        volume.fill()
        while await _stores(js):
            acknowledged += 1
        error = await server.write_error()
        volume.free()
        refused_with_room = not await _stores(js)
        await eventually(lambda: _stores(js), within=timedelta(seconds=30))
        kept = (await js.stream_info("kept")).state.messages
        assert (refused_with_room, await server.write_error()) == (True, None)

    assert error is not None
    assert "no space left" in error
    assert kept >= acknowledged + 1


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
