"""Doing a task: alone, by the author's function, or with a nested team; once, with its lease kept all the while."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import Literal

import structlog

from ioa.agent.history import GroupHistory
from ioa.agent.lease import TaskLease
from ioa.agent.patience import patiently
from ioa.agent.sdk import Agent, UpstreamResult
from ioa.agent.speech import Voice
from ioa.agent.team import BoundedTeamTools
from ioa.agent.workspace import GroupFiles, RunningTask
from ioa.errors import ConflictError, ForbiddenError, IoaError, NoAgentError
from ioa.group.requests import LaunchGroup
from ioa.group.state import OpenTask, ParentTask
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.agent_store import AgentStore
from ioa.ports.brain import Alone, Brain, TaskRecord, TaskView, Team
from ioa.protocol.cards import AgentCard
from ioa.protocol.messages import MAX_CONTENT_CHARS, InformTaskResult, TaskOutcome, TaskSpec

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Worker:
    """One agent's way of doing tasks. `slots` bounds how many of its functions run at once."""

    agent: Agent
    card: AgentCard
    brain: Brain
    network: AgentNetwork
    store: AgentStore
    voice: Voice
    slots: asyncio.Semaphore

    async def do(self, history: GroupHistory, task: OpenTask, spec: TaskSpec, files: GroupFiles) -> None:
        """Bring an open task to its end: report its result, or keep its lease while a nested team works. Cancelling stops it.

        A result that is in the journal is reported and not worked out again.
        """
        result = await self.store.finished_task(history.comm_id, task.task_id)
        if result is None:
            async with asyncio.TaskGroup() as group:
                lease = TaskLease(self.voice, history, task)
                keeper = group.create_task(lease.keep())
                if task.subgroup is None:
                    result = await self._work_out(history, spec, files, lease)
                if result is not None:
                    keeper.cancel()
                    await self.store.finish_task(history.comm_id, result)
        if result is not None:
            await self.voice.say(history, result, task.turn)

    async def _work_out(
        self, history: GroupHistory, spec: TaskSpec, files: GroupFiles, lease: TaskLease
    ) -> InformTaskResult | None:
        """Work out a result; None when a nested team was opened, whose conclusion will be the result."""
        attempt = await self.store.begin_task(history.comm_id, spec.task_id)
        view = TaskView(spec=spec, me=self.card, group=history.view(self.card.agent_id))
        approach = await self._approach(view)
        if isinstance(approach, Team):
            if await self._launch(history, spec, approach):
                return None
            approach = Alone(spec.task_desc)
        try:
            lease.running = await patiently(lambda: self._prepare(view, attempt, files), task_id=spec.task_id)
        except IoaError as error:
            return InformTaskResult(task_id=spec.task_id, outcome=TaskOutcome.FAILED, task_conclusion=str(error))
        return await self._run(history, approach.task_desc, lease.running, files)

    async def _approach(self, view: TaskView) -> Alone | Team:
        try:
            return await self.brain.approach(view, BoundedTeamTools(self.network, self.store))
        except IoaError as error:
            _log.warning("approach_fell_back", task_id=view.spec.task_id, error=str(error))
            return Alone(view.spec.task_desc)

    async def _launch(self, history: GroupHistory, spec: TaskSpec, team: Team) -> bool:
        """Open a nested team for the task; False if that is refused and the task has to be done alone."""
        assert history.charter is not None
        request = LaunchGroup(
            owner=self.card.agent_id,
            members=team.members,
            plan=team.plan,
            goal_id=history.charter.goal_id,
            parent=ParentTask(comm_id=history.comm_id, task_id=spec.task_id),
            goal=spec.task_desc,
        )
        try:
            await patiently(lambda: self.network.launch(request), task_id=spec.task_id)
        except (ForbiddenError, NoAgentError, ConflictError) as error:
            _log.info("no_nested_team", task_id=spec.task_id, why=error.message)
            return False
        return True

    async def _run(self, history: GroupHistory, words: str, running: RunningTask, files: GroupFiles) -> InformTaskResult:
        try:
            async with self.slots:
                outcome, conclusion = await self._call(words, running)
        finally:
            running.cancel()
        upload = files.upload
        artifacts = await patiently(lambda: upload(history.comm_id, running.task_id, running.made), task_id=running.task_id)
        return InformTaskResult(
            task_id=running.task_id, outcome=outcome, task_conclusion=conclusion[:MAX_CONTENT_CHARS], artifacts=artifacts
        )

    async def _prepare(self, view: TaskView, attempt: int, files: GroupFiles) -> RunningTask:
        return RunningTask(
            task_id=view.spec.task_id,
            attempt=attempt,
            goal=view.group.charter.goal,
            inputs=await files.fetch(view.group.charter.inputs),
            results=[await _upstream(record, files) for record in view.used if record.outcome is TaskOutcome.DONE],
            workspace=await files.create_workspace(view.spec.task_id, attempt),
        )

    async def _call(self, words: str, running: RunningTask) -> tuple[Literal[TaskOutcome.DONE, TaskOutcome.FAILED], str]:
        """Call the author's function. What it raises is the task's failure, told to the group, and never this process's."""
        function, arguments = self.agent.function, self.agent.arguments(words, running)
        try:
            if inspect.iscoroutinefunction(function):
                answer = await function(*arguments)
            else:
                answer = await asyncio.to_thread(function, *arguments)
                if inspect.isawaitable(answer):
                    answer = await answer
        except IoaError as error:
            return TaskOutcome.FAILED, str(error)
        except Exception as error:
            _log.exception("task_crashed", agent_id=self.card.agent_id, task_id=running.task_id)
            return TaskOutcome.FAILED, f"{type(error).__name__}: {error}"
        if not isinstance(answer, str):
            return TaskOutcome.FAILED, f"The agent's function returned {type(answer).__name__}, not text."
        return TaskOutcome.DONE, answer


async def _upstream(record: TaskRecord, files: GroupFiles) -> UpstreamResult:
    return UpstreamResult(
        task_id=record.spec.task_id,
        agent_id=record.spec.assignee,
        task_desc=record.spec.task_desc,
        content=record.conclusion,
        artifacts=await files.fetch(record.artifacts),
    )
