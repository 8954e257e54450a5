"""What nats-server itself writes of a message that asks to be traced is read, however it is packed."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from nats.aio.msg import Msg

from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.server import open_nats_server
from ioa.adapters.nats.sinks import MessageSink
from ioa.adapters.nats.traces import traced
from ioa.ports.connections import ConnectionId

_SECONDS = 20.0
_LONG = 900_000


@pytest.mark.parametrize("packed", ["", "gzip", "snappy", "br"])
@pytest.mark.parametrize(
    "said", ["short", "<" * _LONG, random.Random(7).randbytes(_LONG // 2).hex()], ids=["short", "long", "mixed"]
)
async def test_a_trace_tells_by_which_connection_its_message_came(tmp_path: Path, packed: str, said: str) -> None:
    """Of a message that goes nowhere the server tells all the same."""
    async with (
        open_nats_server(tmp_path, None) as server,
        open_connection(NatsSettings(server.url, "hearer")) as hearer,
        open_connection(NatsSettings(server.url, "eve")) as eve,
    ):
        heard: asyncio.Queue[Msg] = asyncio.Queue()
        await hearer.subscribe("heard", future=MessageSink(heard.put_nowait))
        await hearer.flush()
        headers = {"Nats-Trace-Dest": "heard", "Nats-Trace-Only": "true", "Accept-Encoding": packed or "none", "X": said}
        await eve.publish("anything", b"", headers=headers)
        async with asyncio.timeout(_SECONDS):
            trace = await heard.get()
        assert traced(trace.data, trace.headers) == ConnectionId(eve._server_info["server_id"], eve.client_id or 0)
