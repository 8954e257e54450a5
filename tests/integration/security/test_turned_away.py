"""From where somebody comes without a key that lets in, again and again, the doctor tells: he has no name."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

from ioa.adapters.nats.inspection import open_inspection
from ioa.beside import beside
from ioa.ports.inspection import TURNED_AWAY
from tests.integration.security.secured import Secured, open_processes, open_secured, until_told
from tests.integration.security.town import SOON
from tests.rig.deadline import eventually


async def _come_in_vain(secured: Secured) -> None:
    address = urlsplit(secured.server.url)
    while True:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        try:
            writer.write(b'CONNECT {"verbose":false}\r\nPING\r\n')
            await reader.read()
        finally:  # also where the test ends in the middle
            writer.transport.abort()
        await asyncio.sleep(0.01)


async def test_from_where_somebody_comes_in_vain_the_doctor_names(tmp_path: Path) -> None:
    """By what the server tells the registry alone, of its own account."""
    async with (
        open_secured(tmp_path, ("bob",)) as secured,
        open_processes(secured, [secured.service("registry")]),
        open_inspection(secured.settings("observer"), patience=SOON) as inspection,
    ):
        await eventually(lambda: inspection.answers("ioa-registry"), within=SOON)
        async with beside(_come_in_vain(secured)):
            slowed = await until_told(inspection, within=SOON)
    assert [(one.caller, one.family) for one in slowed] == [("127.0.0.1", TURNED_AWAY)]
