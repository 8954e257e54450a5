"""How streams stand users and observers ask group setup: JetStream, which they may not ask, answers everybody in one line."""

from __future__ import annotations

import pytest

from ioa.cli.doctor import Health, send_probe
from ioa.client.client import open_system
from ioa.errors import ForbiddenError
from tests.integration.security.town import BOB, SOON, Town


async def test_a_user_tries_whether_goals_get_through_and_an_observer_may_not(town: Town) -> None:
    """The doctor's goal takes a user's credential, goes to no agent, and ends where users have queues of their own too."""
    async with open_system(town.secured.settings("user"), patience=SOON) as system:
        probed = await send_probe(system)
    assert (probed.health, any("probe" in name.goal_id for name in town.agents[BOB].given.names)) == (Health.OK, False), probed
    async with open_system(town.secured.settings("observer"), patience=SOON) as system:
        with pytest.raises(ForbiddenError, match="is not that of exactly one user"):
            await send_probe(system)
