"""Faults that last or leave something behind, under load: everybody gets over them by themselves, with the right answers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nats.errors
import pytest

from ioa.adapters.nats.streams.topology import RESULTS, STREAMS
from ioa.adapters.nats.wire.embedded_server import open_nats_server
from ioa.concurrency import beside
from ioa.local.local_system import keep_server
from ioa.protocol import subjects
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName
from tests.rig.deadline import eventually
from tests.rig.faults import ClockOff, Fault, Killed, NatsEmptied, Poison, Site, VolumeFull, Wiped, suffered
from tests.rig.fleet import CONTROL_PLANE, WORKERS, open_fleet
from tests.rig.log_checker import check
from tests.rig.small_volume import open_small_volume

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240), pytest.mark.blocks_loop]

_BACK_IN = timedelta(seconds=30)
_EVERYTHING = (*CONTROL_PLANE, *WORKERS)
_HOUR = timedelta(hours=1)


@asynccontextmanager
async def _open_site(folder: Path, store: Path | None = None) -> AsyncIterator[Site]:
    """Two replicas of each service and six agents, with every setting as it is shipped."""
    env = {"IOA_LOG_LEVEL": "warning"}
    async with (
        open_nats_server(store or folder / "nats", None) as server,
        open_fleet(server.url, folder / "fleet", env) as fleet,
    ):
        await fleet.start(*_EVERYTHING)
        await fleet.until_online()
        yield Site(fleet, [server])


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A system at work."""
    async with _open_site(tmp_path) as site:
        yield site


async def _published_at(site: Site, stream: str, subject: str) -> datetime:
    """When nats-server stored the last message of a subject, by its own clock."""
    message = await site.fleet.client.jetstream().get_last_msg(stream, subject)
    assert message.time is not None
    return message.time


async def _stands(site: Site) -> bool:
    """Whether every stream is there."""
    try:
        return {info.config.name for info in await site.fleet.client.jetstream().streams_info()} >= set(STREAMS)
    except (nats.errors.Error, TimeoutError):
        return False


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")
async def test_jetstreams_disk_is_full(tmp_path: Path) -> None:
    """Everybody waits; when there is room nats-server is started again, and what was accepted goes on within 30 s."""
    async with (
        open_small_volume(tmp_path / "volume", size_bytes=96 * 1024 * 1024) as volume,
        _open_site(tmp_path, volume.folder / "nats") as site,
        beside(keep_server(site.server, volume.folder / "nats", {}, asyncio.Event())),
    ):
        await site.fleet.publish_mix(10, seed=90)
        async with asyncio.TaskGroup() as late, suffered(VolumeFull(volume), site):
            late.create_task(site.fleet.publish_mix(10, seed=91))
            await eventually(site.server.write_error, within=_BACK_IN)
        evidence = await site.fleet.evidence(within=2 * _BACK_IN)
        died = [name for name in _EVERYTHING if site.fleet.has_died(name)]
    assert (check(evidence), died) == ([], [])


@pytest.mark.parametrize("others", [None, Killed(_EVERYTHING), Wiped(WORKERS)], ids=["alone", "with all", "with memories"])
async def test_a_store_is_lost(site: Site, others: Fault | None) -> None:
    """nats-server comes back with nothing: streams are made anew by whoever runs, and the same goals are goals again."""
    goals = await site.fleet.publish_mix(10, seed=92)
    await site.fleet.rest()
    await site.fleet.publish_mix(5, seed=93)
    async with suffered(NatsEmptied(), site):
        if others is not None:
            await others.begin(site)
    await site.fleet.forget()
    if others is not None:
        await others.end(site)
    await eventually(lambda: _stands(site), within=_BACK_IN)
    await site.fleet.until_online()
    for goal_id in goals:
        await site.fleet.publish_again(goal_id)
    evidence = await site.fleet.evidence(within=2 * _BACK_IN)
    assert check(evidence) == []


@pytest.mark.parametrize(
    ("name", "ahead"), [("router-0", _HOUR), ("router-0", -_HOUR), ("groups-0", -_HOUR), ("registry-0", _HOUR)]
)
async def test_a_clock_steps(site: Site, name: str, ahead: timedelta) -> None:
    """No goal ends early for it, nobody counts as lost, and a deadline is kept within 5 s by nats-server's clock."""
    too_long, other = GoalId("too-long"), name.replace("-0", "-1")
    await site.fleet.publish_mix(5, seed=94)
    if other not in WORKERS:
        await site.fleet.kill(other)  # or it might decide everything
    async with suffered(ClockOff(name, ahead), site):
        for number, kind in enumerate(("talk8", "sum", "gather", "nest")):
            await site.fleet.publish(GoalId(f"slow-{number}"), kind, timeout=timedelta(minutes=30))
        begun = datetime.now(UTC)
        await site.fleet.publish(too_long, "talk16", timeout=timedelta(seconds=12))
        evidence = await site.fleet.evidence(within=timedelta(seconds=90))
        ended = await _published_at(site, RESULTS, subjects.result_of(GoalName(LOCAL, too_long)))
    reasons = {result.goal_id: result.reason for result in evidence.results}
    assert (check(evidence), reasons.pop(too_long)) == ([], Reason.DEADLINE)
    assert {reason for goal_id, reason in reasons.items() if goal_id.startswith("slow-")} == {Reason.CONCLUDED}
    assert timedelta(seconds=11) < ended - begun < timedelta(seconds=18)


async def test_poison_lies_everywhere(site: Site) -> None:
    """Nobody ends for what nobody can read, not even when everybody reads everything again; other goals conclude."""
    await site.fleet.publish_mix(5, seed=95)
    async with suffered(Poison(), site):
        await site.fleet.publish_mix(5, seed=96)
        await site.server.stop()
        await site.server.start()
        await site.fleet.publish_mix(5, seed=97)
        evidence = await site.fleet.evidence(within=2 * _BACK_IN)
    died = [name for name in _EVERYTHING if site.fleet.has_died(name)]
    assert (check(evidence), died) == ([], [])
