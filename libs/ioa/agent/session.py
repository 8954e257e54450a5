"""Session of one agent in one group: applies the log in order and fulfils the duties that follow from the group's state.

Applying and acting are separate, so that a slow thought or task does not delay the member in this group or in other groups. A duty
has the name of its turn or task. It is started once, and cancelled when the group no longer needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

import structlog

from ioa.adapters.agent_memory import Encounter
from ioa.agent.agent_metrics import sessions
from ioa.agent.asking import until_answered
from ioa.agent.history import GroupHistory
from ioa.agent.inquiring import AskedOfMe
from ioa.agent.listening import GroupEnded
from ioa.agent.outbox import Outbox, duty_of_answer, duty_of_turn
from ioa.agent.task_runner import TaskRunner
from ioa.agent.turn_taking import TurnTaker
from ioa.agent.workspace import GroupFiles
from ioa.cancellation import TaskGroup, fail_after
from ioa.errors import ConflictError, IoaError, NotFoundError, SupersededError, UnavailableError, find_error
from ioa.group.questions import waits_for
from ioa.group.requests import Accepted, Entries, SequencedEntry, Sync
from ioa.group.state import Ended, OfTask, OpenTask
from ioa.ports.chat_model import current_user
from ioa.protocol.codec import validate
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Decision, TaskSpec
from ioa.protocol.outcomes import Outcome, ReportOutcomes
from ioa.retry import pauses
from ioa.telemetry import log_context

_INBOX_GRACE_SECONDS = 0.25
"""How long the agent's own message may take through the inbox before the log is read."""

_OVERTAKEN_SECONDS = 0.05
"""How long an entry that arrived too early waits for the entry before it while nothing else arrives. Replies and pushes take
different routes and can overtake each other."""

_MAX_EARLY, _MAX_EARLY_SECONDS = 64, 1.0
"""Number of early entries that wait, and how long at most. Then the log is read."""

_MAX_WAITING = 128
"""Number of pushed entries that wait to be applied; further entries are read from the log."""
_MAX_SILENCE_SECONDS = 300.0
_AFTER_DEADLINE_SECONDS = 1.0
"""How long after a deadline of the group its log is read, if no entry has arrived."""

Duty = Callable[[], Awaitable[Accepted | None]]
"""An action, which returns the reply to its message."""

_log = structlog.get_logger(__name__)


class AheadOfLogError(IoaError):
    """The agent's memory has entries that the group's log lacks: the log was replaced."""


