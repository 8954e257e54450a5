"""A full store: new goals are rejected, running goals finish, and goals are accepted again when there is space."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.streams.topology import LOG, Shares
from ioa.errors import StoreFullError
from ioa.protocol import subjects
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import CommId
from tests.integration.security.secured import open_intruder, open_secured
from tests.integration.security.town import BOB, SOON, Town, open_town_on
from tests.rig.deadline import eventually

_SHARES = Shares(20_000_000)
_FILLER = CommId("filler")


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """A system with a small store."""
    async with open_secured(tmp_path, (BOB,)) as secured:
        bounded = replace(secured, told={"IOA_STORE_BYTES": str(_SHARES.store)})
        async with open_town_on(bounded, (BOB,)) as opened:
            yield opened


@pytest.mark.nightly
async def test_full_store_rejects_new_goals_and_finishes_running_ones(town: Town) -> None:
    """A goal that was accepted before is led to its end while the store is over 90 % full."""
    await town.lead_one()
    [running] = await town.ask_for("Count to eleven.")
    async with open_intruder(town.secured, "admin") as admin:
        js = admin.jetstream()

        async def is_rejected() -> bool:
            try:
                await town.user.submit(GoalOrder(goal="Count.", agent=BOB))
            except StoreFullError:
                return True
            return False

        stored = (await js.stream_info(LOG)).state.bytes
        for _ in range((_SHARES.by_stream()[LOG] * 95 // 100 - stored) // 400_000):
            await js.publish(subjects.log(_FILLER), bytes(400_000))
        await eventually(is_rejected, within=SOON)
        await town.agents[BOB].lead(running, "Eleven.")
        assert await town.outcome(running) == (Reason.CONCLUDED, "Eleven.")
        assert await is_rejected()
        await js.purge_stream(LOG, subject=subjects.log(_FILLER))

        async def is_accepted() -> bool:
            return not await is_rejected()

        await eventually(is_accepted, within=SOON)
    await town.lead_one(within=timedelta(minutes=2))  # goals that arrived while the store was full return after 10 s each
