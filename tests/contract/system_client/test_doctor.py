"""The findings of `ioa doctor`."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ioa.adapters.nats.inspection import DeadLetterKind, NatsInspection, RejectedCaller
from ioa.adapters.nats.streams.topology import STREAMS
from ioa.adapters.nats.wire.embedded_server import STORE, NatsServer
from ioa.cli.doctor import (
    Finding,
    Health,
    agents_finding,
    dead_letters_finding,
    disk_finding,
    examine,
    findings,
    free_space_finding,
    queues_finding,
    quotas_finding,
    server_finding,
    stores_finding,
    topology_finding,
)
from ioa.errors import InvalidInputError, UnavailableError
from ioa.protocol.cards import AgentStatus, ModelReport
from ioa.protocol.ids import TenantId
from ioa.protocol.operation.dead_letters import DeadLetter
from ioa.protocol.operation.status import QueueStanding, StoreStanding, StreamStanding
from ioa.protocol.setup.file_requests import OwnerBytes, StoredBytes
from ioa_testkit.planes import open_plane
from tests.unit.group.scenario import card

OK, WARNING, PROBLEM = Health.OK, Health.WARNING, Health.PROBLEM
DATA, AT = Path("data"), datetime(2031, 2, 3, 4, 5, tzinfo=UTC)


def _standing(
    streams: Sequence[StreamStanding] = (), *, stored: int = 0, limit: int = 0, missing: Sequence[str] = ()
) -> StoreStanding:
    return StoreStanding(stored_bytes=stored, limit_bytes=limit, streams=tuple(streams), missing=tuple(missing), dead_letters={})


def _streams(*without: str, schedules: bool = True) -> list[StreamStanding]:
    names = [name for name in STREAMS if name not in without]
    return [StreamStanding(name=name, messages=0, stored_bytes=0, schedules=schedules) for name in names]


def _queues(name: str, waiting: int, taken: int, *, stream: str = "IOA_GOALS", readers: int = 1) -> Finding:
    return queues_finding([(stream, QueueStanding(name=name, waiting=waiting, taken=taken, readers=readers))])


def _stores(stored: int, limit: int = 0) -> Finding:
    files = StoredBytes(owners=(OwnerBytes(owner="agent-eve", size_bytes=79_000_000, files=12),), size_bytes=79_000_000)
    stream = StreamStanding(name="OBJ_IOA_FILES", messages=1, stored_bytes=stored, limit_bytes=100_000_000)
    return stores_finding(_standing([stream], stored=stored, limit=limit), files)


def _agents(*reports: ModelReport | None, online: bool = True) -> Finding:
    agents = [
        AgentStatus(card=card(name), online=online, registered_at=AT, model=one) for name, one in zip("abc", reports, strict=False)
    ]
    return agents_finding(agents)


def _letter(seq: int, why: str, subject: str) -> DeadLetter:
    return DeadLetter(seq=seq, reason="", why=why, subject=subject, at=None, size_bytes=1)


LETTERS = [
    DeadLetterKind("unreadable_entry", 1, _letter(9, "Entry 4 of group g cannot be read.", "ioa.v1.comm.g.log")),
    DeadLetterKind("too_large", 2, _letter(7, "The goal has 300,000 bytes.", "ioa.v1.goal")),
]
REJECTED = [RejectedCaller("eve", "rate", 12_345), RejectedCaller("bob", "share", 2)]
LARGE, TINY = ModelReport(name="large"), ModelReport(name="tiny", failures=7)
FULL = "Full: OBJ_IOA_FILES. Used: OBJ_IOA_FILES 80% of 100.0 MB; most files: agent-eve 79.0 MB in 12."


@pytest.mark.parametrize(
    ("found", "health", "message"),
    [
        *((server_finding(version, 1024 * 1024), OK, f"nats-server {version}") for version in ("2.12.0", "3.0.0-beta")),
        *((server_finding(version, 1024 * 1024), PROBLEM, "is too old") for version in ("2.11.9", "")),
        (free_space_finding(2 * 10**12, 4 * 10**10, DATA), OK, "40.0 of 2000.0 GB are free"),
        (free_space_finding(5 * 10**9, 2 * 10**8, DATA), PROBLEM, "nearly full"),
        (topology_finding(_standing(_streams())), OK, f"{len(STREAMS)} streams and buckets"),
        (topology_finding(_standing(_streams("IOA_LOG"))), PROBLEM, "Missing: IOA_LOG."),
        (topology_finding(_standing(_streams(schedules=False))), PROBLEM, "IOA_TIMERS does not schedule messages"),
        (quotas_finding([]), OK, ""),
        (quotas_finding(REJECTED), WARNING, "eve (12,345 by rate), bob (2 by share)"),
        (_agents(None, online=False), WARNING, "No agent is online (1 are registered)"),
        (_agents(None, LARGE), OK, "2 online of 2 registered; models: large"),
        (_agents(None, LARGE, TINY), WARNING, "3 online of 3 registered. Models fail: c (tiny, 7 times)."),
        (_stores(79_000_000), OK, "OBJ_IOA_FILES 79% of 100.0 MB; most files: agent-eve 79.0 MB in 12"),
        (_stores(80_000_000), PROBLEM, FULL),
        (_queues("intake", 3, 1, readers=0), OK, ""),
        (_queues("pool-poets", 2, 0, stream="IOA_WORK", readers=0), WARNING, "2 in IOA_WORK/pool-poets"),
        (dead_letters_finding([]), OK, "none"),
        (dead_letters_finding(LETTERS), WARNING, "7 from ioa.v1.goal: The goal has 300,000 bytes.; 1 unreadable_entry, newest 9"),
    ],
)  # fmt: skip
def test_finding_has_health_message_and_fix(found: Finding, health: Health, message: str) -> None:
    """Each finding that is not OK names the fault and a fix."""
    assert (found.health, message in found.message, bool(found.hint)) == (health, True, health is not OK), found.message


def test_server_with_small_messages_is_rejected() -> None:
    """The error names the setting."""
    with pytest.raises(InvalidInputError) as rejected:
        server_finding("2.12.0", 64 * 1024)
    assert "max_payload" in rejected.value.hint


def test_disk_is_checked_by_its_files_and_by_writing(tmp_path: Path) -> None:
    """A server whose folder was removed still answers from open files; a probe of the disk leaves no file."""
    for stream in STREAMS:
        folder = tmp_path / "nats" / STORE / "account" / "streams" / stream
        folder.mkdir(parents=True)
        (folder / "meta.inf").touch()
    before = disk_finding(tmp_path)
    with _limited_file_size(64 * 1024):
        unwritable = disk_finding(tmp_path)
    assert [one.name for one in (tmp_path / "nats").iterdir()] == [STORE]
    (tmp_path / "nats" / STORE / "account" / "streams" / STREAMS[0] / "meta.inf").unlink()
    removed = disk_finding(tmp_path)
    assert [one.health for one in (before, unwritable, removed)] == [OK, PROBLEM, PROBLEM]
    texts = ("cannot be written: File too large" in unwritable.message, f"The files of {STREAMS[0]} in" in removed.message)
    assert texts == (True, True)


@contextmanager
def _limited_file_size(limit_bytes: int) -> Iterator[None]:
    """Let the kernel refuse what makes a file larger, as a quota does."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


