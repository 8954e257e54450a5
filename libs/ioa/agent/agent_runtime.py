"""Runtime of one agent: registration, lease, inbox, goals and memberships."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import structlog

from ioa.agent.agent_ports import AgentPorts
from ioa.agent.brain_port import Brain
from ioa.agent.definition import AgentDefinition
from ioa.agent.goal_leader import Leader
from ioa.agent.groups.group_history import GroupHistory
from ioa.agent.groups.group_session import GroupSession
from ioa.agent.groups.membership import Membership
from ioa.agent.metrics import agents
from ioa.agent.send import until_answered
from ioa.agent.tasks.task_files import GroupFiles
from ioa.agent.tasks.task_runner import TaskRunner
from ioa.concurrency import TaskGroup, fail_after, together
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
from ioa.ports.brain_types import AsksModel
from ioa.protocol.cards import AgentCard, Load, ModelReport
from ioa.protocol.ids import CommId, SessionId
from ioa.protocol.registry import Deregister, Lease, Register, Renew, Session
from ioa.retry import pauses
from ioa.telemetry import log_context, readiness

_MODEL_PATIENCE = timedelta(seconds=60)
"""How long agents that a model speaks for are waited for at a time."""
_MAX_STOPPING = 8
"""Cancelled functions that still run, above which the agent goes offline until they end."""
_LOOK_AGAIN = timedelta(seconds=1)
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
    keep: timedelta = timedelta(days=1)
    takeover: timedelta = timedelta(seconds=15)
    reform_after: timedelta = timedelta(seconds=1)
    silence: timedelta = timedelta(seconds=3)


class AgentRuntime:
    """Run one agent until it is cancelled.

    One task keeps the agent registered, and one takes goals while it is online: only then does its pool have a queue for certain.
    Each group has a session and a task, which starts with the first pushed entry or with the list of memberships.
    """

    def __init__(
        self,
        agent: AgentDefinition,
        card: AgentCard,
        ports: AgentPorts,
        session: Session,
        options: RuntimeOptions,
    ) -> None:
        card = self._card = _as_spoken_for(card, agent, ports.brain)
        self._me = card.agent_id
        self._hold = session
        self._agent, self._ports, self._options = agent, ports, options
        self._network, self._store = ports.network, ports.store
        self._proof = ""
        """Shows the registry that this is the memory of the process that holds the id."""
        self._runner = TaskRunner(agent, card.agent_id, ports, slots=options.tasks_at_once)
        self._leader = Leader(card, ports, session.session, options.reform_after)
        self._group: asyncio.TaskGroup
        self._is_online = self._is_registered = False
        self._sessions: dict[CommId, GroupSession] = {}
        self._following: dict[CommId, asyncio.Task[None]] = {}
        self._leading: asyncio.Task[None] | None = None
        self._has_news = asyncio.Event()
        """Set if there may be groups that the agent does not know of."""
        self._known = self._joined = 0
        """Numbers of the newest membership: as listed last, and as the registry knows it."""
        self._ended: dict[CommId, int] = {}
        """The last entries of groups that have ended."""

    async def run(self, stop: Stop, joined: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop`; then take no new goal, let running tasks end within the drain time, and go offline.

        Args:
            stop: The signal to end.
            joined: Called when the agent is registered, and can be found.

        Raises:
            AlreadyRunningError: Another process runs the agent, and goes on to.
            IdTakenError: Another agent holds the id, and goes on to.
            SupersededError: Another process has taken the agent over; it is left alone.
        """
        log_context.bind({"agent_id": self._me})
        with (
            agents.track_inprogress(),
            readiness.needs(f"registration of {self._me}", lambda: self._is_online),
            readiness.needs(f"{self._me} to be fit for work", lambda: not self._complaints()),
        ):
            try:
                await self._serve(stop, joined)
            except BaseExceptionGroup as errors:
                refusals = [find_error(kind, errors) for kind in (SupersededError, AlreadyRunningError, IdTakenError)]
                for refused in filter(None, refusals):
                    raise refused from None
                raise
        await self._leave()

    async def _serve(self, stop: Stop, joined: Callable[[], None]) -> None:
        # Files of an earlier process are useless: an attempt has a folder of its own.
        await asyncio.to_thread(remove_folder, self._options.files)
        async with TaskGroup() as self._group:
            kept = [self._group.create_task(one) for one in (self._stay_registered(joined), self._open_groups())]
            try:
                async with self._network.inbox(self._me, self._receive):
                    with self._network.at_renewal(self._start_over):
                        await stop.wait()
                    self._cancel(self._leading)
                    await self._drain()
            finally:  # after the last push, which may have opened a session
                self._cancel(*kept, self._leading, *self._following.values())

    @staticmethod
    def _cancel(*tasks: asyncio.Task[None] | None) -> None:
        for task in filter(None, tasks):
            task.cancel()

    async def _stay_registered(self, joined: Callable[[], None]) -> None:
        """Register, then renew the lease until cancelled, independently of all groups."""
        lease = await self._join()
        self._is_registered = True
        for warning in lease.warnings:
            _log.warning("card_could_be_better", advice=warning)
        joined()
        while True:
            if not self._is_online:
                self._is_online = True
                self._leading = self._group.create_task(self._take_goals())
                self._has_news.set()
                _log.info("agent_ready")
            if lease.joined and lease.joined != self._joined:
                self._known = self._known if lease.joined > self._joined else 0  # the bucket of memberships was lost
                self._joined = lease.joined
                self._has_news.set()
            await asyncio.sleep(lease.renew_every.total_seconds())
            await self._until_fit()
            lease = await until_answered(self._renew)

    async def _join(self) -> Lease:
        """Register as the successor of the process that had the memory before; wait a while for another holder of the id."""
        previous = await until_answered(self._store.last_session)
        self._proof = await until_answered(self._store.keep_proof, self._ports.ids.new("memory"))
        loop = asyncio.get_running_loop()
        until = loop.time() + self._options.takeover.total_seconds()
        while True:
            try:
                lease = await until_answered(self._register, previous)
            except (AlreadyRunningError, IdTakenError) as error:
                if loop.time() >= until:
                    raise
                _log.warning("id_in_use", why=error.message)
                await asyncio.sleep(_LOOK_AGAIN.total_seconds())
            else:
                await self._note_session()
                return lease

    async def _register(self, previous: SessionId | None) -> Lease:
        request = Register(card=self._card, session=self._hold, previous=previous, proof=self._proof)
        lease = await self._network.register(request)
        self._leader.note_registration()
        return lease

    async def _note_session(self) -> None:
        await until_answered(self._store.note_session, self._hold.session)

    async def _renew(self) -> Lease:
        """Renew the lease, or register again if the agent is offline or unknown to the registry.

        Raises:
            SupersededError: Another process holds the id now.
        """
        if self._is_online:
            try:
                pool, session, load, model = self._card.pool, self._hold.session, self._load(), self._model_report()
                return await self._network.renew(Renew(agent_id=self._me, pool=pool, session=session, load=load, model=model))
            except NotFoundError as error:
                _log.info("registering_again", why=error.message)
        try:
            return await self._register(self._hold.session)
        except (AlreadyRunningError, IdTakenError) as error:
            raise SupersededError(error.message, hint=error.hint) from error

    def _load(self) -> Load:
        """Return how busy the agent is."""
        sessions = [session for session in self._sessions.values() if not session.ended]
        tasks = sum(len(session.working()) for session in sessions)
        return Load(tasks=tasks, groups=len(sessions), slots=self._options.tasks_at_once)

    def _model_report(self) -> ModelReport | None:
        """Return how the brain's model has answered; None without a model."""
        brain = self._ports.brain
        if not isinstance(brain, AsksModel):
            return None
        return ModelReport(name=brain.model[:200], failures=brain.failures)

    async def _until_fit(self) -> None:
        """Go offline while the agent cannot be trusted with work, and let what runs go on."""
        why = self._complaints()
        if not why:
            return
        _log.error(
            "agent_unfit", agent_id=self._me, why="; ".join(why), hint="It takes no work until that is mended, or it is restarted."
        )
        self._is_online = False
        self._cancel(self._leading)
        await self._deregister()
        while self._complaints():
            await asyncio.sleep(_LOOK_AGAIN.total_seconds())
            if not self._store.is_well:
                await self._note_session()  # whatever it writes: an answer is what makes it well
        _log.warning("agent_fit_again")

    def _complaints(self) -> list[str]:
        """Return what keeps the agent from being trusted with work."""
        stopping = self._runner.stopping
        return [
            *([] if self._store.is_well else ["its memory does not answer"]),
            *([f"{stopping} of its functions were cancelled and still run"] if stopping > _MAX_STOPPING else []),
        ]

    async def _take_goals(self) -> None:
        card, at_once = self._card, self._options.goals_at_once
        await self._network.take_goals(self._me, card.pool, self._leader, max_concurrent=at_once, anybodys=card.leads is not False)

    def _start_over(self) -> None:
        """Request memberships and logs again: messages sent while the connection was lost did not arrive."""
        self._known = self._joined = 0
        self._ended.clear()  # the server may have an empty store, with lower sequences
        if self._is_online:
            self._has_news.set()
        for session in self._sessions.values():
            session.look()

    async def _open_groups(self) -> None:
        """List the agent's memberships whenever there may be new ones."""
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            await self._open_sessions()

    async def _open_sessions(self) -> None:
        """Open a session for each membership and for each open group of the memory.

        The bucket of memberships may be lost: whether a group has ended is read from its log. A membership lasts until the agent
        has confirmed the group's end or its removal.
        """
        after, is_complete = self._known, False
        left = set[CommId]() if after else {*await until_answered(self._store.open_groups)}
        while not is_complete:
            page = await until_answered(self._network.memberships, ListMemberships(agent_id=self._me, after=after))
            after = max([after, *(membership.number for membership in page.memberships)])
            listed = {membership.comm_id for membership in page.memberships}
            left -= listed
            for comm_id in (listed | left if page.complete else listed) - self._sessions.keys():
                self._open_session(comm_id).look()
            is_complete = page.complete
        self._known = max(self._known, after)

    def _receive(self, entry: SequencedEntry) -> None:
        if not self._is_registered:  # the id belongs to the previous process; all memberships are listed afterwards
            return
        comm_id = entry.entry.state.comm_id
        if comm_id in self._sessions or entry.seq > self._ended.get(comm_id, -1):
            (self._sessions.get(comm_id) or self._open_session(comm_id)).receive(entry)

    def _open_session(self, comm_id: CommId) -> GroupSession:
        session = self._sessions[comm_id] = self._new_session(comm_id)
        self._following[comm_id] = self._group.create_task(self._follow(comm_id))
        self._ended.pop(comm_id, None)
        return session

    def _new_session(self, comm_id: CommId) -> GroupSession:
        options, session = self._options, self._hold.session
        files = GroupFiles(self._network, self._me, comm_id, options.files / comm_id, session)
        member = Membership(self._agent, self._card, self._ports, session, GroupHistory(comm_id), files)
        return GroupSession(member, self._runner, options.silence.total_seconds(), options.keep)

    async def _follow(self, comm_id: CommId) -> None:
        """Run a group's session until the group ends. A failed session is replaced by a new one after a pause that doubles.

        Raises:
            SupersededError: Another process has taken the agent over; in an exception group.
        """
        restarts = pauses(self._options.silence.total_seconds(), _MAX_RESTART_SECONDS)
        try:
            while not await self._run(self._sessions[comm_id]):
                await asyncio.sleep(next(restarts))
                self._sessions[comm_id] = self._new_session(comm_id)
                self._sessions[comm_id].look()
        finally:
            del self._sessions[comm_id], self._following[comm_id]

    async def _run(self, session: GroupSession) -> bool:
        """Run a session; return False if it failed, and a new session must follow the group."""
        comm_id = session.history.comm_id
        try:
            await session.run()
        except Exception as error:
            if find_error(SupersededError, error):
                raise  # it ends the agent
            if gone := find_error(NotFoundError, error):
                _log.info("group_not_there", why=str(gone))
                await session.discard()
                return True
            why = find_error(IoaError, error)
            _log.warning("session_failed", comm_id=comm_id, agent_id=self._me, why=str(why or error), exc_info=why is None)
            return False
        self._ended[comm_id] = session.history.cursor
        if len(self._ended) > _ENDED_REMEMBERED:
            del self._ended[next(iter(self._ended))]
        return True

    async def _drain(self) -> None:
        """Wait for running tasks, at most the drain time; unfinished tasks run again after a restart."""
        running = [duty for session in self._sessions.values() for duty in session.working()]
        if running:
            await asyncio.wait(running, timeout=self._options.drain.total_seconds())

    async def _leave(self) -> None:
        """Go offline, and wait briefly for cancelled functions to end."""
        await together(self._deregister(), self._runner.until_ended(_ENDING))

    async def _deregister(self) -> None:
        request = Deregister(agent_id=self._me, session=self._hold.session, proof=self._proof)
        try:
            async with fail_after(_ENDING.total_seconds()):
                await self._network.deregister(request)
        except (IoaError, TimeoutError) as error:
            _log.info("not_deregistered", why=str(error))


def _as_spoken_for(card: AgentCard, agent: AgentDefinition, brain: Brain) -> AgentCard:
    """Add to a card what decides for its agent. A model is waited for longer, if the author did not say how long."""
    if agent.speaker is not None:
        return card.model_copy(update={"speaks": "function"})
    if not isinstance(brain, AsksModel):
        return card.model_copy(update={"speaks": "rules"})
    return card.model_copy(update={"speaks": "model", "patience": card.patience or _MODEL_PATIENCE})
