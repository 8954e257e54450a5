"""Who is let in may `CONNECT` again on the same connection: nats-server then tells of it whatever he says there, as its name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from ioa.adapters.nats.inspection import open_inspection
from ioa.adapters.nkey_seeds import public_key_of, read_key
from ioa.beside import beside
from ioa.ports.inspection import FLOOD
from ioa.protocol import subjects
from tests.integration.security.secured import (
    Secured,
    is_refused,
    open_intruder,
    open_processes,
    open_secured,
    open_wire,
    told_of,
    until_told,
)
from tests.integration.security.town import BOB, EVE, SOON, USER
from tests.rig.deadline import eventually


async def _flood_as_another(secured: Secured, messages: int) -> None:
    """Send so many messages on each connection, and end it by a name, in turn, that is the user's."""
    key = public_key_of(read_key(str(secured.folder / USER / "seed")).seed)
    names: Sequence[Mapping[str, str]] = [{"user": USER}, {"user": f"user:{USER}#k#o"}, {"nkey": key}]
    sent = b"PUB %s 2\r\n{}\r\n" % subjects.cancel(EVE).encode() * messages
    while True:
        for name in names:
            again = json.dumps({"nkey": "", "sig": "", "auth_token": "a.b.c", **name}).encode()
            with suppress(OSError, ValueError):
                async with open_wire(secured, EVE) as (reader, writer):
                    writer.write(b"%sCONNECT %s\r\n" % (sent, again))
                    await reader.read(-1)


@pytest.mark.parametrize(("callout", "messages"), [(False, 800), (True, 8_000)], ids=["refused", "waits for a callout"])
async def test_who_floods_and_says_that_he_is_another_is_kept_out_himself(tmp_path: Path, callout: bool, messages: int) -> None:
    """Also where the callout answers nobody, so that the server lists him under the other's name; the other stays connected."""
    async with (
        open_secured(tmp_path, (BOB,), callout=callout, gate=True) as secured,
        open_processes(secured, [secured.service("registry"), secured.gate()]),
        open_inspection(secured.settings("observer"), patience=SOON) as inspection,
        open_intruder(secured, USER) as user,
    ):
        await eventually(lambda: inspection.answers("ioa-registry"), within=SOON)
        async with beside(_flood_as_another(secured, messages)):
            await until_told(inspection, lambda found: FLOOD in {one.family for one in found}, within=SOON)
            await eventually(lambda: is_refused(secured, EVE), within=2 * SOON)
        slowed = await told_of(inspection)
        assert [one.caller for one in slowed if one.family == FLOOD] == [EVE]
        assert (user.stats["reconnects"], await is_refused(secured, USER)) == (0, False)
