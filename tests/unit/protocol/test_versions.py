"""Data of a version that nobody here knows is left to those that know it; what is no version at all is garbage."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from ioa.errors import InvalidInputError, Retry, UnavailableError, UnknownVersionError, from_wire, row_of
from ioa.group.events import Entry, encode_entry
from ioa.group.requests import SequencedEntry, encode_sequenced
from ioa.protocol.codec import decode, encode
from ioa.protocol.messages import ConcludeGroupDiscussion, Message
from ioa.protocol.model import Model
from tests.unit.group.scenario import launched, said

STORY = launched("ada", "bob").announces("ada")
ENTRY = encode_entry(Entry(event=STORY.log[-1], state=STORY.state, audience=()))
MESSAGE = said("ada", ConcludeGroupDiscussion(), 1).message


def _changed(data: bytes, *path: str, version: object) -> bytes:
    """Encoded data with another version at some place, and nothing behind it that version 1 would know."""
    raw: dict[str, Any] = msgpack.unpackb(data)
    inner = raw
    for name in path:
        inner = inner[name]
    inner.clear()
    inner.update({"version": version, "shape": "of the future"})
    return bytes(msgpack.packb(raw))


CASES: list[tuple[type[Model], bytes, tuple[str, ...], int]] = [
    (Entry, ENTRY.data, (), 10),
    (SequencedEntry, encode_sequenced(ENTRY, seq=7, previous_seq=0), ("entry",), 10),
    (Message, encode(MESSAGE), ("header",), 5),
]


@pytest.mark.parametrize(("kind", "data", "path", "version"), CASES, ids=["entry", "push", "message"])
def test_a_later_version_is_not_garbage(kind: type[Model], data: bytes, path: tuple[str, ...], version: int) -> None:
    """It is read before the rest, and a retry may find a process that knows it."""
    with pytest.raises(UnknownVersionError, match=f"version {version}") as unknown:
        decode(kind, _changed(data, *path, version=version))
    assert row_of(unknown.value).retry is Retry.ENDLESS


@pytest.mark.parametrize("version", [0, -1, "2", None, True, 1.5], ids=str)
def test_what_is_no_version_is_garbage(version: object) -> None:
    """It will never be read by anybody."""
    with pytest.raises(InvalidInputError):
        decode(Entry, _changed(ENTRY.data, version=version))


def test_whoever_handles_outages_handles_it() -> None:
    """On the wire too it stays what it is."""
    assert isinstance(from_wire("unknown_version", "…"), UnavailableError)
