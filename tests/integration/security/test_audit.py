"""Who may write, read and change the audit log."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import ioa
from ioa.adapters.nats.stores.audit_stream import NatsAuditSink, NatsAuditTrail
from ioa.adapters.nats.streams.topology import AUDIT, Topology
from ioa.adapters.nats.wire.connection import open_connection
from ioa.cli.operations import audit
from ioa.cli.output.terminal import Terminal
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


async def test_lines_are_shown_in_the_order_of_what_happened(secured: Secured, capsys: pytest.CaptureFixture[str]) -> None:
    """Services write side by side: a goal that ended was launched before, whichever line was stored first."""
    now = datetime.now(UTC)
    async with open_intruder(secured, "groups") as groups:
        for number, (deed, seconds) in enumerate(((Deed.ENDED, 2), (Deed.ACCEPTED, 0), (Deed.LAUNCHED, 1)), 2):
            line = AuditLine(at=now + timedelta(seconds=seconds), deed=deed, target="g2", service="groups")
            await NatsAuditSink(groups).put(line, key=f"{number}")
    async with (
        open_processes(secured, map(secured.service, ("registry", "groups"))),
        open_intruder(secured, "auditor") as auditor,
    ):
        system = ioa.Client(auditor)
        await until_available(lambda: audit(system, Terminal(as_json=True), since="1h"), lambda _error: None)
    assert [line["deed"] for line in json.loads(capsys.readouterr().out)] == ["accepted", "launched", "ended"]


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