async def test_bare_server_has_findings_with_fixes(nats_url: str, tmp_path: Path) -> None:
    """The streams are missing and no service answers; each problem has a fix."""
    url, examined = await examine(nats_url, tmp_path)
    found = {one.check: one.health for one in examined}
    healthy = dict.fromkeys(("server", "quotas", "jetstream", "disk", "model"), OK)
    assert (url, found) == (nats_url, healthy | {"streams": PROBLEM, "services": PROBLEM})
    assert all(one.hint for one in examined if one.health is PROBLEM)


async def test_stopped_server_is_out_of_reach(nats_server: NatsServer, tmp_path: Path) -> None:
    """Nothing that listens exits with 3 and names the address."""
    await nats_server.stop()
    url, examined = await examine(nats_server.url, tmp_path)
    assert (url, nats_server.url in examined[0].message) == (None, True)


@pytest.fixture
async def inspection(nats_url: str) -> AsyncIterator[NatsInspection]:
    """The inspection of a system without agents."""
    async with open_plane(nats_url) as plane:
        yield plane.inspection


def _answering(answer: object) -> Callable[..., Awaitable[object]]:
    async def respond(*_arguments: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return respond


async def _examined(inspection: NatsInspection, folder: Path) -> list[Finding]:
    return [finding async for finding in findings(inspection, folder)]


async def test_healthy_system_is_examined_to_the_end(
    inspection: NatsInspection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every check has a finding, in order; a missing agent is a warning. The system of a tenant is named."""
    for name in [name for name in os.environ if name.startswith(("IOA_LLM_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(inspection, "tenant", _answering(TenantId("acme")))
    found = await _examined(inspection, tmp_path)
    assert [finding.check for finding in found] == [
        *("server", "tenant", "quotas", "jetstream", "streams", "disk", "model"),
        *("services", "agents", "stores", "queues", "dead letters"),
    ]
    assert {finding.check for finding in found if finding.health is not OK} == {"agents"}
    assert "acme" in found[1].message


@pytest.mark.parametrize(
    ("answers", "last", "message"),
    [
        ({"standing": None}, "jetstream", "JetStream is off"),
        ({"answers": False}, "services", "No answer from"),
    ],
)
async def test_examination_ends_after_a_fault(
    inspection: NatsInspection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, object],
    last: str,
    message: str,
) -> None:
    """The examination ends where the other checks would have no finding, with a hint."""
    for method, answer in answers.items():
        monkeypatch.setattr(inspection, method, _answering(answer))
    finding = (await _examined(inspection, tmp_path))[-1]
    assert (finding.check, finding.health, message in finding.message, bool(finding.hint)) == (last, PROBLEM, True, True)


async def test_unanswered_check_is_a_problem(inspection: NatsInspection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its finding has the hint of the error."""
    unavailable = _answering(UnavailableError("Group setup does not answer.", hint="Is it running?"))
    monkeypatch.setattr(inspection, "dead_letter_kinds", unavailable)
    found = {finding.check: finding for finding in await _examined(inspection, tmp_path)}
    assert (found["dead letters"].health, found["dead letters"].hint) == (PROBLEM, "Is it running?")
