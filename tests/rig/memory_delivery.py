"""What the control plane sends, kept where a test can look at it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ioa.adapters.nats.delivery.nats_delivery import NatsProgress
from ioa.adapters.nats.stores.audit_stream import NatsAuditSink
from ioa.errors import UnavailableError
from ioa.group.events import EncodedEntry, Said
from ioa.group.requests import SequencedEntry
from ioa.ports.clock import Clock
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import AgentId, CommId, GoalName
from ioa.protocol.operation.audit import AuditLine
from ioa.protocol.operation.dead_letters import DeadReason


class MemoryAuditSink(NatsAuditSink):
    """A sink in memory, which can be away."""

    def __init__(self) -> None:
        self.lines: dict[str, AuditLine] = {}
        self.away = False

    async def put(self, line: AuditLine, *, key: str) -> None:
        """Keep a line under its key."""
        if self.away:
            raise UnavailableError("away")
        self.lines[key] = line


class MemoryTimers:
    """`Timers` for unit tests. False in this: nothing fires by itself; a test takes what is due and brings it to a router."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pending: dict[tuple[CommId, int], datetime] = {}
        self.reachable = True
        """Set to False, nothing can be scheduled until it is set to True again."""

    async def schedule(self, comm_id: CommId, at: datetime) -> None:
        """Remember the instant, to the millisecond."""
        if not self.reachable:
            raise UnavailableError("The timers are out of reach.")
        self._pending[comm_id, int(at.timestamp() * 1000)] = at

    async def remove(self, comm_id: CommId) -> None:
        """Disarm a group's timers, as retention does."""
        self._pending = {key: at for key, at in self._pending.items() if key[0] != comm_id}

    def pending(self, comm_id: CommId) -> Sequence[datetime]:
        """Return the instants that are armed for a group, in order."""
        return sorted(at for (of, _), at in self._pending.items() if of == comm_id)

    def next_at(self) -> datetime | None:
        """When the next timer of any group fires."""
        return min(self._pending.values(), default=None)

    def take_due(self) -> Sequence[CommId]:
        """Take the timers whose instant has come, in order; each comes once."""
        due = sorted((at, key) for key, at in self._pending.items() if at <= self._clock.now())
        for _, key in due:
            del self._pending[key]
        return [comm_id for _, (comm_id, _) in due]


class MemoryInboxes:
    """`Inboxes` for unit tests. False in this: nothing that is pushed is ever lost."""

    def __init__(self) -> None:
        self._pushed: dict[AgentId, list[SequencedEntry]] = defaultdict(list)

    async def push(self, audience: Sequence[AgentId], entry: EncodedEntry, *, seq: int, previous_seq: int) -> None:
        """Keep the entry for each member."""
        for agent_id in audience:
            self.keep(agent_id, SequencedEntry(seq=seq, previous_seq=previous_seq, entry=entry.entry))

    def keep(self, agent_id: AgentId, entry: SequencedEntry) -> None:
        """Keep an entry for a member, as when it was answered with it."""
        self._pushed[agent_id].append(entry)

    def of(self, agent_id: AgentId) -> Sequence[SequencedEntry]:
        """Return what an agent was shown, in order."""
        return list(self._pushed[agent_id])


class MemoryProgress(NatsProgress):
    """Progress reports for unit tests. False in this: no report is ever lost, and all are kept."""

    def __init__(self) -> None:
        self.reports: list[Said] = []
        self._listeners: list[Callable[[Said], None]] = []

    async def publish(self, said: Said, goal: GoalName) -> None:
        """Pass a report to every listener."""
        self.reports.append(said)
        for hear in self._listeners:
            hear(said)

    def listen(self, hear: Callable[[Said], None]) -> None:
        """Have every further report given to a function."""
        self._listeners.append(hear)


class MemoryResults:
    """`Results` for unit tests. False in this: they are lost with the process."""

    def __init__(self) -> None:
        self._results: dict[CommId, GoalResult] = {}
        self.reachable = True
        """Set to False, nothing can be published until it is set to True again."""

    async def publish(self, result: GoalResult) -> bool:
        """Keep the result if it is the first."""
        if not self.reachable:
            raise UnavailableError("The results are out of reach.")
        return self._results.setdefault(result.name.comm_id, result) is result

    async def get(self, goal: GoalName) -> GoalResult | None:
        """Read a goal's result."""
        return self._results.get(goal.comm_id)

    async def remove(self, goal: GoalName) -> None:
        """Remove a result, as retention does."""
        self._results.pop(goal.comm_id, None)

    def lose(self) -> None:
        """Lose everything."""
        self._results.clear()


@dataclass(frozen=True)
class RefusedMessage:
    """A refused message and why it was refused."""

    reason: DeadReason
    why: str
    subject: str
    data: bytes


class MemoryDeadLetters:
    """`DeadLetters` for unit tests. False in this: they are lost with the process."""

    def __init__(self) -> None:
        self.letters: list[RefusedMessage] = []
        self._keys: set[tuple[DeadReason, str]] = set()

    async def put(self, reason: DeadReason, why: str, *, subject: str, data: bytes, key: str = "") -> None:
        """Keep a refused message."""
        if key and (reason, key) in self._keys:
            return
        self._keys.add((reason, key))
        self.letters.append(RefusedMessage(reason, why, subject, data))
