"""Take something away for longer than a lease, under load, give it back, and compare every answer with what it had to be.

    python -m benchmarks.outages                                  # every outage once
    python -m benchmarks.outages "nats-server frozen 40" --runs 20
    python -m benchmarks.outages --smoke

24 goals whose answers are known are published: half of them before, half while something is away. Nobody but who is taken away on
purpose may count as lost, no goal may fail, and all is over as soon as it would have been by itself, and 30 s.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks import machine
from benchmarks.faults import AGENTS, AllRestarted, Fault, Frozen, Killed, NatsFrozen, NatsKilled, Site, Stopped, suffered
from ioa.protocol.goals import Reason
from ioa.protocol.ids import GoalId
from ioa.telemetry.logs import configure_logs
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

SMOKE = ("the only registry killed 20", "worker killed 2.5")


@dataclass(frozen=True)
class Verdict:
    """What came of one run.

    Attributes:
        rested_after: How long after the outage everything was at rest, and `allowed`, how long that might take.
        moved_after: How long after the outage each group that was open had moved on.
        wrong: What is wrong, one sentence each.
    """

    outage: str
    reasons: Counter[Reason]
    rested_after: timedelta
    allowed: timedelta
    moved_after: timedelta
    wrong: Sequence[str]

    @property
    def row(self) -> str:
        """A line of the table."""
        others = ", ".join(f"{count} {reason}" for reason, count in self.reasons.items() if reason is not Reason.CONCLUDED)
        said = f"| {self.outage} | {self.reasons[Reason.CONCLUDED]} | {others or 0} | {_seconds(self.moved_after)} |"
        return f"{said} {_seconds(self.rested_after)} of {_seconds(self.allowed)} | {len(self.wrong)} |"


HEAD = "| outage | concluded | other ends | all moved on after | at rest after | wrong |\n|---|---|---|---|---|---|"


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


async def suffer(setup: Setup, outage: Outage, folder: Path, work: timedelta, goals: int = _GOALS) -> Sequence[Verdict]:
    """Run one outage in the systems of all tenants, and judge each. `work` is how long the load takes by itself."""
    async with open_sites(setup, outage.parts, folder, searches=outage.searches) as sites:
        return await asyncio.gather(*(_suffer(outage, site, work, goals) for site in sites))


async def _suffer(outage: Outage, site: Site, work: timedelta, goals: int) -> Verdict:
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
        return _judge(outage, evidence, unrest, rested, work + _BACK_IN, over)


def _judge(
    outage: Outage, evidence: Evidence | None, unrest: str | None, rested: timedelta, allowed: timedelta, over: datetime
) -> Verdict:
    if evidence is None:
        return Verdict(outage.name, Counter(), rested, allowed, rested, [f"There was no rest: {unrest}"])
    reasons = Counter(result.reason for result in evidence.results)
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
    return Verdict(outage.name, reasons, rested, allowed, moved, wrong)


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


async def run(setup: Setup, names: Sequence[str], runs: int, goals: int) -> bool:
    """Run outages so many times each, and print what came of them; whether all is well."""
    print(
        f"{goals} goals; {setup.nodes} nats-server(s), {setup.tenants} tenant(s) with credentials; {machine.describe()}", flush=True
    )
    with tempfile.TemporaryDirectory(prefix="ioa-outages-") as name:
        work = await undisturbed(setup, Path(name), goals)
    print(f"Undisturbed, the load takes {_seconds(work)}.\n\n{HEAD}", flush=True)
    verdicts: list[Verdict] = []
    for outage in names:
        for _ in range(runs):
            with tempfile.TemporaryDirectory(prefix="ioa-outages-") as name:
                found = await suffer(setup, OUTAGES[outage], Path(name), work, goals)
            verdicts += found
            print("\n".join(verdict.row for verdict in found), flush=True)
    wrong = [f"{verdict.outage}: {sentence}" for verdict in verdicts for sentence in verdict.wrong]
    bad = sum(bool(verdict.wrong) for verdict in verdicts)
    print(f"\n{len(verdicts) - bad} of {len(verdicts)} runs were as they had to be.\n" + "\n".join(wrong[:100]))
    return not wrong


def main() -> None:
    """Read the arguments, run, and say by the exit code whether anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("outages", nargs="*", metavar="outage", help=f"of: {'; '.join(OUTAGES)}; all of them by default")
    parser.add_argument("--runs", type=int, default=1, help="how often each")
    parser.add_argument("--goals", type=int, default=_GOALS)
    parser.add_argument("--nodes", type=int, choices=(1, 3), default=1, help="nats-servers")
    parser.add_argument("--tenants", type=int, choices=(0, 1, 2), default=0, help="tenants with credentials; 0: none are needed")
    parser.add_argument("--smoke", action="store_true", help="two short ones, with twelve goals")
    given = parser.parse_args()
    if unknown := [name for name in given.outages if name not in OUTAGES]:
        parser.error(f"no outage is called {unknown[0]!r}")
    configure_logs("error", "console")
    names, goals = (SMOKE, 12) if given.smoke else (given.outages or tuple(OUTAGES), given.goals)
    sys.exit(0 if asyncio.run(run(Setup(given.nodes, given.tenants), names, given.runs, goals)) else 1)


if __name__ == "__main__":
    main()
