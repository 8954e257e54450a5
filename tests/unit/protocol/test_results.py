"""How results travel."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode
from ioa.protocol.goals import Artifact, GoalResult, Reason, decode_result, encode_result
from ioa.protocol.ids import CommId, GoalId

_FILE = Artifact(name="a.csv", object_name="goal/a.csv", size_bytes=3, sha256="0" * 64)


def _result(content: str) -> GoalResult:
    return GoalResult(
        goal_id=GoalId("goal"),
        reason=Reason.CONCLUDED,
        content=content,
        artifacts=(_FILE,),
        comm_id=CommId("room"),
        turns=3,
        finished_at=datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC),
    )


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_a_result_comes_back_whole(content: str) -> None:
    """Whatever it says and however it travels."""
    assert decode_result(encode_result(_result(content))) == _result(content)


def test_anybody_can_read_it() -> None:
    """It is JSON with plain fields; msgpack is read too."""
    result = _result("Größe: 3")
    plain = json.loads(encode_result(result))
    assert (plain["reason"], plain["content"], plain["artifacts"][0]["name"]) == ("concluded", "Größe: 3", "a.csv")
    assert decode_result(encode(result)) == result


def test_a_result_that_json_has_no_room_for_is_not_lost() -> None:
    """A control character takes six bytes in JSON. What fits into a message only without that is msgpack."""
    result = _result("\x01" * 200_000)
    data = encode_result(result)
    assert (len(data) <= MAX_PAYLOAD_BYTES, data[:1] == b"{", decode_result(data)) == (True, False, result)


@pytest.mark.parametrize("data", [b"", b"{", b"{}", b"{\xff}", b"[]", b"\x80", b"\xc1", b'{"goal_id": 7}'])
def test_garbage_is_no_result(data: bytes) -> None:
    """It is refused with a reason."""
    with pytest.raises(InvalidInputError):
        decode_result(data)


def test_what_is_too_large_is_not_looked_at() -> None:
    """Neither as JSON nor as msgpack."""
    for first in (b"{", b"\x80"):
        with pytest.raises(PayloadTooLargeError):
            decode_result(first + b" " * MAX_PAYLOAD_BYTES)
