"""Input of strangers: each decoder reads any input or rejects it with a typed error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.decoding.decoders import DECODERS, Decoder

_UNITS = (
    *("a", "a b ", "7", "1,", "1.5e9 ", "22/7 ", "a.", "-", " ", "\n", "a: b\r\n", '"', "'", "\\", '\\"', "[", '{"a":'),
    *("[({<", "[],", 'a,"b\n', "*a_", "[a](b", "```", "- a\n", "<a ", "<p>a", "<!--", "&#9", "\u0301\u0316", "\ufdfa"),
    *("\u0130", "\U0001f600", "\u202e", "\x1b]0;", "\0", "http://a:b@c/ ", "token=a ", "eyJ.", "my a.csv ", "a@b.", "a=b "),
    *("%41", "<think>{", "2026-01-01T00:00:00Z "),
)
"""Short texts that, repeated, make careless parsers slow."""
_BYTES = (
    b"\xff",
    b"\xc1",
    b"\x91",
    b"\x81\xa1a",
    b"\xd4\x05x",
    b"\xdb\x00\x7f\x7f\x7f",
    b"\xdd\x00\x00\x7f\xff",
    b"\xc6\x00\x7f\x7f\x7f",
)
_EXAMPLES = 40

_UNIT = st.sampled_from([*_BYTES, *(unit.encode() for unit in _UNITS)])
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["0001-01-01T00:00:00+23:59", "2026-13-01T00:00:00Z", "PT0.000001S", "P99999999999D", "٣", "²", "9" * 400, "a" * 70]
    )
)
_VALUES = st.recursive(_LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4))


@st.composite
def _inputs(draw: st.DrawFn, decoder: Decoder) -> bytes:
    """Noise, a repeated unit, or the example with another value at one place, or cut."""
    match draw(st.sampled_from(("noise", "units", "value", "cut"))):
        case "noise":
            return draw(st.binary(max_size=100) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")))
        case "units":
            return draw(_UNIT) * draw(st.integers(1, 3_000))
    if decoder.form in ("text", "bytes"):
        whole = decoder.example.encode() if isinstance(decoder.example, str) else decoder.example
        at = draw(st.integers(0, len(whole)))
        return whole[:at] + draw(st.binary(max_size=4) | _UNIT) + whole[draw(st.integers(0, len(whole))) :]
    way = draw(st.sampled_from(list(_ways(decoder.example))))
    value = _at(decoder.example, way)
    changed = decoder.write(
        _with(decoder.example, way, value * 300 if isinstance(value, list) and draw(st.booleans()) else draw(_VALUES))
    )
    return (changed or b"")[: draw(st.none() | st.integers(0, 2_000))]


@pytest.mark.blocks_loop
@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
def test_decoder_reads_any_input_or_rejects_it(decoder: Decoder) -> None:
    """No other error than the documented ones occurs."""

    @settings(max_examples=_EXAMPLES, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(_inputs(decoder))
    def read(data: bytes) -> None:
        with suppress(*decoder.errors):
            decoder.read(data)

    read()
    if decoder.form in ("msgpack", "JSON") and (whole := decoder.write(decoder.example)):
        decoder.read(whole)


def _ways(value: Any, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """List the places in a document."""
    if way:
        yield way
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from _ways(one, (*way, key))


def _at(value: Any, way: Sequence[str | int]) -> Any:
    for key in way:
        value = value[key]
    return value


def _with(base: Any, way: Sequence[str | int], value: Any) -> Any:
    """Return a copy of a document with another value at one place."""
    if not way:
        return value
    made = copy(base)
    made[way[0]] = _with(base[way[0]], way[1:], value)
    return made
