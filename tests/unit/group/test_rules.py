"""Each rule in `tests/data/rules` has the recorded outcomes, and each way to be rejected has a rule."""

from __future__ import annotations

import re

import pytest

from ioa.group.rejection import RejectionCode
from tests.unit.group import rules

RULES = [rule for path in sorted(rules.FOLDER.glob("*.txt")) for rule in rules.read(path)]
ELSEWHERE = {RejectionCode.NO_GROUP, RejectionCode.TOO_MANY_TASKS}
"""Met in `test_table` and `test_state_size`."""


@pytest.mark.parametrize("rule", RULES, ids=[rule.splitlines()[0][2:] for rule in RULES])
def test_rule_outcomes_match_record(rule: str) -> None:
    """States, effects, audiences, rejections and views are as recorded."""
    assert rules.play(rule).splitlines() == rule.splitlines()


def test_each_rejection_code_has_a_rule() -> None:
    """No code exists that nothing is rejected with."""
    assert {*re.findall(r"^rejected (\w+):", "".join(RULES), re.MULTILINE)} == {*RejectionCode} - ELSEWHERE
