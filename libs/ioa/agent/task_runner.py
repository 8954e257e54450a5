"""Doing a task: alone, by the author's function, or with a nested team; once, with its lease kept all the while."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn

import structlog

from ioa.agent.agent_metrics import count_decision, timed_decision, timed_task
from ioa.agent.agent_ports import AgentPorts
from ioa.agent.asking import until_answered
from ioa.agent.brief import brief_of, files_of
from ioa.agent.chatting import CHAT, Ask, ChatAnswer, ChatQuestion, Chatting, left_of
from ioa.agent.conversation import GivenOut, conversation_of, given_out, teammates, told_of_part
from ioa.agent.definition import AgentDefinition, UpstreamResult
from ioa.agent.history import GroupHistory
from ioa.agent.hooks import Hooks
from ioa.agent.inquiring import Inquire, Inquirer, InquiringAside, Inquiry
from ioa.agent.lease import TaskLease
from ioa.agent.listening import ModelCalled, TaskEvent, TaskStarted
from ioa.agent.outbox import MAX_TEXT_BYTES, Outbox
from ioa.agent.searching import SEARCH, Searching, found_by, search_for_others
from ioa.agent.team import BoundedTeamTools
from ioa.agent.worker_pool import Slot, WorkerPool
from ioa.agent.workspace import Circumstances, GroupFiles, RunningTask, Seek
from ioa.cancellation import TaskGroup
from ioa.errors import DeclinedError, InvalidInputError, IoaError, NotFoundError, SupersededError, reason_of, row_of
from ioa.group.budget import is_exhausted
from ioa.group.requests import Accepted, LaunchGroup, Sync
from ioa.group.state import OpenTask, ParentTask
from ioa.ports.brain import Alone, GroupView, TaskRecord, TaskView, TeamLaunch
from ioa.ports.chat_model import Hear, current_user
from ioa.ports.meter import Meter
from ioa.protocol.cards import AgentCard
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import CommId, TaskId, task_id_of_turn
from ioa.protocol.messages import MAX_LACKING, Discussion, InformTaskResult, Pass, PassCause, TaskOutcome, TaskSpec
from ioa.protocol.model_calls import REJECTED, ModelCall
from ioa.protocol.search import Need
from ioa.protocol.texts import shortened
from ioa.protocol.trace import AGENT_ID, INVOKE_AGENT, OPERATION, Attribute, span_id_of_task
from ioa.telemetry import live_spans, log_context
from ioa.telemetry.fault_points import fault_point

Outcome = Literal[TaskOutcome.DONE, TaskOutcome.FAILED]

_HANDED_OVER = (TaskOutcome.DONE, TaskOutcome.REJECTED)
"""What became of tasks whose results those are told that use them."""

_MAX_WHY_CHARS = 2_000

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class TaskRunner:
    """One agent's way of doing tasks.

    Attributes:
        timeout: How long the agent's function may run, if its author did not say.
    """

    agent: AgentDefinition
    card: AgentCard
    ports: AgentPorts
    outbox: Outbox
    workers: WorkerPool
    hooks: Hooks
    timeout: timedelta | None = None

    async def do(self, history: GroupHistory, task: OpenTask, spec: TaskSpec, files: GroupFiles) -> Accepted | None:
        """Bring an open task to its end and report it, or keep its lease while a nested team works. Cancelling stops it.

        A result that is in the journal is reported and not worked out again. None if the group took no result any more.
        """
        log_context.bind_also(task_id=task.task_id)
        result = await until_answered(lambda: self.ports.store.finished_task(history.comm_id, task.task_id), task_id=task.task_id)
        if result is None:
            assert history.charter is not None
            with live_spans.under(history.charter.traceparent, span_id_of_task(history.comm_id, task.task_id)):
                result = await self._do_under_lease(history, task, spec, files)
        answer = await self.outbox.say(history, result, task.turn, DecidedBy(kind="function"))
        if isinstance(answer, Accepted):
            return answer
        _log.info("result_refused", task_id=task.task_id, code=answer.code, why=answer.message)
        return None

    async def say(self, history: GroupHistory, view: GroupView, files: GroupFiles) -> Discussion | Pass:
        """Have the agent's function speak in a turn under a policy, which no model does: it is told its part and what was heard."""
        if view.offer is not None and any(blank.required for blank in view.offer.form):
            view.meter.decided_by = DecidedBy(kind="rules")
            return Pass(cause=PassCause.NO_USABLE_ANSWER, content="A task's function fills in no form; @agent.speak does.")
        task_id = task_id_of_turn(view.state.turn, "part")
        words, meter = told_of_part(view), view.meter

        def prepare(workspace: Path) -> RunningTask:
            return RunningTask(
                task_id=task_id,
                attempt=1,
                around=Circumstances(
                    goal=view.charter.goal,
                    goal_id=view.charter.goal_id,
                    comm_id=view.charter.comm_id,
                    given=GivenOut(asked_by=view.charter.owner),
                    conversation=conversation_of(view),
                    team=teammates(view),
                    inputs=files.fetched(view.charter.inputs),
                ),
                results=[],
                workspace=workspace,
                meter=meter,
                seek=self._seek(task_id),
                ask=self._ask(history, task_id, meter),
                inquire=_inquire_nobody,
                tell=self._tell(history, task_id),
            )

        patience = view.state.limits.floor_timeout
        await until_answered(partial(files.fetch, view.charter.inputs), comm_id=history.comm_id)
        workspace = partial(files.create_workspace, task_id, 1)
        async with self._slot(history, patience / 2, workspace, prepare, files) as (slot, running):
            outcome, said, _ = await self._call(slot, words, running)
        meter.decided_by = DecidedBy(kind="function")
        if outcome is TaskOutcome.FAILED:
            return Pass(cause=PassCause.NO_USABLE_ANSWER, content=said[:_MAX_WHY_CHARS])
        names = view.offer.writes if view.offer is not None else ()
        return Discussion(content=shortened(said, MAX_TEXT_BYTES), writes=dict.fromkeys(names, "") if len(names) == 1 else {})

    async def _do_under_lease(self, history: GroupHistory, task: OpenTask, spec: TaskSpec, files: GroupFiles) -> InformTaskResult:
        """Work out a result and journal it."""
        lease = TaskLease(self.outbox, history, task)
        lease.meter.hear = self.hear_model(history, task_id=task.task_id)
        async with TaskGroup() as group:
            keeper = group.create_task(lease.keep())
            if task.subgroup is not None and await self._exists(task.subgroup):
                await _wait_for_team()
            result = await self._work_out(history, spec, files, lease)
            spent = {"usage": lease.usage, "approach_usage": lease.approach_usage, "calls": lease.meter.calls}
            result = result.model_copy(update=spent)
            fault_point("agent.task_finished")
            await until_answered(lambda: self.ports.store.finish_task(history.comm_id, result), task_id=spec.task_id)
            fault_point("agent.task_journalled")
            keeper.cancel()
        return result

    async def _exists(self, subgroup: CommId) -> bool:
        """Whether a nested team that was announced was opened as well: its opener may have died in between."""
        try:
            request = Sync(comm_id=subgroup, agent_id=self.card.agent_id, session=self.outbox.session)
            page = await until_answered(lambda: self.ports.network.sync(request), comm_id=subgroup)
        except NotFoundError:
            return False
        return bool(page.entries)

    async def _work_out(self, history: GroupHistory, spec: TaskSpec, files: GroupFiles, lease: TaskLease) -> InformTaskResult:
        """Work out a result alone; if a nested team is opened instead, its conclusion is the result and this never returns.

        Whatever an author's function, files or a brain do wrong is the task's failure, told to the group.
        """
        attempt = await until_answered(lambda: self.ports.store.begin_task(history.comm_id, spec.task_id), task_id=spec.task_id)
        fault_point("agent.task_begun")
        decision = Meter()
        decision.is_exhausted = lambda: history.state is not None and is_exhausted(history.state, decision.total)
        decided = await self._decided(history, spec, files, decision)
        if decided is None:
            await _wait_for_team()
        if isinstance(decided, InformTaskResult):
            return decided
        lease.count_approach(decision)
        try:
            return await self._run(history, decided.task_desc, spec, attempt, files, lease)
        except Exception as error:  # noqa: BLE001 - an author's function may raise anything; the task fails
            _log.warning("task_failed", agent_id=self.card.agent_id, task_id=spec.task_id, error=reason_of(error))
            why = shortened(reason_of(error), MAX_TEXT_BYTES)
            return InformTaskResult(task_id=spec.task_id, outcome=TaskOutcome.FAILED, task_conclusion=why)

    async def _decided(
        self, history: GroupHistory, spec: TaskSpec, files: GroupFiles, decision: Meter
    ) -> Alone | InformTaskResult | None:
        """Decide how a task is done; None if a nested team was opened for it.

        What was seen of the group is let go with that: a task may wait for hours then, for a slot or for its team.
        """
        group = history.view(self.card.agent_id, self.outbox.clock.now(), decision, files=files)
        view = TaskView(spec=spec, me=self.card, group=await self.hooks.observed(group, files))
        lacks = await self._lacks(view, files)
        if lacks is not None:
            return lacks
        if spec.team:
            return await self._leave_to_team(history, view, decision)
        approach = await self._approach(view)
        if isinstance(approach, Alone):
            return approach
        try:
            await self._launch(history, view, approach, decision)
        except IoaError as error:
            _log.info("no_nested_team", task_id=spec.task_id, why=error.message)
            return Alone(spec.task_desc)
        return None

    async def _lacks(self, task: TaskView, files: GroupFiles) -> InformTaskResult | None:
        """Report, before anything is spent on a task, that files are not there which others named for it; None if all are there.

        Whoever is given the task next would find the same, as would a nested team.
        """
        given: list[tuple[str, Sequence[Artifact]]] = [("The goal", task.group.charter.inputs)]
        used = [record for record in task.used if record.outcome is TaskOutcome.DONE]
        given += [(f"The result {record.spec.task_id} of {record.spec.assignee}", record.artifacts) for record in used]
        lacking: list[Artifact] = []
        told: list[str] = []
        try:
            for whose, named in given:
                for file, why in await until_answered(partial(files.lacking, named), task_id=task.spec.task_id):
                    lacking.append(file)
                    told.append(f"{whose} names {file.name!r}, which is not there: {why}")
        except Exception as error:  # noqa: BLE001 - whatever else is wrong with a file is told when it is used
            _log.info("files_not_looked_at", task_id=task.spec.task_id, error=reason_of(error))
        if not lacking:
            return None
        _log.warning("task_lacks_files", agent_id=self.card.agent_id, task_id=task.spec.task_id, files=len(lacking))
        words = "\n".join(["I was not handed what this task needs. Reject the result, or have it done again.", *told[:MAX_LACKING]])
        return InformTaskResult(
            task_id=task.spec.task_id,
            outcome=TaskOutcome.FAILED,
            task_conclusion=shortened(words, MAX_TEXT_BYTES),
            lacks=tuple([file.object_name for file in lacking[:MAX_LACKING]]),
        )

    async def _approach(self, view: TaskView) -> Alone | TeamLaunch:
        try:
            with timed_decision("approach"):
                purpose = f"{view.group.charter.comm_id}/{view.spec.task_id}"
                tools = BoundedTeamTools(self.ports.network, self.ports.store, self.card.agent_id, purpose)
                approach = await self.ports.brain.approach(view, tools)
                count_decision("approach", view.group.meter.decided_by)
                return approach
        except Exception:  # noqa: BLE001 - a brain may raise anything; the task is done alone
            _log.exception("approach_fell_back", task_id=view.spec.task_id)
            return Alone(view.spec.task_desc)

    async def _leave_to_team(self, history: GroupHistory, task: TaskView, decision: Meter) -> InformTaskResult | None:
        """Open the stored team that the task names, which group setup reads and casts; or say why there is none.

        The function is not asked instead: who gave out the task wanted that team's answer, and nobody else's.

        Raises:
            SupersededError: Another process has taken the agent's id over.
        """
        spec = task.spec
        try:
            await self._launch(history, task, TeamLaunch(members=()), decision)
        except SupersededError:
            raise  # the task is another process's
        except IoaError as error:
            _log.info("no_nested_team", task_id=spec.task_id, team=spec.team, why=error.message)
            why = f"The team {spec.team} cannot serve the task ({row_of(error).wire_code}). {error}"
            conclusion = shortened(why, MAX_TEXT_BYTES)
            return InformTaskResult(task_id=spec.task_id, outcome=TaskOutcome.FAILED, task_conclusion=conclusion)
        return None

    async def _launch(self, history: GroupHistory, task: TaskView, team: TeamLaunch, decision: Meter) -> None:
        """Open a nested team for the task.

        Raises:
            IoaError: There can be none; it says why.
        """
        assert history.charter is not None
        spec = task.spec
        request = LaunchGroup(
            owner=self.card.agent_id,
            session=self.outbox.session,
            members=team.members,
            plan=team.plan,
            goal_id=history.charter.goal_id,
            parent=ParentTask(comm_id=history.comm_id, task_id=spec.task_id),
            goal=spec.task_desc,
            usage=decision.total,
            overhead=decision.overhead,
            calls=decision.calls,
            decided_by=decision.decided_by,
            brief=brief_of(task, history.public_messages()),
            inputs=files_of(task),
        )
        await until_answered(lambda: self.ports.network.launch(request), task_id=spec.task_id)
        fault_point("agent.team_opened")

    def _prepare(
        self, history: GroupHistory, spec: TaskSpec, attempt: int, files: GroupFiles, meter: Meter, workspace: Path
    ) -> RunningTask:
        group = self.hooks.known(history.view(self.card.agent_id, self.outbox.clock.now(), meter, files=files))
        charter = group.charter
        return RunningTask(
            task_id=spec.task_id,
            attempt=attempt,
            around=Circumstances(
                goal=charter.goal,
                goal_id=charter.goal_id,
                comm_id=charter.comm_id,
                given=given_out(group, spec),
                conversation=conversation_of(group),
                team=teammates(group),
                inputs=files.fetched(charter.inputs),
            ),
            results=[_upstream(record, files) for record in _handed_over(history, spec)],
            workspace=workspace,
            meter=meter,
            seek=self._seek(spec.task_id),
            ask=self._ask(history, spec.task_id, meter),
            inquire=self._inquire(history, spec.task_id),
            tell=self._tell(history, spec.task_id),
        )

    def _seek(self, task_id: TaskId) -> Seek:
        """How a task asks discovery, whichever thread it runs in."""
        loop = asyncio.get_running_loop()

        def seek(needs: Sequence[str | Need], budget: int | None) -> Searching:
            search = search_for_others(needs, me=self.card.agent_id, purpose=task_id, budget=budget)
            return Searching.start(found_by(self.ports.network, search), loop, SEARCH)

        return seek

    def _ask(self, history: GroupHistory, task_id: TaskId, meter: Meter) -> Ask:
        """How a task asks the agent's model, whichever thread it runs in, within what its group has left then."""
        loop, user = asyncio.get_running_loop(), current_user.get()

        async def answer(question: ChatQuestion, hear: Hear) -> ChatAnswer:
            current_user.set(user)  # a thread of the author does not inherit it
            state = history.state
            if self.ports.chat is None:
                raise no_model(self.card.agent_id)
            assert state is not None
            return await self.ports.chat.ask(question, meter, lambda: left_of(history.state or state, task_id, meter.total), hear)

        return lambda question, hear: Chatting.start(answer(question, hear), loop, CHAT)

    def _inquire(self, history: GroupHistory, task_id: TaskId) -> Inquire:
        """How a task asks people and other agents, whichever thread it runs in."""
        loop, inquirer = asyncio.get_running_loop(), Inquirer(self.outbox, history, task_id)
        return lambda inquiry: InquiringAside(inquirer.ask(inquiry), loop)

    def _tell(self, history: GroupHistory, task_id: TaskId) -> Callable[[type[TaskEvent], Mapping[str, Any]], None]:
        """How a task tells its agent's listeners of an event, whichever thread it runs in."""
        loop, charter = asyncio.get_running_loop(), history.charter
        assert charter is not None
        about = self.card.agent_id, charter.goal_id, charter.comm_id, task_id

        def tell(kind: type[TaskEvent], what: Mapping[str, Any]) -> None:
            event = kind(*about, **what)
            with suppress(RuntimeError):  # the loop is closed: this function was left behind
                loop.call_soon_threadsafe(self.hooks.listeners.tell, event)

        return tell

    def hear_model(
        self, history: GroupHistory, task_id: TaskId | None = None, turn: int | None = None
    ) -> Callable[[ModelCall], None]:
        """How a meter tells the listeners of a call of the agent's model."""
        charter = history.charter

        def hear(call: ModelCall) -> None:
            assert charter is not None
            if call.came_to != REJECTED:  # which was told when it was made
                self.hooks.listeners.tell(ModelCalled(self.card.agent_id, charter.goal_id, charter.comm_id, call, task_id, turn))

        return hear

    @asynccontextmanager
    async def _slot(
        self,
        history: GroupHistory,
        within: timedelta,
        create_workspace: Callable[[], Awaitable[Path]],
        prepare: Callable[[Path], RunningTask],
        files: GroupFiles,
    ) -> AsyncIterator[tuple[Slot, RunningTask]]:
        """Wait for a slot for a task's function, and prepare the task in it: each of those that wait would have all that was said.

        What others are waited for, its files among them, is there by then: a slot is nobody's while nothing runs in it.
        Behind the block the task is cancelled, and its folder goes once the function has.
        A function that was left behind may still write there, as may a command that it has started and has yet to kill.
        """
        charter = history.charter
        assert charter is not None
        async with self.workers.slot(within, charter.user) as slot:
            running = prepare(await create_workspace())
            try:
                yield slot, running
            finally:
                running.cancel()
                if slot.is_over:
                    await files.remove_workspace(running.workspace)
                else:
                    slot.when_over(partial(files.remove_workspace_later, running.workspace))

    async def _run(
        self, history: GroupHistory, words: str, spec: TaskSpec, attempt: int, files: GroupFiles, lease: TaskLease
    ) -> InformTaskResult:
        assert history.charter is not None
        needed = [*history.charter.inputs, *(file for record in _handed_over(history, spec) for file in _of(record))]
        await until_answered(partial(files.fetch, needed), task_id=spec.task_id)
        prepare = partial(self._prepare, history, spec, attempt, files, lease.meter)
        workspace = partial(files.create_workspace, spec.task_id, attempt)
        async with self._slot(history, self._time_left(history, spec.task_id) / 2, workspace, prepare, files) as (slot, running):
            lease.running = running
            _log.info("task_begun", attempt=running.attempt, content=words)
            running.tell(TaskStarted, attempt=running.attempt, task=words)
            with timed_task() as clock:
                outcome, conclusion, declined = await self._call(slot, words, running)
                clock.outcome = outcome.value
            running.cancel()
            _log.info("task_ended", outcome=outcome.value, content=conclusion)
            return await self._reported(outcome, conclusion, running, files, declined=declined)

    async def _reported(
        self, outcome: Outcome, conclusion: str, running: RunningTask, files: GroupFiles, *, declined: bool
    ) -> InformTaskResult:
        """Store what a task made, and tell of it."""
        if len(conclusion.encode("utf-8", "replace")) > MAX_TEXT_BYTES:  # the whole of it goes by reference
            await asyncio.to_thread(running.artifact, f"{running.task_id}.txt", conclusion)
        made = await until_answered(lambda: files.upload(running.task_id, running.made), task_id=running.task_id)
        traces = await until_answered(lambda: files.upload_trace(running.task_id, running.traced), task_id=running.task_id)
        return InformTaskResult(
            task_id=running.task_id,
            outcome=outcome,
            task_conclusion=shortened(conclusion, MAX_TEXT_BYTES),
            artifacts=made,
            traces=traces,
            declined=declined,
        )

    async def _call(self, slot: Slot, words: str, running: RunningTask) -> tuple[Outcome, str, bool]:
        """Call the author's function. What it raises, an exit included, is the task's failure and never this process's.

        Returns:
            How it ended, what it said, and whether it declined the task.
        """
        timeout = self.agent.timeout or self.timeout
        about: dict[str, Attribute] = {
            OPERATION: INVOKE_AGENT,
            AGENT_ID: self.card.agent_id,
            "ioa.task_id": running.task_id,
            "ioa.attempt": running.attempt,
        }
        try:
            with live_spans.span(f"{INVOKE_AGENT} {self.card.agent_id}", about):
                answer = await slot.call(self.agent.function, self.agent.arguments(words, running), timeout)
        except IoaError as error:
            return TaskOutcome.FAILED, str(error), isinstance(error, DeclinedError)
        except BaseException as error:
            this = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and this is not None and this.cancelling():
                raise
            _log.exception("task_crashed", agent_id=self.card.agent_id, task_id=running.task_id)
            return TaskOutcome.FAILED, "".join(traceback.format_exception_only(error)).strip(), False
        if not isinstance(answer, str):
            return TaskOutcome.FAILED, f"The agent's function returned {type(answer).__name__}, not text.", False
        return TaskOutcome.DONE, answer, False

    def _time_left(self, history: GroupHistory, task_id: TaskId) -> timedelta:
        assert history.state is not None
        limits, task = history.state.limits, history.state.task(task_id)
        own = task.deadline if isinstance(task, OpenTask) else None
        deadline = limits.deadline if own is None else min(own, limits.deadline)
        return max(deadline - self.outbox.clock.now(), timedelta(0))


