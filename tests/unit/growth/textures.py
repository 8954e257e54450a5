"""What texts and payloads may be made of: texts that have stalled readers elsewhere, of any size.

A reader that takes longer than a text's length explains does so for a part of it that comes again and again: each place is looked
at anew, or each beginning is followed to an end that never comes. So a texture is a short text, repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import msgpack

UNITS: Mapping[str, str] = {
    "one letter": "a",
    "two letters": "ab",
    "short words": "a b ",
    "one word": "reconciliation ",
    "digits": "7",
    "numbers": "1,",
    "decimals": "1.5e9 ",
    "fractions": "22/7 ",
    "dots": "a.",
    "dashes": "a-1-",
    "spaces": " ",
    "line feeds": "\n",
    "short lines": "a\n",
    "lines of headers": "a: b\r\n",
    "quotation marks": '"',
    "apostrophes": "it's ",
    "backslashes": "\\",
    "escaped quotes": '\\"',
    "open lists": "[",
    "open tables": '{"a":',
    "open brackets of all kinds": "[({<",
    "empty lists": "[],",
    "cells": "| a ",
    "cells of CSV": 'a,"b\n',
    "emphasis": "*a_",
    "links": "[a](b",
    "pictures": "![",
    "fences": "```",
    "quotations": "> ",
    "items": "- a\n",
    "tags": "<a ",
    "tags of what a page is": "<meta ",
    "closed tags": "<p>a",
    "ends of tags": "</",
    "comments": "<!--",
    "entities": "&#9",
    "marks out of order": "\u0301\u0316",
    "letters with marks": "a\u0316\u0301",
    "letters that become many": "\ufdfa",
    "letters that fold into two": "\u0130",
    "letters of three bytes": "字",
    "letters of four bytes": "\U0001f600",
    "private letters": "\ue000",
    "turns of the reading order": "\u202e",
    "escapes": "\x1b]0;",
    "zeros": "\0",
    "addresses": "http://a:b@c/ ",
    "secrets": "token=aaaaa ",
    "tokens": "eyJhbGciOiJub25l.",
    "paths": "a/b\\",
    "names of files": "my a.csv ",
    "mail": "a@b.",
    "times": "2026-01-01T00:00:00Z ",
    "cookies": "ioa_session=a; ",
    "subjects": "ioa.v1.",
    "labels": "a=b ",
    "percents": "%41",
    "fields of JSON": '"a":1,',
    "files in JSON": '"raw":"aaaa",',
    "thoughts": "<think>{",
}
"""By what they are called."""
FEW_UNITS = ("one letter", "short words", "quotation marks", "zeros", "marks out of order", "letters of four bytes")
"""Those by which fields are tried of whose texts little more than the length is looked at."""
PLAIN = "The agents agreed on the second proposal, since it costs less and is ready by Friday. "
"""What honest people write."""

HEADS: Mapping[str, bytes] = {
    "heads of long texts": b"\xdb\x00\x7f\x7f\x7f",
    "heads of texts": b"\xdb\x00\x03\xe9\x00",
    "beginnings of heads": b"\xdb\x00",
    "heads of lists": b"\xdd\x00\x00\x7f\xff",
    "heads of tables": b"\xdf\x00\x00\x7f\xff",
    "heads of bytes": b"\xc6\x00\x7f\x7f\x7f",
    "lists in lists": b"\x91",
    "tables in tables": b"\x81\xa1a",
    "extensions": b"\xd4\x05x",
    "nothing of msgpack": b"\xc1",
    "zeros": b"\0",
    "no UTF-8": b"\xff",
}
_ELEMENTS: Mapping[str, object] = {
    "nothing": None,
    "lists": [],
    "tables": {},
    "numbers": 1,
    "fractions": 0.1,
    "texts": "a",
    "bytes": b"a",
    "pairs": ["a", 0],
}


def text_of(unit: str, chars: int, salt: int = 0) -> str:
    """Repeat a text up to so many characters. Another salt makes another text, since what was read lately may be remembered."""
    tail = f"{salt:x}" if salt else ""
    return (unit * (chars // len(unit) + 1))[: max(0, chars - len(tail))] + tail


@lru_cache(maxsize=8)  # each reader is given the same
def payloads(size: int) -> Sequence[tuple[str, bytes]]:
    """Return payloads of so many bytes that are no message of any kind, with what they are made of."""
    return tuple(_payloads(size))


def _payloads(size: int) -> Iterator[tuple[str, bytes]]:
    for name, head in HEADS.items():
        yield name, (head * (size // len(head) + 1))[:size]
        yield f"a field of {name}", msgpack.packb({"a": (head * (size // len(head)))[: size - 16]})
    for name, element in _ELEMENTS.items():
        yield f"a list of {name}", msgpack.packb([element] * (size // len(msgpack.packb(element))))
        many = range(size // (6 + len(msgpack.packb(element))))
        yield f"a table of {name}", msgpack.packb({f"{number:05}": element for number in many})
