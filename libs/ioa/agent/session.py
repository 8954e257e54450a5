"""One agent in one group: applying the log in order, and fulfilling the duties that follow from where the group stands.

Applying and acting are separate, so that a slow thought or task never keeps the member from following its group, nor the agent
from its other groups. A duty is named by its turn or task; it is started once, and cancelled when the group has moved on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog

from ioa.agent.agent_metrics import sessions
from ioa.agent.asking import until_answered
from ioa.agent.heard_room import HeardRoom, size_of_entry
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
from ioa.ports.agent_store import Encounter
from ioa.ports.asked_for import work_for
from ioa.protocol.codec import validate
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.ids import LOCAL, AgentId, TaskId
from ioa.protocol.messages import Decision, InformTaskResult, TaskOutcome, TaskSpec
from ioa.protocol.outcomes import MAX_REPORTED, Outcome, ReportOutcomes, TaskReport
from ioa.telemetry import log_context

_INBOX_GRACE_SECONDS = 0.25
"""How long one's own message may take through the inbox before the log is asked for it."""

_OVERTAKEN_SECONDS = 0.05
"""How long an entry that came too early waits for what is before it while nothing else arrives. Answers and pushes come on ways of
their own, and overtake each other."""

_MAX_EARLY, _MAX_EARLY_SECONDS = 64, 1.0
"""How many entries wait for what is before them, and how long, whatever else arrives. Then the log is asked."""

_HEARD_AT_ONCE = 64
"""How many entries of the agent's memory are taken in in one turn of the loop: of short ones a page holds thousands."""
_LEAVING_SECONDS = 5.0
"""How long a group that is left may take to be told why."""


@dataclass(frozen=True)
class _Arrival:
    """An entry that was pushed, and as how much it counts."""

    entry: SequencedEntry
    size_bytes: int


Duty = Callable[[], Awaitable[Accepted | None]]
"""Something to be done, and the answer to the message that did it."""

_log = structlog.get_logger(__name__)


class AheadOfLogError(IoaError):
    """The agent's memory holds of a group what the group's log does not: the log it was read from is gone."""


class NoRoomError(IoaError):
    """More was said in the group than the agent's process has room for, with what was said in others."""


