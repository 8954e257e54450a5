"""An agent's memory in dictionaries."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from ioa.errors import UnavailableError
from ioa.group.requests import SequencedEntry
from ioa.ports.agent_store import Encounter
from ioa.ports.brain import Contact
from ioa.protocol.ids import AgentId, CommId, MessageId, TaskId
from ioa.protocol.messages import InformTaskResult, Message
from ioa.protocol.outcomes import REMEMBERED


class MemoryStore:
    """An `AgentStore` for unit tests. False in this: it is lost with the process, and its disk is full only when told to be."""

    def __init__(self) -> None:
        self._entries: dict[CommId, list[SequencedEntry]] = defaultdict(list)
        self._outbox: dict[tuple[CommId, str], Message] = {}
        self._attempts: dict[tuple[CommId, TaskId], int] = defaultdict(int)
        self._results: dict[tuple[CommId, TaskId], InformTaskResult] = {}
        self._met: set[CommId] = set()
        self._contacts: dict[AgentId, Contact] = {}
        self.usable = True
        """Set to False, every call fails until it is set to True again."""
        self.refusals = 0
        """How many calls have failed."""

    async def append(self, entry: SequencedEntry) -> bool:
        """Apply an entry if it follows the cursor."""
        await self._arrive()
        state = entry.entry.state
        entries = self._entries[state.comm_id]
        if (entries[-1].seq if entries else 0) != entry.previous_seq:
            return False
        entries.append(entry)
        if state.phase.is_terminal:
            self._outbox = {key: message for key, message in self._outbox.items() if key[0] != state.comm_id}
        return True

    async def entries(self, comm_id: CommId) -> Sequence[SequencedEntry]:
        """All entries of a group."""
        await self._arrive()
        return list(self._entries[comm_id])

    async def put_outgoing(self, key: str, message: Message) -> None:
        """Keep a message until it is answered."""
        await self._arrive()
        self._outbox[message.header.comm_id, key] = message

    async def outgoing(self, comm_id: CommId, key: str) -> Message | None:
        """The message kept under a duty's key."""
        await self._arrive()
        return self._outbox.get((comm_id, key))

    async def drop_outgoing(self, comm_id: CommId, message_id: MessageId) -> None:
        """Forget a message that was answered."""
        await self._arrive()
        self._outbox = {
            key: message for key, message in self._outbox.items() if (key[0], message.header.message_id) != (comm_id, message_id)
        }

    async def begin_task(self, comm_id: CommId, task_id: TaskId) -> int:
        """Count an attempt."""
        await self._arrive()
        self._attempts[comm_id, task_id] += 1
        return self._attempts[comm_id, task_id]

    async def finish_task(self, comm_id: CommId, result: InformTaskResult) -> None:
        """Journal a result; the first one stands."""
        await self._arrive()
        self._results.setdefault((comm_id, result.task_id), result)

    async def finished_task(self, comm_id: CommId, task_id: TaskId) -> InformTaskResult | None:
        """The journalled result."""
        await self._arrive()
        return self._results.get((comm_id, task_id))

    async def meet(self, comm_id: CommId, encounters: Sequence[Encounter]) -> bool:
        """Add up how others did, once for each group."""
        await self._arrive()
        if comm_id in self._met or not self._entries[comm_id]:
            return False
        self._met.add(comm_id)
        for met in encounters:
            known = self._contacts.get(met.card.agent_id, Contact(met.card, 0, 0))
            done = sum(outcome.done for outcome in met.outcomes)
            self._contacts[met.card.agent_id] = replace(
                known,
                card=met.card,
                tasks_done=known.tasks_done + done,
                tasks_failed=known.tasks_failed + len(met.outcomes) - done,
                outcomes=(*known.outcomes, *met.outcomes)[-REMEMBERED:],
            )
        return True

    async def contacts(self) -> Sequence[Contact]:
        """Everybody met, the most successful first."""
        await self._arrive()
        return sorted(self._contacts.values(), key=lambda met: (met.tasks_failed - met.tasks_done, met.card.agent_id))

    async def _arrive(self) -> None:
        await asyncio.sleep(0)
        if not self.usable:
            self.refusals += 1
            raise UnavailableError("The agent's memory cannot be used: the disk is full.")
