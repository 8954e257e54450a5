"""The audit log of a process: records actions and rejections, and writes them in the background.

Recording takes no time and never fails. Repeats of an action are counted, and written as one line per minute. Lines beyond the
limit are counted too.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog

from ioa.adapters.nats.requests.service import Handler
from ioa.adapters.nats.stores.audit_stream import NatsAuditSink
from ioa.concurrency import beside
from ioa.errors import Fault, IoaError, UnavailableError, row_of
from ioa.ports.clock import Clock
from ioa.protocol import subjects
from ioa.protocol.operation.audit import AuditLine, Deed, in_a_line, named_in

MAX_LINES = 5_000
"""Maximum number of lines that wait to be written, and of different actions per minute; more are counted as `Deed.UNWRITTEN`."""
_FLUSH_SECONDS, _FLUSHES_PER_WINDOW = 1.0, 60

_log = structlog.get_logger(__name__)


class AuditLog:
    """Collects lines and writes them in the background. One per process."""

    def __init__(self, sink: NatsAuditSink, clock: Clock, service: str) -> None:
        self._sink = sink
        self._clock = clock
        self._service = service
        self._run = secrets.token_hex(8)
        self._number = 0
        self._waiting: deque[AuditLine] = deque()
        self._dropped = 0
        self._repeats: dict[tuple[str, ...], AuditLine | None] = {}
        """Actions of this minute, each with the line of its repeats."""

    def note(self, deed: Deed, *, who: str = "", target: str = "", refused: str = "", why: str = "") -> None:
        """Record an action. Repeats within a minute are counted; rejections of one caller are repeats whatever their target."""
        who, target = in_a_line(who), in_a_line(target)
        line = AuditLine(at=self._clock.now(), deed=deed, who=who, target=target, refused=refused, why=why, service=self._service)
        key = (deed, who, refused, why, "" if refused and who else target)
        if key in self._repeats:
            before = self._repeats[key]
            self._repeats[key] = line if before is None else _merge(before, line)
        elif len(self._repeats) < MAX_LINES:
            self._repeats[key] = None
            self._append(line)
        else:
            self._dropped += 1

    async def flush(self) -> None:
        """Write the waiting lines in order, as far as the sink accepts them now."""
        if self._dropped and len(self._waiting) < MAX_LINES:
            self._waiting.append(AuditLine(at=self._clock.now(), deed=Deed.UNWRITTEN, service=self._service, times=self._dropped))
            self._dropped = 0
        while self._waiting:
            try:
                await self._sink.put(self._waiting[0], key=f"{self._run}-{self._number}")
            except UnavailableError as error:
                _log.warning("audit_delayed", waiting=len(self._waiting), error=error.message)
                return
            self._waiting.popleft()
            self._number += 1

    def end_window(self) -> None:
        """Append the counts of repeats, and start a new minute."""
        repeats, self._repeats = self._repeats, {}
        for line in repeats.values():
            if line is not None:
                self._append(line)

    async def keep(self) -> None:
        """Write lines every second, and counts every minute, until cancelled."""
        try:
            while True:
                for _ in range(_FLUSHES_PER_WINDOW):
                    await asyncio.sleep(_FLUSH_SECONDS)
                    await self.flush()
                self.end_window()
        finally:
            self.end_window()

    def _append(self, line: AuditLine) -> None:
        if len(self._waiting) < MAX_LINES:
            self._waiting.append(line)
        else:
            self._dropped += line.times


def _merge(before: AuditLine, line: AuditLine) -> AuditLine:
    return line.model_copy(update={"times": before.times + 1, "target": line.target if line.target == before.target else ""})


@asynccontextmanager
async def open_audit_log(sink: NatsAuditSink, clock: Clock, service: str) -> AsyncIterator[AuditLog]:
    """Yield an audit log that is written in the background, and at the end of the block."""
    audit = AuditLog(sink, clock, service)
    async with beside(audit.keep()):
        yield audit
    await audit.flush()


def audited(deed: Deed, handler: Handler, audit: AuditLog, target: Callable[[str, bytes], str] | None = None) -> Handler:
    """Record each request to a handler, and whether it was rejected. Failures of the system are not recorded.

    Args:
        deed: The action.
        handler: Answers requests.
        audit: Records them.
        target: Returns the target from subject and data. By default it is read from the data.
    """

    def note(subject: str, data: bytes, refused: str = "") -> None:
        about = named_in(data) if target is None else target(subject, data)
        audit.note(deed, who=subjects.caller_of(subject), target=about, refused=refused)

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
