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
from nats.aio.client import Client

from ioa import sandbox
from ioa.adapters.nats.inspection import DeadLetterKind, NatsInspection, RejectedCaller
from ioa.adapters.nats.streams.topology import DEAD, STREAMS, Topology
from ioa.adapters.nats.wire.embedded_server import STORE, NatsServer
from ioa.cli.doctor import (
    Finding,
    Health,
    agents_finding,
    callout_finding,
    dead_letters_finding,
    disk_finding,
    examine,
    findings,
    free_space_finding,
    queues_finding,
    quotas_finding,
    sandbox_finding,
    server_finding,
    stores_finding,
    topology_finding,
)
from ioa.errors import InvalidInputError, UnavailableError
from ioa.protocol.authcallout import CalloutStatus
from ioa.protocol.cards import AgentStatus, ModelReport
from ioa.protocol.dead_letters import DeadLetter
from ioa.protocol.files import OwnerBytes, StoredBytes
from ioa.protocol.ids import TenantId
from ioa.protocol.standing import QueueStanding, StoreStanding, StreamStanding
from ioa.runtime.exit_code import ExitCode
from ioa_testkit.planes import open_plane
from tests.unit.group.scenario import card


def queue(name: str, waiting: int, taken: int, *, readers: int = 1) -> QueueStanding:
    """Return the state of a queue."""
    return QueueStanding(name=name, waiting=waiting, taken=taken, readers=readers)


def standing(
    streams: Sequence[StreamStanding] = (), *, stored: int = 0, limit: int = 0, missing: Sequence[str] = ()
) -> StoreStanding:
    """Return the state of JetStream."""
    return StoreStanding(stored_bytes=stored, limit_bytes=limit, streams=tuple(streams), missing=tuple(missing), dead_letters={})


@pytest.mark.parametrize(
    ("version", "health"),
    [("2.12.0", Health.OK), ("2.15.1", Health.OK), ("3.0.0-beta", Health.OK), ("2.11.9", Health.PROBLEM), ("", Health.PROBLEM)],
)
def test_a_server_must_know_scheduled_messages(version: str, health: Health) -> None:
    """2.12 is the first that does."""
    finding = server_finding(version, 1024 * 1024)
    assert (finding.health, bool(finding.hint)) == (health, health is Health.PROBLEM)


def test_disk_without_space_or_inodes_is_a_problem() -> None:
    """Less than one GB of a large disk is too little, and less than a twentieth of a small one; 40 GB are never too little.

    A file system without inodes reports a total of 0.
    """
    disks = ((50, 100), (40, 2_000), (0.5, 5), (0.9, 100), (0.2, 5))
    found = [free_space_finding(int(total * 1e9), int(free * 1e9), Path("data")).health for free, total in disks]
    assert found == [Health.OK, Health.OK, Health.OK, Health.PROBLEM, Health.PROBLEM]
    inodes = [free_space_finding(10**12, 10**12, Path("data"), *one) for one in ((0, 0), (10**6, 10**5), (10**6, 3))]
    assert [one.health for one in inodes] == [Health.OK, Health.OK, Health.PROBLEM]
    assert "3 of 1,000,000 inodes" in inodes[2].message


def test_disk_is_checked_by_its_files_and_by_writing(tmp_path: Path) -> None:
    """A server whose folder was removed still answers from open files; a probe of the disk leaves no file."""
    for stream in STREAMS:
        folder = tmp_path / "nats" / STORE / "account" / "streams" / stream
        folder.mkdir(parents=True)
        (folder / "meta.inf").touch()
    before = disk_finding(tmp_path)
    with limited_file_size(64 * 1024):
        unwritable = disk_finding(tmp_path)
    assert [one.name for one in (tmp_path / "nats").iterdir()] == [STORE]
    (tmp_path / "nats" / STORE / "account" / "streams" / STREAMS[0] / "meta.inf").unlink()
    removed = disk_finding(tmp_path)
    assert [one.health for one in (before, unwritable, removed)] == [Health.OK, Health.PROBLEM, Health.PROBLEM]
    assert ("cannot be written: File too large" in unwritable.message, f"The files of {STREAMS[0]} in" in removed.message) == (
        True,
        True,
    )


