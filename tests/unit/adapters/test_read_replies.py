"""Replies of group setup to requests for stored messages."""

from __future__ import annotations

from nats.aio.msg import Msg

from ioa.adapters.nats.connection import NatsSettings, _LastingClient, _Shown
from ioa.adapters.nats.direct_gets import answering_reads
from ioa.adapters.nats.endpoints import HeadedAnswer
from ioa.adapters.nats.headers import read_headers
from ioa.protocol import subjects

_STORED = (
    b"NATS/1.0\r\na@b: 1\r\nIoa-Reason: it is late\r\nNats-Stream: READ\r\nNats-Subject: read.0\r\nNats-Sequence: 7\r\n"
    b"Nats-Time-Stamp: 2025-01-01T00:00:00Z\r\n\r\n"
)


async def test_stored_headers_that_cannot_be_written_are_omitted() -> None:
    """nats-py rejects header names with characters such as `@`, which nats-server stores."""
    client = _LastingClient(NatsSettings("", "tried"), _Shown())

    async def request(*_args: object, **_options: object) -> Msg:
        return Msg(client, data=b"{}", headers=read_headers(_STORED))

    client.request = request  # type: ignore[method-assign]
    answer = await answering_reads(client, ("READ",))(subjects.read("READ"), b'{"seq":7}')
    assert isinstance(answer, HeadedAnswer)
    assert [name for name in answer.headers if not name.startswith("Nats-")] == ["Ioa-Reason"]
