"""The trace of a goal, made of what its logs say: nothing on the way of a message is instrumented.

A goal is the root, and below it are its group, the turns and tasks of the group, calls of models for them, and the teams nested in
a task. All ids follow from the names of what they are of (`ioa.protocol.trace`), so that a trace that is made twice is the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.client.history import Tree
from ioa.group.events import GroupLaunched, Said
from ioa.group.state import Charter, ClosedTask, Ended, GroupState
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import Reason
from ioa.protocol.ids import CommId, GoalName, TaskId
from ioa.protocol.messages import (
    TASK_REPORTS,
    AsyncTaskAssignment,
    Header,
    InformTaskResult,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.model_calls import READ, TAKEN, ModelCalls
from ioa.protocol.trace import (
    AGENT_ID,
    CHAT,
    OPERATION,
    Attribute,
    Span,
    parent_of_goal,
    span_id_of,
    span_id_of_goal,
    span_id_of_group,
    span_id_of_message,
    span_id_of_task,
    trace_id_of,
    usage_attributes,
)


@dataclass
class _Group:
    """What is known of one group while its log is read."""

    charter: Charter
    span_id: str
    parent_id: str
    began: datetime
    turn: int = -1
    granted: datetime | None = None
    tasks: dict[TaskId, tuple[TaskSpec, datetime]] = field(default_factory=dict)


async def spans_of(groups: NatsSystemClient, comm_id: CommId, made: GoalTrace) -> AsyncIterator[list[Span]]:
    """Make the spans of a goal's group and its nested teams, a page of the log at a time: the whole log is never held.

    Raises:
        UnavailableError: The log cannot be read now.
        UnreadableEntryError: One of the entries is garbage.
    """
    tree = await Tree.behind(groups, comm_id, 0)
    while page := await tree.advance():
        yield made.of(page)


class GoalTrace:
    """Makes spans of the entries of a goal's group and its nested teams, which come in the order of their sequence.

    Args:
        with_live: Whether calls of models are told that agents have exported themselves while they went on.

    Attributes:
        trace_id: 32 hexadecimal digits; empty before the first entry.
        is_sampled: Whether whoever launched the goal wants its trace to be kept.
    """

    def __init__(self, *, with_live: bool = True) -> None:
        self._with_live = with_live
        self.trace_id = ""
        self.is_sampled = True
        self._groups: dict[CommId, _Group] = {}

    def of(self, entries: Iterable[StoredEntry]) -> list[Span]:
        """Return what has ended by these entries, each as soon as it has."""
        return [span for stored in entries for span in self._read(stored)]

    def _read(self, stored: StoredEntry) -> Iterable[Span]:
        event, state = stored.entry.event, stored.entry.state
        if isinstance(event, GroupLaunched):
            self._open(event)
        group = self._groups.get(state.comm_id)
        if group is None:  # the goal ended before a group was opened for it
            return
        if isinstance(event, Said) and not isinstance(event.message.payload, TASK_REPORTS):
            turn = self._turn(group, event, stored.seq)
            yield turn
            yield from self._calls(event.message.header, event.message.header.calls, turn)
        for task in self._closed_tasks(group, state, event.at):
            yield task
            if isinstance(event, Said) and isinstance(event.message.payload, InformTaskResult):
                yield from self._calls(event.message.header, event.message.payload.calls, task)
        if state.turn != group.turn:
            group.turn, group.granted = state.turn, event.at
        if isinstance(state.stage, Ended):
            yield from self._ended(group, state.stage, state)

    def _open(self, event: GroupLaunched) -> None:
        charter, parent = event.charter, event.charter.parent
        name = _name_of(charter)
        if not self.trace_id:
            self.trace_id = trace_id_of(charter.traceparent)
            self.is_sampled = not charter.traceparent.endswith("-00")
        above = span_id_of_goal(name) if parent is None else span_id_of_task(parent.comm_id, parent.task_id)
        self._groups[charter.comm_id] = _Group(charter, span_id_of_group(charter.comm_id), above, event.at)

    def _turn(self, group: _Group, event: Said, seq: int) -> Span:
        header, payload = event.message.header, event.message.payload
        if isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment):
            group.tasks.update({spec.task_id: (spec, event.at) for spec in payload.tasks})
        who: dict[str, Attribute] = {AGENT_ID: header.sender}
        attributes = who | _ours(turn=header.turn, message_type=payload.type, seq=seq) | usage_attributes(header.usage)
        start = min(group.granted or event.at, event.at)
        span_id = span_id_of_message(header.sender, header.message_id)
        return Span(f"turn {payload.type}", span_id, group.span_id, start, event.at, attributes)

    def _closed_tasks(self, group: _Group, state: GroupState, at: datetime) -> Iterable[Span]:
        closed = {task.task_id: task for task in state.tasks if isinstance(task, ClosedTask) and task.task_id in group.tasks}
        for task_id, task in closed.items():  # each is in the state of the entry that has closed it
            spec, began = group.tasks.pop(task_id)
            failure = "" if task.outcome is TaskOutcome.DONE else task.outcome.value  # why it failed was said by somebody
            who: dict[str, Attribute] = {AGENT_ID: spec.assignee}
            attributes = who | _ours(task_id=task_id, task_outcome=task.outcome.value)
            span_id = span_id_of_task(group.charter.comm_id, task_id)
            yield Span(
                name="task", span_id=span_id, parent_id=group.span_id, start=began, end=at, attributes=attributes, failure=failure
            )

    def _calls(self, header: Header, calls: ModelCalls, whole: Span) -> Iterable[Span]:
        """Return the calls of a model for a message. Of each is known how long it took, and not when: they are laid end to end.

        What would lie before the whole is cut off: how long a call took is its agent's word, and may be longer than any calendar.
        """
        times, start = list[tuple[datetime, datetime]](), max(whole.start, whole.end)
        for call in reversed(calls):
            end, took = start, timedelta(milliseconds=call.milliseconds)
            start = end - took if took < end - whole.start else whole.start
            times.append((start, end))
        for number, (call, (start, end)) in enumerate(zip(calls, reversed(times), strict=True)):
            if call.live and not self._with_live:
                continue
            what: dict[str, Attribute] = {OPERATION: CHAT}
            attributes = what | _ours(call_purpose=call.purpose, call_came_to=call.came_to) | usage_attributes(call.usage)
            failure = "" if call.came_to in (TAKEN, READ) else call.came_to
            span_id = span_id_of(f"message/{header.sender}/{header.message_id}/{number}")
            yield Span(
                name=CHAT,
                span_id=span_id,
                parent_id=whole.span_id,
                start=start,
                end=end,
                attributes=attributes,
                failure=failure,
            )

    def _ended(self, group: _Group, end: Ended, state: GroupState) -> Iterable[Span]:
        charter = group.charter
        failure = "" if end.reason is Reason.CONCLUDED else end.reason.value
        about = _ours(goal_id=charter.goal_id, comm_id=charter.comm_id, reason=end.reason.value)
        size = _ours(members=len(charter.team_members)) | usage_attributes(state.spent)
        yield Span(
            name="group",
            span_id=group.span_id,
            parent_id=group.parent_id,
            start=group.began,
            end=end.ended_at,
            attributes=about | size,
            failure=failure,
        )
        if charter.parent is None:
            name = _name_of(charter)
            above = parent_of_goal(name, charter.traceparent)
            yield Span(
                name="goal",
                span_id=span_id_of_goal(name),
                parent_id=above,
                start=group.began,
                end=end.ended_at,
                attributes=about | _labels(charter),
                failure=failure,
            )


def _name_of(charter: Charter) -> GoalName:
    return GoalName(charter.user, charter.goal_id)


def _ours(**known: Attribute) -> dict[str, Attribute]:
    return {f"ioa.{name}": value for name, value in known.items()}


def _labels(charter: Charter) -> dict[str, Attribute]:
    return {f"ioa.label.{name}": text for name, text in charter.labels.items()}
