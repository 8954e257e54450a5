"""An agent's memory in dictionaries."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ioa.errors import UnavailableError
from ioa.group.requests import SequencedEntry
from ioa.group.state import Ended
from ioa.ports.agent_store import Encounter, Passage, StoredObservation, StoredSummary, newest_of, words_of
from ioa.ports.brain import Contact
from ioa.protocol.ids import AgentId, CommId, MessageId, SessionId, TaskId
from ioa.protocol.messages import InformTaskResult, Message
from ioa.protocol.outcomes import REMEMBERED


class MemoryStore:
    """An `AgentStore` for unit tests. False in this: it is lost with the process, and crashes or is full only when told to."""

    def __init__(self) -> None:
        self._entries: dict[CommId, list[SequencedEntry]] = defaultdict(list)
        self._outbox: dict[tuple[CommId, str], Message] = {}
        self._unwritten: list[SequencedEntry] = []
        self._forgotten: dict[tuple[CommId, str], Message] = {}
        """What a crash takes away, and what it brings back: see `crash`."""
        self._attempts: dict[tuple[CommId, TaskId], int] = defaultdict(int)
        self._results: dict[tuple[CommId, TaskId], InformTaskResult] = {}
        self._observations: dict[CommId, StoredObservation] = {}
        self._thoughts: dict[CommId, dict[int, str]] = defaultdict(dict)
        self._summaries: dict[CommId, StoredSummary] = {}
        self._passages: dict[tuple[CommId, str], tuple[str, Passage]] = {}
        self._left: dict[CommId, datetime] = {}
        """When groups ended, as far as anybody knows, of whose end nothing was told."""
        self._met: set[CommId] = set()
        self._contacts: dict[AgentId, Contact] = {}
        self._epoch: str | None = None
        self._session: SessionId | None = None
        self._proof = ""
        self.is_well = True
        """Set to False, the memory says of itself that it does not answer."""
        self.usable = True
        """Set to False, every call fails until it is set to True again."""
        self.refusals = 0
        """How many calls have failed."""

    def crash(self) -> None:
        """Be as a file after a kill: entries since the last write are gone, and messages that were dropped since are back."""
        for entry in self._unwritten:
            self._entries[entry.entry.state.comm_id].remove(entry)
        self._outbox = {**self._forgotten, **self._outbox}
        self._write()

    def _write(self) -> None:
        self._unwritten.clear()
        self._forgotten.clear()

    async def last_session(self) -> SessionId | None:
        """Return the session that was noted last."""
        await self._arrive()
        return self._session

    async def note_session(self, session: SessionId) -> None:
        """Note a session."""
        await self._arrive()
        self._write()
        self._session = session

    async def keep_proof(self, drawn: str) -> str:
        """Keep the proof if there is none."""
        await self._arrive()
        self._proof = self._proof or drawn
        return self._proof

    async def prune(self, before: datetime) -> int:
        """Forget what ended before an instant."""
        await self._arrive()
        self._write()
        old = {comm_id for comm_id, ended_at in self._ends().items() if ended_at is not None and ended_at < before}
        for comm_id in old:
            del self._entries[comm_id]
            self._left.pop(comm_id, None)
            self._met.discard(comm_id)
            self._observations.pop(comm_id, None)
            self._thoughts.pop(comm_id, None)
            self._forget_duties(comm_id)
            self._forget_memories(comm_id)
        return len(old)

    async def open_groups(self) -> Collection[CommId]:
        """Return the groups without an end."""
        await self._arrive()
        return {comm_id for comm_id, ended_at in self._ends().items() if ended_at is None}

    async def end_group(self, comm_id: CommId, at: datetime) -> None:
        """Take a group as ended."""
        await self._arrive()
        self._write()
        self._left.setdefault(comm_id, at)
        self._forget_duties(comm_id)

    def _ends(self) -> Mapping[CommId, datetime | None]:
        stages = {comm_id: entries[-1].entry.state.stage for comm_id, entries in self._entries.items() if entries}
        return {one: stage.ended_at if isinstance(stage, Ended) else self._left.get(one) for one, stage in stages.items()}

    def _forget_duties(self, comm_id: CommId) -> None:
        self._outbox = {key: message for key, message in self._outbox.items() if key[0] != comm_id}
        for by_task in (self._attempts, self._results):
            for key in [key for key in by_task if key[0] == comm_id]:
                del by_task[key]

    async def append(self, entry: SequencedEntry) -> bool:
        """Apply an entry if it follows the cursor."""
        await self._arrive()
        state = entry.entry.state
        entries = self._entries[state.comm_id]
        if (entries[-1].seq if entries else 0) != entry.previous_seq:
            return False
        entries.append(entry)
        self._unwritten.append(entry)
        self._left.pop(state.comm_id, None)
        if state.phase.is_terminal:
            self._write()
            self._forget_duties(state.comm_id)
        return True

    async def entries(self, comm_id: CommId, *, after: int = 0) -> Sequence[SequencedEntry]:
        """All entries of a group behind a sequence."""
        await self._arrive()
        return [one for one in self._entries[comm_id] if one.seq > after]

    async def put_outgoing(self, key: str, message: Message) -> Message:
        """Keep a message until it is answered, unless there is one under its duty's key."""
        await self._arrive()
        self._write()
        return self._outbox.setdefault((message.header.comm_id, key), message)

    async def outgoing(self, comm_id: CommId) -> Mapping[str, Message]:
        """Return the messages of a group that were not answered, by the keys of their duties."""
        await self._arrive()
        return {key: message for (group, key), message in self._outbox.items() if group == comm_id}

    async def drop_outgoing(self, comm_id: CommId, message_id: MessageId) -> None:
        """Forget a message that was answered."""
        await self._arrive()
        for key, message in list(self._outbox.items()):
            if (key[0], message.header.message_id) == (comm_id, message_id):
                self._forgotten[key] = self._outbox.pop(key)

    async def begin_task(self, comm_id: CommId, task_id: TaskId) -> int:
        """Count an attempt."""
        await self._arrive()
        self._write()
        self._attempts[comm_id, task_id] += 1
        return self._attempts[comm_id, task_id]

    async def finish_task(self, comm_id: CommId, result: InformTaskResult) -> None:
        """Journal a result; the first one stands."""
        await self._arrive()
        self._write()
        self._results.setdefault((comm_id, result.task_id), result)

    async def finished_task(self, comm_id: CommId, task_id: TaskId) -> InformTaskResult | None:
        """Return the journalled result."""
        await self._arrive()
        return self._results.get((comm_id, task_id))

    async def put_observation(self, comm_id: CommId, seen: StoredObservation) -> None:
        """Keep what was seen last."""
        await self._arrive()
        self._write()
        self._observations[comm_id] = seen

    async def observation(self, comm_id: CommId) -> StoredObservation | None:
        """Return what was seen last."""
        await self._arrive()
        return self._observations.get(comm_id)

    async def put_summary(self, comm_id: CommId, summary: StoredSummary) -> None:
        """Keep what was said in short."""
        await self._arrive()
        self._summaries[comm_id] = summary

    async def summary(self, comm_id: CommId) -> StoredSummary | None:
        """Return what was said in short."""
        await self._arrive()
        return self._summaries.get(comm_id)

    async def remember(self, user: str, comm_id: CommId, passages: Sequence[Passage]) -> None:
        """Keep passages, each once."""
        await self._arrive()
        newest = newest_of(passages)
        there = {one.name for one in newest}
        older = [one for _, one in self._passages.values() if one.comm_id == comm_id and one.name not in there]
        for one in older[: len(older) + len(newest) - len(newest_of([*older, *newest]))]:
            del self._passages[comm_id, one.name]
        for one in newest:
            self._passages.setdefault((one.comm_id, one.name), (user, one))

    async def keep_only(self, comm_id: CommId, there: Collection[str]) -> None:
        """Forget what was struck."""
        await self._arrive()
        self._passages = {key: kept for key, kept in self._passages.items() if key[0] != comm_id or key[1] in there}
        if comm_id in self._summaries and not self._summaries[comm_id].covers <= {*there}:
            del self._summaries[comm_id]

    async def recall(self, user: str, words: str, most: int, shown: Collection[tuple[CommId, str]]) -> Sequence[Passage]:
        """Find passages by how many of the words they hold; of those that fit alike the newer ones."""
        await self._arrive()
        asked = set(words_of(words))
        known = [one for key, (whose, one) in self._passages.items() if whose == user and key not in shown]
        fitting = [(len(asked & set(words_of(one.text))), number, one) for number, one in enumerate(known)]
        return [one for fits, _, one in sorted(fitting, key=lambda found: found[:2], reverse=True) if fits][:most]

    async def put_thought(self, comm_id: CommId, turn: int, thought: str) -> None:
        """Keep what was thought in a turn."""
        await self._arrive()
        self._write()
        self._thoughts[comm_id][turn] = thought

    async def thoughts(self, comm_id: CommId) -> Mapping[int, str]:
        """Return what was thought, by turn."""
        await self._arrive()
        return dict(self._thoughts.get(comm_id, {}))

    async def meet(self, comm_id: CommId, encounters: Sequence[Encounter]) -> bool:
        """Add up how others did, once for each group."""
        await self._arrive()
        self._write()
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

    async def epoch(self) -> str | None:
        """Return what was noted."""
        await self._arrive()
        return self._epoch

    async def note_epoch(self, epoch: str) -> None:
        """Note to which store of logs the memory belongs."""
        await self._arrive()
        self._write()
        self._epoch = epoch

    async def forget_groups(self) -> None:
        """Forget every group."""
        await self._arrive()
        self._write()
        kept = (self._entries, self._outbox, self._attempts, self._results, self._met, self._observations, self._thoughts)
        for of_group in kept:
            of_group.clear()
        self._summaries.clear()
        self._passages.clear()
        self._left.clear()

    async def forget_group(self, comm_id: CommId) -> None:
        """Forget one group."""
        await self._arrive()
        self._write()
        self._entries.pop(comm_id, None)
        self._observations.pop(comm_id, None)
        self._thoughts.pop(comm_id, None)
        self._forget_memories(comm_id)
        self._met.discard(comm_id)
        self._left.pop(comm_id, None)
        self._forget_duties(comm_id)

    def _forget_memories(self, comm_id: CommId) -> None:
        self._summaries.pop(comm_id, None)
        self._passages = {key: kept for key, kept in self._passages.items() if key[0] != comm_id}

    async def _arrive(self) -> None:
        await asyncio.sleep(0)
        if not self.usable:
            self.refusals += 1
            raise UnavailableError("The agent's memory cannot be used: the disk is full.")
