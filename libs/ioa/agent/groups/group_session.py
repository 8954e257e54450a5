"""Session of one agent in one group: applies the log in order and fulfils the duties that follow from the group's state.

Applying and acting are separate, so that a slow thought or task does not delay the member in this group or in other groups. A duty
has the name of its turn or task. It is started once, and cancelled when the group no longer needs it. The log is read from group
setup at the start and after a gap; otherwise its entries are pushed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial

import structlog

from ioa.adapters.agent_memory import Encounter
from ioa.agent.groups.group_history import GroupHistory
from ioa.agent.groups.turns import TurnTaker
from ioa.agent.metrics import sessions
from ioa.agent.send import MessageSender, until_answered
from ioa.agent.tasks.task_files import GroupFiles
from ioa.agent.tasks.task_runner import TaskRunner
from ioa.cancellation import TaskGroup, fail_after
from ioa.errors import ConflictError, IoaError, SupersededError, UnavailableError, find_error
from ioa.group.requests import Accepted, Entries, SequencedEntry, Sync
from ioa.group.state import Charter, Ended
from ioa.ports.chat_model import current_user
from ioa.protocol.ids import AgentId
from ioa.protocol.outcomes import Outcome, ReportOutcomes
from ioa.retry import pauses
from ioa.telemetry import log_context

_OVERTAKEN_SECONDS = 0.05
"""How long an entry that arrived too early waits for the entry before it. Replies and pushes take different routes and can overtake
each other."""
_UNKNOWN = 2**53
"""A head after the end of every log: the log must be read, because an entry was dropped or the group has been silent."""

_MAX_WAITING = 128
"""Number of pushed entries that wait to be applied; further entries are read from the log."""
_MAX_SILENCE_SECONDS = 300.0
_AFTER_DEADLINE_SECONDS = 1.0
"""How long after a deadline of the group its log is read, if no entry has arrived."""

Duty = Callable[[], Awaitable[Accepted | None]]
"""An action, which returns the reply to its message."""

_log = structlog.get_logger(__name__)


class GroupSession:
    """Follow one group until it has ended.

    Args:
        runner: Runs the tasks.
        sender: Sends the messages.
        history: Receives the entries.
        files: The group's files.
        silence: Seconds without a pushed entry after which the log is read for the first time; the pause doubles each time.
        keep: How long passages of ended groups are kept in the agent's memory.
    """

    def __init__(
        self, runner: TaskRunner, sender: MessageSender, history: GroupHistory, files: GroupFiles, silence: float, keep: timedelta
    ) -> None:
        self._runner = runner
        self._sender = sender
        self._store = runner.ports.store
        self._files = files
        self._history = history
        self._silence = silence
        self._keep = keep
        self._pauses = pauses(self._silence, _MAX_SILENCE_SECONDS)
        self._arrived: asyncio.Queue[SequencedEntry | None] = asyncio.Queue()
        self._early: dict[int, SequencedEntry] = {}
        """Entries that arrived before their predecessor, by the predecessor's sequence."""
        self._is_over = False
        """True if the session has ended: later entries are ignored."""
        self._head = self._latest = 0
        self._position = 0
        """Sequence up to which every visible entry was applied. It can be larger than the cursor."""
        self._looks: list[asyncio.Future[None]] = []
        self._duties: dict[str, asyncio.Task[None]] = {}
        self._turns = TurnTaker(runner, sender, history, files, self)
        self._forgotten: Sequence[tuple[int, int]] = ()
        """Struck turns that the memory has already removed."""

    @property
    def me(self) -> AgentId:
        """The agent of this session."""
        return self._sender.me

    @property
    def history(self) -> GroupHistory:
        """The group as this member knows it."""
        return self._history

    @property
    def cursor(self) -> int:
        """The last sequence applied."""
        return self._history.cursor

    @property
    def position(self) -> int:
        """The sequence up to which no entry is missing."""
        return max(self._position, self.cursor)

    @property
    def ended(self) -> bool:
        """True if the group has ended or has removed this member."""
        state = self._history.state
        return state is not None and (state.phase.is_terminal or self.me not in state.hearing)

    def receive(self, entry: SequencedEntry) -> None:
        """Queue a pushed entry, which may be a duplicate or follow a gap. If the queue is full, the entry is read from the log."""
        if self._is_over or entry.seq <= self.cursor:
            return
        if self._arrived.qsize() < _MAX_WAITING:
            self._latest = max(self._latest, entry.seq)
            self._arrived.put_nowait(entry)
        else:
            self.catch_up(_UNKNOWN)

    def catch_up(self, head: int) -> None:
        """Read missed entries from the log, at least up to `head`. Entries that wait to be applied are not missed."""
        if head > max(self._head, self._latest, self.position):
            self._head = head
            self._arrived.put_nowait(None)

    def look(self) -> asyncio.Future[None]:
        """Request a read of the log; the future is done when new entries were applied."""
        looked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._looks.append(looked)
        self._arrived.put_nowait(None)
        return looked

    def working(self) -> list[asyncio.Task[None]]:
        """Return the asyncio tasks of the tasks that this member does now."""
        return [duty for name, duty in self._duties.items() if name.startswith("task:")]

    async def run(self) -> None:
        """Follow the group and act in it until it has ended.

        Raises:
            NotFoundError: The group does not exist, or this agent is not a member.
        """
        with sessions.track_inprogress():
            try:
                await self._take_part()
            finally:
                self._is_over = True

    async def discard(self) -> None:
        """Delete the group's files and its data in the memory."""
        await self._files.remove()
        before = self._sender.clock.now() - self._keep
        await until_answered(lambda: self._store.forget_group(self._history.comm_id, before=before), agent_id=self.me)

    async def _take_part(self) -> None:
        self._history.thoughts |= await until_answered(lambda: self._store.thoughts(self._history.comm_id), agent_id=self.me)
        async with TaskGroup() as duties:
            while not self.ended:
                await self._forget_struck()
                self._act(duties)
                await self._follow()
            self._drop_duties(keep=frozenset())
            await self._forget_struck()
        await self._close()

    async def _forget_struck(self) -> None:
        """Remove struck messages from the memory, and cancel decisions that are based on them."""
        comm_id, struck = self._history.comm_id, self._history.struck
        if struck != self._forgotten:
            self._drop_duties(keep=frozenset(self._due()))
            there = self._history.there()
            await until_answered(lambda: self._store.keep_only(comm_id, there), comm_id=comm_id, agent_id=self.me)
            self._forgotten = struck

    async def _follow(self) -> None:
        """Apply at least one arrival and all entries that follow it, then read missing entries from the log."""
        complete = await self._take_arrivals()
        looks, self._looks = self._looks, []
        if not complete or looks or self._head > self.position:
            await self._repair()
        for looked in looks:
            if not looked.done():
                looked.set_result(None)

    async def _take_arrivals(self) -> bool:
        """Apply arrivals, and wait briefly for a missing entry; return False if an entry is still missing."""
        self._take(await self._first_arrival())
        try:
            async with fail_after(_OVERTAKEN_SECONDS) as waiting:
                while not self._arrived.empty() or (self._early and not self._looks and self._head < _UNKNOWN):
                    if not self._early:
                        waiting.reschedule(asyncio.get_running_loop().time() + _OVERTAKEN_SECONDS)
                    self._take(await self._arrived.get())
        except TimeoutError:
            return False
        return not self._early

    async def _first_arrival(self) -> SequencedEntry | None:
        """Wait for an arrival; after a silence, or a deadline of the group without an entry, return None and request a sync."""
        if not self._arrived.empty():
            return self._arrived.get_nowait()
        pause = next(self._pauses)
        state = self._history.state
        if state is not None and (deadline := state.next_deadline()) is not None:
            left = (deadline - self._sender.clock.now()).total_seconds()
            left += next(pauses(_AFTER_DEADLINE_SECONDS, _AFTER_DEADLINE_SECONDS))
            if 0 < left < pause:
                pause, self._pauses = left, pauses(self._silence, _MAX_SILENCE_SECONDS)
        try:
            async with fail_after(pause):
                return await self._arrived.get()
        except TimeoutError:
            self._head = _UNKNOWN
            return None

    def _take(self, arrival: SequencedEntry | None) -> None:
        """Apply an arrival and the entries that waited for it, or store it until the entry before it arrives."""
        if arrival is not None:
            self._early[arrival.previous_seq] = arrival
        while (entry := self._early.pop(self.cursor, None)) is not None:
            self._apply(entry)
        self._early = {previous: entry for previous, entry in self._early.items() if previous > self.cursor}

    def _apply(self, entry: SequencedEntry) -> None:
        self._history.apply(entry)
        self._pauses = pauses(self._silence, _MAX_SILENCE_SECONDS)

    async def _repair(self) -> None:
        """Read missed entries from the log.

        Raises:
            ConflictError: The log differs from the earlier log.
        """
        comm_id = self._history.comm_id

        async def next_page() -> Entries:
            request = Sync(comm_id=comm_id, agent_id=self.me, after=self.position, session=self._sender.session)
            page = await self._sender.sync(request)
            if 0 < page.head < self.position:
                raise ConflictError(f"The log of {comm_id} ends at {page.head}; {self.me} has read it up to {self.position}.")
            if not page.entries and not page.complete and page.up_to <= self.position:
                raise UnavailableError(f"The log of {comm_id} returned an empty page before its end.")
            return page

        complete = False
        while not complete:
            page = await until_answered(next_page, comm_id=comm_id, agent_id=self.me)
            for entry in page.entries:
                if entry.previous_seq == self.cursor:
                    self._apply(entry)
                elif entry.seq > self.cursor:
                    raise ConflictError(f"Entry {entry.seq} of {comm_id} follows {entry.previous_seq}, not {self.cursor}.")
            self._position = page.up_to
            complete = page.complete
        self._head = self.position
        self._early.clear()

    def _act(self, group: asyncio.TaskGroup) -> None:
        """Start the duties that are due, and cancel the others."""
        self._bind()
        due = self._due()
        self._drop_duties(keep=frozenset(due))
        for name, duty in due.items():
            if name not in self._duties:
                self._duties[name] = group.create_task(self._fulfil(name, duty))

    def _bind(self) -> None:
        """Set the log context and the current user, which the duties of this session inherit."""
        charter = self._history.charter
        about = {} if charter is None else {"goal_id": charter.goal_id, "traceparent": charter.traceparent}
        log_context.bind({"comm_id": self._history.comm_id, "agent_id": self.me, **about})
        if charter is not None:
            current_user.set(charter.user)

    def _due(self) -> dict[str, Duty]:
        state = self._history.state
        due: dict[str, Duty] = {}
        if state is None or self.ended:
            return due
        if self.me in state.floor:
            due[f"turn:{state.turn}"] = partial(self._turns.take, state.turn)
        for task in state.open_tasks:
            spec = self._history.spec(task.task_id)
            if task.assignee == self.me and spec is not None:
                due[f"task:{task.task_id}"] = partial(self._runner.do, self._history, task, spec, self._files)
        return due

    def _drop_duties(self, keep: frozenset[str]) -> None:
        for name in [name for name in self._duties if name not in keep]:
            self._duties.pop(name).cancel()

    async def _fulfil(self, name: str, duty: Duty) -> None:
        """Run a duty and log its failure: the router's deadlines move the group on.

        `SupersededError` ends the agent. The accepted entry arrives in the inbox with the reply and ends the duty. If the first
        reply was lost, or nothing was accepted, the log is read.
        """
        try:
            accepted = await duty()
        except Exception as error:
            if find_error(SupersededError, error) is not None:
                raise
            _log.exception("duty_failed", comm_id=self._history.comm_id, agent_id=self.me, duty=name)
            return
        self.catch_up(_UNKNOWN if accepted is None else accepted.seq)

    async def _close(self) -> None:
        """Store and report the outcomes of the members, delete the group's data, and confirm the group's end."""
        state, comm_id = self._history.state, self._history.comm_id
        if state is not None and isinstance(state.stage, Ended):
            self._runner.report(self._history, "group_ended", reason=state.stage.reason, content=state.stage.content)
        charter = self._history.charter
        if charter is not None and charter.owner == self.me and (outcomes := self._history.outcomes()):
            await self._note_outcomes(charter, outcomes)
        await self.discard()
        await self._repair()  # group setup removes the membership of a member that knows the end
        _log.info("group_left", comm_id=comm_id, agent_id=self.me)

    async def _note_outcomes(self, charter: Charter, outcomes: Sequence[Outcome]) -> None:
        """Store the outcomes of other members, and report the end of the group to discovery once, which reads them from the log."""
        of_agent: dict[AgentId, list[Outcome]] = {}
        for outcome in outcomes:
            of_agent.setdefault(outcome.agent_id, []).append(outcome)
        encounters = [Encounter(card, tuple(of_agent[card.agent_id])) for card in charter.team_members if card.agent_id in of_agent]
        meet = partial(self._store.meet, self._history.comm_id, self._history.launched, encounters)
        if not await until_answered(meet, agent_id=self.me):
            return
        request = ReportOutcomes(agent_id=self.me, session=self._sender.session, comm_id=self._history.comm_id)
        try:
            await self._sender.network.report_outcomes(request)
        except IoaError as error:
            _log.info("outcomes_not_told", comm_id=self._history.comm_id, agent_id=self.me, why=error.message)
