"""An entry's encoding is made once, and is the same wherever it travels."""

from __future__ import annotations

import pytest

from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.group.events import Entry, encode_entry
from ioa.group.requests import Accepted, SayReply, SequencedEntry, encode_accepted, encode_sequenced
from ioa.protocol.codec import decode, decode_value, encode, encode_value
from ioa.protocol.setup.charter import MAX_MEMBERS
from tests.unit.group.scenario import launched


def _entry(why: str = "") -> Entry:
    story = launched("ada", "bob").cancelled()
    return Entry(event=story.log[-1].model_copy(update={"why": why}), state=story.state, audience=story.state.living())


def test_members_that_are_lost_and_return_are_encoded_as_they_are() -> None:
    """What lasts in a state is encoded once and found again, and anew when it changes: each entry is the whole encoded at once."""
    stories = [launched("ada", "bob", "eve")]
    stories.append(stories[-1].says("ada", to="bob"))
    stories.append(stories[-1].loses("eve"))
    stories.append(stories[-1].says("bob", to="ada"))
    stories.append(stories[-1].regains("eve"))
    stories.append(launched("ada", "bob", "eve", max_turns=3))
    entries = [Entry(event=one.log[-1], state=one.state, audience=one.state.living()) for one in stories]
    assert [encode_entry(entry).data for entry in entries] == list(map(encode, entries))


@pytest.mark.parametrize("seq", [1, 127, 128, 70_000, 2**53])
def test_a_push_is_put_together_from_an_encoded_entry(seq: int) -> None:
    """What is put together around the encoded entry is, byte for byte, the whole encoded at once, and decodes to it."""
    whole = SequencedEntry(seq=seq, previous_seq=seq - 1, entry=_entry())
    pieced = encode_sequenced(encode_entry(whole.entry), seq=seq, previous_seq=seq - 1)
    assert (pieced, decode(SequencedEntry, pieced)) == (encode(whole), whole)


def test_an_answer_is_put_together_from_an_encoded_entry() -> None:
    """So is the answer to who said it."""
    entry = SequencedEntry(seq=70_000, previous_seq=5, entry=_entry())
    pieced = encode_accepted(encode_entry(entry.entry), seq=70_000, previous_seq=5)
    assert pieced == encode(SayReply(answer=Accepted(seq=70_000, entry=entry)))


def test_an_entry_too_large_is_refused() -> None:
    """What would not fit into the log, or into a push, is refused before it is sent anywhere."""
    with pytest.raises(PayloadTooLargeError):
        encode_entry(_entry("x" * 1_000_000))


_OF_MEMBERS = {
    "audience": "m{}",
    "members": {"agent_id": "m{}"},
    "passes": {"agent_id": "m{}", "cause": "nothing_to_add", "since": "2026-01-01T00:00:00Z"},
    "ruled": "m{}",
}


@pytest.mark.parametrize("field", _OF_MEMBERS)
def test_an_entry_names_no_more_members_than_a_group_has(field: str) -> None:
    """Thousands of them fit into a message, and whoever is told looks up each in the others."""

    def told(number: int) -> bytes:
        plain = decode_value(encode(_entry()))
        named = [_numbered(_OF_MEMBERS[field], one) for one in range(number)]
        (plain if field in plain else plain["state"])[field] = named
        return encode_value(plain)

    assert isinstance(decode(Entry, told(MAX_MEMBERS)), Entry)
    with pytest.raises(InvalidInputError, match="at most 64 items"):
        decode(Entry, told(MAX_MEMBERS + 1))


def _numbered(what: object, number: int) -> object:
    if isinstance(what, dict):
        return {name: _numbered(value, number) for name, value in what.items()}
    return str(what).format(number)
