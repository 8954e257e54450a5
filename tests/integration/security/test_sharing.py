"""A user who publishes thousands of goals at once, beside another who has one."""

from __future__ import annotations

from ioa.protocol import subjects
from tests.integration.security.secured import open_intruder
from tests.integration.security.town import BOB, EVE, SOON, Town
from tests.rig.deadline import eventually

_GOALS = 10_000
_SLACK_SECONDS = 0.5
"""What a busy machine may cost one goal."""


async def test_thousands_of_goals_of_one_user_do_not_delay_anothers_first(town: Town) -> None:
    """It takes three times as long as undisturbed at most, and bob is given few of the thousands."""
    await town.lead_one("Count to ten.")
    usual = await town.lead_one("Count to eleven.")
    async with open_intruder(town.secured, "eve") as eve:
        for number in range(_GOALS):
            await eve.publish(subjects.goal_to(EVE, BOB), b"Count to %d." % number)
        await eve.flush()
        await eventually(lambda: any(name.user == EVE for name in town.agents[BOB].given.names), within=SOON)
        took = await town.lead_one("Count to twelve.")
    given = sum(name.user == EVE for name in town.agents[BOB].given.names)
    assert took <= 3 * usual + _SLACK_SECONDS, f"{took:.2f} s; undisturbed {usual:.2f} s"
    assert given < 20
