"""An agent's own memory: what it knows of its groups, what it has still to say, what it has finished, whom it has met."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ioa.group.requests import SequencedEntry
from ioa.ports.brain import Contact
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import CommId, MessageId, SessionId, TaskId
from ioa.protocol.messages import InformTaskResult, Message
from ioa.protocol.outcomes import Outcome


@dataclass(frozen=True)
class Encounter:
    """How the tasks that another agent was given in one of this agent's groups went, the oldest first."""

    card: AgentCard
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class StoredObservation:
    """What an agent saw, and in which turn of its group. Nobody else is told."""

    turn: int
    text: str


@dataclass(frozen=True)
class StoredSummary:
    """What was said in a group in short: the entries of the agent's own record that `covers` names, in no order."""

    covers: frozenset[str]
    text: str


@dataclass(frozen=True)
class Passage:
    """Something that an agent was shown, with its speaker: in which group, and what names it there."""

    comm_id: CommId
    name: str
    text: str

    @property
    def size_bytes(self) -> int:
        """How much it takes up."""
        return len(self.text.encode("utf-8", "replace"))


MAX_RECALLED_BY = 64
MAX_REMEMBERED_BYTES = 4 * 1024 * 1024
"""How much of what was said in one group may be recalled: 2,000 things of 2 kB."""


def words_of(text: str) -> list[str]:
    """Return the words by which passages are found, each once, at most 64 of them."""
    return list(dict.fromkeys(re.findall(r"\w+", text.casefold())))[:MAX_RECALLED_BY]


def newest_of(passages: Sequence[Passage]) -> Sequence[Passage]:
    """Return the last of a group's passages, as many as may be kept of it, in their order."""
    left, first = MAX_REMEMBERED_BYTES, len(passages)
    while first and (left := left - passages[first - 1].size_bytes) >= 0:
        first -= 1
    return passages[first:]


class AgentStore(Protocol):
    """An agent's memory. Durable once a method returns, but for `append` and `drop_outgoing`; they wait for the next that writes.

    So after a crash the memory is as it was at some moment since the last method that is durable and has returned: never with what
    was told later and without what was told earlier. Whoever acts on an entry writes first, since what it begins or says has to be
    kept. Entries that are lost are in the log, and a message that is back though it was answered is known to the routers by its id.

    One agent, one store; methods may be called side by side. A call that is cancelled is done wholly or not at all, but where it
    keeps passages or forgets: this goes little by little, and the next such call does the rest. Every method raises
    `UnavailableError` when the memory cannot be used, such as on a full disk. What a group said is kept until it is pruned; its
    outgoing messages go when it ends, and what is known of its tasks. A memory that turns out to be damaged is empty from then on:
    the groups' logs are the record, and the agent reads them again.
    """

    @property
    def is_well(self) -> bool:
        """Whether the memory has answered lately, or was not asked. An agent whose memory is not well can do nothing."""

    async def last_session(self) -> SessionId | None:
        """Say which process noted last that it uses the memory."""

    async def note_session(self, session: SessionId) -> None:
        """Note which process uses the memory from now on."""

    async def keep_proof(self, drawn: str) -> str:
        """Keep what proves to the registry that this is the memory, unless there is one already; return what is kept."""

    async def prune(self, before: datetime) -> int:
        """Forget the groups that ended before an instant, but not who was met in them; how many they were."""

    async def open_groups(self) -> Collection[CommId]:
        """Return the groups of which something was applied, but no end."""

    async def end_group(self, comm_id: CommId, at: datetime) -> None:
        """Take a group as ended at an instant, of whose end the agent is not told: it was removed, or the group is gone.

        What is known of its end stands, and an entry that is applied later opens it again.
        """

    async def append(self, entry: SequencedEntry) -> bool:
        """Apply one entry and move the group's cursor to it; False if it is not the next one. A crash may undo it.

        An entry that ends its group is durable once this returns, and forgets what was still to be said in it, and its tasks: who
        says that it knows the end is not told of it again.
        """

    async def entries(self, comm_id: CommId, *, after: int = 0) -> Sequence[SequencedEntry]:
        """Return what was applied in a group behind a sequence, in order, or the first page of it; nothing if there is no more."""

    async def put_outgoing(self, key: str, message: Message) -> Message:
        """Keep a message until it is answered, and return it; or the one that is kept under the key already, which stands.

        `key` names the duty it fulfils within its group, such as one turn: a duty is fulfilled by one message only.
        """

    async def outgoing(self, comm_id: CommId) -> Mapping[str, Message]:
        """Return the messages of a group that were not answered, by the keys of their duties."""

    async def drop_outgoing(self, comm_id: CommId, message_id: MessageId) -> None:
        """Forget a message that was answered; another one under the same key stays. A crash may undo it."""

    async def begin_task(self, comm_id: CommId, task_id: TaskId) -> int:
        """Count an attempt at a task and return its number, 1 for the first."""

    async def finish_task(self, comm_id: CommId, result: InformTaskResult) -> None:
        """Journal the result of a task before it is reported, so that it is never run again."""

    async def finished_task(self, comm_id: CommId, task_id: TaskId) -> InformTaskResult | None:
        """Return the journalled result of a task."""

    async def put_observation(self, comm_id: CommId, seen: StoredObservation) -> None:
        """Keep what the agent sees in a group, in the place of what it saw there before."""

    async def observation(self, comm_id: CommId) -> StoredObservation | None:
        """Return what the agent saw last in a group; None if it never looked."""

    async def put_thought(self, comm_id: CommId, turn: int, thought: str) -> None:
        """Keep what the agent thought in a turn of a group, in the place of what it thought in it before. Nobody else is told."""

    async def thoughts(self, comm_id: CommId) -> Mapping[int, str]:
        """Return what the agent thought in a group, by turn."""

    async def put_summary(self, comm_id: CommId, summary: StoredSummary) -> None:
        """Keep what was said in a group in short, in the place of an older summary."""

    async def summary(self, comm_id: CommId) -> StoredSummary | None:
        """Return what was said in a group in short; None if nobody has summed it up."""

    async def remember(self, user: str, comm_id: CommId, passages: Sequence[Passage]) -> None:
        """Keep passages of a group that works for a user, each once, the oldest first; they are forgotten with their group.

        Of one group there are `MAX_REMEMBERED_BYTES` at most, and older ones go.

        `user` may hold more than his name, where not all of his groups are to recall them.
        """

    async def keep_only(self, comm_id: CommId, there: Collection[str]) -> None:
        """Forget what was struck in a group: passages that are not named in `there`, and a summary that covers others."""

    async def recall(self, user: str, words: str, most: int, shown: Collection[tuple[CommId, str]]) -> Sequence[Passage]:
        """Find the passages of a user's groups that fit some words best, the best first, but for those that are shown already."""

    async def meet(self, comm_id: CommId, encounters: Sequence[Encounter]) -> bool:
        """Remember, once for each group, how others did in it; False if this group is remembered already."""

    async def contacts(self) -> Sequence[Contact]:
        """Everybody met so far, the most successful first."""

    async def epoch(self) -> str | None:
        """Return the store of logs that the memory of groups belongs to; None if that was never noted."""

    async def note_epoch(self, epoch: str) -> None:
        """Note to which store of logs the memory of groups belongs."""

    async def forget_groups(self) -> None:
        """Forget every group, what was to be said in it and the tasks that were done in it. Who was met stays."""

    async def forget_group(self, comm_id: CommId) -> None:
        """Forget one group in the same way."""
