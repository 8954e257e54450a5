"""What earlier versions of the machine recorded, this one comes to as well: a group lives through an upgrade of the routers."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioa.group.events import Entry
from ioa.group.machine import step
from ioa.group.state import GroupState
from ioa.group.table import TABLE
from ioa.protocol.codec import validate
from ioa.protocol.policy import Policy
from tests.unit.group import golden

LOGS = sorted(golden.FOLDER.glob("*/*.jsonl"))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_old_logs_replay(path: Path) -> None:
    """Each entry on record is legal, and leads to the state on record."""
    state: GroupState | None = None
    policy: Policy | None = None
    for event, recorded in golden.read(path):
        entry = validate(Entry, {"version": 3, "event": event, "state": recorded, "audience": ()})
        policy = policy or golden.policy_of(entry.event)
        state = step(state, entry.event, policy).state
        assert state == entry.state


def test_the_logs_on_record_hold_every_kind_of_event() -> None:
    """No rule of the table could change its meaning unnoticed."""
    kinds = {row.name for row in TABLE.values()}
    held = {
        event["message"]["payload"]["type"] if "message" in event else event["type"]
        for path in LOGS
        for event, _ in golden.read(path)
    }
    assert kinds - held == set()