def no_model(agent_id: str) -> InvalidInputError:
    """Say that an agent has no language model, and how it gets one."""
    return InvalidInputError(
        f"Agent {agent_id!r} needs a language model, and has none.", hint="Set IOA_LLM_MODEL, or give the agent a model of its own."
    )


def _inquire_nobody(_inquiry: Inquiry) -> NoReturn:
    """Refuse a question of a function that speaks in a turn."""
    raise InvalidInputError("Only a task asks by its context.", hint="In a turn @agent.speak asks: view.ask(…).")


async def _wait_for_team() -> NoReturn:
    """Wait until this is cancelled, which it is when the nested team's conclusion has closed the task."""
    await asyncio.Event().wait()
    raise AssertionError("nobody sets this event")


def _handed_over(history: GroupHistory, spec: TaskSpec) -> Sequence[TaskRecord]:
    return [record for record in history.used_by(spec) if record.outcome in _HANDED_OVER]


def _of(record: TaskRecord) -> Sequence[Artifact]:
    """Return the files of a result that is handed over; of one that was rejected only what it said is told."""
    return () if record.rejected else record.artifacts


def _upstream(record: TaskRecord, files: GroupFiles) -> UpstreamResult:
    return UpstreamResult(
        task_id=record.spec.task_id,
        agent_id=record.spec.assignee,
        task_desc=record.spec.task_desc,
        content=record.conclusion,
        artifacts=files.fetched(_of(record)),
        rejected=record.rejected,
    )
