"""Replaying finds logs that the machine would not have written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ioa.client.replay import ReplayError, replayed
from tests.unit.cli.logs import log_of
from tests.unit.group.scenario import launched

STORY = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").finishes("t1-1").announces("ada").concludes("ada")


def test_a_true_log_is_reproduced() -> None:
    """Every entry of a log that the machine wrote comes out again."""
    entries = log_of(STORY)
    assert list(replayed(entries)) == entries


def test_a_state_that_was_changed_is_named() -> None:
    """The first entry whose state does not follow is named with the field that differs."""
    entries = log_of(STORY)
    wrong = entries[2].entry.state.model_copy(update={"turn": 99})
    entries[2] = replace(entries[2], entry=entries[2].entry.model_copy(update={"state": wrong}))
    with pytest.raises(ReplayError, match=r"Entry 3 of room .* turn is 2 by the machine and 99 on record"):
        list(replayed(entries))


def test_an_entry_that_is_missing_is_noticed() -> None:
    """A log with a hole is not legal from there on, or leads elsewhere."""
    entries = log_of(STORY)
    with pytest.raises(ReplayError, match="Entry 3 of room"):
        list(replayed([entries[0], *entries[2:]]))
