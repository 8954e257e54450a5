"""What a read of a stream costs nats-server is told from its request as the server reads it, which is written in Go."""

from __future__ import annotations

import pytest

from ioa.adapters.nats.connections import heartbeats_asked, messages_asked


@pytest.mark.parametrize(
    ("request_", "messages"),
    [
        (b'{"seq":1}', 1),
        (b'{"last_by_subj":"a","batch":0}', 1),
        (b'{"seq":1,"batch":256,"max_bytes":2000000}', 256),
        (b'{"seq":1,"batch":-5}', 1),
        (b'{"multi_last":["a"],"up_to_seq":9}', 1_024),
        (b'{"seq":1,"BATCH":1000}', 1_000),
        (b'{"seq":1,"batch":1,"Batch":1000}', 1_000),
        (b'{"Multi_Last":[">"]}', 20_000),
        ('{"multi_la\u017ft":[">"]}'.encode(), 20_000),
        (b'{"multi_last":[">","a.*"]}', 40_000),
        (b'{"multi_last":' + str(["a.b"] * 3_000).replace("'", '"').encode() + b"}", 3_000),
        (b'{"multi_last":' + str(["a.*"] * 3_000).replace("'", '"').encode() + b"}", 60_000_000),
        (b'{"multi_last":null}', 1_024),
        (b'{"seq":1,"next_by_subj":"a.*.c","batch":1}', 1_024),
        (b'{"seq":1,"Next_By_Subj":"a.>"}', 1_024),
        (b'{"last_by_subj":"*.>"}', 1_024),
        (b'{"last_by_subj":">"}', 1),
        (b'{"seq":7,"next_by_subj":">","batch":200}', 200),
        (b'{"last_by_subj":"a*.b>"}', 1),
        (b'{"multi_last":5}', 1_024),
        (b'{"batch":2000,"x":"\xff"}', 2_000),
        (b'{"batch":1000,"batch":null}', 1_000),
        (b'{"batch":1000,"x":' + b"9" * 5_000 + b"}", 1_000),
        (b'{"seq":1,"x":{"batch":1000}}', 1),
    ],
)
def test_a_read_counts_for_what_the_server_would_give(request_: bytes, messages: int) -> None:
    """Names of fields have no case, the last letter of `laſt` is an `s` as well, and a batch has no other bound than bytes."""
    assert messages_asked(request_) == messages


@pytest.mark.parametrize("request_", [b'{"batch":1000000000}', b'{"batch":1000,"x":' + b"[" * 9_000 + b"]" * 9_000 + b"}"])
def test_a_read_whose_size_is_not_known_counts_as_the_dearest(request_: bytes) -> None:
    """Whoever writes a request that this reader gives up, and Go's takes, gains nothing."""
    assert messages_asked(request_) == 20_000


@pytest.mark.parametrize("request_", [b"", b"[1]", b'{"batch":', b'{"batch":"1000"}', b'{"batch":1e3}', b"null"])
def test_what_the_server_refuses_counts_as_one(request_: bytes) -> None:
    """Nobody is put off for an error in typing."""
    assert messages_asked(request_) == 1


@pytest.mark.parametrize(
    ("request_", "messages"),
    [
        (b'{"batch":1,"expires":30000000000,"idle_heartbeat":5000000000}', 6),
        (b'{"batch":1,"no_wait":true}', 1),
        (b'{"Expires":60000000000,"IDLE_HEARTBEAT":1000000}', 20_000),
        (b'{"idle_heartbeat":9,"expires":30,"idle_heartbeat":1}', 30),
        (b'{"expires":30,"idle_heartbeat":0}', 1),
        (b'{"expires":-30,"idle_heartbeat":1}', 1),
        (b'{"expires":true,"idle_heartbeat":1.5}', 1),
        (b"5", 1),
        (b"", 1),
        (b"[" * 100_000, 20_000),
    ],
)
def test_a_pull_is_worth_all_that_it_has_the_server_send(request_: bytes, messages: int) -> None:
    """Once in each of its heartbeats until it runs out, by whatever names Go reads; what means nothing is one request."""
    assert heartbeats_asked(request_) == messages
