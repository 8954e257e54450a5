"""Conversations that a capable model has played, gone through again: what it said is legal, leads to the same, and costs little."""

from __future__ import annotations

from pathlib import Path

from benchmarks.played_goals import GOALS
from benchmarks.prompts import LEAST_SHARE, MOST_CALLS, MOST_TOKENS, compared, play


async def test_what_a_capable_model_said_still_reaches_the_goals(tmp_path: Path) -> None:
    """A changed prompt may change what is asked, never what is legal; prompts stay few, small, and alike in the beginning.

    The model alone has decided, what it thought stays with its agent, and each token it was asked is charged once.
    """
    played = await play(GOALS, tmp_path)
    assert {one.goal.name: one.wrong() for one in played} == {goal.name: [] for goal in GOALS}
    shares = [share for one in played for share in one.shares()]
    assert (len(shares) > 30, min(shares) >= LEAST_SHARE, sum(one.short_beginnings() for one in played)) == (True, True, 0)
    now, before = compared(played)
    assert (now.calls <= MOST_CALLS * before.calls, now.tokens <= MOST_TOKENS * before.tokens) == (True, True), (now, before)
