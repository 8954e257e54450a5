"""Keys of a release that are replaced under load, and somebody who is thrown out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.k8s.goals import Goals
from tests.k8s.release import FULL_NAME, GATEWAY, apply_chart, is_ready, open_way, pods, seed_of
from tests.rig.deadline import eventually
from tests.rig.letting_in import is_let_in

pytestmark = [
    pytest.mark.k8s,
    pytest.mark.timeout(900),
    # nats-py drops the writer of a connection that was cut, as the tunnel is whenever the pod of NATS at its other end goes.
    pytest.mark.filterwarnings("ignore:.*StreamWriter:pytest.PytestUnraisableExceptionWarning"),
]

_SEED = 17
_PATIENCE = timedelta(minutes=3)
_ROTATION = ("credentials.rotate.id=first", "credentials.rotate.of={load,router,groups,user}")
_EVE = ("credentials.users[2].name=eve", "credentials.users[2].role=user")
_REPLACED = {"load": f"{FULL_NAME}-load-0", "router": "seed", "groups": "seed", "user": "seed"}
"""Whose keys are replaced, and where each has one in its Secret."""


async def test_keys_are_replaced_and_revoked_under_load(goals: Goals) -> None:
    """Agents, services and users get new keys while goals run: nothing is lost, and nothing done twice.

    The old keys are let in until the rotation is ended, and no longer. Who is taken off the values is let in no more either.
    """
    old = await _seeds()
    await goals.publish_load(20, _SEED)
    await apply_chart(*_ROTATION, *_EVE, beside=[GATEWAY])
    await goals.publish_load(5, _SEED + 1)
    assert await goals.wrong() == []
    new, eve = await _seeds(), await seed_of("eve")
    assert {name for name in old if old[name] != new[name]} == set(_REPLACED)
    assert await _let_in({**old, "eve": eve}) == {*_REPLACED, "eve"}
    assert await _let_in(new) == set(_REPLACED)
    await goals.publish_load(20, _SEED + 2)
    await apply_chart(*_ROTATION, "credentials.rotate.ended=true", beside=[GATEWAY])
    await goals.publish_load(5, _SEED + 3)
    assert await goals.wrong() == []
    assert (await _let_in({**old, "eve": eve}), await _let_in(new)) == (set(), set(_REPLACED))
    await eventually(pods, lambda found: all(map(is_ready, found)), within=_PATIENCE)


async def _seeds() -> dict[str, str]:
    return {name: await seed_of(name, key) for name, key in _REPLACED.items()}


async def _let_in(seeds: Mapping[str, str]) -> set[str]:
    """Say whose seeds are let in, by a way on which an admin's is."""
    async with open_way("admin") as way:
        await eventually(lambda: is_let_in(way))
        return {name for name, seed in seeds.items() if await is_let_in(replace(way, seed=seed))}