class GroupSession:
    """Follow one group until it has ended."""

    def __init__(self, runner: TaskRunner, outbox: Outbox, history: GroupHistory, files: GroupFiles, room: HeardRoom) -> None:
        self._runner = runner
        self._outbox = outbox
        self._files = files
        self._history = history
        self._room = room
        self._has_room = True
        self._arrived: asyncio.Queue[_Arrival | None] = asyncio.Queue()
        self._early: dict[int, _Arrival] = {}
        """What came before the entry that it follows, by the sequence of that one."""
        self._is_over = False
        """Whether nobody applies any more what comes."""
        self._passed_over = False
        """Whether something has come for which there was no room, so that the log has to be asked for it."""
        self._head = self._latest = 0
        self._position = 0
        """How far the log holds nothing that this member may see and has not applied; the cursor may lie behind it."""
        self._looks: list[asyncio.Future[None]] = []
        self._duties: dict[str, asyncio.Task[None]] = {}
        self._turns = TurnTaker(runner, outbox, history, files, self)
        self._forgotten: Sequence[tuple[int, int]] = ()
        """What was struck that this member remembers no more."""

    @property
    def me(self) -> AgentId:
        """The agent this session belongs to."""
        return self._outbox.me

    @property
    def history(self) -> GroupHistory:
        """What this member knows of the group."""
        return self._history

    @property
    def cursor(self) -> int:
        """The last sequence applied."""
        return self._history.cursor

    @property
    def position(self) -> int:
        """How far nothing is missing."""
        return max(self._position, self.cursor)

    @property
    def ended(self) -> bool:
        """Whether the group has ended, or has removed this member, as far as it knows."""
        state = self._history.state
        return state is not None and (state.phase.is_terminal or self.me not in state.hearing)

    @property
    def deadline(self) -> datetime | None:
        """When the group has to move on by itself, as far as this member knows."""
        return None if self._history.state is None else self._history.state.next_deadline()

    def receive(self, entry: SequencedEntry) -> None:
        """Take a pushed entry in; it may be one that is known, or lie behind a gap. Where too much waits, the log is asked for it.

        The log has it, and tells it a page at a time; what waits here is decoded, and has the whole state of its group.
        """
        if self._is_over or entry.seq <= self.cursor:
            return
        arrival = _Arrival(entry, size_of_entry(entry.entry))
        if self._room.lets_wait(self, arrival.size_bytes):
            self._latest = max(self._latest, entry.seq)
            self._arrived.put_nowait(arrival)
        elif not self._passed_over:
            self._passed_over = True
            self._arrived.put_nowait(None)

    def catch_up(self, head: int) -> None:
        """Look for what was missed, up to `head` at least. What has arrived and waits to be applied was not missed."""
        if head > max(self._head, self._latest, self.position):
            self._head = head
            self._arrived.put_nowait(None)

    def look(self) -> asyncio.Future[None]:
        """Have the log asked for what is new; the future is done when it was."""
        looked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._looks.append(looked)
        self._arrived.put_nowait(None)
        return looked

    def leave(self) -> None:
        """Take part in the group no more: there is no room for what is said in it."""
        self._has_room = False
        self._arrived.put_nowait(None)

    def working(self) -> list[asyncio.Task[None]]:
        """Return the tasks this member is working on now."""
        return [duty for name, duty in self._duties.items() if name.startswith("task:")]

    async def run(self) -> None:
        """Follow the group and act in it until it has ended.

        Raises:
            NotFoundError: The group is gone, or this agent is none of its members.
            AheadOfLogError: What this agent remembers of the group is of a log that is gone.
            NoRoomError: There is no room for what is said in the group, which was told so.
        """
        with sessions.track_inprogress():
            try:
                await self._take_part()
            except Exception as error:
                if any(find_error(kind, error) for kind in (NotFoundError, AheadOfLogError, NoRoomError)):
                    await self._files.remove()
                raise
            finally:
                self._is_over = True
                self._room.give_back(self)
                self._room.waits_no_more(self)

    async def _take_part(self) -> None:
        await self._remember()
        if self.cursor:
            self._history.thoughts |= await until_answered(
                lambda: self._outbox.store.thoughts(self._history.comm_id), agent_id=self.me
            )
        self._turns.resume(await self._outbox.pending(self._history))
        if self.cursor and not self.ended:
            await self._repair()  # whoever was away acts on nothing that is long over
        async with TaskGroup() as duties:
            while not self.ended:
                await self._forget_struck()
                self._act(duties)
                await self._follow()
                if not self._has_room and not self.ended:
                    await self._say_why()
                    self._check_room()
            self._drop_duties(keep=frozenset())
            await self._forget_struck()
        await self._close()

    async def _remember(self) -> None:
        """Take in what the agent's memory holds of the group."""
        store, comm_id = self._outbox.store, self._history.comm_id
        while page := await until_answered(lambda: store.entries(comm_id, after=self.cursor), comm_id=comm_id, agent_id=self.me):
            for number, entry in enumerate(page, start=1):
                self._hear(entry, size_of_entry(entry.entry))
                if number % _HEARD_AT_ONCE == 0:
                    await asyncio.sleep(0)
            self._check_room()

    def _hear(self, entry: SequencedEntry, size_bytes: int) -> None:
        self._history.apply(entry)
        if self._has_room:
            charter = self._history.charter
            user = LOCAL if charter is None or charter.user is None else charter.user
            self._room.take(self, user, size_bytes)

    def _check_room(self) -> None:
        if not self._has_room:
            raise NoRoomError(f"More was said in group {self._history.comm_id} than {self.me} has room for.")

    async def _say_why(self) -> None:
        """Report what this member still has to do as failed, and pass its turn, if that can be told soon."""
        self._drop_duties(keep=frozenset())
        state, why = self._history.state, f"{self.me} leaves this group: more was said in it than there is room for."
        assert state is not None
        try:
            async with fail_after(_LEAVING_SECONDS):
                for task in [one for one in state.open_tasks if one.assignee == self.me]:
                    failed = InformTaskResult(task_id=task.task_id, outcome=TaskOutcome.FAILED, task_conclusion=why)
                    await self._outbox.say(self._history, failed, task.turn)
                await self._turns.pass_on(state.turn, [why])
        except (IoaError, TimeoutError) as error:
            _log.info("leaving_not_told", comm_id=self._history.comm_id, agent_id=self.me, why=str(error))

    async def _forget_struck(self) -> None:
        """Forget what was struck before anything else is decided; who still decides by it has been overtaken."""
        comm_id, struck = self._history.comm_id, self._history.struck
        if struck != self._forgotten:
            self._drop_duties(keep=frozenset(self._due()))
            there = self._history.there()
            await until_answered(lambda: self._outbox.store.keep_only(comm_id, there), comm_id=comm_id, agent_id=self.me)
            self._forgotten = struck

    async def _follow(self) -> None:
        """Apply at least one arrival and everything that lies ready behind it, then fetch what is missing."""
        complete = await self._take_arrivals()
        looks, self._looks = self._looks, []
        passed_over, self._passed_over = self._passed_over, False
        if not complete or looks or passed_over or self._head > self.position:
            await self._repair()
        for looked in looks:
            if not looked.done():
                looked.set_result(None)

    async def _take_arrivals(self) -> bool:
        """Apply what has arrived, and what comes a moment later where that is missing; False if something stays missing."""
        loop = asyncio.get_running_loop()
        if not await self._take(await self._arrived.get()):
            return False
        until = loop.time() + _MAX_EARLY_SECONDS
        while self._has_room and (not self._arrived.empty() or (self._early and not self._looks and not self._passed_over)):
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

    async def _take(self, arrival: _Arrival | None) -> bool:
        """Apply an arrival and what waited for it, or let it wait for what is before it; False if only the log can help."""
        if arrival is not None and arrival.entry.previous_seq > self.cursor:
            self._let_go(self._early.get(arrival.entry.previous_seq))
            self._early[arrival.entry.previous_seq] = arrival
            return True
        while arrival is not None:
            self._let_go(arrival)
            if not await self._apply(arrival.entry, arrival.size_bytes):
                return False
            arrival = self._early.pop(self.cursor, None)
        return True

    def _let_go(self, *arrivals: _Arrival | None) -> None:
        for arrival in arrivals:
            if arrival is not None:
                self._room.waits_no_more(self, arrival.size_bytes)

    async def _apply(self, entry: SequencedEntry, size_bytes: int) -> bool:
        """Apply the next entry; True also for one that is known already, False if something is missing before it."""
        if entry.seq <= self.cursor:
            return True
        if entry.previous_seq != self.cursor:
            return False
        if not await until_answered(lambda: self._outbox.store.append(entry), comm_id=self._history.comm_id, agent_id=self.me):
            return False
        self._hear(entry, size_bytes)
        return True

    async def _repair(self) -> None:
        """Fetch from the log what was missed."""
        comm_id, pages = self._history.comm_id, 0

        async def ask() -> Entries:
            asked = Sync(comm_id=comm_id, agent_id=self.me, after=self.position, session=self._outbox.session)
            return await self._outbox.network.sync(asked)

        async def next_page() -> Entries:
            try:
                page = await self._outbox.catching_up.ask(pages, ask)
            except ConflictError as error:
                raise AheadOfLogError(error.message) from None
            if 0 < page.head < self.position:
                raise AheadOfLogError(f"The log of {comm_id} ends at {page.head}; {self.me} knows it up to {self.position}.")
            if not page.entries and not page.complete and page.up_to <= self.position:
                raise UnavailableError(f"The log of {comm_id} does not show what it holds.")
            return page

        complete = False
        while not complete:
            page = await until_answered(next_page, comm_id=comm_id, agent_id=self.me)
            pages += 1
            for entry in page.entries:
                if not await self._apply(entry, size_of_entry(entry.entry)):
                    raise ConflictError(f"The memory of {self.me} is not where it was left in group {comm_id}.")
            if not self._has_room:
                break
            self._position = page.up_to
            complete = page.complete
        self._head = self.position
        self._let_go(*self._early.values())
        self._early.clear()

    def _act(self, group: asyncio.TaskGroup) -> None:
        """Start the duties that are due and cancel those the group has moved past."""
        self._bind()
        due = self._due()
        self._drop_duties(keep=frozenset(due))
        for name, duty in due.items():
            if name not in self._duties:
                self._duties[name] = group.create_task(self._fulfil(name, duty))

    def _bind(self) -> None:
        """Have the lines of this session, and of the duties that it starts, say what they are about, and these be for its user."""
        charter = self._history.charter
        about = {} if charter is None else {"goal_id": charter.goal_id, "traceparent": charter.traceparent}
        log_context.bind({"comm_id": self._history.comm_id, "agent_id": self.me, **about})
        if charter is not None:
            work_for(charter.user or charter.comm_id)

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
        """Whether a task asks what its agent's author answers."""
        return self._runner.hooks.answers and waits_for(task, self.me, self._outbox.clock.now())

    async def _answer(self, task: OpenTask, question: OfTask, spec: TaskSpec) -> Accepted | None:
        """Answer what a task asks, without the floor; None if that is left to others, or comes too late."""
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
        """Let no failed duty take its group or the agent down: the router's deadlines move the group on.

        That another process speaks for the agent now is no failure of the duty, and ends the agent here. What was accepted comes
        into the inbox with the answer, which ends the duty; else the first answer was lost, and the log has it.
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
        """Remember who did how well, and tidy up."""
        state = self._history.state
        if state is not None and isinstance(state.stage, Ended):
            assert self._history.charter is not None
            about = self.me, self._history.charter.goal_id, self._history.comm_id
            self._runner.hooks.listeners.tell(GroupEnded(*about, reason=state.stage.reason, content=state.stage.content))
        else:  # it was removed, and is told of no end
            now = self._outbox.clock.now()
            await until_answered(lambda: self._outbox.store.end_group(self._history.comm_id, now), agent_id=self.me)
        outcomes = self._outcomes()
        encounters = self._encounters(outcomes)
        if await until_answered(lambda: self._outbox.store.meet(self._history.comm_id, encounters), agent_id=self.me) and outcomes:
            await self._report(outcomes)
        await self._files.remove()
        await self._repair()  # there is nothing more: this says that the member knows the end, and its membership is over
        _log.info("group_left", comm_id=self._history.comm_id, agent_id=self.me)

    def _outcomes(self) -> tuple[tuple[TaskId, Outcome], ...]:
        """How others did in a group that this agent owned."""
        charter = self._history.charter
        return self._history.outcomes() if charter is not None and charter.owner == self.me else ()

    def _encounters(self, outcomes: Sequence[tuple[TaskId, Outcome]]) -> list[Encounter]:
        assert self._history.charter is not None or not outcomes
        of_agent: dict[AgentId, list[Outcome]] = {}
        for _, outcome in outcomes:
            of_agent.setdefault(outcome.agent_id, []).append(outcome)
        cards = self._history.charter.team_members if self._history.charter is not None else ()
        return [Encounter(card, tuple(of_agent[card.agent_id])) for card in cards if card.agent_id in of_agent]

    async def _report(self, outcomes: Sequence[tuple[TaskId, Outcome]]) -> None:
        """Tell discovery, once. It does without what it is not told."""
        tasks = tuple(
            TaskReport(
                task_id=task_id,
                assignee=one.agent_id,
                outcome=TaskOutcome.DONE if one.done else TaskOutcome.FAILED,
                need=one.need,
                at=one.at,
                seconds=one.seconds,
                usage=one.usage,
            )
            for task_id, one in outcomes
        )
        request = ReportOutcomes(
            agent_id=self.me, session=self._outbox.session, comm_id=self._history.comm_id, tasks=tasks[-MAX_REPORTED:]
        )
        try:
            await self._outbox.network.report_outcomes(request)
        except IoaError as error:
            _log.info("outcomes_not_told", comm_id=self._history.comm_id, agent_id=self.me, why=error.message)
