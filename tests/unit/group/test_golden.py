"""The machine decides, folds and shows recorded logs as recorded."""

from __future__ import annotations

import json

import pytest

from ioa.group.table import TABLE
from tests.unit.group import golden

LOGS = golden.read()


@pytest.mark.parametrize("name", LOGS)
def test_golden_log_replay_matches_record(name: str) -> None:
    """Acceptance, state, effects, audience, legal kinds and views are as recorded."""
    for number, (made, recorded) in enumerate(zip(golden.play(golden.events_of(LOGS[name])), LOGS[name], strict=True)):
        assert json.loads(json.dumps(made)) == recorded, f"step {number}"


def test_golden_logs_hold_every_kind_of_event() -> None:
    """Each row of the table is accepted at least once."""
    events = [one["event"] for steps in LOGS.values() for one in steps if "refused" not in one]
    held = {one["message"]["payload"]["type"] if "message" in one else one["type"] for one in events}
    assert {row.name for row in TABLE.values()} - held == set()
