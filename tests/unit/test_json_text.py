"""JSON that strangers write."""

from __future__ import annotations

import json

import pytest

from ioa.json_text import find_object, objects_in, parse_json, parse_texts, values_in


@pytest.mark.parametrize("written", ["[" * 100_000, b'{"a":' * 100_000, "{", b"\xff", "9" * 5_000])
def test_what_cannot_be_read_is_no_json(written: str | bytes) -> None:
    """However it is none: who reads it has one fault to expect."""
    with pytest.raises(ValueError):
        parse_json(written)


def test_what_can_be_read_is_what_it_says() -> None:
    """Of text and of bytes."""
    assert (parse_json('{"a": [1, null]}'), parse_json(b'"\\ud83d\\ude00"')) == ({"a": [1, None]}, "😀")


@pytest.mark.parametrize(
    "written", [b"[%b[]]" % (b"[]," * 400_000), b'[%b""]' % (b'"",' * 100_000), '"x"'.encode("utf-16"), b"{", b'"\\"' + b"," * 9]
)
def test_what_is_more_than_texts_is_not_read(written: bytes) -> None:
    """Of objects each takes many times what it has of bytes."""
    with pytest.raises(ValueError):
        parse_texts(written)


@pytest.mark.parametrize("within", ["[%s]", '{"a": [[%s]]}'])
def test_values_are_counted_wherever_they_are(within: str) -> None:
    """All are, in lists and in objects, and no longer than until they are too many."""
    few, many = (within % ",".join(["{}", '{"b": 0}'] * (50_000 // times)) for times in (4, 2))
    assert [values_in(parse_json(read), 50_000) > 50_000 for read in (few, many, '"text"')] == [False, True, False]


def test_texts_are_read_however_long_they_are() -> None:
    """Also where a quote, or a backslash, stands in one."""
    text = '"[],\\' * 400_000
    assert parse_texts(json.dumps({"a": text}).encode()) == {"a": text}


@pytest.mark.parametrize(
    "before",
    [
        "Here it is: " * 100_000,
        "{'no': 1} " * 19,
        '{"a": ' * 19,
        "```json\n{",
        '{"cut": "' + "x" * 300_000 + "\n",
    ],
)
def test_object_after_other_text_is_found(before: str) -> None:
    """Also after the start of another object; at most twenty positions are tried."""
    assert find_object(before + '{"word": "ready"} after it {"word": 2}') == {"word": "ready"}
    assert [*objects_in('[{"a": {"b": 1}}, {}, {"c": 2}]')] == [{"a": {"b": 1}}, {"c": 2}]
    assert find_object("{" * 30 + '{"word": "ready"}') is None
