"""What nats-server writes in a sender's place is told from what the sender may write himself."""

from __future__ import annotations

import gzip
import json
import time
from typing import cast

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats.permissions import SHOWN_ASKER
from ioa.adapters.nats.traces import begins_like_one, is_by_server, traced
from ioa.ports.connections import ConnectionId

_HEAD = '{"server":{"name":"ioa","host":"h","id":"NABC","ver":"2.15.1","feature_flags":{"a":false},"seq":7},"request":{"header":'
_EVENTS = '"events":[{"type":"in","ts":"2026-11-26T16:32:13.4Z","kind":0,"cid":124,"acc":"IOA_USERS","subj":"$SRV.PING"}]}'


def _message(shown: object, reply: str = "") -> Msg:
    return Msg(cast(Client, None), subject="ioa.v1.groups.status", reply=reply, headers={SHOWN_ASKER: json.dumps(shown)})


@pytest.mark.parametrize(
    ("shown", "reply", "expected"),
    [
        ({"acc": "IOA_USERS", "kind": "Account"}, "", True),
        ({"acc": "IOA_USERS", "kind": "Account"}, "_INBOX.1", False),
        ({"acc": "IOA_USERS", "user": "UEVE", "name": "Account", "kind": "Client"}, "", False),
        ({"acc": "IOA_USERS"}, "", False),
        (["kind", "Account"], "", False),
        (None, "", False),
    ],
)
def test_the_import_says_that_the_server_has_written_it(shown: object, reply: str, expected: bool) -> None:
    """Whatever somebody calls himself, what he sends is a client's; and the server asks nobody to answer."""
    assert is_by_server(_message(shown, reply)) is expected


@pytest.mark.parametrize("said", ["", "<", '"events":[{"type":"in","ts":"","kind":0,"cid":9,'])
def test_who_is_traced_stands_behind_what_he_has_written(said: str) -> None:
    """Nothing that somebody writes into a header is taken for what the server tells."""
    text = f"{_HEAD}{json.dumps({'X': [said * 40_000]})}}},{_EVENTS}".encode()
    assert traced(text, None) == ConnectionId("NABC", 124)
    assert traced(gzip.compress(text), {"Content-Encoding": "gzip"}) == ConnectionId("NABC", 124)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        _HEAD,
        _EVENTS,
        f"{_HEAD}{{}}}},{_EVENTS.replace(chr(34) + 'kind' + chr(34) + ':0', chr(34) + 'kind' + chr(34) + ':1')}",
        f"[{_HEAD}{{}}}},{_EVENTS}]",
    ],
)
def test_what_is_no_trace_of_a_client_tells_of_nobody(text: str) -> None:
    """Nor what another server of the cluster tells of the same message, which came to it from a server."""
    assert traced(text.encode(), None) is None


@pytest.mark.parametrize("packed", ["gzip", "snappy", "br"])
@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\x00\x05\x00\x00\x00\x00\x00\x00\x80", b"\x00\x07\x00\x00\0\0\0\0\x05\x09\x04", b"\x1f\x8b\x08"]
)
def test_what_is_packed_wrongly_tells_of_nobody(packed: str, data: bytes) -> None:
    """It is passed over, and nothing fails."""
    assert traced(data, {"Content-Encoding": packed}) is None


_QUOTED = bytes([61 << 2]) + (29_999).to_bytes(2, "little") + b"a" * 30_000
_REPEATING = b"\x80\x80\x04" + _QUOTED + (b"\x02" + (30_000).to_bytes(2, "little")) * 35_000


@pytest.mark.parametrize(
    ("packed", "data"),
    [
        ("gzip", gzip.compress(b"x" * 16_000_000)),
        ("snappy", b"\x00\x00\x00\x00" * 60_000),
        ("snappy", b"\x00" + (len(_REPEATING) + 4).to_bytes(3, "little") + bytes(4) + _REPEATING),
    ],
)
def test_what_takes_long_to_unpack_is_not_unpacked_where_anybody_may_write(packed: str, data: bytes) -> None:
    """The registry looks at forty goals a second: each took it 90 ms to 190 ms, which was all of its time."""
    began = time.process_time()
    found = [begins_like_one(data, {"Content-Encoding": packed}) for _ in range(10)]
    assert (any(found), time.process_time() - began < 0.2) == (False, True)


@pytest.mark.parametrize("packed", ["", "gzip", "snappy"])
def test_a_trace_is_told_by_its_beginning(packed: str) -> None:
    """Also where it is packed."""
    text = f"{_HEAD}{json.dumps({'X': ['<' * 400_000]})}}},{_EVENTS}".encode()
    plain = b"\x01" + (len(text) + 4).to_bytes(3, "little") + bytes(4) + text
    data = {"": text, "gzip": gzip.compress(text), "snappy": plain}[packed]
    assert begins_like_one(data, {"Content-Encoding": packed})
    assert not begins_like_one(data[1:], {"Content-Encoding": packed})
