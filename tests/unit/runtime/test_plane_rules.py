"""Each rule in `tests/data/plane_rules` has the recorded outcomes."""

from __future__ import annotations

import pytest

from tests.unit.group.rules import read
from tests.unit.runtime.plane_rules import FOLDER, play

RULES = [rule for path in sorted(FOLDER.glob("*.txt")) for rule in read(path)]


@pytest.mark.blocks_loop
@pytest.mark.parametrize("rule", RULES, ids=[rule.splitlines()[0][2:] for rule in RULES])
async def test_rule_outcomes_match_record(rule: str) -> None:
    """Replies, errors and what changed in the stores are as recorded."""
    assert (await play(rule)).splitlines() == rule.splitlines()
