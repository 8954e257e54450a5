"""One agent in one group: applying the log in order, and fulfilling the duties that follow from where the group stands.

Applying and acting are separate, so that a slow thought or task never keeps the member from following its group, nor the agent
from its other groups. A duty is named by its turn or task; it is started once, and cancelled when the group has moved on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import structlog

from ioa.agent.history import GroupHistory
from ioa.agent.patience import patiently
from ioa.agent.speech import Voice
from ioa.agent.work import Worker
from ioa.agent.workspace import GroupFiles
from ioa.group.requests import Entries, Rejected, SequencedEntry, Sync
from ioa.group.state import Concluding, GroupState
from ioa.ports.agent_store import Encounter
from ioa.ports.brain import TaskRecord
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.messages import Payload, TaskOutcome

MAX_REFUSALS = 3
"""How often a brain may try again within one turn; after that the floor runs out and the router passes it on."""

_log = structlog.get_logger(__name__)


class GroupSession:
    """Follow one group until it has ended."""

    def __init__(self, worker: Worker, voice: Voice, comm_id: CommId, files: GroupFiles) -> None:
        self._worker = worker
        self._voice = voice
        self._files = files
        self._history = GroupHistory(comm_id)
        self._arrived: asyncio.Queue[SequencedEntry | None] = asyncio.Queue()
        self._duties: dict[str, asyncio.Task[None]] = {}
        self.head = 0
        """The last sequence the system is known to hold; behind the cursor nothing is missing."""

    @property
    def me(self) -> AgentId:
        """The agent this session belongs to."""
        return self._voice.me

    @property
    def cursor(self) -> int:
        """The last sequence applied."""
        return self._history.cursor

    @property
    def ended(self) -> bool:
        """Whether the group has ended, as far as this member knows."""
        return self._history.state is not None and self._history.state.phase.is_terminal

    def receive(self, entry: SequencedEntry) -> None:
        """Take a pushed entry in; it may be one that is known, or lie behind a gap."""
        self._arrived.put_nowait(entry)

    def catch_up(self, head: int) -> None:
        """Look for what was missed, up to `head` at least."""
        if head > max(self.head, self.cursor):
            self.head = head
            self._arrived.put_nowait(None)

    def working(self) -> list[asyncio.Task[None]]:
        """The tasks this member is working on now."""
        return [duty for name, duty in self._duties.items() if name.startswith("task:")]

    async def run(self) -> None:
        """Follow the group and act in it until it has ended."""
        for entry in await self._voice.store.entries(self._history.comm_id):
            self._history.apply(entry)
        async with asyncio.TaskGroup() as duties:
            while not self.ended:
                self._act(duties)
                await self._follow()
            self._drop_duties(keep=frozenset())
        await self._close()

    async def _follow(self) -> None:
        """Apply at least one arrival and everything that lies ready behind it."""
        entry = await self._arrived.get()
        while True:
            if entry is None or not await self._apply(entry):
                await self._repair()
            if self._arrived.empty():
                return
            entry = self._arrived.get_nowait()

    async def _apply(self, entry: SequencedEntry) -> bool:
        """Apply the next entry; True also for one that is known already, False if something is missing before it."""
        if entry.seq <= self.cursor:
            return True
        if entry.previous_seq != self.cursor or not await self._voice.store.append(entry):
            return False
        self._history.apply(entry)
        return True

    async def _repair(self) -> None:
        """Fetch from the log what was missed."""
        comm_id = self._history.comm_id
        complete = False

        async def next_page() -> Entries:
            return await self._voice.network.sync(Sync(comm_id=comm_id, agent_id=self.me, after=self.cursor))

        while not complete:
            page = await patiently(next_page, comm_id=comm_id)
            for entry in page.entries:
                await self._apply(entry)
            complete = page.complete
        self.head = self.cursor

    def _act(self, group: asyncio.TaskGroup) -> None:
        """Start the duties that are due and cancel those the group has moved past."""
        state = self._history.state
        if state is None or self.ended:
            return
        due: dict[str, Coroutine[Any, Any, None]] = {}
        if state.floor_holder == self.me:
            due[f"turn:{state.turn}"] = self._take_turn(state)
        for task in state.open_tasks:
            spec = self._history.spec(task.task_id)
            if task.assignee == self.me and spec is not None:
                due[f"task:{task.task_id}"] = self._worker.do(self._history, task, spec, self._files)
        self._drop_duties(keep=frozenset(due))
        for name, duty in due.items():
            if name in self._duties:
                duty.close()
            else:
                self._duties[name] = group.create_task(self._fulfil(name, duty))

    def _drop_duties(self, keep: frozenset[str]) -> None:
        for name in [name for name in self._duties if name not in keep]:
            self._duties.pop(name).cancel()

    async def _fulfil(self, name: str, duty: Coroutine[Any, Any, None]) -> None:
        """Let no failed duty take its group or the agent down: the router's deadlines move the group on."""
        try:
            await duty
        except Exception:
            _log.exception("duty_failed", comm_id=self._history.comm_id, agent_id=self.me, duty=name)

    async def _take_turn(self, state: GroupState) -> None:
        """Say something for the turn that was granted."""
        refusals: list[str] = []
        while len(refusals) < MAX_REFUSALS:
            prepared = await self._voice.pending(self._history, f"turn:{state.turn}")
            if prepared is not None:
                answer = await self._voice.send(prepared)
            else:
                answer = await self._voice.say(self._history, await self._think(state, tuple(refusals)), state.turn)
            if not isinstance(answer, Rejected):
                self.catch_up(answer.seq)
                return
            _log.info("refused", comm_id=self._history.comm_id, agent_id=self.me, code=answer.code, why=answer.message)
            refusals.append(answer.message)
            self._arrived.put_nowait(None)  # if the group has moved on, the repair that follows cancels this turn
            await asyncio.sleep(0)

    async def _think(self, state: GroupState, refusals: tuple[str, ...]) -> Payload:
        view = self._history.view(self.me, refusals)
        brain = self._worker.brain
        return await (brain.conclude(view) if isinstance(state.stage, Concluding) else brain.speak(view))

    async def _close(self) -> None:
        """Remember who did how well, and tidy up."""
        await self._voice.store.meet(self._history.comm_id, self._encounters())
        await self._files.remove()
        _log.info("group_left", comm_id=self._history.comm_id, agent_id=self.me)

    def _encounters(self) -> list[Encounter]:
        charter = self._history.charter
        if charter is None or charter.owner != self.me:
            return []
        records: tuple[TaskRecord, ...] = self._history.tasks()
        done = Counter(record.spec.assignee for record in records if record.outcome is TaskOutcome.DONE)
        failed = Counter(record.spec.assignee for record in records if record.outcome is TaskOutcome.FAILED)
        return [
            Encounter(card, done[card.agent_id], failed[card.agent_id])
            for card in charter.team_members
            if card.agent_id != self.me and (done[card.agent_id] or failed[card.agent_id])
        ]
