"""A release as operators live with it: installed, tested, scaled, upgraded under load, hurt and rolled back."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import pytest

from tests.k8s.goals import Goals
from tests.k8s.release import (
    RELEASE,
    apply_chart,
    helm,
    ioa,
    is_ready,
    kubectl,
    name_of,
    open_way,
    pods,
    restarts,
    scale,
    without_ties,
)
from tests.rig.deadline import eventually

pytestmark = [
    pytest.mark.k8s,
    pytest.mark.timeout(900),
    # nats-py drops the writer of a connection that was cut, as the tunnel is whenever the pod of NATS at its other end goes.
    pytest.mark.filterwarnings("ignore:.*StreamWriter:pytest.PytestUnraisableExceptionWarning"),
]

_SEED = 11
_INSTALL_WITHIN = timedelta(seconds=60)
_AWAY = timedelta(seconds=60)
_NOTICED_WITHIN = timedelta(seconds=60)
_PATIENCE = timedelta(minutes=3)


async def test_it_installs() -> None:
    """`helm install --wait` returns within a minute on a cluster that has the images."""
    started = time.monotonic()
    await apply_chart()
    took = time.monotonic() - started
    _say("installed", seconds=took)
    assert took < _INSTALL_WITHIN.total_seconds()


async def test_its_own_test_passes() -> None:
    """`helm test` publishes a goal from a pod and gets the right result."""
    assert "Phase:          Succeeded" in await helm("test", RELEASE, "--timeout", "3m")


async def test_agent_runs_code_in_the_sandbox() -> None:
    """The code prints its result, and sees neither the network nor the agent's key."""
    code = (
        "import os, socket\n"
        "print(socket.if_nameindex(), os.path.exists('/etc/ioa'), os.environ.get('IOA_NATS_SEED'), sum(range(10)))"
    )
    async with open_way("user") as way:
        printed = await ioa(way, "run", f"run\n```python\n{code}\n```", "--agent", "python-runner")
    assert "[(1, 'lo')] False None 45" in printed


async def test_four_replicas_share_the_work(goals: Goals) -> None:
    """No replica of a pool leads more than 1.5 times its share of 100 goals."""
    await scale("calculator", 4)
    await without_ties("calculator")
    wanted = await goals.publish_sums(100)
    assert await goals.wrong_sums(wanted) == []
    leaders = await goals.leaders(list(wanted))
    _say("shared", **leaders)
    assert (len(leaders), max(leaders.values()) <= 1.5 * 100 / 4) == (4, True)


async def test_a_pool_scales_under_load(goals: Goals) -> None:
    """From one replica to four and back, while goals come in: each gets its right result."""
    await scale("calculator", 1)
    await without_ties("calculator")
    wanted = await goals.publish_sums(20)
    await scale("calculator", 4)
    await without_ties("calculator")
    wanted |= await goals.publish_sums(20)
    await scale("calculator", 1)
    await without_ties("calculator")
    assert await goals.wrong_sums(wanted) == []


async def test_a_pool_wakes_from_zero(goals: Goals) -> None:
    """A goal for a pool without a replica waits, and is finished when there is one."""
    await scale("calculator", 0)
    await eventually(lambda: pods("calculator"), lambda left: not left, within=_PATIENCE)
    wanted = await goals.publish_sums(1)
    await scale("calculator", 1)
    assert await goals.wrong_sums(wanted) == []


async def test_an_upgrade_loses_nothing(goals: Goals) -> None:
    """Every pod of every part is replaced while 20 goals run; nothing is lost, and nothing done twice."""
    await _under_load(goals, apply_chart("workloads.podAnnotations.turn=second"))


async def test_a_rollback_loses_nothing(goals: Goals) -> None:
    """And again on the way back."""
    await _under_load(goals, helm("rollback", RELEASE, "--wait", "--timeout", "5m"))


async def test_pods_may_be_deleted_at_random(goals: Goals) -> None:
    """Ten pods of any part are deleted one after the other under load; nothing is lost, and nothing done twice."""
    chance = random.Random(_SEED)

    async def delete() -> None:
        for number in range(10):
            await goals.publish_load(2, _SEED + number)
            ready = await eventually(_ready, within=_PATIENCE)
            victim = chance.choice(ready)
            _say("deleted", pod=victim)
            await kubectl("delete", "pod", victim, "--wait=false", "--grace-period", str(chance.choice((1, 30))))

    await _under_load(goals, delete())
    await eventually(pods, lambda found: all(map(is_ready, found)), within=_PATIENCE)


async def test_nats_may_be_gone_for_a_minute(goals: Goals) -> None:
    """Without NATS everybody is unready and nobody is restarted; afterwards all goals are finished."""
    before = restarts([pod for pod in await pods() if "-nats-" not in name_of(pod)])

    async def take_nats_away() -> None:
        await scale("nats", 0)
        await eventually(lambda: pods("nats"), lambda left: not left, within=_PATIENCE)
        gone = time.monotonic()
        await eventually(_ready, lambda names: not names, within=_NOTICED_WITHIN)
        _say("unready", seconds=time.monotonic() - gone)
        await asyncio.sleep(max(0.0, _AWAY.total_seconds() - (time.monotonic() - gone)))
        await scale("nats", 1)
        await eventually(pods, lambda found: all(map(is_ready, found)), within=_PATIENCE)

    await _under_load(goals, take_nats_away())
    after = restarts(await pods())
    assert {name: after.get(name) for name in before} == before


async def _ready() -> list[str]:
    return [name_of(pod) for pod in await pods() if is_ready(pod)]


async def _under_load(goals: Goals, event: Coroutine[Any, Any, object]) -> None:
    """Run 20 conversations, have something happen to the release meanwhile, and judge all that is left when they have ended."""
    await goals.publish_load(20, _SEED)
    started = time.monotonic()
    await event
    happened = time.monotonic()
    await goals.publish_load(5, _SEED + 1)
    assert await goals.wrong() == []
    _say("judged", goals=len(goals.load), event_seconds=happened - started, rest_seconds=time.monotonic() - happened)


def _say(what: str, **figures: object) -> None:
    """Print a line for docs/kubernetes.md."""
    shown = ", ".join(f"{name} {value:.1f}" if isinstance(value, float) else f"{name} {value}" for name, value in figures.items())
    print(f"{what}: {shown}", flush=True)
