"""Who fills a store is remembered, within bounds."""

from __future__ import annotations

import time

from structlog.testing import capture_logs

from ioa.ports.inspection import FILLING
from ioa.ports.store_room import StoreRoom
from ioa.runtime.stored_shares import StoredShares


def test_one_more_is_noted_fast_where_very_many_are_remembered() -> None:
    """Each agent counts once for each user: among 16,384 of them the least was looked for each time, for milliseconds."""
    shares = StoredShares(lambda: 0.0, FILLING)
    shares.note("eve", 10**9)
    for number in range(16_383):
        shares.note(f"agent-{number}", 1_000 + number)
    began = time.process_time()
    for number in range(1_000):
        shares.note(f"other-{number}", 10)
    assert time.process_time() - began < 0.5
    assert (shares.held("eve"), shares.held("agent-0"), shares.held("other-999")) == (10**9, 0, 10)


def test_who_was_put_off_is_forgotten_where_nobody_asks() -> None:
    """Nobody asks who fills an agent's room for files."""
    shares, full = StoredShares(lambda: 0.0, "files"), StoreRoom(0, 1_000)
    with capture_logs():
        assert all(shares.puts_off(f"agent-{number}", full, 10**9) for number in range(17_000))
    assert len(shares.slowed()) == 16_384
