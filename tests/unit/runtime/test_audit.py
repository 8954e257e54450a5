"""The audit log notes without making anybody wait, and no flood or outage pushes out what others did."""

from __future__ import annotations

import json

import pytest

from ioa.errors import ForbiddenError, UnavailableError
from ioa.protocol.codec import encode_value
from ioa.protocol.operation.audit import MAX_LINE_BYTES, MAX_NAME_CHARS, AuditLine, Deed, in_a_line, named_in
from ioa.protocol.operation.dead_letters import DeadReason
from ioa.runtime.audit_log import MAX_LINES, AuditLog, audited
from ioa.runtime.recorded import RecordedDeadLetters
from ioa.testing.manual_clock import ManualClock
from tests.rig.memory_delivery import MemoryAuditSink, MemoryDeadLetters


class Kept(MemoryAuditSink):
    """A sink in memory."""

    def told(self) -> list[tuple[str, str, str, str, int]]:
        """What was kept, in order."""
        return [(line.deed, line.who, line.target, line.refused, line.times) for line in self.lines.values()]


@pytest.fixture
def kept() -> Kept:
    """A sink."""
    return Kept()


@pytest.fixture
def audit(kept: Kept) -> AuditLog:
    """A log that keeps lines there."""
    return AuditLog(kept, ManualClock(), "groups")


async def test_a_flood_of_refusals_is_a_line_and_a_count(audit: AuditLog, kept: Kept) -> None:
    """Whatever goals somebody reaches for, what others do meanwhile is next to it, and its count comes when the minute is over."""
    for number in range(1_000):
        audit.note(Deed.LAUNCHED, who="mallory", target=f"g{number}", refused="forbidden")
    audit.note(Deed.LAUNCHED, who="bob", target="g7")
    await audit.flush()
    audit.end_window()
    audit.note(Deed.LAUNCHED, who="mallory", target="g0", refused="forbidden")
    await audit.flush()
    assert kept.told() == [
        ("launched", "mallory", "g0", "forbidden", 1),
        ("launched", "bob", "g7", "", 1),
        ("launched", "mallory", "", "forbidden", 999),
        ("launched", "mallory", "g0", "forbidden", 1),
    ]


async def test_whose_goals_were_discarded_is_told(audit: AuditLog, kept: Kept) -> None:
    """Each user has lines of his own; what is no goal has none to name."""
    dead = RecordedDeadLetters(MemoryDeadLetters(), audit)
    for user, goal_id in (("anna", "a-1"), ("eve", "e-1"), ("eve", "e-2"), ("anna", "a-2")):
        data = json.dumps({"goal": "Count.", "goal_id": goal_id}).encode()
        await dead.put(DeadReason.CONFLICT, "taken", subject=f"ioa.v1.goal.{user}", data=data)
    await dead.put(DeadReason.UNREADABLE, "no goal", subject="ioa.v1.work.x", data=b"")
    audit.end_window()
    await audit.flush()
    assert [(who, target, times) for _, who, target, _, times in kept.told()] == [
        ("anna", "a-1", 1),
        ("eve", "e-1", 1),
        ("", "", 1),
        ("anna", "a-2", 1),
        ("eve", "e-2", 1),
    ]


async def test_what_cannot_be_kept_now_is_kept_later(audit: AuditLog, kept: Kept) -> None:
    """An outage of the log holds up nobody; its lines come in order, and what there was no room for is counted."""
    kept.away = True
    for number in range(MAX_LINES + 3):
        audit.note(Deed.ACCEPTED, target=f"g{number}")
    await audit.flush()
    kept.away = False
    for _ in range(2):
        await audit.flush()
    told = kept.told()
    assert [target for _, _, target, _, _ in told[:-1]] == [f"g{number}" for number in range(MAX_LINES)]
    assert told[-1] == ("unwritten", "", "", "", 3)


async def test_a_request_is_answered_as_without_the_log(audit: AuditLog, kept: Kept) -> None:
    """Who asks and what about is noted, refused or done; an outage is nobody's deed."""

    async def handler(_subject: str, data: bytes) -> bytes:
        if b"bad" in data:
            raise ForbiddenError("no")
        if b"down" in data:
            raise UnavailableError("down")
        return b"done"

    handle = audited(Deed.LAUNCHED, handler, audit)
    subject = "ioa.v1.agent.ada.ada.groups.launch"
    assert await handle(subject, encode_value({"goal_id": "g1", "secret": "my plan"})) == b"done"
    with pytest.raises(ForbiddenError):
        await handle(subject, encode_value({"goal_id": "bad"}))
    with pytest.raises(UnavailableError):
        await handle(subject, encode_value({"goal_id": "down"}))
    await audit.flush()
    assert kept.told() == [("launched", "ada", "g1", "", 1), ("launched", "ada", "bad", "forbidden", 1)]


@pytest.mark.parametrize("data", [b"", b"\xc1", encode_value([1]), encode_value({"goal_id": "a.b"}), encode_value({"goal_id": 1})])
def test_what_names_nothing_is_about_nothing(data: bytes) -> None:
    """A request that cannot be read, or names no id, puts nothing of itself into the log."""
    assert named_in(data) == ""


def test_the_longest_line_fits() -> None:
    """The stream bounds its bytes by the number and the size of lines."""
    name = "x" * MAX_NAME_CHARS
    fields = {"who": name, "target": name, "refused": "payload_too_large", "why": "model_unavailable", "times": 10**9}
    line = AuditLine.model_validate({"at": "2026-01-01T00:00:00.000001Z", "deed": "discarded", "service": "registry", **fields})
    assert len(line.model_dump_json()) < MAX_LINE_BYTES


async def test_names_that_begin_alike_are_told_apart(kept: Kept, audit: AuditLog) -> None:
    """What is too long for a line has its digest there, so that nobody is taken for another, whatever he is called."""
    one, two = ("x" * MAX_NAME_CHARS + last for last in "12")
    for subject in (one, two, in_a_line(one), "bob@example.com"):
        audit.note(Deed.CONNECTED, who="bob", target=subject)
    await audit.flush()
    noted = [line.target for line in kept.lines.values()]
    assert (len({*noted}), noted[0], noted[-1]) == (4, in_a_line(one), "bob@example.com")