@contextmanager
def limited_file_size(limit_bytes: int) -> Iterator[None]:
    """Let the kernel refuse what makes a file larger, as a quota does."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_who_asks_rejected_is_named() -> None:
    """With what was refused, and what to do; a system in which nobody does is in order."""
    found = quotas_finding([RejectedCaller("mallory", "rate", 12_345), RejectedCaller("bob", "share", 2)])
    assert (found.health, quotas_finding([]).health) == (Health.WARNING, Health.OK)
    assert "mallory (12,345 by rate), bob (2 by share)" in found.message


def test_callout_finding_lists_the_reasons_of_rejections() -> None:
    """The most frequent reason comes first; an issuer that does not answer is a warning."""
    status = CalloutStatus(issuer="https://id.example.com", let_in=3, refused={"The token has expired.": 2, "Another.": 7})
    found, away = callout_finding(status), callout_finding(status.model_copy(update={"away": 90.2}))
    assert (found.health, away.health) == (Health.OK, Health.WARNING)
    counts = "3 connections accepted by tokens of https://id.example.com, 9 rejected"
    assert found.message == f"{counts}: Another. (7) The token has expired. (2)"
    assert "has not returned its keys for 0:01:30" in away.message


def test_server_with_small_messages_is_rejected() -> None:
    """The error names the setting."""
    with pytest.raises(InvalidInputError) as rejected:
        server_finding("2.12.0", 64 * 1024)
    assert "max_payload" in rejected.value.hint


def test_agents_finding_counts_agents_and_names_failing_models() -> None:
    """A system without an online agent serves no goal; a model's failure is a warning, since only its agent reports it."""
    at = datetime(2031, 2, 3, 4, 5, tzinfo=UTC)
    reports = {"ada": None, "bob": ModelReport(name="large", last_ok=at), "eve": ModelReport(name="tiny", failures=7)}
    agents = [AgentStatus(card=card(name), online=True, registered_at=at, model=model) for name, model in reports.items()]
    offline = agents_finding([agents[0].model_copy(update={"online": False})])
    healthy, failing = agents_finding(agents[:2]), agents_finding(agents)
    assert [one.health for one in (offline, healthy, failing)] == [Health.WARNING, Health.OK, Health.WARNING]
    assert healthy.message == "2 online of 2 registered; models: large"
    assert failing.message == "3 online of 3 registered. Models fail: eve: tiny failed 7 times and never answered."


@pytest.mark.parametrize(
    ("stream", "stats", "message"),
    [
        ("IOA_GOALS", queue("intake", 3, 1), ""),
        ("IOA_GOALS", queue("intake", 3, 1, readers=0), ""),
        ("IOA_WORK", queue("pool-poets", 2, 0, readers=0), "2 in IOA_WORK/pool-poets"),
    ],
    ids=["in work", "taken", "without a reader"],
)
def test_queue_that_is_not_served_is_a_warning(stream: str, stats: QueueStanding, message: str) -> None:
    """Messages without a reader are named."""
    finding = queues_finding([(stream, stats)])
    assert (finding.health, message in finding.message) == (Health.WARNING if message else Health.OK, True)


def test_user_with_waiting_goals_is_named() -> None:
    """Goals that wait for the limit of open goals are a warning; they are no fault of a queue."""
    few, many = queue("intake", 0, 9), queue("intake-eve", 900, 100)
    told = queues_finding([("IOA_ORDERS", few), ("IOA_ORDERS", many)])
    assert (told.health, "open: eve (900 wait, 100 are open)" in told.message) == (Health.WARNING, True)
    assert queues_finding([("IOA_ORDERS", few)]).health is Health.OK


