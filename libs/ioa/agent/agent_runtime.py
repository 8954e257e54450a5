"""Runtime of one agent: registration, lease, inbox, goals and memberships."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import structlog

from ioa.agent.agent_ports import AgentPorts
from ioa.agent.brain_port import Brain
from ioa.agent.definition import AgentDefinition
from ioa.agent.events import Events
from ioa.agent.function_brain import FUNCTIONS_AT_ONCE, FunctionBrain
from ioa.agent.goal_leader import Leader
from ioa.agent.group_history import GroupHistory
from ioa.agent.group_session import GroupSession
from ioa.agent.metrics import agents
from ioa.agent.send import MessageSender, until_answered
from ioa.agent.task_files import GroupFiles
from ioa.agent.tasks import TaskRunner
from ioa.agent.worker_pool import WorkerPool
from ioa.cancellation import TaskGroup, fail_after
from ioa.disk import remove_folder
from ioa.errors import (
    AlreadyRunningError,
    IdTakenError,
    IoaError,
    NotFoundError,
    SupersededError,
    find_error,
)
from ioa.group.requests import ListMemberships, SequencedEntry
from ioa.ports.brain import AsksModel
from ioa.protocol.cards import AgentCard, ModelReport
from ioa.protocol.ids import CommId
from ioa.protocol.load import Load
from ioa.protocol.registry import Deregister, Lease, Register, Renew, Session
from ioa.retry import pauses
from ioa.telemetry import log_context, readiness

_MODEL_PATIENCE = timedelta(seconds=60)
"""How long agents that a model speaks for are waited for at a time."""
_MAX_ABANDONED = 8
"""Abandoned functions above which the agent goes offline until they end."""
_LOOK_AGAIN = timedelta(seconds=1)
_LEAST_PAUSE = timedelta(milliseconds=20)
"""How soon the registry and group setup are asked again at the soonest, whatever they say: the process may work for others, too."""
_TIDY_EVERY = timedelta(hours=1)
_ENDING = timedelta(seconds=2)
"""Maximum time of deregistration, and of cancelled functions, when the agent ends."""

_MAX_RESTART_SECONDS = 300.0
"""Longest pause before a failed session is restarted."""

_ENDED_REMEMBERED = 1_000
"""Of how many groups that ended it is remembered that late pushes of them say nothing new."""

_log = structlog.get_logger(__name__)


class Stop(Protocol):
    """A signal to end."""

    async def wait(self) -> None:
        """Return when the client must end."""


@dataclass(frozen=True)
class RuntimeOptions:
    """Options of one agent's runtime.

    Attributes:
        files: Folder for the files of running tasks.
        drain: How long running tasks may go on after a stop.
        task_timeout: Timeout of a task's function whose author set none.
        grace: How long a cancelled function keeps its slot; after that it is abandoned.
        plans: Whether the agent plans a team, with a policy, for a goal without a team.
        keep: How long passages of ended groups are kept in the agent's memory.
        takeover: How long to request an id that is in use: its holder may have been killed, and its lease may expire soon.
        reform_after: Pause before a team is formed again because a member is offline; the pause grows.
        silence: Time without a pushed entry after which a group's log is read; the pause doubles each time. Also the first pause
            before a failed session is restarted.
    """

    files: Path
    tasks_at_once: int = 4
    goals_at_once: int = 8
    drain: timedelta = timedelta(seconds=5)
    task_timeout: timedelta | None = None
    grace: timedelta = timedelta(seconds=5)
    plans: bool = False
    keep: timedelta = timedelta(days=1)
    takeover: timedelta = timedelta(seconds=15)
    reform_after: timedelta = timedelta(seconds=1)
    silence: timedelta = timedelta(seconds=3)


class AgentRuntime:
    """Run one agent until it is cancelled."""

    def __init__(
        self,
        agent: AgentDefinition,
        card: AgentCard,
        ports: AgentPorts,
        session: Session,
        options: RuntimeOptions,
    ) -> None:
        card = self._card = _as_spoken_for(card, agent, ports.brain)
        self._hold = session
        self._network = ports.network
        self._store = ports.store
        self._clock = ports.clock
        self._ids = ports.ids
        self._proof = ""
        """What shows the registry that this is the memory of the process that holds the id."""
        self._options = options
        self._sender = MessageSender(card.agent_id, ports.network, ports.clock, ports.ids, session.session)
        self._workers = WorkerPool(card.agent_id, options.tasks_at_once, options.grace)
        self._speaking_workers = WorkerPool(card.agent_id, FUNCTIONS_AT_ONCE, options.grace)
        functions, events = FunctionBrain(agent, ports, self._speaking_workers), Events(card.agent_id, agent.on_event)
        self._runner = TaskRunner(agent, card, ports, self._sender, self._workers, functions, events, options.task_timeout)
        self._leader = Leader(card, ports, session.session, options.reform_after, plans=options.plans)
        self._model = _ModelWatch(ports.brain) if isinstance(ports.brain, AsksModel) else None
        self._sessions: dict[CommId, GroupSession] = {}
        self._running: dict[CommId, asyncio.Task[None]] = {}
        """The task of each session; it restarts a failed session."""
        self._online = asyncio.Event()
        self._leading: asyncio.Task[None] | None = None
        """Takes goals while the agent is online: only then does its pool have a queue for certain."""
        self._news = asyncio.Event()
        """Set when there may be groups that the agent does not know of."""
        self._known = 0
        """Number of the newest membership that was listed."""
        self._joined = 0
        """Number of the newest membership, as the registry knows it."""
        self._ended: OrderedDict[CommId, int] = OrderedDict()

    @property
    def groups_followed(self) -> int:
        """In how many groups the agent takes part now."""
        return len(self._sessions)

    @property
    def functions_abandoned(self) -> int:
        """Number of functions that were cancelled and still run."""
        return self._workers.abandoned + self._speaking_workers.abandoned

    async def until_registered(self) -> None:
        """Wait until the agent is registered, and can be found."""
        await self._online.wait()

    async def run(self, stop: Stop) -> None:
        """Serve until `stop`; then take no new goal, let running tasks end within the drain time, and go offline.

        Raises:
            AlreadyRunningError: Another process runs the agent, and goes on to.
            IdTakenError: Another agent holds the id, and goes on to.
            SupersededError: Another process has taken the agent over; it is left alone.
        """
        me = self._card.agent_id
        log_context.bind({"agent_id": me})
        with (
            agents.track_inprogress(),
            readiness.needs(f"registration of {me}", self._online.is_set),
            readiness.needs(f"{me} to be fit for work", lambda: not self._complaints()),
        ):
            try:
                await self._serve(stop)
            except BaseExceptionGroup as errors:
                refusals = [find_error(kind, errors) for kind in (SupersededError, AlreadyRunningError, IdTakenError)]
                for refused in filter(None, refusals):
                    raise refused from None
                raise
        await self._leave()

    async def _serve(self, stop: Stop) -> None:
        # What a process before this one had fetched or begun there serves nothing: an attempt has a folder of its own.
        await asyncio.to_thread(remove_folder, self._options.files)
        # Sessions are a group of their own, which is the last to end: until then those who stay may open one. So no session fails.
        async with self._network.inbox(self._card.agent_id) as inbox, TaskGroup() as sessions, TaskGroup() as group:
            staying = [
                group.create_task(self._listen(sessions, inbox)),
                group.create_task(self._stay_registered(group)),
                group.create_task(self._find_groups(sessions)),
            ]
            with self._network.at_renewal(self._start_over):
                await stop.wait()
            self._stop_leading()
            await self._drain()
            for task in (*staying, *self._running.values()):
                task.cancel()
            self._stop_leading()  # it may have begun meanwhile

    async def _stay_registered(self, group: asyncio.TaskGroup) -> None:
        """Register, then renew the lease until cancelled, independently of all groups."""
        me = self._card.agent_id
        lease = await self._register()
        for warning in lease.warnings:
            _log.warning("card_could_be_better", agent_id=me, advice=warning)
        self._news.set()
        while True:
            if not self._online.is_set():
                self._online.set()
                self._leading = group.create_task(self._take_goals())
                _log.info("agent_ready", agent_id=me)
            if lease.joined and lease.joined != self._joined:
                self._known = self._known if lease.joined > self._joined else 0  # the bucket of memberships was lost
                self._joined = lease.joined
                self._news.set()
            await asyncio.sleep(max(lease.renew_every, _LEAST_PAUSE).total_seconds())
            await self._until_fit()
            lease = await until_answered(self._renew, agent_id=me)

    async def _register(self) -> Lease:
        """Register as the successor of the process that had the memory before; wait a while for another holder of the id."""
        previous = await until_answered(self._store.last_session, agent_id=self._card.agent_id)
        drawn = self._ids.new("memory")
        self._proof = await until_answered(lambda: self._store.keep_proof(drawn), agent_id=self._card.agent_id)
        request = Register(card=self._card, session=self._hold, previous=previous, proof=self._proof)
        loop = asyncio.get_running_loop()
        until = loop.time() + self._options.takeover.total_seconds()
        while True:
            try:
                lease = await until_answered(lambda: self._network.register(request), agent_id=self._card.agent_id)
                break
            except (AlreadyRunningError, IdTakenError) as error:
                if loop.time() >= until:
                    raise
                _log.warning("id_in_use", agent_id=self._card.agent_id, why=error.message)
            await asyncio.sleep(_LOOK_AGAIN.total_seconds())
        self._leader.note_registration()
        await self._note_session()
        return lease

    async def _note_session(self) -> None:
        await until_answered(lambda: self._store.note_session(self._hold.session), agent_id=self._card.agent_id)

    async def _until_fit(self) -> None:
        """Go offline while the agent cannot be trusted with work, and let what runs go on."""
        why = self._complaints()
        if not why:
            return
        me = self._card.agent_id
        _log.error(
            "agent_unfit", agent_id=me, why="; ".join(why), hint="It takes no work until that is mended, or it is restarted."
        )
        self._online.clear()
        self._stop_leading()
        await self._deregister()
        while self._complaints():
            await asyncio.sleep(_LOOK_AGAIN.total_seconds())
            if not self._store.is_well:
                await self._note_session()  # whatever it writes: an answer is what makes it well
        _log.warning("agent_fit_again", agent_id=me)

    def _complaints(self) -> list[str]:
        """Return what keeps the agent from being trusted with work."""
        abandoned = self.functions_abandoned
        return [
            *([] if self._store.is_well else ["its memory does not answer"]),
            *([f"{abandoned} of its functions were told to stop and still run"] if abandoned > _MAX_ABANDONED else []),
        ]

    def _start_over(self) -> None:
        """Request memberships and logs again: messages sent while the connection was lost did not arrive."""
        self._known = self._joined = 0
        self._ended.clear()  # the server may have an empty store, with lower sequences
        self._news.set()
        for session in self._sessions.values():
            session.look()

    async def _find_groups(self, group: asyncio.TaskGroup) -> None:
        """List the agent's memberships whenever there may be an unknown group, until cancelled."""
        await self._online.wait()
        while True:
            await self._news.wait()
            self._news.clear()
            await self._ask_for_memberships(group)

    async def _ask_for_memberships(self, group: asyncio.TaskGroup) -> None:
        """Open a session for each membership and for each open group of the memory.

        The bucket of memberships may be lost: whether a group has ended is read from its log. A membership lasts until the agent
        has confirmed the group's end or its removal.
        """
        me, after, known = self._card.agent_id, self._known, -1
        left = set[CommId]() if after else {*await until_answered(self._store.open_groups, agent_id=me)}
        while after > known:  # a page that leads no further is the last
            known = after
            request = ListMemberships(agent_id=me, after=after)
            page = await until_answered(lambda request=request: self._network.memberships(request), agent_id=me)  # type: ignore[misc]
            for membership in page.memberships:
                if membership.comm_id not in self._sessions:
                    self._session(group, membership.comm_id).look()
                after = max(after, membership.number)
                left.discard(membership.comm_id)
            if page.complete:
                for comm_id in left - self._sessions.keys():
                    self._session(group, comm_id).look()
                break
            await asyncio.sleep(_LEAST_PAUSE.total_seconds())
        self._known = max(self._known, after)

    def _stop_leading(self) -> None:
        if self._leading is not None:
            self._leading.cancel()

    async def _take_goals(self) -> None:
        me, at_once, leads = self._card, self._options.goals_at_once, self._card.leads is not False
        await self._network.take_goals(me.agent_id, me.pool, self._leader, max_concurrent=at_once, anybodys=leads)

    async def _listen(self, group: asyncio.TaskGroup, inbox: AsyncIterator[SequencedEntry]) -> None:
        async for entry in inbox:
            comm_id = entry.entry.state.comm_id
            if comm_id in self._sessions or entry.seq > self._ended.get(comm_id, -1):
                self._session(group, comm_id).receive(entry)

    async def _renew(self) -> Lease:
        """Renew the lease, or register again if the agent is offline or unknown to the registry.

        Raises:
            SupersededError: Another process holds the id now.
        """
        me, pool, session = self._card.agent_id, self._card.pool, self._hold
        if self._online.is_set():
            try:
                model = None if self._model is None else self._model.report(self._clock.now())
                renewal = Renew(agent_id=me, pool=pool, session=session.session, load=self._load(), model=model)
                return await self._network.renew(renewal)
            except NotFoundError as error:
                _log.info("registering_again", agent_id=me, why=error.message)
        try:
            request = Register(card=self._card, session=session, previous=session.session, proof=self._proof)
            lease = await self._network.register(request)
        except (AlreadyRunningError, IdTakenError) as error:
            raise SupersededError(error.message, hint=error.hint) from error
        self._leader.note_registration()
        return lease

    def _load(self) -> Load:
        """Return how busy the agent is. A task that waits for an answer is not counted."""
        me, sessions = self._card.agent_id, [session for session in self._sessions.values() if not session.ended]
        tasks = [task for one in sessions if one.history.state is not None for task in one.history.state.open_tasks]
        mine = sum(one.assignee == me and (one.question is None or one.question.answer is not None) for one in tasks)
        return Load.counted(tasks=mine, groups=len(sessions), slots=self._options.tasks_at_once)

    def _session(self, group: asyncio.TaskGroup, comm_id: CommId) -> GroupSession:
        if comm_id not in self._sessions:
            self._sessions[comm_id] = self._new_session(comm_id)
            self._running[comm_id] = group.create_task(self._follow(comm_id))
            self._ended.pop(comm_id, None)
        return self._sessions[comm_id]

    def _new_session(self, comm_id: CommId) -> GroupSession:
        history = GroupHistory(comm_id)
        me, options = self._card.agent_id, self._options
        files = GroupFiles(self._network, me, comm_id, options.files / comm_id, self._hold.session)
        return GroupSession(self._runner, self._sender, history, files, options.silence.total_seconds(), options.keep)

    async def _follow(self, comm_id: CommId) -> None:
        """Run a group's session until the group ends. A failed session is replaced by a new one after a pause that doubles."""
        restarts = pauses(self._options.silence.total_seconds(), _MAX_RESTART_SECONDS)
        try:
            while not await self._run(self._sessions[comm_id], comm_id):
                await asyncio.sleep(next(restarts))
                self._sessions[comm_id] = self._new_session(comm_id)
                self._sessions[comm_id].look()
        finally:
            del self._sessions[comm_id], self._running[comm_id]

    async def _run(self, session: GroupSession, comm_id: CommId) -> bool:
        """Run a session; return False if it failed, and a new session must follow the group.

        Raises:
            SupersededError: Another process has taken the agent over; in an exception group.
        """
        me = self._card.agent_id
        try:
            await session.run()
            self._note_end(comm_id, session.cursor)
        except Exception as error:
            if find_error(SupersededError, error):
                raise  # it ends the agent
            if gone := find_error(NotFoundError, error):
                _log.info("group_not_there", comm_id=comm_id, agent_id=me, why=str(gone))
                await session.discard()
            elif known := find_error(IoaError, error):
                _log.warning("session_failed", comm_id=comm_id, agent_id=me, why=str(known))
                return False
            else:
                _log.exception("session_failed", comm_id=comm_id, agent_id=me)
                return False
        return True

    def _note_end(self, comm_id: CommId, cursor: int) -> None:
        self._ended[comm_id] = cursor
        if len(self._ended) > _ENDED_REMEMBERED:
            self._ended.popitem(last=False)

    async def _drain(self) -> None:
        """Wait for running tasks, at most the drain time; unfinished tasks run again after a restart."""
        running = [duty for session in self._sessions.values() for duty in session.working()]
        if running:
            await asyncio.wait(running, timeout=self._options.drain.total_seconds())

    async def _leave(self) -> None:
        """Go offline, and wait briefly for cancelled functions to end."""
        async with TaskGroup() as group:
            group.create_task(self._deregister())
            group.create_task(self._workers.until_ended(_ENDING))
            group.create_task(self._speaking_workers.until_ended(_ENDING))

    async def _deregister(self) -> None:
        request = Deregister(agent_id=self._card.agent_id, session=self._hold.session, proof=self._proof)
        try:
            async with fail_after(_ENDING.total_seconds()):
                await self._network.deregister(request)
        except (IoaError, TimeoutError) as error:
            _log.info("not_deregistered", agent_id=self._card.agent_id, why=str(error))


def _as_spoken_for(card: AgentCard, agent: AgentDefinition, brain: Brain) -> AgentCard:
    """Add to a card what decides for its agent. A model is waited for longer, if the author did not say how long."""
    if agent.speaker is not None:
        return card.model_copy(update={"speaks": "function"})
    if not isinstance(brain, AsksModel):
        return card.model_copy(update={"speaks": "rules"})
    return card.model_copy(update={"speaks": "model", "patience": card.patience or _MODEL_PATIENCE})


class _ModelWatch:
    """Notes between renewals whether a brain's model has answered."""

    def __init__(self, brain: AsksModel) -> None:
        self._brain = brain
        self._answers = 0
        self._last_ok: datetime | None = None

    def report(self, at: datetime) -> ModelReport:
        """Return how the model answered since the last report."""
        if self._brain.answers > self._answers:
            self._answers, self._last_ok = self._brain.answers, at
        return ModelReport(name=self._brain.model[:200], last_ok=self._last_ok, failures=self._brain.failures)
