"""JSON that strangers write."""

from __future__ import annotations

import pytest

from ioa.json_text import find_object, objects_in, parse_json, values_in


@pytest.mark.parametrize("written", ["[" * 100_000, b'{"a":' * 100_000, "{", b"\xff", "9" * 5_000])
def test_text_that_is_not_json_is_rejected(written: str | bytes) -> None:
    """With one kind of error."""
    with pytest.raises(ValueError):
        parse_json(written)


def test_json_is_parsed() -> None:
    """From text and from bytes."""
    assert (parse_json('{"a": [1, null]}'), parse_json(b'"\\ud83d\\ude00"')) == ({"a": [1, None]}, "😀")


@pytest.mark.parametrize("within", ["[%s]", '{"a": [[%s]]}'])
def test_values_are_counted_at_any_depth(within: str) -> None:
    """In lists and in objects."""
    few, many = (within % ",".join(["{}", '{"b": 0}'] * (50_000 // times)) for times in (4, 2))
    assert [values_in(parse_json(read), 50_000) > 50_000 for read in (few, many, '"text"')] == [False, True, False]


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
