"""Payloads that nobody honest sends: noise, and what honest payloads become when bytes or values of them are exchanged.

The values are those that have broken parsers elsewhere: numbers that fit nowhere, halves of surrogate pairs, sizes that are claimed
and never come, nesting beyond every stack.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgpack

_CLAIMED = tuple(kind + b"\xff\xff\xff\xff" for kind in (b"\xdb", b"\xdd", b"\xdf", b"\xc6", b"\xc9"))
"""A text, a list, a map, bytes and an extension of 4 G each, of which nothing follows."""
_DEEP = 100_000
_OF_THE_KIND = 0.8
_LEAVES: tuple[object, ...] = (
    None,
    True,
    -1,
    0,
    2**63,
    -(2**63),
    2**64 - 1,
    float("nan"),
    float("inf"),
    -0.0,
    1e308,
    "",
    " ",
    "\0",
    "\r\nIoa-Hint: x",
    "\u202e\u2066",
    "\x1b]52;c;eA==\x07",
    "*",
    ">",
    "a.b",
    "../../etc/passwd",
    "é" * 64,
    "x" * 70_000,
    "1." * 8_000,
    "9" * 5_000,
    "-999999-01-01T00:00:00Z",
    "+999999-12-31T23:59:59Z",
    "2026-02-30T25:61:61Z",
    b"\xff\xfe",
    [],
    {},
    [[]] * 3_000,
    {"a": {"b": {"c": [None]}}},
    msgpack.ExtType(5, b"x"),
    msgpack.Timestamp(2**33, 999_999_999),
)
_JSON = (
    b'{"goal":"x","inputs":["\\ud800"]}',
    b'{"goal":"\\ud800"}',
    b'{"goal":1e400}',
    b'{"goal":' + b"9" * 5_000 + b"}",
    b'{"goal":NaN,"timeout":Infinity}',
    b"[" * _DEEP,
    b'{"a":' * _DEEP,
    b'"' + b"\\u0000" * 1_000 + b'"',
    b"\xef\xbb\xbf{}",
    b'{"goal":"x","goal":"y","timeout":-1}',
)


class HostileFrames:
    """An endless, seeded supply of payloads.

    Args:
        honest: Payloads that were sent in earnest, which are varied, by what they are for.
        chance: The dice.
        own: A name that honest names are exchanged for now and then, so that a payload fits the subject of who sends it.
        names: The honest names.
    """

    def __init__(
        self, honest: Mapping[str, Sequence[bytes]], chance: random.Random, *, own: str = "", names: Sequence[str] = ()
    ) -> None:
        self._honest = {kind: [payload for payload in payloads if payload] for kind, payloads in honest.items()}
        self._all = [payload for payloads in self._honest.values() for payload in payloads] or [b"\x80"]
        self._kind = ""
        self._chance = chance
        self._own = own
        self._names = frozenset(names)
        self._ways = (
            self._noise,
            self._flipped,
            self._cut,
            self._inserted,
            self._with_a_value_exchanged,
            self._with_a_value_exchanged,
            self._with_a_field_more,
            self._as_json,
            self._from_the_corpus,
        )

    def next(self, kind: str = "") -> bytes:
        """Return another payload, mostly a variant of those for the same; none is larger than a server takes."""
        self._kind = kind
        return self._chance.choice(self._ways)()[:1_000_000]

    def _noise(self) -> bytes:
        return self._chance.randbytes(self._chance.choice((0, 1, 7, 100, 3_000)))

    def _one(self) -> bytes:
        of_the_kind = self._honest.get(self._kind)
        return self._chance.choice(of_the_kind if of_the_kind and self._chance.random() < _OF_THE_KIND else self._all)

    def _flipped(self) -> bytes:
        payload = bytearray(self._one())
        for _ in range(self._chance.randint(1, 4)):
            payload[self._chance.randrange(len(payload))] ^= 1 << self._chance.randrange(8)
        return bytes(payload)

    def _cut(self) -> bytes:
        payload = self._one()
        return payload[: self._chance.randrange(len(payload))]

    def _inserted(self) -> bytes:
        payload = self._one()
        at = self._chance.randrange(len(payload))
        return payload[:at] + self._chance.choice((*_CLAIMED, self._chance.randbytes(3), b"\x91" * 2_000)) + payload[at:]

    def _with_a_value_exchanged(self) -> bytes:
        return self._packed(self._varied(self._read()))

    def _with_a_field_more(self) -> bytes:
        value = self._read()
        if isinstance(value, dict):
            value[self._chance.choice(("x", "ticket", "owner", "__class__", "goal_id", "pool"))] = self._chance.choice(_LEAVES)
        return self._packed(value)

    def _as_json(self) -> bytes:
        value = self._varied(self._read())
        return json.dumps(value, default=repr, skipkeys=True).encode()

    def _from_the_corpus(self) -> bytes:
        deep = (b"\x91" * _DEEP, b"\x81\xa1a" * _DEEP)
        return self._chance.choice((*_JSON, *_CLAIMED, *deep))

    def _read(self) -> object:
        try:
            value: object = msgpack.unpackb(self._one(), strict_map_key=False)
        except (ValueError, msgpack.UnpackException):
            return {"goal": "x"}
        return value

    def _varied(self, value: object) -> object:
        """Exchange names, one value anywhere in a structure, or both."""
        places = self._places(value, [])
        if not places:
            return self._chance.choice(_LEAVES)
        if self._own and self._chance.random() < 0.5:
            for holder, key in places:
                if isinstance(holder[key], str) and holder[key] in self._names:
                    holder[key] = self._own
            if self._chance.random() < 0.5:
                return value
        holder, key = self._chance.choice(places)
        holder[key] = self._chance.choice(_LEAVES)
        return value

    def _places(self, value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Collect every structure within one, with each key or index of it."""
        keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        for key in keys:
            found.append((value, key))
            self._places(value[key], found)
        return found

    @staticmethod
    def _packed(value: object) -> bytes:
        packed: bytes = msgpack.packb(value, default=repr)
        return packed
