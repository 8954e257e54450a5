"""The agent client: it registers its agent, keeps its lease, leads goals, and takes part in groups, many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal, Protocol

import structlog

from ioa import log_context, readiness
from ioa.agent.agent_metrics import agents, timed_decision
from ioa.agent.patience import patiently
from ioa.agent.sdk import Agent
from ioa.agent.session import GroupSession
from ioa.agent.speech import Voice
from ioa.agent.team import BoundedTeamTools
from ioa.agent.work import Worker
from ioa.agent.workspace import GroupFiles
from ioa.errors import ConflictError, IoaError, NoAgentError, NotFoundError, UnavailableError
from ioa.group.requests import AbandonGoal, LaunchGroup, SequencedEntry
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.agent_store import AgentStore
from ioa.ports.brain import Brain, Mission, NobodyFits, Team
from ioa.ports.clock import Clock, IdSource
from ioa.ports.meter import Meter
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Goal, Reason
from ioa.protocol.ids import CommId, comm_id_of_goal
from ioa.protocol.load import Load
from ioa.protocol.registry import Lease, Renew
from ioa.protocol.usage import Usage

_FORMATIONS = 3
"""How often a team is formed when a member was found but could not join."""

AbandonReason = Literal[Reason.NO_AGENT, Reason.FAILED]

_log = structlog.get_logger(__name__)


class Stop(Protocol):
    """What tells a client to end."""

    async def wait(self) -> None:
        """Return when it is time."""


@dataclass(frozen=True)
class ClientOptions:
    """How much one agent does at a time, and where it keeps the files of running tasks."""

    files: Path
    tasks_at_once: int = 4
    goals_at_once: int = 8
    drain: timedelta = timedelta(seconds=5)
    reform_after: timedelta = timedelta(seconds=1)
    """How long to wait for a member that went away, longer each time, before a team is formed anew."""


class AgentClient:
    """Take one agent through the life of the system, until it is cancelled."""

    def __init__(
        self,
        agent: Agent,
        card: AgentCard,
        brain: Brain,
        network: AgentNetwork,
        store: AgentStore,
        clock: Clock,
        ids: IdSource,
        options: ClientOptions,
    ) -> None:
        self._card = card
        self._brain = brain
        self._network = network
        self._store = store
        self._options = options
        self._voice = Voice(card.agent_id, network, store, clock, ids)
        slots = asyncio.Semaphore(options.tasks_at_once)
        self._worker = Worker(agent, card, brain, network, store, self._voice, slots)
        self._sessions: dict[CommId, tuple[GroupSession, asyncio.Task[None]]] = {}
        self._registered = asyncio.Event()

    @property
    def groups_followed(self) -> int:
        """In how many groups the agent takes part now."""
        return len(self._sessions)

    async def run(self, stop: Stop) -> None:
        """Serve until told to stop; then take no new goal, let running tasks end within the drain time, and go offline."""
        me = self._card.agent_id
        log_context.bind({"agent_id": me})
        with agents.track_inprogress(), readiness.needs(f"registration of {me}", self._registered.is_set):
            await self._serve(stop)
        await self._leave()

    async def _serve(self, stop: Stop) -> None:
        async with self._network.inbox(self._card.agent_id) as inbox, asyncio.TaskGroup() as group:
            listening = group.create_task(self._listen(group, inbox))
            renewing = group.create_task(self._stay_registered(group))
            leading = group.create_task(self._lead_goals())
            await stop.wait()
            leading.cancel()
            await self._drain()
            for task in (listening, renewing, *(running for _, running in self._sessions.values())):
                task.cancel()

    async def _stay_registered(self, group: asyncio.TaskGroup) -> None:
        """Register, and then renew the lease and follow up on every group that has moved on unseen, for ever."""
        me = self._card.agent_id
        lease = await patiently(lambda: self._network.register(self._card), agent_id=me)
        for warning in lease.warnings:
            _log.warning("card_could_be_better", agent_id=me, advice=warning)
        self._registered.set()
        _log.info("agent_ready", agent_id=me)
        while True:
            self._forget_ended(lease)
            for comm_id, head in lease.heads.items():
                self._session(group, comm_id).catch_up(head)
            await asyncio.sleep(lease.renew_every.total_seconds())
            lease = await patiently(self._renew, agent_id=me)

    async def _lead_goals(self) -> None:
        """Take goals as soon as the agent is registered: only then does its pool have a queue."""
        await self._registered.wait()
        await self._network.take_goals(self._card.pool, self._lead, side_by_side=self._options.goals_at_once)

    async def _listen(self, group: asyncio.TaskGroup, inbox: AsyncIterator[SequencedEntry]) -> None:
        async for entry in inbox:
            self._session(group, entry.entry.state.comm_id).receive(entry)

    async def _renew(self) -> Lease:
        cursors = {comm_id: session.cursor for comm_id, (session, _) in self._sessions.items()}
        try:
            return await self._network.renew(Renew(agent_id=self._card.agent_id, cursors=cursors, load=self._load()))
        except NotFoundError:
            return await self._network.register(self._card)

    def _load(self) -> Load:
        """How busy the agent is, so that discovery can name the replica that is least so."""
        following = [session for session, running in self._sessions.values() if not running.done()]
        tasks = sum(len(session.working()) for session in following)
        return Load.counted(tasks=tasks, groups=len(following), slots=self._options.tasks_at_once)

    def _session(self, group: asyncio.TaskGroup, comm_id: CommId) -> GroupSession:
        if comm_id not in self._sessions:
            files = GroupFiles(self._network, self._options.files / comm_id)
            session = GroupSession(self._worker, self._voice, comm_id, files)
            self._sessions[comm_id] = (session, group.create_task(self._follow(session, comm_id)))
        return self._sessions[comm_id][0]

    async def _follow(self, session: GroupSession, comm_id: CommId) -> None:
        """Let no failed session take the agent down: the next renewal of the lease starts it again from the store."""
        try:
            await session.run()
            return
        except* IoaError as errors:
            _log.warning("session_failed", comm_id=comm_id, agent_id=self._card.agent_id, why=str(errors.exceptions[0]))
        except* Exception:
            _log.exception("session_failed", comm_id=comm_id, agent_id=self._card.agent_id)
        self._sessions.pop(comm_id, None)

    def _forget_ended(self, lease: Lease) -> None:
        """Drop the sessions of groups that have ended and that the registry counts as open no more."""
        for comm_id in [comm_id for comm_id, (_, running) in self._sessions.items() if running.done()]:
            if comm_id not in lease.heads:
                del self._sessions[comm_id]

    async def _lead(self, goal: Goal) -> None:
        """Form a team for a goal and open its group. Called again for the same goal, it meets the same group.

        Raises:
            UnavailableError: The goal has to be offered again.
        """
        me, comm_id = self._card.agent_id, comm_id_of_goal(goal.goal_id)
        log_context.bind({"agent_id": me, "goal_id": goal.goal_id, "comm_id": comm_id, "traceparent": goal.traceparent})
        meter = Meter()
        for formation in range(_FORMATIONS):
            await asyncio.sleep(formation * self._options.reform_after.total_seconds())
            try:
                formed = await self._form_team(goal, meter)
            except UnavailableError:
                raise
            except IoaError as error:
                await self._abandon(goal, Reason.FAILED, f"{self._card.agent_id} could not form a team: {error}", meter.total)
                return
            if isinstance(formed, NobodyFits):
                await self._abandon(goal, Reason.NO_AGENT, _nobody(formed.needs), meter.total)
                return
            if await self._launch(goal, formed, meter.total):
                return
        why = "The agents that fit the goal went away before the team was complete."
        await self._abandon(goal, Reason.NO_AGENT, why, meter.total)

    async def _form_team(self, goal: Goal, meter: Meter) -> Team | NobodyFits:
        mission = Mission(text=goal.goal, inputs=goal.inputs, me=self._card, depth=0, meter=meter)
        try:
            with timed_decision("form_team"):
                tools = BoundedTeamTools(self._network, self._store, self._card.agent_id, goal.goal_id)
                return await self._brain.form_team(mission, tools)
        except IoaError:
            raise
        except Exception as error:
            _log.exception("formation_failed", goal_id=goal.goal_id, agent_id=self._card.agent_id)
            raise IoaError(f"{type(error).__name__}: {error}") from error

    async def _launch(self, goal: Goal, team: Team, usage: Usage) -> bool:
        """Open the group, or see that there is nothing left to do; False if the team has to be formed anew."""
        request = LaunchGroup(owner=self._card.agent_id, members=team.members, plan=team.plan, goal_id=goal.goal_id, usage=usage)
        try:
            await self._network.launch(request)
        except NoAgentError as error:
            _log.info("team_incomplete", goal_id=goal.goal_id, why=error.message)
            return False
        except (ConflictError, NotFoundError) as error:
            _log.info("goal_not_mine", goal_id=goal.goal_id, why=error.message)
        return True

    async def _abandon(self, goal: Goal, reason: AbandonReason, content: str, usage: Usage) -> None:
        request = AbandonGoal(goal_id=goal.goal_id, by=self._card.agent_id, reason=reason, content=content, usage=usage)
        try:
            await self._network.abandon(request)
        except (ConflictError, NotFoundError) as error:
            _log.info("goal_not_mine", goal_id=goal.goal_id, why=error.message)

    async def _drain(self) -> None:
        """Wait for the tasks that run, at most the drain time; what does not end runs again after the restart."""
        running = [duty for session, _ in self._sessions.values() for duty in session.working()]
        if running:
            await asyncio.wait(running, timeout=self._options.drain.total_seconds())

    async def _leave(self) -> None:
        try:
            await self._network.deregister(self._card.agent_id)
        except IoaError as error:
            _log.info("not_deregistered", agent_id=self._card.agent_id, why=error.message)


def _nobody(needs: tuple[str, ...]) -> str:
    listed = "; ".join(f"“{need}”" for need in needs)
    return f"No agent was found for: {listed}. `ioa agents` lists who is there."
