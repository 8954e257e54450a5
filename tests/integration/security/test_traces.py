"""By a header nats-server writes what became of a message to wherever its sender may publish, as a message of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from ioa.adapters.nats.inspection import open_inspection
from ioa.adapters.nats.permissions import PULLS, WHO_AM_I
from ioa.adapters.nats.topology import ANY_AGENT
from ioa.adapters.nkey_seeds import public_key_of, read_key
from ioa.cli.examination import Health, quotas_finding
from ioa.ports.inspection import TRACED
from ioa.protocol import subjects
from tests.integration.security.secured import commanding, open_processes, until_told
from tests.integration.security.tenants import ONE, open_looked_after
from tests.integration.security.town import EVE, MALLORY, SOON, told_for
from tests.rig.deadline import eventually

_LONG = 900_000
"""How many bytes of a header the server writes as six each: several such messages are more than may wait for a service."""


@pytest.mark.parametrize(
    ("name", "key", "to"),
    [
        (EVE, "seed", subjects.GROUP_STATUS),
        (EVE, "seed", subjects.cancel(EVE)),
        (EVE, "seed", WHO_AM_I),
        ("observer", "seed", "$SRV.PING.nobody"),
        (MALLORY, MALLORY, subjects.launch(MALLORY)),
        (MALLORY, MALLORY, f"{PULLS}{ANY_AGENT}"),
    ],
)
async def test_who_has_the_server_write_in_its_place_is_kept_out_and_named(tmp_path: Path, name: str, key: str, to: str) -> None:
    """Whether a service hears it or none does, since all that the server says itself waits behind it; goals of others do not."""
    slowed = await told_for(TRACED, tmp_path, name, key, _traced_to(to))
    held = read_key(str(tmp_path / "credentials" / name / key))
    called = public_key_of(held.seed) if name == "observer" else name
    found = quotas_finding(slowed)
    assert (found.health, f"disconnected: {called}." in found.message) == (Health.WARNING, True), found


@pytest.mark.parametrize(
    ("name", "key", "to"),
    [
        ("user", "seed", subjects.GROUP_STATUS),
        ("user", "seed", WHO_AM_I),
        (MALLORY, MALLORY, subjects.launch(MALLORY)),
        (MALLORY, MALLORY, f"{PULLS}{ANY_AGENT}"),
    ],
)
async def test_who_does_so_of_a_tenant_with_a_name_is_named_by_his_full_name(tmp_path: Path, name: str, key: str, to: str) -> None:
    """The tenant's own control plane, which alone hears it, tells the one that looks after the server."""
    async with (
        open_looked_after(tmp_path, [MALLORY]) as (whole, one),
        open_processes(whole, [whole.service("registry")]),
        open_processes(one, [one.service(service) for service in ("registry", "groups")]),
        open_inspection(whole.settings("observer"), patience=SOON) as inspection,
        open_inspection(one.settings("user"), patience=SOON) as own,
    ):
        for plane in (inspection, own):  # who hears it and who is told: neither begins beside a flood
            await eventually(partial(plane.answers, "ioa-registry"), within=SOON)
        async with commanding(one, name, key, _traced_to(to)):
            slowed = await until_told(inspection, lambda found: TRACED in {slow.family for slow in found}, within=SOON)
    assert [slow.caller for slow in slowed if slow.family == TRACED] == [f"{ONE}/{name}"]


def _traced_to(subject: str) -> bytes:
    """A message of which the server tells a subject, and nobody else."""
    block = b"NATS/1.0\r\nNats-Trace-Only: true\r\nNats-Trace-Dest: %s\r\nX: %s\r\n\r\n" % (subject.encode(), b"<" * _LONG)
    return b"HPUB anything %d %d\r\n%s\r\n" % (len(block), len(block), block)
