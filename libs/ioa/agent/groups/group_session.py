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

from ioa.agent.groups.membership import Membership
from ioa.agent.groups.turn import Turn
from ioa.agent.metrics import sessions
from ioa.agent.send import until_answered
from ioa.agent.tasks.task_runner import TaskRunner
from ioa.concurrency import TaskGroup, fail_after
from ioa.errors import IoaError, SupersededError, find_error
from ioa.group.budget import is_exhausted
from ioa.group.requests import Accepted, SequencedEntry
from ioa.group.state import Ended
from ioa.ports.chat_model import current_user
from ioa.ports.meter import Meter
from ioa.protocol.agents.outcomes import ReportOutcomes
from ioa.retry import pauses
from ioa.telemetry import log_context

_MAX_SILENCE_SECONDS = 300.0

Duty = Callable[[], Awaitable[Accepted | None]]
"""An action, which returns the reply to its message."""

_log = structlog.get_logger(__name__)


class GroupSession:
    """Follow one group until it has ended.

    Args:
        member: The agent in the group; its history receives the entries.
        runner: Runs the tasks.
        silence: Seconds without a pushed entry after which the log is read for the first time; the pause doubles each time.
        keep: How long passages of ended groups are kept in the agent's memory.
    """

    def __init__(self, member: Membership, runner: TaskRunner, silence: float, keep: timedelta) -> None:
        self._member, self._runner, self._store = member, runner, member.ports.store
        self.history = member.history
        self._silence = silence
        self._keep = keep
        self._pauses = pauses(silence, _MAX_SILENCE_SECONDS)
        self._pushed: dict[int, SequencedEntry] = {}
        """Entries that wait to be applied, by the sequences of their predecessors."""
        self._woken = asyncio.Event()
        self._is_over = False
        """True if the session has ended: later entries are ignored."""
        self._must_read = False
        """True if the log must be read, because an entry was dropped, or after a silence or a request."""
        self._looked = asyncio.Event()
        """Set when the log was read next."""
        self._duties: dict[str, asyncio.Task[None]] = {}
        self._meter = Meter()
        self._meter.is_exhausted = lambda: is_exhausted(self.history.state, self._meter.total)
        self._forgotten: Sequence[tuple[int, int]] = ()
        """Struck turns that the memory has already removed."""

    @property
    def ended(self) -> bool:
        """True if the group has ended or has removed this member."""
        if not self.history.is_launched:
            return False
        return self.history.state.phase.is_terminal or self._member.me not in self.history.state.hearing

    def receive(self, entry: SequencedEntry) -> None:
        """Receive a pushed entry, which may be a duplicate or follow a gap."""
        if not self._is_over and entry.seq > self.history.cursor:
            self._pushed[entry.previous_seq] = entry
            self._woken.set()

    def look(self) -> asyncio.Event:
        """Request a read of the log; the event is set when new entries were applied."""
        self._must_read = True
        self._woken.set()
        return self._looked

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
                self.history.thoughts |= await until_answered(self._store.thoughts, self.history.comm_id)
                async with TaskGroup() as duties:
                    while not self.ended:
                        self._act(duties)
                        await self._forget_struck()
                        await self._follow()
                    self._drop_duties(keep=frozenset())
                    await self._forget_struck()
                await self._close()
            finally:
                self._is_over = True

    async def discard(self) -> None:
        """Delete the group's files and its data in the memory."""
        await self._member.files.remove()
        before = self._member.ports.clock.now() - self._keep
        await until_answered(self._store.forget_group, self.history.comm_id, before=before)

    async def _forget_struck(self) -> None:
        """Remove struck messages from the memory. The decisions that are based on them were cancelled."""
        struck = self.history.struck
        if struck != self._forgotten:
            await until_answered(self._store.keep_only, self.history.comm_id, self.history.there())
            self._forgotten = struck

    async def _follow(self) -> None:
        """Apply pushed entries; after a gap, a silence or a request, read the log."""
        await self._until_woken()
        self._apply_pushed()
        looked, self._looked = self._looked, asyncio.Event()
        if self._pushed or self._must_read:
            await self._read_log()
        looked.set()

    async def _until_woken(self) -> None:
        """Wait for an entry or a request. After a silence the log must be read."""
        if self._woken.is_set():
            return
        try:
            async with fail_after(next(self._pauses)):
                await self._woken.wait()
        except TimeoutError:
            self._must_read = True

    def _apply_pushed(self) -> None:
        self._woken.clear()
        while (entry := self._pushed.pop(self.history.cursor, None)) is not None:
            self._apply(entry)
        self._pushed = {previous: entry for previous, entry in self._pushed.items() if previous > self.history.cursor}

    def _apply(self, entry: SequencedEntry) -> None:
        self.history.apply(entry)
        self._pauses = pauses(self._silence, _MAX_SILENCE_SECONDS)

    async def _read_log(self) -> None:
        """Read missed entries from the log."""
        complete = False
        self._pushed.clear()
        self._must_read = False
        while not complete:
            page = await until_answered(self._member.read_log, self.history.cursor)
            for entry in page.entries:
                if entry.seq > self.history.cursor:
                    self._apply(entry)
            complete = page.complete

    def _act(self, group: asyncio.TaskGroup) -> None:
        """Start the duties that are due, and cancel the others."""
        if not self.history.is_launched:
            return
        self._bind()
        due = self._due()
        self._drop_duties(keep=frozenset(due))
        for name, duty in due.items():
            if name not in self._duties:
                self._duties[name] = group.create_task(self._fulfil(name, duty))

    def _bind(self) -> None:
        """Set the log context and the current user, which the duties of this session inherit."""
        charter = self.history.charter
        about = {"goal_id": charter.goal_id, "traceparent": charter.traceparent}
        log_context.bind({"comm_id": charter.comm_id, "agent_id": self._member.me, **about})
        current_user.set(charter.user)

    def _due(self) -> dict[str, Duty]:
        member, due = self._member, dict[str, Duty]()
        if member.me in member.state.floor:
            turn = member.state.turn
            due[f"turn:{turn}"] = Turn(member, self._runner, self.look, self._meter, turn).take
        for task in member.state.open_tasks:
            spec = self.history.spec(task.task_id)
            if task.assignee == member.me and spec is not None:
                due[f"task:{task.task_id}"] = partial(self._runner.do, member, task, spec)
        return due

    def _drop_duties(self, keep: frozenset[str]) -> None:
        for name in [name for name in self._duties if name not in keep]:
            self._duties.pop(name).cancel()

    async def _fulfil(self, name: str, duty: Duty) -> None:
        """Run a duty and log its failure: the router's deadlines move the group on.

        `SupersededError` ends the agent. The accepted entry of a reply ends the duty. The log is read if nothing was
        accepted, or if the reply has no entry because the first reply was lost.
        """
        try:
            accepted = await duty()
        except Exception as error:
            if find_error(SupersededError, error) is not None:
                raise
            _log.exception("duty_failed", duty=name)
            return
        if accepted is None or accepted.entry is None:
            self.look()

    async def _close(self) -> None:
        """Store and report the outcomes of the members, delete the group's data, and confirm the group's end."""
        stage = self.history.state.stage
        if isinstance(stage, Ended):
            self._member.report("group_ended", reason=stage.reason, content=stage.content)
        if self.history.charter.owner == self._member.me and (contacts := self.history.contacts()):
            await until_answered(self._store.meet, contacts)
            await self._report_outcomes()
        await self.discard()
        await self._read_log()  # group setup removes the membership of a member that knows the end
        _log.info("group_left")

    async def _report_outcomes(self) -> None:
        """Report the end of the group to discovery, which reads the outcomes of the tasks from the log."""
        request = ReportOutcomes(agent_id=self._member.me, session=self._member.session, comm_id=self.history.comm_id)
        try:
            await self._member.ports.network.report_outcomes(request)
        except IoaError as error:
            _log.info("outcomes_not_told", why=error.message)
