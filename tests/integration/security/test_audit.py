"""Who may write, read and change the audit log."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.stores.audit_stream import NatsAuditSink, NatsAuditTrail
from ioa.adapters.nats.streams.topology import AUDIT, Topology
from ioa.adapters.nats.wire.connection import open_connection
from ioa.protocol.operation.audit import AuditLine, Deed
from ioa.retry import until_available
from ioa.testing.manual_clock import NEW_YEAR
from tests.integration.security.secured import Secured, open_intruder, open_processes, open_secured
from tests.rig.reads import open_read_service

_SOON = timedelta(seconds=15)


@pytest.fixture
async def secured(tmp_path: Path) -> AsyncIterator[Secured]:
    """A server with all streams, and a line in the log."""
    async with open_secured(tmp_path, ("ada",)) as secured:
        async with open_connection(secured.settings("admin")) as admin:
            await Topology().ensure(admin.jetstream())
        async with open_intruder(secured, "groups") as groups:
            for _ in range(2):
                await NatsAuditSink(groups).put(_line("g1"), key="1")
        yield secured


def _line(goal_id: str) -> AuditLine:
    return AuditLine(at=NEW_YEAR, deed=Deed.LAUNCHED, who="ada", target=goal_id, service="groups")


async def test_an_auditor_reads_what_services_wrote(secured: Secured) -> None:
    """Each line is there once, in order, however often it was sent; the role needs nothing else."""
    async with (
        open_processes(secured, map(secured.service, ("registry", "groups"))),
        open_intruder(secured, "auditor") as auditor,
        open_intruder(secured, "registry") as registry,
    ):
        trail = NatsAuditTrail(auditor)
        page = await until_available(lambda: trail.page(limit=10), lambda _error: None)
        assert (page.lines, page.before) == (((1, _line("g1")),), None)
        await NatsAuditSink(registry).put(_line("g2"), key="2")
        assert (await trail.page(limit=1)).lines == ((2, _line("g2")),)
    assert "Violation" not in secured.log()


async def test_not_even_an_admin_takes_a_line_out(secured: Secured) -> None:
    """The stream rejects deletes and purges of an admin; the authorization matrix shows that no other role may request them."""
    async with open_intruder(secured, "admin") as admin:
        answers = [
            json.loads((await admin.request(f"$JS.API.STREAM.{what}.{AUDIT}", data)).data).get("error")
            for what, data in (("PURGE", b""), ("MSG.DELETE", b'{"seq":1}'))
        ]
    assert all(answers)
    async with (
        open_intruder(secured, "groups") as groups,
        open_read_service(groups),
        open_intruder(secured, "admin") as admin,
    ):
        assert [seq for seq, _ in (await NatsAuditTrail(admin).page(limit=10)).lines] == [1]
