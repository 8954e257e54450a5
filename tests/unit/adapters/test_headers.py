"""Headers with any content are read without an error and in little time."""

from __future__ import annotations

import pytest

from ioa.adapters.nats.wire.message_parser import decode_subject, drop_foreign_status, read_headers


@pytest.mark.parametrize(
    ("block", "headers"),
    [
        (b"NATS/1.0\r\nA: b\r\nC:d: e \r\n\r\n", {"A": "b", "C": "d: e"}),
        (b"NATS/1.0\r\nNats-Sequence: 5\r\nC: d\r\nNats-Sequence: 7\r\n\r\n", {"Nats-Sequence": "7", "C": "d"}),
        (b"NATS/1.0 503\r\n\r\n", {"Status": "503"}),
        (b"NATS/1.0 404 No Messages\r\nA: b\r\n\r\n", {"Status": "404", "Description": "No Messages", "A": "b"}),
        (b"NATS/1.0\r\nIoa-Reason: na\xc3\xafve\r\n\r\n", {"Ioa-Reason": "naïve"}),
        (b"NATS/1.0 \xff\xff\xff\r\nA: \xff\r\n\r\n", {"A": "\ufffd"}),
        (b"NATS/1.0 404 \xff\r\n\r\n", {"Status": "404", "Description": "\ufffd"}),
        (b"NATS/1.0\r\nA\xff: b\r\nA B: c\r\n: d\r\nE\r\n\r\n", {}),
        (b"NATS/1.0", {}),
        (b"?", {}),
    ],
)
def test_any_block_is_read(block: bytes, headers: dict[str, str]) -> None:
    """What cannot be read is left out: nats-py ended its reading, and the connection stayed open and deaf."""
    assert read_headers(block) == headers


@pytest.mark.parametrize(
    ("reply", "headers", "status"),
    [
        (b"", {"Status": "404"}, "404"),
        (b"", {"Status": "204", "Nats-Last-Sequence": "7"}, "204"),
        (b"$JS.FC.x", {"Status": "100"}, "100"),
        (b"$JS.ACK.S.c.1.2.3.4.5", {"Status": "404"}, None),
        (b"", {"Status": "204", "Nats-Sequence": "7"}, None),
    ],
)
def test_what_is_stored_is_no_word_of_the_server(reply: bytes, headers: dict[str, str], status: str | None) -> None:
    """Whoever published it wrote its status."""
    drop_foreign_status(headers, reply)
    assert headers.get("Status") == status


def test_any_subject_can_be_read() -> None:
    """What is no UTF-8 is replaced by what no id holds."""
    assert (decode_subject(b"a.\xff.b"), decode_subject(b"a.b"), decode_subject("ä".encode())) == ("a.\ufffd.b", "a.b", "ä")
