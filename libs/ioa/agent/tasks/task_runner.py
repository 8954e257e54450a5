"""Runs the functions of an agent: its tasks, each once, under a lease, alone or with a nested group; and turns under a policy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NoReturn

import structlog

from ioa.agent.agent_ports import AgentPorts
from ioa.agent.brain_port import TaskView
from ioa.agent.definition import AgentDefinition
from ioa.agent.function_brain import FunctionBrain
from ioa.agent.groups.membership import Membership
from ioa.agent.groups.memory import in_sight
from ioa.agent.metrics import measured, task_seconds, tasks_running
from ioa.agent.send import MAX_TEXT_BYTES, until_answered
from ioa.agent.task_context import TaskContext, UpstreamResult
from ioa.agent.tasks.running_task import RunningTask
from ioa.agent.tasks.subteam_brief import brief_of, files_of
from ioa.agent.tasks.task_files import GroupFiles
from ioa.agent.tasks.task_lease import LeaseLostError, TaskLease
from ioa.agent.tasks.worker_pool import Slot, WorkerPool
from ioa.agent.team_formation import MissionTools, is_launched
from ioa.agent.turn_view import TurnView
from ioa.agent.view_text import GivenOut, given_out, told_of_part
from ioa.concurrency import beside, together
from ioa.errors import DeclinedError, InvalidInputError, IoaError, NotFoundError, SupersededError, reason_of, row_of
from ioa.group.budget import is_exhausted
from ioa.group.requests import Accepted, LaunchGroup, Sync
from ioa.group.state import OpenTask
from ioa.ports.brain_types import TaskRecord, TeamLaunch
from ioa.ports.meter import Meter
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.ids import AgentId, TaskId, task_id_of_turn
from ioa.protocol.messages import Discussion, InformTaskResult, Pass, PassCause, TaskOutcome, TaskSpec
from ioa.protocol.operation.trace import AGENT_ID, AGENT_NAME, INVOKE_AGENT, OPERATION, Attribute, span_id_of_task
from ioa.protocol.setup.charter import ParentTask
from ioa.protocol.texts import shortened
from ioa.protocol.usage import NOTHING
from ioa.telemetry import live_spans, log_context
from ioa.telemetry.fault_points import fault_point

_SPEAKING_FUNCTIONS = 8
"""Maximum functions of an agent that decide messages concurrently, in addition to tasks."""
_UPSTREAM = (TaskOutcome.DONE, TaskOutcome.REJECTED)
"""Outcomes of tasks whose results the tasks that use them receive."""
_MAX_WHY_CHARS = 2_000

_log = structlog.get_logger(__name__)


class TaskRunner:
    """Runner of an agent's functions.

    Args:
        agent: The agent.
        me: Its id.
        ports: Its memory and model.
        slots: Tasks that run at once.

    Attributes:
        functions: The author's functions that decide messages.
    """

    def __init__(
        self,
        agent: AgentDefinition,
        me: AgentId,
        ports: AgentPorts,
        *,
        slots: int,
    ) -> None:
        self._agent = agent
        self._timeout = agent.timeout
        self._workers, self._speakers = (WorkerPool(me, count) for count in (slots, _SPEAKING_FUNCTIONS))
        self.functions = FunctionBrain(agent, ports, self._speakers)

    @property
    def stopping(self) -> int:
        """Number of functions that were cancelled and still run."""
        return len(self._workers.stopping) + len(self._speakers.stopping)

    async def until_ended(self, within: timedelta) -> None:
        """Wait until all cancelled functions have ended, at most `within`."""
        await together(self._workers.until_ended(within), self._speakers.until_ended(within))

    async def do(self, member: Membership, task: OpenTask, spec: TaskSpec) -> Accepted | None:
        """Run an open task and report its result, or keep its lease while a nested group works. Cancelling stops it.

        A journalled result is reported, and the task is not run again. None if the group rejected the result, or has closed the
        task: then the member must read the log.
        """
        log_context.bind_also(task_id=task.task_id)
        group = member.comm_id, member.history.launched
        result = await until_answered(member.ports.store.finished_task, *group, task.task_id)
        if result is None:
            try:
                with live_spans.under(member.charter.traceparent, span_id_of_task(member.comm_id, task.task_id)):
                    lease = TaskLease(member, task)
                    lease.meter.hear = member.call_listener(task_id=task.task_id)
                    async with beside(lease.keep()):
                        if task.subgroup is not None:  # the process that announced it may have died before the launch
                            request = Sync(comm_id=task.subgroup, agent_id=member.me, session=member.session)
                            if await until_answered(is_launched, member.ports.network, request):
                                await _wait_until_cancelled()
                        result = await self._result(member, spec, lease)
                        fault_point("agent.task_finished")
                        await until_answered(member.ports.store.finish_task, *group, result)
                        fault_point("agent.task_journalled")
            except LeaseLostError as error:
                _log.warning("lease_lost", why=error.message)
                return None
        answer = await member.say(result, task.turn, DecidedBy(kind="function"))
        if isinstance(answer, Accepted):
            return answer
        _log.info("result_refused", code=answer.code, why=answer.message)
        return None

    async def speak(self, member: Membership, view: TurnView) -> Discussion | Pass:
        """Let the agent's task function speak in a turn under a policy: its task is its part and the conversation."""
        if view.offer is not None and any(blank.required for blank in view.offer.form):
            view.meter.decided_by = DecidedBy(kind="rules")
            return Pass(cause=PassCause.NO_USABLE_ANSWER, content="A task's function fills in no form; @agent.speak does.")
        run = task_id_of_turn(view.turn, "part"), 1
        async with self._slot(member, view.state.limits.floor_timeout / 2, run) as (slot, workspace):
            context = RunningTask(member, view, run, workspace, GivenOut(view.charter.owner))
            said = await self._call(slot, told_of_part(view), context)
        view.meter.decided_by = DecidedBy(kind="function")
        if said.outcome is TaskOutcome.FAILED:
            return Pass(cause=PassCause.NO_USABLE_ANSWER, content=said.task_conclusion[:_MAX_WHY_CHARS])
        names = view.offer.writes if view.offer is not None else ()
        return Discussion(content=said.task_conclusion, writes=dict.fromkeys(names, "") if len(names) == 1 else {})

    async def _result(self, member: Membership, spec: TaskSpec, lease: TaskLease) -> InformTaskResult:
        """Run a task, with the cost; errors of functions, files and brains fail it.

        If a nested group is launched instead, this never returns.
        """
        attempt = await until_answered(member.ports.store.begin_task, member.comm_id, member.history.launched, spec.task_id)
        fault_point("agent.task_begun")
        decision = Meter()
        decision.is_exhausted = lambda: is_exhausted(member.state, decision.total)
        try:
            view = TaskView(spec, member.card, await self.functions.prepare(member.view(decision), member.files))
            result = await _fetch(view, member.files) or await _nested_group(member, view, decision)
            lease.meter.add(decision.total)
            lease.meter.note(*decision.calls)
            result = result or await self._run(member, spec, attempt, lease)
        except SupersededError:
            raise
        except Exception as error:  # noqa: BLE001 - the network and an author's function may raise anything; the task fails
            _log.warning("task_failed", error=reason_of(error))
            result = _failed(spec.task_id, reason_of(error))
        usage = None if lease.meter.total == NOTHING else lease.meter.total
        return result.model_copy(update={"usage": usage, "calls": lease.meter.calls})

    async def _run(self, member: Membership, spec: TaskSpec, attempt: int, lease: TaskLease) -> InformTaskResult:
        """Run a task's function, store its files, and return its result."""
        run, files = (spec.task_id, attempt), member.files
        async with self._slot(member, _time_left(member, spec.task_id) / 2, run) as (slot, workspace):
            view = in_sight(member.view(lease.meter))
            used = TaskView(spec, member.card, view).used
            results = [_upstream_result(record, files) for record in used if record.outcome in _UPSTREAM]
            context = lease.running = RunningTask(member, view, run, workspace, given_out(view, spec), results)
            _log.info("task_begun", attempt=attempt, content=spec.task_desc)
            member.report("task_started", task_id=spec.task_id, attempt=attempt, task=spec.task_desc)
            started = time.perf_counter()
            with tasks_running.track_inprogress():
                result = await self._call(slot, spec.task_desc, context)
            task_seconds.labels(result.outcome.value).observe(time.perf_counter() - started)
            _log.info("task_ended", outcome=result.outcome.value, content=result.task_conclusion)
            artifacts = await until_answered(files.upload, spec.task_id, context.made)
            traces = await until_answered(files.upload_trace, spec.task_id, context.traced)
            return result.model_copy(update={"artifacts": artifacts, "traces": traces})

    @asynccontextmanager
    async def _slot(self, member: Membership, within: timedelta, run: tuple[TaskId, int]) -> AsyncIterator[tuple[Slot, Path]]:
        """Wait for a slot, and create a workspace, which is deleted once the function has ended."""
        async with self._workers.slot(within, member.charter.user) as slot:
            workspace = await member.files.create_workspace(*run)
            try:
                yield slot, workspace
            finally:
                slot.when_over(partial(member.files.remove_workspace, workspace))

    async def _call(self, slot: Slot, words: str, context: TaskContext) -> InformTaskResult:
        """Call the author's function. Every exception that it raises fails the task only."""
        about: dict[str, Attribute] = {
            OPERATION: INVOKE_AGENT,
            AGENT_ID: slot.pool.owner,
            AGENT_NAME: self._agent.agent_id,
            "ioa.task_id": context.task_id,
            "ioa.attempt": context.attempt,
        }
        is_done = is_declined = False
        try:
            with live_spans.span(f"{INVOKE_AGENT} {self._agent.agent_id}", about):
                answer = await slot.call(self._agent.function, self._agent.arguments(words, context), self._timeout)
            is_done = isinstance(answer, str)
            text = answer if is_done else f"The agent's function returned {type(answer).__name__}, not text."
        except IoaError as error:
            text, is_declined = str(error), isinstance(error, DeclinedError)
        except Exception as error:  # noqa: BLE001 - an author's function may raise anything
            _log.exception("task_crashed")
            text = reason_of(error)
        finally:
            context.cancel()
        if len(text.encode("utf-8", "replace")) > MAX_TEXT_BYTES:
            await asyncio.to_thread(context.artifact, f"{context.task_id}.txt", text)
        return InformTaskResult(
            task_id=context.task_id,
            outcome=TaskOutcome.DONE if is_done else TaskOutcome.FAILED,
            task_conclusion=shortened(text, MAX_TEXT_BYTES),
            declined=is_declined,
        )


