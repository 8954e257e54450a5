"""Group logs for tests of their readers, created by the real state machine."""

from __future__ import annotations

from ioa.group.events import Entry
from ioa.group.machine import step
from ioa.group.state import GroupState
from ioa.ports.group_log import StoredEntry
from tests.unit.group.scenario import Scenario


def log_of(story: Scenario, *, first_seq: int = 1) -> list[StoredEntry]:
    """Return the log of a scenario's events."""
    entries: list[StoredEntry] = []
    state: GroupState | None = None
    for seq, event in enumerate(story.log, first_seq):
        state = step(state, event, story.policy).state
        entries.append(StoredEntry(seq, Entry(event=event, state=state, audience=())))
    return entries
