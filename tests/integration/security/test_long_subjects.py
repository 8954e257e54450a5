"""A subject may be as long as a line of the wire: what the server tells of many such is more than a connection may be sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.security.secured import open_intruder
from tests.integration.security.town import BOB, EVE, SLACK_SECONDS, Town, open_town


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """A system with two users and bob."""
    async with open_town(tmp_path, (BOB,)) as opened:
        yield opened


async def test_long_addressees_have_group_setup_disconnected_no_more(town: Town) -> None:
    """By 450 goals of one byte: as long as they waited it was cut off each time that it asked whose goals there are."""
    usual = await town.lead_some()
    async with open_intruder(town.secured, "eve") as eve:
        for number in range(450):
            await eve.publish(f"ioa.v1.goal.{EVE}.{'<' * 3_900}{number}", b"x")
        await eve.flush()
        took = await town.lead_some()
    assert "Slow Consumer" not in town.secured.log()
    assert took <= 3 * usual + SLACK_SECONDS, f"undisturbed they take {usual:.3f} s"
