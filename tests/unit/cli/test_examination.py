"""What the doctor says about servers that are ill."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from nats.aio.client import Client

from ioa import sandbox
from ioa.adapters.nats.inspection import (
    DeadLetterKind,
    NatsInspection,
    RejectedCaller,
    RejectedCallers,
)
from ioa.adapters.nats.streams.topology import DEAD, STREAMS, Topology
from ioa.adapters.nats.wire.embedded_server import STORE, NatsServer
from ioa.cli.examination import (
    Finding,
    Health,
    agents_finding,
    callout_finding,
    clock_finding,
    dead_letter_findings,
    disk_finding,
    goals_finding,
    index_finding,
    inodes_finding,
    payload_finding,
    probe_finding,
    queues_finding,
    quotas_finding,
    sandbox_finding,
    server_finding,
    stores_finding,
    topology_finding,
)
from ioa.cli.examining import _disk, examine, findings, written_finding
from ioa.cli.probe import Probed
from ioa.errors import UnavailableError
from ioa.protocol.authcallout import CalloutStatus
from ioa.protocol.dead_letters import DeadLetter
from ioa.protocol.files import OwnerBytes, StoredBytes
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName, TenantId
from ioa.protocol.standing import QueueStanding, StoreStanding, StreamStanding
from ioa.runtime.exit_code import ExitCode
from ioa.testing.manual_clock import NEW_YEAR
from ioa_testkit.planes import open_plane


def queue(name: str, waiting: int, taken: int, again: int = 0, *, readers: int = 1, most_taken: int = 0) -> QueueStanding:
    """Return the state of a queue."""
    return QueueStanding(name=name, waiting=waiting, taken=taken, again=again, readers=readers, most_taken=most_taken)


def standing(
    streams: Sequence[StreamStanding] = (), *, stored: int = 0, limit: int = 0, missing: Sequence[str] = ()
) -> StoreStanding:
    """Return the state of JetStream."""
    return StoreStanding(
        at=None, stored_bytes=stored, limit_bytes=limit, streams=tuple(streams), missing=tuple(missing), dead_letters={}
    )


@pytest.mark.parametrize(
    ("version", "health"),
    [("2.12.0", Health.OK), ("2.15.1", Health.OK), ("3.0.0-beta", Health.OK), ("2.11.9", Health.PROBLEM), ("", Health.PROBLEM)],
)
def test_a_server_must_know_scheduled_messages(version: str, health: Health) -> None:
    """2.12 is the first that does."""
    finding = server_finding(version)
    assert (finding.health, bool(finding.hint)) == (health, health is Health.PROBLEM)


def test_a_goal_that_does_not_come_back_says_where_it_stands() -> None:
    """Before intake, before routers, before its result; one that is refused says why, and one that came back how long it took."""
    name, soon = GoalName(LOCAL, GoalId("p")), timedelta(seconds=0.25)
    failed = GoalResult.model_validate(
        {
            "goal_id": "p",
            "user": LOCAL,
            "comm_id": name.comm_id,
            "finished_at": NEW_YEAR,
            "reason": "failed",
            "content": "Refused.",
            "turns": 0,
        }
    )
    ended = failed.model_copy(update={"reason": Reason.DEADLINE})
    stands = {
        Probed(name): "intake has not put it on record within 5 s",
        Probed(name, result=failed): "Refused.",
        Probed(name, soon): "was on record after 0.25 s; 5 s after its deadline no router has ended it",
        Probed(name, soon, in_log=True): "its end is in its log, but its result was not stored",
    }
    found = [probe_finding(probed) for probed in stands]
    assert [(one.health, bool(one.hint)) for one in found] == [(Health.PROBLEM, True)] * len(stands)
    assert [told in one.message for one, told in zip(found, stands.values(), strict=True)] == [True] * len(stands)
    sound = probe_finding(Probed(name, soon, soon, in_log=True, result=ended))
    assert (sound.health, sound.message.count("0.25 s")) == (Health.OK, 2)


def test_clocks_may_differ_a_little() -> None:
    """Two seconds either way are too much, and the message says which way."""
    found = [clock_finding(timedelta(seconds=seconds)) for seconds in (0.5, 5, -5)]
    assert [one.health for one in found] == [Health.OK, Health.PROBLEM, Health.PROBLEM]
    assert ("5.0 s ahead of" in found[1].message, "5.0 s behind" in found[2].message) == (True, True)


def test_a_disk_that_is_nearly_full_is_a_problem() -> None:
    """Less than one GB of a large disk is too little, and less than a twentieth of a small one; 40 GB are never too little."""
    disks = ((50, 100), (40, 2_000), (0.5, 5), (0.9, 100), (0.2, 5))
    found = [disk_finding(int(total * 1e9), int(free * 1e9), Path("data")).health for free, total in disks]
    assert found == [Health.OK, Health.OK, Health.OK, Health.PROBLEM, Health.PROBLEM]


def test_missing_inodes_are_a_problem() -> None:
    """A file system without inodes reports a total of 0."""
    found = [inodes_finding(total, free, Path("data")) for total, free in ((0, 0), (10**6, 10**5), (10**6, 3))]
    assert [one and one.health for one in found] == [None, None, Health.PROBLEM]
    assert found[2] is not None and "3 of 1,000,000 inodes" in found[2].message


def test_streams_whose_files_were_removed_are_a_problem(tmp_path: Path) -> None:
    """The server still answers from open files, so that only its folder shows the loss."""
    for stream in STREAMS:
        folder = tmp_path / "nats" / STORE / "account" / "streams" / stream
        folder.mkdir(parents=True)
        (folder / "meta.inf").touch()
    before = _disk(tmp_path)
    (tmp_path / "nats" / STORE / "account" / "streams" / STREAMS[0] / "meta.inf").unlink()
    after = _disk(tmp_path)
    assert (before.health, after.health) == (Health.OK, Health.PROBLEM)
    assert f"The files of {STREAMS[0]} in" in after.message


def test_a_disk_is_judged_by_writing_to_it(tmp_path: Path) -> None:
    """What cannot be written is a problem however much is free, and a probe leaves nothing behind."""
    (tmp_path / "nats").mkdir()
    assert (written_finding(tmp_path), list((tmp_path / "nats").iterdir())) == (None, [])
    with limited_file_size(64 * 1024):
        found = written_finding(tmp_path)
    assert found is not None
    assert (found.health, "cannot be written: File too large" in found.message) == (Health.PROBLEM, True)


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


def test_an_index_that_differs_from_the_registry_is_stale() -> None:
    """More or fewer cards than are registered."""
    assert [index_finding(cards, 3, "model").health for cards in (3, 2, 4)] == [Health.OK, Health.PROBLEM, Health.PROBLEM]


def test_a_server_that_takes_small_messages_only_is_a_problem() -> None:
    """The finding names the setting."""
    small, usual = payload_finding(64 * 1024), payload_finding(1024 * 1024)
    assert (small.health, "max_payload" in small.hint, usual.health) == (Health.PROBLEM, True, Health.OK)


def test_a_system_without_online_agents_is_a_warning() -> None:
    """It cannot serve goals."""
    assert [agents_finding(online, 3).health for online in (0, 2)] == [Health.WARNING, Health.OK]


@pytest.mark.parametrize(
    ("stream", "stats", "message"),
    [
        ("IOA_GOALS", queue("intake", 3, 1), ""),
        ("IOA_GOALS", queue("intake", 3, 1, readers=0), ""),
        ("IOA_WORK", queue("any", 0, 5, 2), "2 of IOA_WORK/any"),
        ("IOA_WORK", queue("pool-poets", 2, 0, readers=0), "2 in IOA_WORK/pool-poets"),
        ("IOA_WORK", queue("any", 5, 79, most_taken=100), ""),
        ("IOA_WORK", queue("any", 5, 80, most_taken=100), "80 of 100 in IOA_WORK/any"),
    ],
    ids=["in work", "taken", "redelivered", "without a reader", "below four fifths", "nearly all taken"],
)
def test_queue_that_is_not_served_is_a_warning(stream: str, stats: QueueStanding, message: str) -> None:
    """Redeliveries, messages without a reader, and a queue near its limit are named."""
    finding = queues_finding([(stream, stats)])
    assert (finding.health, message in finding.message) == (Health.WARNING if message else Health.OK, True)


def test_user_with_waiting_goals_is_named() -> None:
    """Goals that wait for the limit of open goals are a warning; they are no fault of a queue."""
    few, many = queue("intake", 0, 9, 9), queue("intake-eve", 900, 100, 100)
    told = goals_finding([("IOA_ORDERS", few), ("IOA_ORDERS", many)])
    assert (told.health, "time: eve (900 wait, 100 are open)" in told.message) == (Health.WARNING, True)
    assert goals_finding([("IOA_ORDERS", few)]).health is Health.OK


def test_dead_letters_are_told_by_reason() -> None:
    """Each reason with its number, its newest example, and the command that shows it; groups that stand still are called that."""

    def letter(seq: int, why: str, subject: str) -> DeadLetter:
        return DeadLetter(seq=seq, reason="", why=why, subject=subject, at=None, size_bytes=1)

    kinds = [
        DeadLetterKind("unreadable_entry", 1, letter(9, "Entry 4 of group g cannot be read.", "ioa.v1.comm.g.log")),
        DeadLetterKind("too_large", 2, letter(7, "The goal has 300,000 bytes.", "ioa.v1.goal")),
    ]
    large, entry = dead_letter_findings(kinds)
    assert (large.message, large.hint) == (
        "2 messages could not be processed (too_large). The newest, from ioa.v1.goal: The goal has 300,000 bytes.",
        "`ioa dead 7` shows it, `ioa dead` lists all, `ioa dead 7 --retry` puts it back.",
    )
    assert ("stand still" in entry.message, "`ioa dead 9`" in entry.hint) == (True, True)
    assert [one.health for one in (large, entry, *dead_letter_findings([]))] == [Health.WARNING, Health.WARNING, Health.OK]


async def test_a_server_without_anything_is_described(nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a bare server the streams are missing and no service answers; each finding says how to mend it."""
    monkeypatch.setenv("IOA_SANDBOX", "none")
    examined = await examine(nats_url, tmp_path)
    found = {one.check: one.health for one in examined.findings}
    assert (examined.code, found) == (
        ExitCode.FAILED,
        {
            "server": Health.OK,
            "max_payload": Health.OK,
            "jetstream": Health.OK,
            "streams": Health.PROBLEM,
            "clock": Health.OK,
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
        *("server", "max_payload", "jetstream", "streams", "clock", "disk", "model", "sandbox"),
        *("services", "agents", "agent models", "index", "stores", "queues", "goals", "quotas", "dead letters"),
    ]
    assert {finding.check for finding in found if finding.health is not Health.OK} == {"agents", "sandbox"}


FAULTS = [
    ("standing", answering(None), "jetstream", "JetStream is off"),
    ("standing", answering(standing(stored=96, limit=100)), "jetstream", "nearly full"),
    ("answers", answering(False), "services", "No answer from"),
]
LIMITED = answering(RejectedCallers([RejectedCaller("eve", "rate", 30_312)], ()))


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
    for method in ("clock_difference", "dead_letter_kinds"):
        monkeypatch.setattr(inspection, method, unavailable)
    monkeypatch.setattr(inspection, "rejected_callers", LIMITED)
    found = {finding.check: finding for finding in await examined(inspection, tmp_path)}
    unheard = ("clock", "dead letters")
    assert {check: (found[check].health, found[check].hint) for check in unheard} == dict.fromkeys(
        unheard, (Health.PROBLEM, "Is it running?")
    )
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
    assert found[0].message == "full by share: OBJ_IOA_FILES 79%. Most files are those of agent-eve 79.0 MB in 12."
    assert found[1].message.startswith("A full store: OBJ_IOA_FILES holds 80.0 of 100.0 MB. Most files are those of agent-eve")
    assert found[2].message.startswith("A full store: JetStream holds 1.0 of 1.2 MB.")
    nobody = stores_finding(standing(stored=5), StoredBytes(owners=(), size_bytes=0))
    assert nobody.message == "no stream has a bound of its own. Nobody stores files."


def test_sandbox_finding_names_the_level_or_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """A working sandbox is OK; no sandbox is a warning; an unknown level is a problem."""
    assert sandbox_finding("bwrap") == Finding("sandbox", Health.OK, "bwrap works")
    monkeypatch.setattr(sandbox, "_self_test", lambda: "bubblewrap is missing")
    found = [sandbox_finding(setting) for setting in ("none", "bwrap", "bubblewrap")]
    assert [one.health for one in found] == [Health.WARNING, Health.WARNING, Health.PROBLEM]
    assert found[1].message == "Untrusted code cannot run here: bubblewrap is missing."


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
