"""Followers of a goal by server-sent events: memory of a gateway, and complete streams when gateways are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.chaos.followers import follow_during_kills, follow_with_many

pytestmark = [pytest.mark.chaos, pytest.mark.blocks_loop, pytest.mark.timeout(900)]

_MAX_BYTES = 40 * 1024**2


async def test_500_followers_need_40_megabytes_and_receive_the_log(tmp_path: Path) -> None:
    """The followers share one reader, and each page of the log."""
    memory, are_complete = await follow_with_many(tmp_path, followers=500, messages=200)
    print(f"500 followers: {memory / 1024**2:.0f} MB")
    assert are_complete
    assert memory <= _MAX_BYTES


async def test_streams_equal_the_log_when_gateways_are_killed(tmp_path: Path) -> None:
    """Twenty gateways are killed, each during fifty streams."""
    assert await follow_during_kills(tmp_path, kills=20, streams=50, messages=60, seed=1) == []
