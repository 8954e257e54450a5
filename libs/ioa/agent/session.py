"""One agent in one group: applying the log in order, and fulfilling the duties that follow from where the group stands.

Applying and acting are separate, so that a slow thought or task never keeps the member from following its group, nor the agent
from its other groups. A duty is named by its turn or task; it is started once, and cancelled when the group has moved on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import structlog

from ioa.agent import listening
from ioa.agent.agent_metrics import count_decision, sessions, timed_decision
from ioa.agent.asking import until_answered
from ioa.agent.history import GroupHistory
from ioa.agent.inquiring import AskedOfMe
from ioa.agent.listening import AgentEvent, AttemptRefused, Decided, DecisionAsked, TurnStarted
from ioa.agent.outbox import Outbox, duty_of_answer, duty_of_turn
from ioa.agent.rules import RuleBrain
from ioa.agent.searching import search_for_others
from ioa.agent.task_runner import TaskRunner
from ioa.agent.workspace import GroupFiles
from ioa.errors import ConflictError, InvalidInputError, IoaError, SupersededError, UnavailableError, find_error
from ioa.group.questions import waits_for
from ioa.group.rejection import MAX_REFUSALS
from ioa.group.requests import Accepted, Entries, InviteMember, SequencedEntry, Sync
from ioa.group.state import Asking, Concluding, Ended, OfTask, OpenTask
from ioa.ports.agent_store import Encounter
from ioa.ports.brain import Brain, Decides, GroupView, Invite
from ioa.ports.meter import Meter
from ioa.protocol.codec import shortened, validate
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    AskUser,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    Message,
    Pass,
    PassCause,
    Payload,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.model_calls import rejected
from ioa.protocol.outcomes import MAX_REPORTED, Outcome, ReportOutcomes, TaskReport
from ioa.protocol.trace import span_id_of_group
from ioa.protocol.usage import NO_OVERHEAD, overhead_of_refused
from ioa.telemetry import live_spans, log_context
from ioa.telemetry.fault_points import reach

MAX_INVITES = 3
"""How many a brain may invite within one turn; after that it has to say something."""

_INBOX_GRACE_SECONDS = 0.25
"""How long one's own message may take through the inbox before the log is asked for it."""

_OVERTAKEN_SECONDS = 0.05
"""How long an entry that came too early waits for what is before it while nothing else arrives. Answers and pushes come on ways of
their own, and overtake each other."""

_MAX_EARLY, _MAX_EARLY_SECONDS = 64, 1.0
"""How many entries wait for what is before them, and how long, whatever else arrives. Then the log is asked."""

_ASKED_AFTER, _ASKED_AGAIN_AFTER = 0.55, 0.1
"""After which share of its patience a member that decides asks for more time, and asks again if it was not heard."""

_MAX_WHY_BYTES = 2_000
"""How much a pass tells of what was refused."""

_DECISIONS = {Asking: "decide", Concluding: "conclude"}
"""How a decision is counted, by the stage of the group that it is taken in."""

T = TypeVar("T")

Duty = Callable[[], Awaitable[Accepted | None]]
"""Something to be done, and the answer to the message that did it."""

_log = structlog.get_logger(__name__)


class AheadOfLogError(IoaError):
    """The agent's memory holds of a group what the group's log does not: the log it was read from is gone."""


