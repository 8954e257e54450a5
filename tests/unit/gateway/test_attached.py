"""Files in a message of A2A: what is taken out of its body comes back where it stood, and nothing else is touched."""

from __future__ import annotations

import base64
import json
import secrets
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.errors import InvalidInputError
from ioa_gateway.a2a.attached import Attached

_NAMES = st.sampled_from(["raw", "bytes", '"raw', "raw\\", '\\"raw', "text", ""])
_TEXTS = st.sampled_from(["", "QUE=", "QUE", "+/-_", 'raw": "QUE=', "raw\\", '"', "\\", "é", "a\n"]) | st.text(max_size=9)
_BODIES = st.recursive(
    _TEXTS | st.integers(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3), max_leaves=20
)


def test_a_file_is_named_in_its_place_and_comes_once() -> None:
    """Version 1 and 0.3, with whatever alphabet of base64, escaped as PHP does or not: what is left is small."""
    files, data = Attached(secrets.token_bytes), bytes(range(256)) * 4_000
    plain, safe = base64.b64encode(data).decode(), base64.urlsafe_b64encode(data + b"\xff").decode().rstrip("=")
    body = json.dumps({"parts": [{"raw": plain}, {"file": {"bytes": safe}}, {"raw": "="}, {"text": "x"}]}).replace("/", "\\/")
    left = files.take_out(body.encode())
    assert len(left) < 200
    first, second, third, fourth = json.loads(left)["parts"]
    names = [base64.b64decode(one) for one in (first["raw"], second["file"]["bytes"], third["raw"])]
    assert [files.take(one) for one in names[:2]] == [data, data + b"\xff"]
    assert (fourth, files.take(names[0]), files.take(b"small")) == ({"text": "x"}, names[0], b"small")
    with pytest.raises(InvalidInputError, match="base64"):
        files.take(names[2])
    files.take_out(body.encode())
    files.drop()
    assert files.take(names[1]) == names[1]


@given(_BODIES)
def test_what_has_the_name_of_a_file_and_is_none_comes_back(value: Any) -> None:
    """Data may have fields that are called so, and texts may look like one: whatever JSON it is, it is read as it came."""
    for body in (json.dumps(value), json.dumps(value, ensure_ascii=False, separators=(",", ":"))):
        files = Attached(secrets.token_bytes)
        assert files.put_back(json.loads(files.take_out(body.encode()))) == value


def test_nothing_that_is_sent_is_taken_for_a_file() -> None:
    """What stands for a file is drawn for each message: fields that JSON alone reads as `raw` hold what they say."""
    guesses = [base64.b64encode(one).decode() for one in (b"file-1", b"\0" * 15 + (1).to_bytes(3, "big"))]
    told = ",".join(f'{{"ra\\u0077":"{guess}"}}' for guess in guesses * 100)
    first, second = (Attached(secrets.token_bytes) for _ in range(2))
    body = f'[{told},{{"raw":"{"QUE=" * 100}"}}]'.encode()
    left, other = json.loads(first.take_out(body)), json.loads(second.take_out(body))
    assert (first.put_back(left), first.put_back(left)[:-1]) == (json.loads(body), json.loads(body)[:-1])
    assert (first.put_back(left) == left, first.put_back(other) == other) == (True, True), "a file is put back once"