async def _fetch(task: TaskView, files: GroupFiles) -> InformTaskResult | None:
    """Download the files of a task; if one is missing, decline the task before anything is spent on it."""
    used = [file for record in task.used if record.outcome is TaskOutcome.DONE for file in record.artifacts]
    try:
        await until_answered(files.fetch, [*task.group.charter.inputs, *used])
    except (NotFoundError, InvalidInputError) as error:
        _log.warning("task_lacks_files", error=error.message)
        text = f"A file of this task is missing. Reject the result, or repeat its task. {error.message}"
        return _failed(task.spec.task_id, text).model_copy(update={"declined": True})
    return None


async def _nested_group(member: Membership, task: TaskView, decision: Meter) -> InformTaskResult | None:
    """Launch a nested group for a task that names a stored team, or if the brain decides so; then never return.

    Returns:
        None if the agent does the task alone, also if its nested group was rejected; a failed result if the stored team was.
    """
    team = TeamLaunch(members=()) if task.spec.team else await _approach(member, task)
    if team is None:
        return None
    request = LaunchGroup(
        owner=member.me,
        session=member.session,
        members=team.members,
        plan=team.plan,
        goal_id=member.charter.goal_id,
        parent=ParentTask(comm_id=member.comm_id, task_id=task.spec.task_id),
        goal=task.spec.task_desc,
        usage=decision.total,
        calls=decision.calls,
        decided_by=decision.decided_by,
        brief=brief_of(task, member.history.public),
        inputs=files_of(task),
    )
    try:
        await until_answered(member.ports.network.launch, request)
    except SupersededError:
        raise
    except IoaError as error:
        why = f"({row_of(error).wire_code}). {error}"
        _log.info("no_nested_team", team=task.spec.team, why=why)
        return _failed(task.spec.task_id, f"The team {task.spec.team} cannot serve the task {why}") if task.spec.team else None
    fault_point("agent.team_opened")
    return await _wait_until_cancelled()


