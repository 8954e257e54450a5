"""Bodies that are refused before they are read: that takes time by value, and not by byte."""

from __future__ import annotations

import re

from ioa.errors import InvalidInputError, PayloadTooLargeError

MOST_VALUES, DEEPEST = 1_000, 100
_NO_NUMBER = re.compile(rb"[NI]|(?<![0-9])[0-9]{400}")
"""What JSON has no number of outside of texts: NaN, Infinity, and digits beyond any that a computer counts by. These are looked
for from the first one of a number on: from each, a body of long numbers would be read hundreds of times."""
_BUT_MARKS = bytes(set(range(256)) - set(b"[]{},"))


def check_body(body: bytes, most_values: int = MOST_VALUES) -> None:
    """See that a body of JSON has few values, whatever its texts hold.

    It is not parsed: it is cut at its quotes, and what lies outside of texts is counted.

    Args:
        body: What is looked at.
        most_values: How many it may have.

    Raises:
        InvalidInputError: It is not in UTF-8, has a number that is none, or is nested too deep.
        PayloadTooLargeError: It has too many values.
    """
    if b"\0" in body:  # as whatever else JSON may be written in has
        raise InvalidInputError("The body is no JSON in UTF-8.")
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"")
    pieces = plain.split(b'"', 4 * most_values + 1)  # a value is one text at the most, and its name another
    if any(map(_NO_NUMBER.search, pieces[::2])):
        raise InvalidInputError("The body is no JSON: it has a number that is none, or too long.")
    marks = b"".join(pieces[::2]).translate(None, _BUT_MARKS)
    if len(pieces) > 4 * most_values or sum(map(marks.count, (b"[", b"{", b","))) > most_values or len(marks) > 2 * most_values:
        raise PayloadTooLargeError(
            f"The message has more than {most_values:,} values.", hint="Send much data as one text, or as a file."
        )
    depth = 0
    for mark in marks:
        depth += (mark in b"[{") - (mark in b"]}")
        if depth > DEEPEST:
            raise InvalidInputError(f"The body is nested more than {DEEPEST} deep.")
