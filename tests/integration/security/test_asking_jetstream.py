"""How streams stand users and observers ask group setup: JetStream, which they may not ask, answers everybody in one line."""

from __future__ import annotations

import pytest

from ioa.adapters.nats.inspection import NatsInspection, open_inspection
from ioa.adapters.nats.system_client import open_system
from ioa.cli.examination import Health, probe_finding, quotas_finding
from ioa.cli.probe import send_probe
from ioa.errors import ForbiddenError, NotFoundError
from ioa.protocol import subjects
from ioa.protocol.ids import GoalId
from tests.integration.security.secured import flooding, open_intruder, told_of
from tests.integration.security.town import BOB, EVE, SLACK_SECONDS, SOON, Town
from tests.rig.deadline import eventually


async def test_asking_how_streams_stand_stops_nobody_and_is_named(town: Town) -> None:
    """A user who asks as fast as he can delays no goals; an observer is answered meanwhile, and told by the doctor who it is."""
    usual = await town.lead_one()
    async with open_inspection(town.secured.settings("observer"), patience=SOON) as inspection:
        async with flooding(town.secured, EVE, "seed", subjects.standing_of(EVE), b"\x80"):
            took = await town.lead_one()
            storage = await eventually(inspection.storage, bool, within=SOON)
        found = quotas_finding(await told_of(inspection))
    assert took <= 3 * usual + SLACK_SECONDS, f"undisturbed it takes {usual:.3f} s"
    assert (storage is not None and storage.streams > 0, "_eve" in found.message) == (True, True)


async def test_observers_and_users_see_the_same_as_an_admin(town: Town) -> None:
    """Whoever asks group setup learns what whoever asks JetStream does, and a goal that is not there is not found."""
    await town.lead_one()
    seen = []
    for name in ("admin", "observer", "user"):
        async with open_intruder(town.secured, name) as client:
            inspection = NatsInspection(client)
            storage, topology = await inspection.storage(), await inspection.topology()
            assert storage is not None
            seen.append((storage.streams, storage.shares, topology, {stream.name for stream in await inspection.read()}))
    async with open_system(town.secured.settings("user"), patience=SOON) as system:
        with pytest.raises(NotFoundError, match="There is no goal"):
            await system.goal(GoalId("nothing"))
    assert seen == [seen[0]] * 3


async def test_a_user_tries_whether_goals_get_through_and_an_observer_may_not(town: Town) -> None:
    """The doctor's goal takes a user's credential, goes to no agent, and ends where users have queues of their own too."""
    async with open_system(town.secured.settings("user"), patience=SOON) as system:
        probed = await send_probe(system)
    assert (probe_finding(probed).health, probed.name in town.agents[BOB].given.names) == (Health.OK, False), probed
    async with open_system(town.secured.settings("observer"), patience=SOON) as system:
        with pytest.raises(ForbiddenError, match="is that of no user"):
            await send_probe(system)
