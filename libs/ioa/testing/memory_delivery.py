"""What the control plane sends, kept where a test can look at it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ioa.errors import UnavailableError
from ioa.group.events import EncodedEntry
from ioa.group.requests import SequencedEntry
from ioa.ports.clock import Clock
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import AgentId, CommId, GoalId, check_token


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

    def pending(self, comm_id: CommId) -> Sequence[datetime]:
        """The instants that are armed for a group, in order."""
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
        """What an agent was shown, in order."""
        return list(self._pushed[agent_id])


class MemoryResults:
    """`Results` for unit tests. False in this: they are lost with the process."""

    def __init__(self) -> None:
        self._results: dict[GoalId, GoalResult] = {}
        self.reachable = True
        """Set to False, nothing can be published until it is set to True again."""

    async def publish(self, result: GoalResult) -> bool:
        """Keep the result if it is the first."""
        if not self.reachable:
            raise UnavailableError("The results are out of reach.")
        return self._results.setdefault(result.goal_id, result) is result

    async def get(self, goal_id: GoalId) -> GoalResult | None:
        """Read a goal's result."""
        return self._results.get(goal_id)


@dataclass(frozen=True)
class DeadLetter:
    """A refused message and why it was refused."""

    reason: str
    why: str
    subject: str
    data: bytes


class MemoryDeadLetters:
    """`DeadLetters` for unit tests. False in this: they are lost with the process."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []

    async def put(self, reason: str, why: str, *, subject: str, data: bytes) -> None:
        """Keep a refused message."""
        self.letters.append(DeadLetter(check_token(reason), why, subject, data))
