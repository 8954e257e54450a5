"""A user who publishes thousands of goals at once, beside another who has one."""

from __future__ import annotations

from ioa.adapters.nats.inspection import open_inspection
from ioa.cli.doctor import Health, queues_finding
from ioa.protocol import subjects
from tests.integration.security.secured import open_intruder
from tests.integration.security.town import BOB, EVE, SOON, Town
from tests.rig.deadline import eventually

_GOALS = 10_000
_SLACK_SECONDS = 0.5
"""What a busy machine may cost one goal."""


async def test_thousands_of_goals_of_one_user_do_not_delay_anothers_first(town: Town) -> None:
    """It takes three times as long as undisturbed at most, bob is given few of the thousands, and the doctor says whose wait."""
    await town.lead_one("Count to ten.")
    usual = await town.lead_one("Count to eleven.")
    async with open_intruder(town.secured, "eve") as eve, open_inspection(town.secured.settings("observer"), patience=SOON) as seen:
        for number in range(_GOALS):
            await eve.publish(subjects.goal_to(EVE, BOB), b"Count to %d." % number)
        await eve.flush()
        await eventually(lambda: any(name.user == EVE for name in town.agents[BOB].given.names), within=SOON)
        took = await town.lead_one("Count to twelve.")
        standing = await seen.standing()
        assert standing is not None
        found = queues_finding([(stream.name, queue) for stream in standing.streams for queue in stream.queues])
    given = sum(name.user == EVE for name in town.agents[BOB].given.names)
    assert took <= 3 * usual + _SLACK_SECONDS, f"{took:.2f} s; undisturbed {usual:.2f} s"
    assert given < 20
    assert (found.health, "eve (" in found.message, "user (" in found.message) == (Health.WARNING, True, False)
