"""What the doctor says about servers that are ill."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from nats.aio.client import Client

from ioa.adapters.nats_server import NatsServer
from ioa.adapters.nats_topology import DEAD, Topology
from ioa.cli.examination import Health, clock_finding, disk_finding, examine, index_finding, server_finding
from ioa.cli.failures import ExitCode


@pytest.mark.parametrize(
    ("version", "health"),
    [("2.12.0", Health.OK), ("2.15.1", Health.OK), ("3.0.0-beta", Health.OK), ("2.11.9", Health.PROBLEM), ("", Health.PROBLEM)],
)
def test_a_server_must_know_scheduled_messages(version: str, health: Health) -> None:
    """2.12 is the first that does."""
    finding = server_finding(version)
    assert (finding.health, bool(finding.hint)) == (health, health is Health.PROBLEM)


def test_clocks_may_differ_a_little() -> None:
    """Two seconds either way are too much, and the message says which way."""
    found = [clock_finding(timedelta(seconds=seconds)) for seconds in (0.5, 5, -5)]
    assert [one.health for one in found] == [Health.OK, Health.PROBLEM, Health.PROBLEM]
    assert ("5.0 s ahead of" in found[1].message, "5.0 s behind" in found[2].message) == (True, True)


def test_a_disk_that_is_nearly_full_is_a_problem() -> None:
    """Less than one GB, or less than a twentieth, is too little."""
    found = [disk_finding(free, total, Path("data")).health for free, total in ((50e9, 100e9), (0.5e9, 5e9), (4e9, 100e9))]  # type: ignore[arg-type]
    assert found == [Health.OK, Health.PROBLEM, Health.PROBLEM]


def test_an_index_that_differs_from_the_registry_is_stale() -> None:
    """More or fewer cards than are registered."""
    assert [index_finding(cards, 3, "model").health for cards in (3, 2, 4)] == [Health.OK, Health.PROBLEM, Health.PROBLEM]


async def test_a_server_without_anything_is_described(nats_url: str, tmp_path: Path) -> None:
    """On a bare server the streams are missing and no service answers; each finding says how to mend it."""
    examined = await examine(nats_url, tmp_path)
    found = {one.check: one.health for one in examined.findings}
    assert (examined.code, found) == (
        ExitCode.FAILED,
        {
            "server": Health.OK,
            "jetstream": Health.OK,
            "streams": Health.PROBLEM,
            "clock": Health.OK,
            "disk": Health.OK,
            "services": Health.PROBLEM,
        },
    )
    assert all(one.hint for one in examined.findings if one.health is Health.PROBLEM)


async def test_a_stream_that_is_missing_is_named(nats_url: str, tmp_path: Path) -> None:
    """Of a topology that lost one stream, only that one is reported."""
    client = Client()
    await client.connect(nats_url)
    await Topology().ensure(client.jetstream())
    complete = await examine(nats_url, tmp_path)
    await client.jetstream().delete_stream(DEAD)
    lacking = await examine(nats_url, tmp_path)
    await client.close()
    found = [next(one for one in examined.findings if one.check == "streams") for examined in (complete, lacking)]
    assert [(one.health, one.message) for one in found] == [
        (Health.OK, "13 streams and buckets"),
        (Health.PROBLEM, "Missing: IOA_DEAD."),
    ]


async def test_a_server_that_is_gone_is_out_of_reach(nats_server: NatsServer, tmp_path: Path) -> None:
    """Nothing that listens exits with 3 and names the address."""
    await nats_server.stop()
    examined = await examine(nats_server.url, tmp_path)
    assert (examined.code, nats_server.url in examined.findings[0].message) == (ExitCode.UNREACHABLE, True)
