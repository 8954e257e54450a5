"""Whatever the message of an entry is to say in a fork, that is refused, or each entry of the copy can be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ioa.adapters.nats.log import decoded_entry
from ioa.errors import IoaError
from ioa.group.events import Entry, Event, QuestionAnswered, Said, encode_entry, kind_of, name_of
from ioa.protocol.goals import MAX_CHANGED_CHARS
from tests.unit.extremes.places import EXTREMES
from tests.unit.group.scenario import launched
from tests.unit.group.test_forking import STORIES, fork_of, states_of

_TEXTS = (*(one for one in EXTREMES if isinstance(one, str) and one), "x" * MAX_CHANGED_CHARS, "\U0001f600" * MAX_CHANGED_CHARS)


def _sayings() -> Mapping[str, tuple[Sequence[Event], int]]:
    """Of each kind of message, and of answers to a question with and without options, a story and the entry that it is."""
    found = dict[str, tuple[Sequence[Event], int]]()
    for events in STORIES.values():
        for at, (event, state) in enumerate(zip(events, states_of(events), strict=True), 1):
            if isinstance(event, Said | QuestionAnswered) and not state.phase.is_terminal:
                found.setdefault(name_of(kind_of(event)), (events, at))
    anything = launched("ada", "bob").asks("ada", options=()).answered("Soon.")
    return {**found, "an answer in one's own words": (anything.log, 3)}


_SAYINGS = _sayings()


@pytest.mark.parametrize("kind", _SAYINGS)
def test_whatever_an_entry_says_instead_the_copy_can_be_read(kind: str) -> None:
    """Each entry is read as it is stored: one that cannot be leaves the goal hanging."""
    events, at = _SAYINGS[kind]
    for text in _TEXTS:
        try:
            steps, _ = fork_of(events, at, say=text)
        except IoaError:
            continue
        for number, one in enumerate(steps, 1):
            entry = Entry.of(one.event, one.transition.state, one.transition.audience)
            assert decoded_entry(one.comm_id, number, encode_entry(entry).data).entry == entry
