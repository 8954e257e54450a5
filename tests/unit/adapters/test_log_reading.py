"""Reading where groups stood, of however many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ioa.adapters.nats import log_reading
from ioa.adapters.nats.direct_gets import StreamMessage
from ioa.protocol.ids import CommId
from ioa.protocol.stream_reads import ReadStream


async def test_of_more_groups_than_one_request_may_name_more_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A goal has had 2,001 nested teams; each is asked for once, and so is the leader of each that a replica did not tell of."""
    asked, confirmed = list[int](), list[CommId]()

    async def last_messages(_client: object, _stream: str, named: Sequence[str], *, up_to: int) -> Sequence[StreamMessage]:
        asked.append(len(ReadStream(multi_last=tuple(named), up_to_seq=up_to).multi_last))
        return ()

    async def last(comm_id: CommId) -> None:
        confirmed.append(comm_id)

    monkeypatch.setattr(log_reading, "last_messages", last_messages)
    client: Any = None
    logs = log_reading.Logs(client)
    monkeypatch.setattr(logs._log, "last", last)
    groups = [CommId(f"g{number}") for number in range(2_001)]
    assert (await logs.heads(groups, at=7), asked, confirmed == groups) == ({}, [1_000, 1_000, 1], True)
