"""Recorded conversations of a capable model: its answers stay legal, with the same result at low cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.played_goals import GOALS
from benchmarks.prompts import LEAST_SHARE, MOST_CALLS, MOST_TOKENS, compared, play


@pytest.mark.nightly
async def test_what_a_capable_model_said_still_reaches_the_goals(tmp_path: Path) -> None:
    """Prompts stay few and small, with the same beginning.

    Only the model decides, its thoughts stay with its agent, and each token is charged once.
    """
    played = await play(GOALS, tmp_path)
    assert {one.goal.name: one.wrong() for one in played} == {goal.name: [] for goal in GOALS}
    shares = [share for one in played for share in one.shares()]
    assert (len(shares) > 30, min(shares) >= LEAST_SHARE, sum(one.short_beginnings() for one in played)) == (True, True, 0)
    now, before = compared(played)
    assert (now.calls <= MOST_CALLS * before.calls, now.tokens <= MOST_TOKENS * before.tokens) == (True, True), (now, before)
