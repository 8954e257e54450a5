"""How streams stand users and observers ask group setup: JetStream, which they may not ask, answers everybody in one line."""

from __future__ import annotations

import pytest

from ioa.adapters.nats.inspection import NatsInspection
from ioa.cli.doctor import Health, send_probe
from ioa.client.client import open_system
from ioa.errors import ForbiddenError, NotFoundError
from ioa.protocol.ids import GoalId
from tests.integration.security.secured import open_intruder
from tests.integration.security.town import BOB, SOON, Town


async def test_observers_and_users_see_the_same_as_an_admin(town: Town) -> None:
    """Whoever asks group setup learns what whoever asks JetStream does, and a goal that is not there is not found."""
    await town.lead_one()
    seen = []
    for name in ("admin", "observer", "user"):
        async with open_intruder(town.secured, name) as client:
            standing = await NatsInspection(client).standing()
            assert standing is not None
            seen.append((standing.missing, {(one.name, one.limit_bytes, one.schedules) for one in standing.streams}))
    async with open_system(town.secured.settings("user"), patience=SOON) as system:
        with pytest.raises(NotFoundError, match="There is no goal"):
            await system.goal(GoalId("nothing"))
    assert seen == [seen[0]] * 3


async def test_a_user_tries_whether_goals_get_through_and_an_observer_may_not(town: Town) -> None:
    """The doctor's goal takes a user's credential, goes to no agent, and ends where users have queues of their own too."""
    async with open_system(town.secured.settings("user"), patience=SOON) as system:
        probed = await send_probe(system)
    assert (probed.health, any("probe" in name.goal_id for name in town.agents[BOB].given.names)) == (Health.OK, False), probed
    async with open_system(town.secured.settings("observer"), patience=SOON) as system:
        with pytest.raises(ForbiddenError, match="is not that of exactly one user"):
            await send_probe(system)
