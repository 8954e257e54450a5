"""What nats-server does not count its kernel does: who sends such is named by the doctor within seconds, and kept out."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from ioa.cli.examination import Health, quotas_finding
from ioa.ports.inspection import UNCOUNTED
from ioa.protocol import subjects
from ioa.protocol.ids import GoalId, GoalName
from tests.integration.security.secured import passed_over
from tests.integration.security.town import EVE, MALLORY, told_for

_SOON_ENOUGH = timedelta(seconds=15)
"""On a machine that is busy with other tests. Alone it takes three to five seconds."""


@pytest.mark.parametrize(
    ("name", "key", "command"),
    [
        (EVE, "seed", passed_over("anything")),
        (MALLORY, MALLORY, passed_over("ioa.v1.registry.remove")),
        (EVE, "seed", f"SUB {subjects.log(GoalName(EVE, GoalId('mine')).comm_id)} 7\r\nUNSUB 7\r\n".encode()),
        (EVE, "seed", b"SUB ioa.v1.audit.> 7\r\n"),
    ],
    ids=["refused trace", "refused trace of an agent", "subscribing without end", "refused subscriptions"],
)
async def test_who_sends_what_the_server_does_not_count_is_kept_out_and_named(
    tmp_path: Path, name: str, key: str, command: bytes
) -> None:
    """Goals of others take as long as undisturbed by then."""
    slowed = await told_for(UNCOUNTED, tmp_path, name, key, command, within=_SOON_ENOUGH, again_after=0.5)
    assert [one.caller for one in slowed] == [name]
    found = quotas_finding(slowed)
    assert (found.health, f"does not count, and disconnected: {name} (" in found.message) == (Health.WARNING, True), found
