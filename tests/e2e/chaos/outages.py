"""Outages under load that last longer than a lease, and a comparison of every answer with its known value.

24 goals whose answers are known are published, half of them before the outage and half during it. Only the stopped agents may
count as lost, no goal may fail, and everything is at rest at most 30 s later than without an outage.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ioa.protocol.goals import Reason
from ioa.protocol.ids import GoalId
from tests.rig.faults import AGENTS, AllRestarted, Fault, Frozen, Killed, NatsFrozen, NatsKilled, Site, Stopped, suffered
from tests.rig.fleet import CONTROL_PLANE, REGISTRIES, ROSTER, WORKERS, open_fleet
from tests.rig.log_checker import Evidence, check, check_losses, recovery_after
from tests.rig.nats_site import open_nats_site
from tests.rig.oracle import SLOW_KINDS

_GOALS = 24
_INTO_THE_WORK = timedelta(seconds=3)
_BACK_IN = timedelta(seconds=30)
_GIVE_UP = timedelta(seconds=300)
_GOAL_TIMEOUT = timedelta(minutes=30)

_WITH_ONE_REGISTRY = tuple(name for name in CONTROL_PLANE if name != REGISTRIES[1])
_WITH_DISCOVERY = (*CONTROL_PLANE, "discovery-0", "discovery-1")
_EVERYTHING = (*CONTROL_PLANE, *WORKERS)


@dataclass(frozen=True)
class Outage:
    """What is taken away, for how long, and of what.

    Attributes:
        parts: The control plane: what it consists of says whether another replica is left.
        searches: Every team is found by discovery.
    """

    fault: Fault
    length: timedelta
    parts: Sequence[str] = CONTROL_PLANE
    searches: bool = False

    @property
    def name(self) -> str:
        """Name it."""
        one = "the only " if len(self.parts) < len(CONTROL_PLANE) else ""
        return f"{one}{self.fault.what} {self.length.total_seconds():g}"


def _lasting(*seconds: float) -> list[timedelta]:
    return [timedelta(seconds=each) for each in seconds]


OUTAGES = {
    outage.name: outage
    for outage in (
        *(Outage(NatsFrozen(), length) for length in _lasting(15, 40, 120)),
        *(Outage(NatsKilled(), length) for length in _lasting(15, 40, 120)),
        *(Outage(Killed([REGISTRIES[0]]), length, _WITH_ONE_REGISTRY) for length in _lasting(20, 40)),
        *(Outage(Frozen([REGISTRIES[0]]), length, _WITH_ONE_REGISTRY) for length in _lasting(20, 40)),
        *(Outage(Frozen([name]), timedelta(seconds=60)) for name in ("registry-0", "router-0", "groups-0")),
        Outage(Frozen(["discovery-0"]), timedelta(seconds=60), _WITH_DISCOVERY, searches=True),
        Outage(Stopped(AGENTS[:1]), timedelta(seconds=2.5)),
        Outage(Killed(AGENTS[:1]), timedelta(seconds=2.5)),
        Outage(AllRestarted(_EVERYTHING), timedelta(seconds=5)),
    )
}


@dataclass(frozen=True)
class Setup:
    """The NATS of a run: number of nats-servers, and of tenants with credentials (0: no credentials)."""

    nodes: int = 1
    tenants: int = 0


@asynccontextmanager
async def open_sites(setup: Setup, parts: Sequence[str], folder: Path, *, searches: bool = False) -> AsyncIterator[Sequence[Site]]:
    """Run nats-servers, and the parts and all agents of each tenant, with the default of every setting."""
    env = {"IOA_LOG_LEVEL": "error", "IOA_REPLICAS": str(setup.nodes)} | ({"IOA_LOAD_SEARCHES": "true"} if searches else {})
    async with (
        open_nats_site(folder / "nats", nodes=setup.nodes, tenants=setup.tenants, agents=len(ROSTER)) as nats,
        AsyncExitStack() as stack,
    ):
        sites = []
        for number, credentials in enumerate(nats.credentials):
            fleet = open_fleet(nats.url, folder / f"fleet-{number}", env, credentials=credentials)
            sites.append(Site(await stack.enter_async_context(fleet), () if number else nats.servers))
        for site in sites:
            await site.fleet.start(*parts, *WORKERS)
        await asyncio.gather(*(site.fleet.until_online() for site in sites))
        yield sites


async def undisturbed(setup: Setup, folder: Path, goals: int = _GOALS) -> timedelta:
    """Measure how long the load takes if nothing is taken away."""
    async with open_sites(setup, CONTROL_PLANE, folder) as sites:
        started = time.monotonic()
        await asyncio.gather(*(_publish(site, number) for number in range(goals) for site in sites))
        await asyncio.gather(*(site.fleet.rest(within=_GIVE_UP) for site in sites))
        return timedelta(seconds=time.monotonic() - started)


async def suffer(setup: Setup, outage: Outage, folder: Path, work: timedelta, goals: int = _GOALS) -> Sequence[str]:
    """Run one outage in the systems of all tenants, and return the errors. `work` is the duration of the load without outage."""
    async with open_sites(setup, outage.parts, folder, searches=outage.searches) as sites:
        found = await asyncio.gather(*(_suffer(outage, site, work, goals) for site in sites))
    return [wrong for one in found for wrong in one]


async def _suffer(outage: Outage, site: Site, work: timedelta, goals: int) -> list[str]:
    async with asyncio.TaskGroup() as group:
        for number in range(goals // 2):
            group.create_task(_publish(site, number))
        await asyncio.sleep(_INTO_THE_WORK.total_seconds())
        late = goals - goals // 2
        async with suffered(outage.fault, site):
            for number in range(late):
                group.create_task(_publish(site, goals // 2 + number))  # waits for as long as nobody takes it
                await asyncio.sleep(outage.length.total_seconds() / late)
        over, started = datetime.now(UTC), time.monotonic()
        site.fleet.goals += [goal_id for goal_id in map(_name, range(goals)) if goal_id not in site.fleet.goals]
        unrest = await _unrest(site)
        rested = timedelta(seconds=time.monotonic() - started)
        evidence = await site.fleet.evidence(within=timedelta(seconds=5)) if unrest is None else None
        return _judge(evidence, unrest, rested, work + _BACK_IN, over)


def _judge(evidence: Evidence | None, unrest: str | None, rested: timedelta, allowed: timedelta, over: datetime) -> list[str]:
    if evidence is None:
        return [f"The system did not come to rest: {unrest}"]
    moved = recovery_after(evidence.logs, over)
    wrong = [*check(evidence), *check_losses(evidence)]
    wrong += [
        f"Goal {result.goal_id} ended as {result.reason}: {result.content!r}."
        for result in evidence.results
        if result.reason is not Reason.CONCLUDED
    ]
    if rested > allowed:
        wrong.append(f"All was at rest only {_seconds(rested)} after the outage, not {_seconds(allowed)}.")
    if moved > _BACK_IN:
        wrong.append(f"A group that was open moved on only {_seconds(moved)} after the outage, not {_seconds(_BACK_IN)}.")
    return wrong


async def _unrest(site: Site) -> str | None:
    try:
        await site.fleet.rest(within=_GIVE_UP)
    except AssertionError as error:
        return str(error)
    return None


async def _publish(site: Site, number: int) -> None:
    await site.fleet.publish(_name(number), SLOW_KINDS[number % len(SLOW_KINDS)], timeout=_GOAL_TIMEOUT)


def _name(number: int) -> GoalId:
    return GoalId(f"goal-{number}")


def _seconds(length: timedelta) -> str:
    return f"{length.total_seconds():.1f} s"
