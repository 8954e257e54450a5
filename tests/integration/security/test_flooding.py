"""One agent sends as fast as it can on every subject that its key opens, while an honest one leads goals on the same system."""

from __future__ import annotations

from collections.abc import Sequence

from ioa.adapters.nats.inspection import open_inspection
from ioa.cli.examination import Health, quotas_finding
from ioa.protocol import subjects
from ioa.protocol.ids import CommId, PoolId
from tests.integration.security.secured import flooding, open_intruder
from tests.integration.security.town import MALLORY, SLACK_SECONDS, SOON, Town
from tests.rig.deadline import eventually


async def test_asking_everybody_how_it_stands_stops_nobody(town: Town) -> None:
    """A user who asks the services for their statistics as fast as he can delays nobody's goals."""
    usual = await town.lead_some()
    async with open_intruder(town.secured, "eve") as eve, flooding(eve, "$SRV.STATS", bytes(10)):
        took = await town.lead_some()
    assert took <= 3 * usual + SLACK_SECONDS, f"undisturbed they take {usual:.3f} s"


async def test_a_flood_delays_nobody_else_and_is_named(town: Town) -> None:
    """Whatever one agent asks as fast as it can, another's goals take three times as long at most; the doctor names it."""
    async with open_inspection(town.secured.settings("observer"), patience=SOON) as inspection:
        await eventually(lambda: inspection.answers("ioa-router"), within=SOON)
        usual = await town.lead_some()
        took = {flood: await _lead_beside(town, *flood) for flood in _floods()}
        found = quotas_finding(await inspection.slowed())
    slow = {flood: seconds for flood, seconds in took.items() if seconds > 3 * usual + SLACK_SECONDS}
    assert slow == {}, f"undisturbed they take {usual:.3f} s"
    assert (found.health, "mallory" in found.message, "bob" in found.message) == (Health.WARNING, True, False)


def _floods() -> Sequence[tuple[str, int]]:
    return (
        (subjects.say(CommId("c1"), MALLORY), 10),
        (subjects.say(CommId("c1"), MALLORY), 100_000),
        (subjects.renew(PoolId(MALLORY), MALLORY), 10),
        (subjects.register(PoolId(MALLORY), MALLORY), 10_000),
        (subjects.sync(MALLORY), 10),
    )


async def _lead_beside(town: Town, subject: str, size: int) -> float:
    async with flooding(town.agents[MALLORY].client, subject, bytes(size)):
        return await town.lead_some()
