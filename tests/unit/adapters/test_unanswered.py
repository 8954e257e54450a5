"""Answers that cannot be sent, since a stranger wrote what stands in them: they are told of now and then, and charged."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from operator import eq
from typing import cast

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from structlog.testing import capture_logs

from ioa.adapters.nats.connection import NatsSettings, _LastingClient, _Shown
from ioa.adapters.nats.direct_gets import answering_reads
from ioa.adapters.nats.dispatching import RequestDispatcher
from ioa.adapters.nats.endpoints import USUAL_BOUNDS, HeadedAnswer, ServiceEndpoint
from ioa.adapters.nats.headers import read_headers
from ioa.adapters.nats.listening import Listener
from ioa.adapters.nats.permissions import SHOWN_ASKER
from ioa.protocol import subjects
from ioa.quotas import Buckets, Family
from ioa.telemetry.logs import OneASecond
from tests.rig.deadline import eventually

_STORED = (
    b"NATS/1.0\r\na@b: 1\r\nIoa-Reason: it is late\r\nNats-Stream: READ\r\nNats-Subject: read.0\r\nNats-Sequence: 7\r\n"
    b"Nats-Time-Stamp: 2025-01-01T00:00:00Z\r\n\r\n"
)


async def test_of_a_stored_message_those_headers_are_told_that_can_be_written() -> None:
    """nats-py writes no name with a sign such as `@`, which nats-server stores: the message could not be read at all."""
    client = _LastingClient(NatsSettings("", "tried"), _Shown())

    async def request(*_args: object, **_options: object) -> Msg:
        return Msg(client, data=b"{}", headers=read_headers(_STORED))

    client.request = request  # type: ignore[method-assign]
    answer = await answering_reads(client, ("READ",))(subjects.read("READ"), b'{"seq":7}')
    assert isinstance(answer, HeadedAnswer)
    assert [name for name in answer.headers if not name.startswith("Nats-")] == ["Ioa-Reason"]


async def test_what_cannot_be_answered_is_logged_once_a_second_and_charged_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a user's requests had a line of its own, and cost him nothing beside its place among his others."""
    charged = list[float]()

    def charge(_self: Buckets[Family], _caller: str, _family: Family, _now: float, held: float = 0.0, _size: int = 0) -> None:
        charged.append(held)

    async def answer(_subject: str, _data: bytes) -> HeadedAnswer:
        return HeadedAnswer(b"", {"a@b": ""})

    async def write(_commands: bytes) -> None:
        raise AssertionError("nobody is told in a hurry")

    monkeypatch.setattr(Buckets, "charge", charge)
    client = _LastingClient(NatsSettings("", "tried"), _Shown())
    client._status, client._max_payload = Client.CONNECTED, 2**20
    endpoint = ServiceEndpoint("read", subjects.ANY_READ, answer, family=Family.READS, at_most=100, counts=lambda _data: 1)
    shown = {SHOWN_ASKER: json.dumps({"acc": "IOA_USERS", "user": "UEVE"})}
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        dispatcher = RequestDispatcher(group, USUAL_BOUNDS, lambda *_: None, write)
        dispatcher._failed = OneASecond(lambda: 0.0)
        with capture_logs() as logs:
            for _ in range(20):
                dispatcher.take(endpoint, cast(Listener, None), Msg(client, subjects.read("READ"), "reply", b"", dict(shown)))
            await eventually(lambda: dispatcher._shared.in_flight + dispatcher._waiting, partial(eq, 0))
        dispatcher.close()
    assert ([line["event"] for line in logs], len(charged), min(charged, default=0.0) > 0) == (["request_unanswered"], 20, True)
