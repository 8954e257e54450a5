"""Whatever stands in a header, or is written twice, nested or cut in what is read by hand: one message ends nobody's reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from math import isfinite

import msgpack
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from structlog.testing import capture_logs

from ioa.adapters.nats.dispatching import _asker
from ioa.adapters.nats.goals import deadline_of
from ioa.adapters.nats.headers import header_bytes, read_headers
from ioa.adapters.nats.overheard import messages_pulled, outside_asker
from ioa.adapters.nats.permissions import SHOWN_ASKER
from ioa.adapters.nats.reply_headers import error_in, patience_in
from ioa.adapters.nats.sinks import MessageSink
from ioa.adapters.nats.slowed_callers import slowed_by, slowed_in_statistics
from ioa.adapters.nats.traces import is_by_server, traced
from ioa.errors import InvalidInputError, RateLimitedError
from ioa.group.requests import CancelGroup
from ioa.protocol.audit import named_in
from ioa.protocol.codec import decode
from tests.unit.extremes.places import EXTREMES

_TEXTS = tuple(dict.fromkeys(one if isinstance(one, str) else f"{one}" for one in EXTREMES))
_NESTED = "[" * 50_000
_CODE = "Nats-Service-Error-Code"


def _message(headers: dict[str, str] | None = None, data: bytes = b"") -> Msg:
    return Msg(Client(), "ioa.v1.goal.eve", "", data, headers)


@pytest.mark.parametrize("text", [*_TEXTS, _NESTED], ids=lambda text: text[:20])
def test_headers_say_something_that_can_be(text: str) -> None:
    """How long somebody waits, when to come back, who asks and until when: a time, a name, or nothing."""
    patience = patience_in({"Ioa-Patience": text})
    assert isfinite(patience)
    assert 0 <= patience <= timedelta(days=1).total_seconds()
    told = error_in({_CODE: "rate_limited", "Ioa-Retry-After": text})
    assert isinstance(told, RateLimitedError)
    assert told.retry_after is None or isinstance(told.retry_after, timedelta)
    for shown in (text, f'{{"acc":{text}}}', f'{{"kind":"Account","acc":"IOA","user":{text}}}'):
        message = _message({SHOWN_ASKER: shown})
        assert isinstance(_asker(message), str)
        is_by_server(message)
        outside_asker(message)
    with suppress(InvalidInputError):
        deadline_of({"Ioa-Deadline": text})
    block = f"NATS/1.0 {text}\r\nIoa-Unread-Header-Bytes: {text}\r\n{text}: {text}\r\n\r\n".encode()
    assert header_bytes(read_headers(block)) >= 0
    traced(text.encode(), {"Content-Encoding": text})


_WRITTEN = (*(json.dumps(one) for one in EXTREMES if not isinstance(one, bytes)), "1e400", "9" * 5_000, _NESTED)


@pytest.mark.parametrize("value", _WRITTEN, ids=lambda value: value[:20])
def test_pulls_count_as_something_that_can_be(value: str) -> None:
    """Whatever is said of how often the server is to answer."""
    for name in ("expires", "idle_heartbeat", "batch", "no_wait"):
        for pull in (f'{{"{name}":{value},"expires":5000000000}}', f'{{"idle_heartbeat":1,"{name}":{value}}}', value):
            assert 1 <= messages_pulled(pull.encode()) <= 20_000


@pytest.mark.parametrize("value", _WRITTEN, ids=lambda value: value[:20])
def test_whom_a_service_says_that_it_slows_down_is_somebody_or_nobody(value: str) -> None:
    """Who asks all services goes on with what the others have said."""
    for told in (value, f'["a", "b", {value}]', f'[["a", "b", {value}]]', f"[[{value}, {value}, 1]]"):
        for service in ('"x"', value):
            assert isinstance(slowed_by(f'{{"service": {service}, "slowed": {told}}}'.encode())[0], str)
            statistics = f'{{"name": {service}, "endpoints": [{{"data": {{"slowed": {told}}}}}]}}'
            assert isinstance(slowed_in_statistics(statistics.encode())[0], str)
    assert slowed_in_statistics(f'{{"name": "x", "endpoints": {value}}}'.encode())[1] == []


@pytest.mark.parametrize("last", [None, 5, [], b"a"])
def test_a_name_that_stands_there_twice_is_read_as_it_is_decoded(last: object) -> None:
    """An audit line told that a goal was cancelled, where another one was: its id stood before that."""
    twice = msgpack.packb({"goal_id": "decoy", "comm_id": "real"})[1:] + msgpack.packb("goal_id") + msgpack.packb(last)
    request = bytes([0x83]) + twice
    assert named_in(request) == "real"
    if last is None:
        assert decode(CancelGroup, request).goal_id is None


@pytest.mark.parametrize("error", [RecursionError, ZeroDivisionError, OverflowError, KeyError])
async def test_what_one_message_does_keeps_no_other_from_being_read(error: type[Exception]) -> None:
    """nats-py would stop reading from the connection, and leave it open: whoever asks a service would wait for it in vain."""

    def fail(_message: Msg) -> None:
        raise error

    taken: list[Msg] = []
    with capture_logs() as lines:
        _give(fail)
        _give(taken.append)
    assert len(taken) == 1
    assert [line["event"] for line in lines] == ["message_not_taken"]


def _give(take: Callable[[Msg], None]) -> None:
    MessageSink(take).set_result(_message())