class GroupSession:
    """Follow one group until it has ended."""

    def __init__(self, runner: TaskRunner, outbox: Outbox, history: GroupHistory, files: GroupFiles) -> None:
        self._runner = runner
        self._outbox = outbox
        self._files = files
        self._history = history
        self._arrived: asyncio.Queue[SequencedEntry | None] = asyncio.Queue()
        self._early: dict[int, SequencedEntry] = {}
        """What came before the entry that it follows, by the sequence of that one."""
        self._head = self._latest = 0
        self._position = 0
        """How far the log holds nothing that this member may see and has not applied; the cursor may lie behind it."""
        self._looks: list[asyncio.Future[None]] = []
        self._duties: dict[str, asyncio.Task[None]] = {}
        self._unsaid: dict[str, Message] = {}
        """What an earlier session prepared and may not have said, by the keys of the duties."""
        self._meter = Meter()
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
        """Take a pushed entry in; it may be one that is known, or lie behind a gap."""
        self._latest = max(self._latest, entry.seq)
        self._arrived.put_nowait(entry)

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

    def working(self) -> list[asyncio.Task[None]]:
        """Return the tasks this member is working on now."""
        return [duty for name, duty in self._duties.items() if name.startswith("task:")]

    async def run(self) -> None:
        """Follow the group and act in it until it has ended.

        Raises:
            NotFoundError: The group is gone, or this agent is none of its members.
            AheadOfLogError: What this agent remembers of the group is of a log that is gone.
        """
        with sessions.track_inprogress():
            await self._take_part()

    async def _take_part(self) -> None:
        for entry in await until_answered(lambda: self._outbox.store.entries(self._history.comm_id), agent_id=self.me):
            self._history.apply(entry)
        if self.cursor:
            self._history.thoughts |= await until_answered(
                lambda: self._outbox.store.thoughts(self._history.comm_id), agent_id=self.me
            )
        self._unsaid = await self._outbox.pending(self._history)
        if self.cursor and not self.ended:
            await self._repair()  # whoever was away acts on nothing that is long over
        async with asyncio.TaskGroup() as duties:
            while not self.ended:
                await self._forget_struck()
                self._act(duties)
                await self._follow()
            self._drop_duties(keep=frozenset())
            await self._forget_struck()
        await self._close()

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
        if not complete or looks or self._head > self.position:
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
        while not self._arrived.empty() or (self._early and not self._looks):
            try:
                async with asyncio.timeout(_OVERTAKEN_SECONDS):
                    entry = await self._arrived.get()
            except TimeoutError:
                return False
            if not await self._take(entry):
                return False
            if not self._early:
                until = loop.time() + _MAX_EARLY_SECONDS
            elif loop.time() > until or len(self._early) > _MAX_EARLY:
                return False
        return not self._early

    async def _take(self, entry: SequencedEntry | None) -> bool:
        """Apply an arrival and what waited for it, or let it wait for what is before it; False if only the log can help."""
        if entry is not None and entry.previous_seq > self.cursor:
            self._early[entry.previous_seq] = entry
            return True
        while entry is not None:
            if not await self._apply(entry):
                return False
            entry = self._early.pop(self.cursor, None)
        return True

    async def _apply(self, entry: SequencedEntry) -> bool:
        """Apply the next entry; True also for one that is known already, False if something is missing before it."""
        if entry.seq <= self.cursor:
            return True
        if entry.previous_seq != self.cursor:
            return False
        if not await until_answered(lambda: self._outbox.store.append(entry), comm_id=self._history.comm_id, agent_id=self.me):
            return False
        self._history.apply(entry)
        return True

    async def _repair(self) -> None:
        """Fetch from the log what was missed."""
        comm_id = self._history.comm_id

        async def next_page() -> Entries:
            try:
                page = await self._outbox.network.sync(
                    Sync(comm_id=comm_id, agent_id=self.me, after=self.position, session=self._outbox.session)
                )
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
            for entry in page.entries:
                if not await self._apply(entry):
                    raise ConflictError(f"The memory of {self.me} is not where it was left in group {comm_id}.")
            self._position = page.up_to
            complete = page.complete
        self._head = self.position
        self._early.clear()

    def _act(self, group: asyncio.TaskGroup) -> None:
        """Start the duties that are due and cancel those the group has moved past."""
        self._bind_logs()
        due = self._due()
        self._drop_duties(keep=frozenset(due))
        for name, duty in due.items():
            if name not in self._duties:
                self._duties[name] = group.create_task(self._fulfil(name, duty))

    def _bind_logs(self) -> None:
        """Have the lines of this session, and of the duties that it starts, say what they are about."""
        charter = self._history.charter
        about = {} if charter is None else {"goal_id": charter.goal_id, "traceparent": charter.traceparent}
        log_context.bind({"comm_id": self._history.comm_id, "agent_id": self.me, **about})

    def _due(self) -> dict[str, Duty]:
        state = self._history.state
        due: dict[str, Duty] = {}
        if state is None or self.ended:
            return due
        if self.me in state.floor:
            due[duty_of_turn(state.turn)] = partial(self._take_turn, state.turn)
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
        text = await self._runner.hooks.answer(asked, max(within, timedelta(seconds=1)))
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

    async def _take_turn(self, turn: int) -> Accepted | None:
        """Say something for the turn that was granted; None if it was not to be."""
        refusals: list[str] = []
        invited: list[Invite] = []
        self._tell(TurnStarted, turn=turn)
        self._meter.hear = self._runner.hear_model(self._history, turn=turn)
        while len(refusals) < MAX_REFUSALS and self._has_floor(turn):
            message: Message | None = None
            code = ""
            try:
                message = self._unsaid.pop(duty_of_turn(turn), None)
                message = message or await self._prepared(tuple(refusals), turn, invited)
                if message is None:
                    return None
                answer = await self._outbox.send(self._history, message)
            except SupersededError:
                raise
            except IoaError as error:
                _log.warning("nothing_said", comm_id=self._history.comm_id, agent_id=self.me, turn=turn, why=str(error))
                refusals.append(str(error))
            except Exception as error:  # noqa: BLE001 - a brain may raise anything; the next attempt is told
                _log.exception("thought_failed", comm_id=self._history.comm_id, agent_id=self.me, turn=turn)
                refusals.append(f"{type(error).__name__}: {error}")
            else:
                if isinstance(answer, Accepted):
                    _log.debug("said", kind=message.payload.type, turn=turn, seq=answer.seq, content=message.payload)
                    self._tell_said(message)
                    return answer
                _log.info("refused", comm_id=self._history.comm_id, agent_id=self.me, code=answer.code, why=answer.message)
                refusals.append(answer.message)
                code = str(answer.code)
            self._tell(AttemptRefused, turn=turn, why=refusals[-1], code=code)
            if message is not None:
                self._meter.note(*rejected(message.header.calls, code))
            if message is not None and message.header.usage is not None:
                self._meter.add(message.header.usage)  # it was spent all the same: the next message says so
                self._meter.set_apart(overhead_of_refused(message.header.usage, message.header.overhead or NO_OVERHEAD))
            await self.look()
        return await self._pass(turn, refusals) if len(refusals) == MAX_REFUSALS else None

    async def _prepared(self, refusals: tuple[str, ...], turn: int, invited: list[Invite]) -> Message | None:
        """Decide what to say, when all have joined who are invited first; `invited` holds whom this turn has invited.

        A watcher that adds somebody has answered by that: then there is nothing to say.

        Raises:
            IoaError: Nobody more can be invited; the brain is told why.
        """
        while isinstance(said := await self._traced(refusals), Invite):
            if len(invited) == MAX_INVITES:
                raise InvalidInputError(f"This turn has invited {MAX_INVITES}, which is the most: say something.")
            await self._invite(said, turn)
            invited.append(said)
            if not self._has_floor(turn):
                return None
        await self._keep_thought(turn)
        by = self._meter.decided_by
        return await self._outbox.prepare(self._history, said, turn, *self._meter.take(), by=by)

    async def _invite(self, invite: Invite, turn: int) -> None:
        """Have somebody join the group, and wait until this member knows it.

        Raises:
            InvalidInputError: Nobody can, or who is named is in the group; the brain is told why.
            ConflictError: The floor is another's by now.
            IoaError: Discovery or group setup says why not.
        """
        state, comm_id = self._history.state, self._history.comm_id
        if state is None or not self._has_floor(turn):
            raise ConflictError(f"Nobody is invited in turn {turn} any more: the floor is another's.")
        agent_id = invite.agent
        if agent_id is not None and state.is_member(agent_id):
            raise InvalidInputError(f"{agent_id} is in the group, or was removed from it: say something, or invite somebody else.")
        if agent_id is None:
            search = search_for_others([invite.need], me=self.me, purpose=comm_id, budget=None)
            found = await until_answered(lambda: self._outbox.network.search(search), comm_id=comm_id, agent_id=self.me)
            others = [hit.card.agent_id for hit in found.by_need[0].hits if not state.is_member(hit.card.agent_id)]
            if not others:
                raise InvalidInputError(f"Nobody else was found for: {invite.need}.")
            agent_id = others[0]
        about = {"comm_id": comm_id, "by": self.me, "turn": turn, "session": self._outbox.session}
        request = validate(InviteMember, {**about, "agent_id": agent_id, "role": invite.role, "why": invite.why})
        answer = await until_answered(lambda: self._outbox.network.invite(request), comm_id=comm_id, agent_id=self.me)
        if not isinstance(answer, Accepted):
            raise InvalidInputError(answer.message)
        self.catch_up(answer.seq)
        await self.look()

    async def _pass(self, turn: int, refusals: Sequence[str]) -> Accepted | None:
        """Pass the floor on in which nothing could be said, with the reasons; None if it is another's, or cannot be passed."""
        view = self._history.view(self.me, self._outbox.clock.now(), self._meter)
        if not self._has_floor(turn) or Pass not in view.legal:
            return None
        why = "\n".join(dict.fromkeys(refusals))
        passed = Pass(cause=PassCause.NO_USABLE_ANSWER, content=shortened(why, _MAX_WHY_BYTES))
        message = await self._outbox.prepare(self._history, passed, turn, *self._meter.take())
        answer = await self._outbox.send(self._history, message)
        count_decision(_DECISIONS.get(type(view.state.stage), "speak"), None, str(passed.cause))
        if not isinstance(answer, Accepted):
            return None
        self._tell_said(message)
        return answer

    def _tell(self, kind: type[AgentEvent], /, **what: Any) -> None:
        """Tell the agent's listeners of something in this group."""
        assert self._history.charter is not None
        goal_id = self._history.charter.goal_id
        self._runner.hooks.listeners.tell(kind(self.me, goal_id, self._history.comm_id, **what))

    def _tell_said(self, message: Message) -> None:
        said, about = message.payload, {"turn": message.header.turn, "decided_by": message.header.decided_by}
        if isinstance(said, Decision):
            self._tell(Decided, choice=said.choice, why=said.content, **about)
        else:
            content = said.text if isinstance(said, AskUser) else getattr(said, "content", "")
            self._tell(listening.MessageTaken, kind=said.type, content=content, **about)

    def _has_floor(self, turn: int) -> bool:
        state = self._history.state
        return state is not None and self.me in state.floor and state.turn == turn

    async def _traced(self, refusals: tuple[str, ...]) -> Payload | Invite:
        """Think; what is asked on the way is a part of the group's span."""
        assert self._history.charter is not None
        with live_spans.under(self._history.charter.traceparent, span_id_of_group(self._history.comm_id)):
            return await self._think(refusals)

    async def _think(self, refusals: tuple[str, ...]) -> Payload | Invite:
        reach("agent.thinking")
        now, brain = self._outbox.clock.now(), self._runner.ports.brain
        self._meter.decided_by, self._meter.thought = None, ""
        hooks = self._runner.hooks
        view = await hooks.observed(self._history.view(self.me, now, self._meter, refusals, self._files), self._files)
        said: Payload | Invite
        deciding: Awaitable[Payload | Invite]
        if isinstance(view.state.stage, Asking):
            return await self._decide(view, brain)
        if not isinstance(view.state.stage, Concluding):
            if view.offer is not None and view.offer.say is not None:
                self._meter.decided_by = DecidedBy(kind="rules")
                return Discussion(content=view.offer.say)
            if view.offer is not None and view.offer.again:
                self._meter.decided_by = DecidedBy(kind="rules")
                return self._passed_draft(view.offer.again)
            with timed_decision("speak"):
                if hooks.speaks:
                    deciding = hooks.speak(view, self._files)
                elif view.part is not None and isinstance(brain, RuleBrain):
                    deciding = self._runner.say(self._history, view, self._files)
                else:
                    deciding = brain.speak(view)
                said = await self._keeping_floor(view, deciding)
            count_decision("speak", self._meter.decided_by, str(said.cause) if isinstance(said, Pass) else "")
            if not isinstance(said, ConcludeGroupDiscussion) or said.conclusion is None:
                return said
            return said.model_copy(update={"conclusion": await self._fitting(said.conclusion, view)})
        with timed_decision("conclude"):
            concluding = hooks.conclude(view, self._files) if hooks.speaks else brain.conclude(view)
            said = await self._keeping_floor(view, concluding)
        count_decision("conclude", self._meter.decided_by, str(said.cause) if isinstance(said, Pass) else "")
        return said if isinstance(said, Pass) else await self._fitting(said, view)

    def _passed_draft(self, digest: str) -> Discussion:
        """Return what was said and passed; no brain is asked for it again."""
        draft = self._history.draft(self.me, digest)
        if draft is None:
            raise ConflictError(f"The memory of {self.me} lacks the draft that was passed in group {self._history.comm_id}.")
        turn, said = draft
        self._meter.thought = self._history.thoughts.get(turn, "")
        return said

    async def _decide(self, view: GroupView, brain: Brain) -> Payload | Invite:
        """Choose what a policy asks for; without anything that decides the default stands, which a member says at once."""
        assert view.offer is not None
        offered = view.offer
        self._tell(DecisionAsked, turn=view.state.turn, about=offered.about, options=offered.options, default=offered.default)
        deciding: Awaitable[Payload | Invite]
        if self._runner.hooks.speaks:
            deciding = self._runner.hooks.speak(view, self._files)
        elif isinstance(brain, Decides):
            deciding = brain.decide(view)
        else:
            self._meter.decided_by = DecidedBy(kind="rules")
            return Decision(choice=view.offer.default)
        with timed_decision("decide"):
            said = await self._keeping_floor(view, deciding)
        count_decision("decide", self._meter.decided_by, str(said.cause) if isinstance(said, Pass) else "")
        return said

    async def _keep_thought(self, turn: int) -> None:
        """Keep what was thought on the way, so that this agent finds it in its later turns, and after a restart."""
        if thought := self._meter.thought:
            self._history.thoughts[turn] = thought
            comm_id = self._history.comm_id
            await until_answered(lambda: self._outbox.store.put_thought(comm_id, turn, thought), comm_id=comm_id, agent_id=self.me)

    async def _fitting(self, conclusion: Conclusion, view: GroupView) -> Conclusion:
        return await self._files.fitting(conclusion, view.state.turn)

    async def _keeping_floor(self, view: GroupView, deciding: Awaitable[T]) -> T:
        """Wait for a decision; a member with patience asks for more time as long as it takes."""
        patience = view.state.patience_of(self.me)
        if patience is None:
            return await deciding
        failure: Exception | None = None
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(self._keep_floor(view.state.turn, patience.total_seconds()))
            try:
                decided = await deciding
            except Exception as error:  # noqa: BLE001 - raised below, outside of the task group
                failure = error
            keeping.cancel()
        if failure is not None:
            raise failure
        return decided

    async def _keep_floor(self, turn: int, patience: float) -> None:
        """Ask for more time whenever more than half of it has passed, for ever."""
        pause = patience * _ASKED_AFTER
        while True:
            await asyncio.sleep(pause)
            pause = patience * _ASKED_AGAIN_AFTER
            try:
                answer = await self._outbox.keep_floor(self._history, turn)
            except IoaError as error:
                _log.info("floor_not_kept", comm_id=self._history.comm_id, agent_id=self.me, why=error.message)
                continue
            if isinstance(answer, Accepted):
                pause = patience * _ASKED_AFTER
                self.catch_up(answer.seq)

    async def _close(self) -> None:
        """Remember who did how well, and tidy up."""
        state = self._history.state
        if state is not None and isinstance(state.stage, Ended):
            self._tell(listening.GroupEnded, reason=state.stage.reason, content=state.stage.content)
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
