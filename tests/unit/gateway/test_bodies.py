"""Bodies that are refused before they are read, which is to take no longer than their bytes explain."""

from __future__ import annotations

import time

import pytest

from ioa.errors import InvalidInputError
from ioa_gateway.bodies import check_body

_LONGEST = b"1" * 399


def _seconds(body: bytes) -> float:
    since = time.thread_time()
    check_body(body, 5_000)
    return time.thread_time() - since


def test_numbers_are_looked_at_once() -> None:
    """Those that are just short enough cost what a text of as many bytes does, in a body of a megabyte as anybody may send."""
    numbers, text = b"[" + b",".join([_LONGEST] * 2_400) + b"]", b'["' + b"x" * 960_000 + b'"]'
    assert min(_seconds(numbers) for _ in range(3)) < 20 * min(_seconds(text) for _ in range(3)) + 0.02


@pytest.mark.parametrize("body", [b"[1" + _LONGEST + b"]", b"[1.1" + _LONGEST + b"]", b'["a", -1' + _LONGEST + b"]", b"[NaN]"])
def test_what_is_no_number_is_refused(body: bytes) -> None:
    """Wherever it stands, and however it begins."""
    with pytest.raises(InvalidInputError, match="number that is none"):
        check_body(body)
