"""Agents that work for several tenants: which settings each is worked for with."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioa.errors import InvalidInputError
from ioa.hosting.settings import WorkerSettings
from ioa.runtime.settings import settings_from
from ioa.telemetry import readiness


def test_each_tenant_is_worked_for_by_its_own_key_and_memory() -> None:
    """Nothing that says who connects, or where an agent remembers, is shared with another tenant."""
    told = {"IOA_NATS_TOKEN": "a.b.c", "IOA_AGENT_DATA": "/data", "IOA_TENANT_SEEDS": "acme=/keys/acme, umbra=/keys/umbra"}
    others = settings_from(WorkerSettings, told).for_others()
    shown = {name: (one.nats_seed, one.nats_token, one.agent_data, one.for_others()) for name, one in others.items()}
    assert shown == {
        "acme": ("/keys/acme", None, Path("/data/of.acme"), {}),
        "umbra": ("/keys/umbra", None, Path("/data/of.umbra"), {}),
    }
    assert WorkerSettings().for_others() == {}


@pytest.mark.parametrize("written", ["acme", "acme=", "Acme=/keys/acme", "of.acme=/keys/acme", "acme=/keys/a,acme=/keys/b"])
def test_what_names_no_tenant_and_seed_is_refused(written: str) -> None:
    """The error names the variable."""
    with pytest.raises(InvalidInputError, match="IOA_TENANT_SEEDS"):
        settings_from(WorkerSettings, {"IOA_TENANT_SEEDS": written})


def test_work_for_another_tenant_makes_no_process_unready() -> None:
    """A tenant that is away, or lets nobody in any more, holds up nobody else's rollout."""
    with readiness.needs("NATS", lambda: True), readiness.beyond_need(), readiness.needs("another's NATS", lambda: False):
        assert readiness.missing() == []
    with readiness.needs("NATS", lambda: False):
        assert readiness.missing() == ["NATS"]
