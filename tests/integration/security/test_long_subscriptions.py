"""A subscription costs the server by the parts of its subject, of which a line of the wire has room for two thousand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioa.adapters.nkey_seeds import read_key
from ioa.protocol.subjects import inbox_prefix_of
from tests.integration.security.secured import open_once, open_secured
from tests.integration.security.town import BOB

_MANY, _PARTS = 300, 1_900
_MOST_MB = 40


@pytest.mark.parametrize("name", ["eve", "observer", BOB])
async def test_many_parts_take_no_memory_of_the_server(tmp_path: Path, name: str) -> None:
    """By 1,400 subscriptions of 4 kB, below what one holder may have, nats-server had a gigabyte more."""
    async with open_secured(tmp_path, (BOB,)) as secured:
        key = read_key(str(secured.folder / name / ("seed" if name != BOB else BOB)))
        before = _memory_mb(secured.server.pid)
        async with open_once(secured.server.url, nkeys_seed_str=key.seed) as client:
            for number in range(_MANY):
                await client.subscribe(f"{inbox_prefix_of(key.inbox_owner)}.{number}" + ".a" * _PARTS)
            for _ in range(2):  # the first goes before what waits to be sent
                await client.flush(30)
            grown = _memory_mb(secured.server.pid) - before
        assert grown < _MOST_MB, f"{grown} MB for {_MANY} subscriptions"


def _memory_mb(pid: int) -> int:
    [line] = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmRSS")]
    return int(line.split()[1]) // 1_024