class GroupSession:
    """Follow one group until it has ended.

    Args:
        runner: Runs the tasks.
        outbox: Sends the messages.
        history: Receives the entries.
        files: The group's files.
        silence: Seconds without a pushed entry after which the log is read for the first time; the pause doubles each time.
    """

    def __init__(self, runner: TaskRunner, outbox: Outbox, history: GroupHistory, files: GroupFiles, silence: float) -> None:
        self._runner = runner
        self._outbox = outbox
        self._files = files
        self._history = history
        self._silence = silence
        self._pauses = self._new_pauses()
        self._arrived: asyncio.Queue[SequencedEntry | None] = asyncio.Queue()
        self._early: dict[int, SequencedEntry] = {}
        """Entries that arrived before their predecessor, by the predecessor's sequence."""
        self._is_over = False
        """True if the session has ended: later entries are ignored."""
        self._must_sync = False
        """True if the log must be read: a pushed entry was dropped, or the group has been silent."""
        self._head = self._latest = 0
        self._position = 0
        """Sequence up to which every visible entry was applied. It can be larger than the cursor."""
        self._looks: list[asyncio.Future[None]] = []
        self._duties: dict[str, asyncio.Task[None]] = {}
        self._turns = TurnTaker(runner, outbox, history, files, self)
        self._forgotten: Sequence[tuple[int, int]] = ()
        """Struck turns that the memory has already removed."""

    @property
    def me(self) -> AgentId:
        """The agent of this session."""
        return self._outbox.me

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

    @property
    def deadline(self) -> datetime | None:
        """The next deadline of the group; None if there is none."""
        return None if self._history.state is None else self._history.state.next_deadline()

    def receive(self, entry: SequencedEntry) -> None:
        """Queue a pushed entry, which may be a duplicate or follow a gap. If the queue is full, the entry is read from the log."""
        if self._is_over or entry.seq <= self.cursor:
            return
        if self._arrived.qsize() < _MAX_WAITING:
            self._latest = max(self._latest, entry.seq)
            self._arrived.put_nowait(entry)
        elif not self._must_sync:
            self._must_sync = True
            self._arrived.put_nowait(None)

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
            AheadOfLogError: The agent's memory is of a log that was replaced.
        """
        with sessions.track_inprogress():
            try:
                await self._take_part()
            except Exception as error:
                if any(find_error(kind, error) for kind in (NotFoundError, AheadOfLogError)):
                    await self._files.remove()
                raise
            finally:
                self._is_over = True

    async def _take_part(self) -> None:
        await self._remember()
        if self.cursor:
            self._history.thoughts |= await until_answered(
                lambda: self._outbox.store.thoughts(self._history.comm_id), agent_id=self.me
            )
        self._turns.resume(await self._outbox.pending(self._history))
        if self.cursor and not self.ended:
            await self._repair()  # so that a restarted agent does not act on closed tasks
        async with TaskGroup() as duties:
            while not self.ended:
                await self._forget_struck()
                self._act(duties)
                await self._follow()
            self._drop_duties(keep=frozenset())
            await self._forget_struck()
        await self._close()

    async def _remember(self) -> None:
        """Apply the entries of the agent's memory."""
        store, comm_id = self._outbox.store, self._history.comm_id
        while page := await until_answered(lambda: store.entries(comm_id, after=self.cursor), comm_id=comm_id, agent_id=self.me):
            for entry in page:
                self._history.apply(entry)

    async def _forget_struck(self) -> None:
        """Remove struck messages from the memory, and cancel decisions that are based on them."""
        comm_id, struck = self._history.comm_id, self._history.struck
        if struck != self._forgotten:
            self._drop_duties(keep=frozenset(self._due()))
            there = self._history.there()
            await until_answered(lambda: self._outbox.store.keep_only(comm_id, there), comm_id=comm_id, agent_id=self.me)
            self._forgotten = struck

    async def _follow(self) -> None:
        """Apply at least one arrival and all entries that follow it, then read missing entries from the log."""
        complete = await self._take_arrivals()
        looks, self._looks = self._looks, []
        must_sync, self._must_sync = self._must_sync, False
        if not complete or looks or must_sync or self._head > self.position:
            await self._repair()
        for looked in looks:
            if not looked.done():
                looked.set_result(None)

    async def _take_arrivals(self) -> bool:
        """Apply arrivals, and wait briefly for a missing entry; return False if an entry is still missing."""
        loop = asyncio.get_running_loop()
        if not await self._take(await self._first_arrival()):
            return False
        until = loop.time() + _MAX_EARLY_SECONDS
        while not self._arrived.empty() or (self._early and not self._looks and not self._must_sync):
            try:
                async with fail_after(_OVERTAKEN_SECONDS):
                    arrival = await self._arrived.get()
            except TimeoutError:
                return False
            if not await self._take(arrival):
                return False
            if not self._early:
                until = loop.time() + _MAX_EARLY_SECONDS
            elif loop.time() > until or len(self._early) > _MAX_EARLY:
                return False
        return not self._early

    def _new_pauses(self) -> Iterator[float]:
        return pauses(self._silence, _MAX_SILENCE_SECONDS)

    async def _first_arrival(self) -> SequencedEntry | None:
        """Wait for an arrival; after a silence, or a deadline of the group without an entry, return None and request a sync."""
        if not self._arrived.empty():
            return self._arrived.get_nowait()
        pause = next(self._pauses)
        if self.deadline is not None:
            left = (self.deadline - self._outbox.clock.now()).total_seconds()
            left += next(pauses(_AFTER_DEADLINE_SECONDS, _AFTER_DEADLINE_SECONDS))
            if 0 < left < pause:
                pause, self._pauses = left, self._new_pauses()
        try:
            async with fail_after(pause):
                return await self._arrived.get()
        except TimeoutError:
            self._must_sync = True
            return None

    async def _take(self, arrival: SequencedEntry | None) -> bool:
        """Apply an arrival and the entries that waited for it, or store it until the entry before it arrives.

        Returns:
            False if the log must be read.
        """
        if arrival is not None and arrival.previous_seq > self.cursor:
            self._early[arrival.previous_seq] = arrival
            return True
        while arrival is not None:
            if not await self._apply(arrival):
                return False
            arrival = self._early.pop(self.cursor, None)
        return True

    async def _apply(self, entry: SequencedEntry) -> bool:
        """Apply the next entry. Return True also for a known entry, False if an entry before it is missing."""
        if entry.seq <= self.cursor:
            return True
        if entry.previous_seq != self.cursor:
            return False
        if not await until_answered(lambda: self._outbox.store.append(entry), comm_id=self._history.comm_id, agent_id=self.me):
            return False
        self._history.apply(entry)
        self._pauses = self._new_pauses()
        return True

    async def _repair(self) -> None:
        """Read missed entries from the log."""
        comm_id = self._history.comm_id

        async def next_page() -> Entries:
            try:
                asked = Sync(comm_id=comm_id, agent_id=self.me, after=self.position, session=self._outbox.session)
                page = await self._outbox.sync(asked)
            except ConflictError as error:
                raise AheadOfLogError(error.message) from None
            if 0 < page.head < self.position:
                raise AheadOfLogError(f"The log of {comm_id} ends at {page.head}; {self.me} knows it up to {self.position}.")
            if not page.entries and not page.complete and page.up_to <= self.position:
                raise UnavailableError(f"The log of {comm_id} returned an empty page before its end.")
            return page

        complete = False
        while not complete:
            page = await until_answered(next_page, comm_id=comm_id, agent_id=self.me)
            for entry in page.entries:
                if not await self._apply(entry):
                    raise ConflictError(f"The memory of {self.me} has another last entry in group {comm_id} than its session.")
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
            due[duty_of_turn(state.turn)] = partial(self._turns.take, state.turn)
        for task in state.open_tasks:
            spec = self._history.spec(task.task_id)
            if task.assignee == self.me and spec is not None:
                due[f"task:{task.task_id}"] = partial(self._runner.do, self._history, task, spec, self._files)
            if spec is not None and self._answers(task):
                for question in task.questions:
                    if question.role is None:
                        due[duty_of_answer(task.task_id, question.number)] = partial(self._answer, task, question, spec)
        return due

    def _answers(self, task: OpenTask) -> bool:
        """Return True if a task waits for an answer of the agent's author."""
        return self._runner.hooks.answers and waits_for(task, self.me, self._outbox.clock.now())

    async def _answer(self, task: OpenTask, question: OfTask, spec: TaskSpec) -> Accepted | None:
        """Answer a question of a task, without the floor; return None if the author leaves it to others, or the answer is late."""
        asked = AskedOfMe(task.task_id, task.assignee, spec.task_desc, question.text, question.options, question.default)
        within = question.until - self._outbox.clock.now()
        charter = self._history.charter
        assert charter is not None, "a task is asked in a group that was joined"
        text = await self._runner.hooks.answer(asked, charter, max(within, timedelta(seconds=1)))
        if text is None or self._history.state is None:
            return None
        said = validate(Decision, {"task_id": task.task_id, "number": question.number, "choice": text})
        answer = await self._outbox.say(self._history, said, self._history.state.turn, DecidedBy(kind="function"))
        if isinstance(answer, Accepted):
            return answer
        _log.info("answer_refused", task_id=task.task_id, code=answer.code, why=answer.message)
        return None

    def _drop_duties(self, keep: frozenset[str]) -> None:
        for name in [name for name in self._duties if name not in keep]:
            self._duties.pop(name).cancel()

    async def _fulfil(self, name: str, duty: Duty) -> None:
        """Run a duty and log its failure: the router's deadlines move the group on.

        `SupersededError` ends the agent. The accepted entry arrives in the inbox with the reply and ends the duty. If the first
        reply was lost, the entry is read from the log.
        """
        try:
            accepted = await duty()
        except Exception as error:
            if find_error(SupersededError, error) is not None:
                raise
            _log.exception("duty_failed", comm_id=self._history.comm_id, agent_id=self.me, duty=name)
            return
        if accepted is not None:
            if accepted.entry is not None:
                await asyncio.sleep(_INBOX_GRACE_SECONDS)
            self.catch_up(accepted.seq)

    async def _close(self) -> None:
        """Store and report the outcomes of the members, and remove the files."""
        state = self._history.state
        if state is not None and isinstance(state.stage, Ended):
            assert self._history.charter is not None
            about = self.me, self._history.charter.goal_id, self._history.comm_id
            self._runner.hooks.listeners.tell(GroupEnded(*about, reason=state.stage.reason, content=state.stage.content))
        else:  # the member was removed and receives no last entry
            now = self._outbox.clock.now()
            await until_answered(lambda: self._outbox.store.end_group(self._history.comm_id, now), agent_id=self.me)
        outcomes = self._outcomes()
        encounters = self._encounters(outcomes)
        if await until_answered(lambda: self._outbox.store.meet(self._history.comm_id, encounters), agent_id=self.me) and outcomes:
            await self._report()
        await self._files.remove()
        await self._repair()  # confirms that the member knows the end, which ends its membership
        _log.info("group_left", comm_id=self._history.comm_id, agent_id=self.me)

    def _outcomes(self) -> Sequence[Outcome]:
        """Return the outcomes of other members in a group that this agent owned."""
        charter = self._history.charter
        return [one for _, one in self._history.outcomes()] if charter is not None and charter.owner == self.me else []

    def _encounters(self, outcomes: Sequence[Outcome]) -> list[Encounter]:
        assert self._history.charter is not None or not outcomes
        of_agent: dict[AgentId, list[Outcome]] = {}
        for outcome in outcomes:
            of_agent.setdefault(outcome.agent_id, []).append(outcome)
        cards = self._history.charter.team_members if self._history.charter is not None else ()
        return [Encounter(card, tuple(of_agent[card.agent_id])) for card in cards if card.agent_id in of_agent]

    async def _report(self) -> None:
        """Report the end of the group to discovery, once; discovery reads the outcomes from the log."""
        request = ReportOutcomes(agent_id=self.me, session=self._outbox.session, comm_id=self._history.comm_id)
        try:
            await self._outbox.network.report_outcomes(request)
        except IoaError as error:
            _log.info("outcomes_not_told", comm_id=self._history.comm_id, agent_id=self.me, why=error.message)
