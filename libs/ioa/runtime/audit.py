"""Noting in the audit log what is done and what is refused, so that nobody waits for it.

Rules that hold here: noting takes no time and never fails; a line that cannot be kept is tried again, and if too many wait, those
that come are counted and the count is a line; whoever is refused, or does the same again and again, adds a line a minute with a
count, and so does who does very much, so that no flood pushes out what others did.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import structlog
from prometheus_client import Counter

from ioa.errors import Fault, InvalidInputError, IoaError, UnavailableError, row_of
from ioa.ports.audit_trail import AuditSink
from ioa.ports.clock import Clock
from ioa.ports.delivery import DeadLetters, DeadReason, GoalRecords, Results
from ioa.protocol import subjects
from ioa.protocol.audit import AuditLine, Deed, in_a_line, named_in
from ioa.protocol.goal_order import find_goal_id
from ioa.protocol.goals import GoalRecord, GoalResult
from ioa.protocol.ids import CommId, GoalName
from ioa.quotas import Family
from ioa.runtime.process import background

MAX_WAITING, MAX_COUNTED = 5_000, 10_000
MAX_OF_CALLER = 100
"""Of how many different things that one caller does in a minute each has a line; the others have their count."""
_EVERY_SECONDS, _TICKS_A_WINDOW = 1.0, 60

_log = structlog.get_logger(__name__)

written = Counter("ioa_audit_lines_total", "Lines of the audit log, by whether they were kept; the others were counted", ["kept"])
for _kept in ("yes", "no"):
    written.labels(_kept)

Handler = Callable[[str, bytes], Awaitable[bytes]]


class AuditLog:
    """Gathers lines, and keeps them in the background. One for each process."""

    def __init__(self, sink: AuditSink, clock: Clock, service: str) -> None:
        self._sink = sink
        self._clock = clock
        self._service = service
        self._run = secrets.token_hex(8)
        self._number = 0
        self._waiting: deque[AuditLine] = deque()
        self._left_out = 0
        self._counted: dict[tuple[str, ...], AuditLine | None] = {}
        self._of_caller: dict[str, int] = {}

    def note(self, deed: Deed, *, who: str = "", target: str = "", refused: str = "", why: str = "") -> None:
        """Note a deed. The same of the same is counted until the minute is over; of what one was refused, whatever it was about.

        So is what somebody does besides, who has `MAX_OF_CALLER` lines in this minute, and what those do whom nobody knows. A count
        of what was about several things names none of them.
        """
        who, target = in_a_line(who), in_a_line(target)
        line = AuditLine(at=self._clock.now(), deed=deed, who=who, target=target, refused=refused, why=why, service=self._service)
        key: tuple[str, ...] = (deed, who, refused, why, "" if refused and who else target)
        is_much = (who or refused) and key not in self._counted and self._of_caller.get(who, 0) >= MAX_OF_CALLER
        if is_much:
            key = (deed, who, refused, why)
        if is_much or key in self._counted:
            before = self._counted.get(key)
            self._counted[key] = line if before is None else _counted(before, line)
        elif len(self._counted) < MAX_COUNTED:
            self._counted[key] = None
            self._of_caller[who] = self._of_caller.get(who, 0) + 1
            self._append(line)
        else:
            self._leave_out(1)

    def note_slowed(self, caller: str, family: Family) -> None:
        """Note that somebody asks too often for requests of a family."""
        self.note(Deed.SLOWED, who=caller, target=family.value)

    async def flush(self) -> None:
        """Keep what waits, in order, as far as it can be kept now."""
        if self._left_out and len(self._waiting) < MAX_WAITING:
            self._waiting.append(AuditLine(at=self._clock.now(), deed=Deed.UNWRITTEN, service=self._service, times=self._left_out))
            self._left_out = 0
        while self._waiting:
            try:
                await self._sink.put(self._waiting[0], key=f"{self._run}-{self._number}")
            except UnavailableError as error:
                _log.warning("audit_put_off", waiting=len(self._waiting), error=error.message)
                return
            self._waiting.popleft()
            self._number += 1
            written.labels("yes").inc()

    def end_window(self) -> None:
        """Write a line of each deed that was counted, and begin to count anew."""
        counted, self._counted = self._counted, {}
        self._of_caller.clear()
        for line in counted.values():
            if line is not None:
                self._append(line)

    async def keep(self) -> None:
        """Keep lines each second, and counts each minute, for ever."""
        try:
            while True:
                for _ in range(_TICKS_A_WINDOW):
                    await asyncio.sleep(_EVERY_SECONDS)
                    await self.flush()
                self.end_window()
        finally:
            self.end_window()

    def _append(self, line: AuditLine) -> None:
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append(line)
        else:
            self._leave_out(line.times)

    def _leave_out(self, times: int) -> None:
        self._left_out += times
        written.labels("no").inc(times)


def _counted(before: AuditLine, line: AuditLine) -> AuditLine:
    target = line.target if line.target == before.target else ""
    return line.model_copy(update={"times": before.times + 1, "target": target})


@asynccontextmanager
async def open_audit_log(sink: AuditSink, clock: Clock, service: str) -> AsyncIterator[AuditLog]:
    """Yield an audit log that is kept while the block runs; what waits at its end is kept if that is possible at once."""
    audit = AuditLog(sink, clock, service)
    async with background(audit.keep()):
        yield audit
    await audit.flush()


def audited(
    deed: Deed, handler: Handler, audit: AuditLog, target: Callable[[str, bytes], str] | None = None, *, who: str = ""
) -> Handler:
    """Note who asks for something, and whether it was done or refused. What fails by the system's fault is no deed.

    `target` says by subject and data what it is about; without it, the data does. `who` is who alone may ask where the subject
    names nobody.
    """

    def note(subject: str, data: bytes, refused: str = "") -> None:
        about = named_in(data) if target is None else target(subject, data)
        audit.note(deed, who=subjects.caller_of(subject) or who, target=about, refused=refused)

    async def handle(subject: str, data: bytes) -> bytes:
        try:
            answer = await handler(subject, data)
        except IoaError as error:
            row = row_of(error)
            if row.fault is Fault.CALLER:
                note(subject, data, row.wire_code)
            raise
        note(subject, data)
        return answer

    return handle


class AuditedGoalRecords:
    """Records of goals, of which each that is accepted is noted."""

    def __init__(self, goals: GoalRecords, audit: AuditLog) -> None:
        self._goals = goals
        self._audit = audit

    async def create(self, record: GoalRecord) -> GoalRecord:
        """Put a goal on record, and note it if it was not there."""
        stored = await self._goals.create(record)
        if stored == record:
            self._audit.note(Deed.ACCEPTED, who=record.goal.user, target=record.goal.goal_id)
        return stored

    async def find(self, comm_id: CommId) -> GoalRecord | None:
        """Read the goal of a group."""
        return await self._goals.find(comm_id)


class AuditedResults:
    """Results, of which the first of each goal is noted."""

    def __init__(self, results: Results, audit: AuditLog) -> None:
        self._results = results
        self._audit = audit

    async def publish(self, result: GoalResult) -> bool:
        """Publish unless there is one already, and note it if it was the first."""
        first = await self._results.publish(result)
        if first:
            self._audit.note(Deed.ENDED, who=result.user, target=result.goal_id, why=result.reason)
        return first

    async def get(self, goal: GoalName) -> GoalResult | None:
        """Read a goal's result."""
        return await self._results.get(goal)


class AuditedDeadLetters:
    """Dead letters, each noted without what it says."""

    def __init__(self, dead: DeadLetters, audit: AuditLog) -> None:
        self._dead = dead
        self._audit = audit

    async def put(self, reason: DeadReason, why: str, *, subject: str, data: bytes, key: str = "") -> None:
        """Keep a refused message and note it."""
        await self._dead.put(reason, why, subject=subject, data=data, key=key)
        who = ""
        with suppress(InvalidInputError):  # it is no goal
            who, _ = subjects.parse_goal_subject(subject)
        self._audit.note(Deed.DISCARDED, who=who, target=find_goal_id(data) or "", refused=reason)
