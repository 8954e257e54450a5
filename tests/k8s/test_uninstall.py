"""The end of a release, behind all other tests of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.k8s.release import FULL_NAME, RELEASE, helm, kubectl
from tests.rig.deadline import eventually

pytestmark = [pytest.mark.k8s, pytest.mark.timeout(600)]

_PATIENCE = timedelta(minutes=3)


async def test_it_uninstalls() -> None:
    """`helm uninstall` leaves no pod; what agents and streams remember stays until somebody deletes it."""
    await helm("uninstall", RELEASE, "--wait")
    left = await eventually(_left, lambda names: not names, within=_PATIENCE)
    kept = (await kubectl("get", "persistentvolumeclaims", "--output", "name")).split()
    await kubectl("delete", "persistentvolumeclaims", "--all", "--wait=false")
    await kubectl("delete", "secrets", "--selector", f"app.kubernetes.io/instance={RELEASE}")
    assert (left, f"persistentvolumeclaim/data-{FULL_NAME}-nats-0" in kept) == ([], True)


async def _left() -> list[str]:
    return (await kubectl("get", "all", "--output", "name", "--selector", f"app.kubernetes.io/instance={RELEASE}")).split()
