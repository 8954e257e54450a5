"""Whom the gateway refuses, which acts for many and is no service of the control plane, reaches who asks how all stands."""

from __future__ import annotations

from pathlib import Path

from ioa.adapters.nats.inspection import open_inspection
from ioa.adapters.nats.refused_callers import tell_refused
from ioa.beside import beside
from ioa.cli.examination import quotas_finding
from ioa.ports.inspection import REFUSED, SlowedCaller
from ioa.protocol import subjects
from ioa.protocol.refused_callers import RefusedCallers
from tests.integration.security.secured import open_intruder, open_processes, open_secured, until_told
from tests.integration.security.town import EVE, SOON
from tests.rig.deadline import eventually

_GATEWAY = "web"


async def test_whom_the_gateway_refuses_again_and_again_the_doctor_names(tmp_path: Path) -> None:
    """By what the gateway tells, and nobody else: a user is heard by no registry there."""
    async with (
        open_secured(tmp_path, ("bob",), gateways=(_GATEWAY,)) as secured,
        open_processes(secured, [secured.service("registry")]),
        open_inspection(secured.settings("observer"), patience=SOON) as inspection,
        open_intruder(secured, _GATEWAY) as gateway,
        open_intruder(secured, EVE) as eve,
    ):
        await eventually(lambda: inspection.answers("ioa-registry"), within=SOON)
        await eve.publish(subjects.REFUSED, RefusedCallers(by="eve", requests={"user": 1_000}).model_dump_json().encode())
        refused = [SlowedCaller("eve", REFUSED, 70), SlowedCaller("192.0.2.7", REFUSED, 4_000)]
        async with beside(tell_refused(gateway, "one", lambda: refused)):
            slowed = await until_told(inspection, within=SOON)
    found = quotas_finding(slowed).message
    assert found == "Refused by the gateway again and again: 192.0.2.7 (4,000 requests), eve (70 requests)."