async def _approach(member: Membership, view: TaskView) -> TeamLaunch | None:
    tools = MissionTools(member.ports, member.me, f"{member.comm_id}/{view.spec.task_id}")
    try:
        return await measured("approach", view.group.meter, member.ports.brain.approach(view, tools))
    except Exception:  # noqa: BLE001 - a brain may raise anything; the task is done alone
        _log.exception("approach_fell_back")
        return None


def _time_left(member: Membership, task_id: TaskId) -> timedelta:
    limits, task = member.state.limits, member.state.task(task_id)
    own = task.deadline if isinstance(task, OpenTask) else None
    deadline = limits.deadline if own is None else min(own, limits.deadline)
    return max(deadline - member.ports.clock.now(), timedelta(0))


async def _wait_until_cancelled() -> NoReturn:
    """Wait until the conclusion of the nested group closes the task, which cancels this."""
    await asyncio.Event().wait()
    raise AssertionError("this event is never set")


def _failed(task_id: TaskId, why: str) -> InformTaskResult:
    return InformTaskResult(task_id=task_id, outcome=TaskOutcome.FAILED, task_conclusion=shortened(why, MAX_TEXT_BYTES))


def _upstream_result(record: TaskRecord, files: GroupFiles) -> UpstreamResult:
    """Return a used result for the author's function; a rejected one has no files."""
    return UpstreamResult(
        task_id=record.spec.task_id,
        agent_id=record.spec.assignee,
        task_desc=record.spec.task_desc,
        content=record.conclusion,
        artifacts=files.fetched(() if record.rejected else record.artifacts),
        rejected=record.rejected,
    )
