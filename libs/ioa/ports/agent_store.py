"""An agent's own memory: what it knows of its groups, what it has still to say, what it has finished, whom it has met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ioa.group.requests import SequencedEntry
from ioa.ports.brain import Contact
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import CommId, MessageId, TaskId
from ioa.protocol.messages import InformTaskResult, Message
from ioa.protocol.outcomes import Outcome


@dataclass(frozen=True)
class Encounter:
    """How the tasks that another agent was given in one of this agent's groups went, the oldest first."""

    card: AgentCard
    outcomes: tuple[Outcome, ...]


class AgentStore(Protocol):
    """Durable once a method returns. One agent, one store; methods may be called side by side.

    A call that is cancelled is done wholly or not at all. Every method raises `UnavailableError` when the memory cannot be used,
    such as on a full disk. What a group said is kept for good; its outgoing messages go when it ends.
    """

    async def append(self, entry: SequencedEntry) -> bool:
        """Apply one entry and move the group's cursor to it, in one transaction; False if it is not the next one.

        An entry that ends its group forgets what was still to be said in it.
        """

    async def entries(self, comm_id: CommId) -> Sequence[SequencedEntry]:
        """Everything applied in a group, in order."""

    async def put_outgoing(self, key: str, message: Message) -> None:
        """Keep a message until it is answered. `key` names the duty it fulfils within its group, such as one turn."""

    async def outgoing(self, comm_id: CommId, key: str) -> Message | None:
        """The message that was going to fulfil a duty, if there is one."""

    async def drop_outgoing(self, comm_id: CommId, message_id: MessageId) -> None:
        """Forget a message that was answered; another one under the same key stays."""

    async def begin_task(self, comm_id: CommId, task_id: TaskId) -> int:
        """Count an attempt at a task and return its number, 1 for the first."""

    async def finish_task(self, comm_id: CommId, result: InformTaskResult) -> None:
        """Journal the result of a task before it is reported, so that it is never run again."""

    async def finished_task(self, comm_id: CommId, task_id: TaskId) -> InformTaskResult | None:
        """The journalled result of a task."""

    async def meet(self, comm_id: CommId, encounters: Sequence[Encounter]) -> bool:
        """Remember, once for each group, how others did in it; False if this group is remembered already."""

    async def contacts(self) -> Sequence[Contact]:
        """Everybody met so far, the most successful first."""
