"""JSON that strangers write."""

from __future__ import annotations

import pytest

from ioa.json_text import parse_json


@pytest.mark.parametrize("written", ["[" * 100_000, b'{"a":' * 100_000, "{", b"\xff", "9" * 5_000])
def test_what_cannot_be_read_is_no_json(written: str | bytes) -> None:
    """However it is none: who reads it has one fault to expect."""
    with pytest.raises(ValueError):
        parse_json(written)


def test_what_can_be_read_is_what_it_says() -> None:
    """Of text and of bytes."""
    assert (parse_json('{"a": [1, null]}'), parse_json(b'"\\ud83d\\ude00"')) == ({"a": [1, None]}, "😀")