def test_dead_letters_are_told_by_reason() -> None:
    """Each reason with its number, its newest example, and the command that shows it; groups that stand still are called that."""

    def letter(seq: int, why: str, subject: str) -> DeadLetter:
        return DeadLetter(seq=seq, reason="", why=why, subject=subject, at=None, size_bytes=1)

    kinds = [
        DeadLetterKind("unreadable_entry", 1, letter(9, "Entry 4 of group g cannot be read.", "ioa.v1.comm.g.log")),
        DeadLetterKind("too_large", 2, letter(7, "The goal has 300,000 bytes.", "ioa.v1.goal")),
    ]
    found = dead_letters_finding(kinds)
    assert (found.health, dead_letters_finding([]).health) == (Health.WARNING, Health.OK)
    assert found.message == (
        "2 too_large, newest 7 from ioa.v1.goal: The goal has 300,000 bytes.; "
        "1 unreadable_entry, newest 9 from ioa.v1.comm.g.log: Entry 4 of group g cannot be read."
    )


async def test_a_server_without_anything_is_described(nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a bare server the streams are missing and no service answers; each finding says how to mend it."""
    monkeypatch.setenv("IOA_SANDBOX", "none")
    examined = await examine(nats_url, tmp_path)
    found = {one.check: one.health for one in examined.findings}
    assert (examined.code, found) == (
        ExitCode.FAILED,
        {
            "server": Health.OK,
            "quotas": Health.OK,
            "jetstream": Health.OK,
            "streams": Health.PROBLEM,
            "disk": Health.OK,
            "model": Health.OK,
            "sandbox": Health.WARNING,
            "services": Health.PROBLEM,
        },
    )
    assert all(one.hint for one in examined.findings if one.health is Health.PROBLEM)


async def test_a_stream_that_is_missing_is_named(nats_url: str, tmp_path: Path) -> None:
    """Of a topology that lost one stream, only that one is reported."""
    client = Client()
    await client.connect(nats_url)
    await Topology().ensure(client.jetstream())
    complete = await examine(nats_url, tmp_path)
    await client.jetstream().delete_stream(DEAD)
    lacking = await examine(nats_url, tmp_path)
    await client.close()
    found = [next(one for one in examined.findings if one.check == "streams") for examined in (complete, lacking)]
    assert [(one.health, one.message) for one in found] == [
        (Health.OK, f"{len(STREAMS)} streams and buckets"),
        (Health.PROBLEM, "Missing: IOA_DEAD."),
    ]


async def test_a_server_that_is_gone_is_out_of_reach(nats_server: NatsServer, tmp_path: Path) -> None:
    """Nothing that listens exits with 3 and names the address."""
    await nats_server.stop()
    examined = await examine(nats_server.url, tmp_path)
    assert (examined.code, nats_server.url in examined.findings[0].message) == (ExitCode.UNREACHABLE, True)


@pytest.fixture
async def inspection(nats_url: str) -> AsyncIterator[NatsInspection]:
    """The inspection of a system without agents."""
    async with open_plane(nats_url) as plane:
        yield plane.inspection


def answering(answer: object) -> Callable[..., Awaitable[object]]:
    """An async function that returns this, or raises it if it is an error."""

    async def respond(*_arguments: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return respond


async def examined(inspection: NatsInspection, folder: Path) -> list[Finding]:
    """Every finding, in order."""
    return [finding async for finding in findings(inspection, folder)]


async def test_a_sound_system_is_examined_to_the_end(
    inspection: NatsInspection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every check has a finding, in order; a missing agent is a warning."""
    for name in [name for name in os.environ if name.startswith(("IOA_LLM_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("IOA_SANDBOX", "none")
    found = await examined(inspection, tmp_path)
    assert [finding.check for finding in found] == [
        *("server", "quotas", "jetstream", "streams", "disk", "model", "sandbox"),
        *("services", "agents", "stores", "queues", "dead letters"),
    ]
    assert {finding.check for finding in found if finding.health is not Health.OK} == {"agents", "sandbox"}


FAULTS = [
    ("standing", answering(None), "jetstream", "JetStream is off"),
    ("standing", answering(standing(stored=96, limit=100)), "jetstream", "nearly full"),
    ("answers", answering(False), "services", "No answer from"),
]
LIMITED = answering([RejectedCaller("eve", "rate", 30_312)])


@pytest.mark.parametrize(("method", "answer", "last", "message"), FAULTS)
async def test_examination_after_a_fault_ends(
    inspection: NatsInspection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    answer: Callable[..., Awaitable[object]],
    last: str,
    message: str,
) -> None:
    """The examination ends where the other checks would have no finding, with a hint."""
    monkeypatch.setattr(inspection, method, answer)
    finding = (await examined(inspection, tmp_path))[-1]
    assert (finding.check, finding.health, message in finding.message, bool(finding.hint)) == (last, Health.PROBLEM, True, True)


async def test_unanswered_check_is_a_problem_and_rejected_callers_are_named(
    inspection: NatsInspection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each check without an answer has a finding with the hint of its error."""
    unavailable = answering(UnavailableError("Group setup does not answer.", hint="Is it running?"))
    monkeypatch.setattr(inspection, "dead_letter_kinds", unavailable)
    monkeypatch.setattr(inspection, "rejected_callers", LIMITED)
    found = {finding.check: finding for finding in await examined(inspection, tmp_path)}
    unheard = found["dead letters"]
    assert (unheard.health, unheard.hint) == (Health.PROBLEM, "Is it running?")
    assert "eve (30,312 by rate)" in found["quotas"].message


async def test_tenant_is_named(inspection: NatsInspection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system of a tenant has a finding with the tenant's name."""
    monkeypatch.setattr(inspection, "tenant", answering(TenantId("acme")))
    [message] = [one.message for one in await examined(inspection, tmp_path) if one.check == "tenant"]
    assert "acme" in message


def _files(stored: int) -> StreamStanding:
    return StreamStanding(name="OBJ_IOA_FILES", messages=1, stored_bytes=stored, limit_bytes=100_000_000)


def test_a_full_store_is_a_problem() -> None:
    """From four fifths on a stream with a bound, or all of JetStream, is named with who stores most; below, how full each is."""
    files = StoredBytes(owners=(OwnerBytes(owner="agent-eve", size_bytes=79_000_000, files=12),), size_bytes=79_000_000)
    found = [
        stores_finding(standing([_files(stored)], stored=stored, limit=limit), files)
        for stored, limit in ((79_000_000, 0), (80_000_000, 0), (1_000_000, 1_250_000))
    ]
    assert [one.health for one in found] == [Health.OK, Health.PROBLEM, Health.PROBLEM]
    assert found[0].message == "OBJ_IOA_FILES 79% of 100.0 MB; most files: agent-eve 79.0 MB in 12"
    assert found[1].message == "Full: OBJ_IOA_FILES. Used: OBJ_IOA_FILES 80% of 100.0 MB; most files: agent-eve 79.0 MB in 12."
    assert found[2].message.startswith("Full: JetStream. Used: JetStream 80% of 1.2 MB")
    empty = stores_finding(standing(stored=5), StoredBytes(owners=(), size_bytes=0))
    assert empty.message == "no stream has a limit; most files: none"


def test_sandbox_finding_names_the_level_or_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """A working sandbox is OK; no sandbox is a warning; an unknown level is an error."""
    assert sandbox_finding("bwrap") == Finding("bwrap works")
    monkeypatch.setattr(sandbox, "_self_test", lambda: "bubblewrap is missing")
    found = [sandbox_finding(setting) for setting in ("none", "bwrap")]
    assert [one.health for one in found] == [Health.WARNING, Health.WARNING]
    assert found[1].message == "Untrusted code cannot run here: bubblewrap is missing."
    with pytest.raises(InvalidInputError):
        sandbox_finding("bubblewrap")


def test_streams_that_schedule_nothing_are_a_problem() -> None:
    """They are named, since no deadline fires."""
    streams = [StreamStanding(name=name, messages=0, stored_bytes=0, schedules=True) for name in STREAMS]
    idle = [stream.model_copy(update={"schedules": False}) for stream in streams]
    without_log = [stream for stream in streams if stream.name != "IOA_LOG"]
    found = [topology_finding(standing(there)) for there in (streams, without_log, idle)]
    found.append(topology_finding(standing(streams, missing=["IOA_WORK/any"])))
    assert [(one.health, one.message) for one in found] == [
        (Health.OK, f"{len(STREAMS)} streams and buckets"),
        (Health.PROBLEM, "Missing: IOA_LOG."),
        (Health.PROBLEM, "IOA_TIMERS does not schedule messages, so no deadline fires."),
        (Health.PROBLEM, "Missing: IOA_WORK/any."),
    ]
