"""Trace of a goal, computed from its logs: nothing on the path of a message is instrumented.

The root is the goal. Below it are its group, the turns and tasks of the group, their model calls, and the nested groups of tasks.
All ids are derived from names (`ioa.protocol.operation.trace`), so a trace that is computed again is the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.client.history import read_on
from ioa.client.transcript import TaskStatus, Transcript
from ioa.group.events import GroupLaunched, Said
from ioa.group.state import Ended, GroupState
from ioa.ports.group_log import StoredEntry
from ioa.protocol.decisions import READ, TAKEN, ModelCalls
from ioa.protocol.goals import Reason
from ioa.protocol.ids import CommId, GoalName
from ioa.protocol.messages import (
    TASK_REPORTS,
    Header,
    InformTaskResult,
    TaskOutcome,
)
from ioa.protocol.operation.trace import (
    Attribute,
    Span,
    call_attributes,
    name_of_call,
    parent_of_goal,
    span_id_of,
    span_id_of_goal,
    span_id_of_group,
    span_id_of_message,
    span_id_of_task,
    trace_id_of,
    usage_attributes,
)
from ioa.protocol.setup.charter import Charter
from ioa.protocol.usage import Usage


@dataclass
class _Group:
    """State of a group while its log is read; `granted` is the time since which its present turn is open."""

    charter: Charter
    span_id: str
    began: datetime
    turn: int = -1
    granted: datetime | None = None


async def read_spans(groups: NatsSystemClient, comm_id: CommId, trace: GoalTrace) -> AsyncIterator[Span]:
    """Yield the spans of a goal's group and its nested groups, without the whole log in memory.

    Raises:
        UnavailableError: The log cannot be read now.
        UnreadableEntryError: An entry cannot be decoded.
    """
    async with aclosing(read_on(groups, comm_id)) as entries:
        async for stored in entries:
            for span in trace.read(stored):
                yield span


class GoalTrace:
    """Converts the entries of a goal's group and its nested groups to spans.

    Args:
        with_live: Whether model calls are included that agents exported while they ran.

    Attributes:
        trace_id: 32 hexadecimal digits; empty before the first entry.
        is_sampled: Whether the trace is wanted, by the `traceparent` of the goal.
    """

    def __init__(self, *, with_live: bool = True) -> None:
        self._with_live = with_live
        self.trace_id = ""
        self.is_sampled = True
        self._groups: dict[CommId, _Group] = {}
        self._transcript = Transcript()

    def read(self, stored: StoredEntry) -> Iterator[Span]:
        """Yield the spans that end with the next entry by sequence."""
        event, state = stored.entry.event, stored.entry.state
        if isinstance(event, GroupLaunched):
            self._open(event)
        group = self._groups.get(state.comm_id)
        if group is None:  # the goal ended before its group was opened
            return
        if isinstance(event, Said) and not isinstance(event.message.payload, TASK_REPORTS):
            turn = _turn(group, event, stored.seq)
            yield turn
            yield from self._calls(event.message.header, event.message.header.calls, turn)
        ended = {task.task_id for task in self._transcript.tasks(state.comm_id) if task.ended_at}
        self._transcript.read(stored)
        for task in self._transcript.tasks(state.comm_id):
            if task.ended_at and task.task_id not in ended:
                span = _task(group, task, event.at)
                yield span
                if isinstance(event, Said) and isinstance(event.message.payload, InformTaskResult):
                    yield from self._calls(event.message.header, event.message.payload.calls, span)
        if state.turn != group.turn:
            group.turn, group.granted = state.turn, event.at
        if isinstance(state.stage, Ended):
            yield from _end(group, state.stage, state)

    def _open(self, event: GroupLaunched) -> None:
        charter = event.charter
        self._groups[charter.comm_id] = _Group(charter, span_id_of_group(charter.comm_id), event.at)
        if not self.trace_id:
            self.trace_id = trace_id_of(charter.traceparent)
            self.is_sampled = not charter.traceparent.endswith("-00")

    def _calls(self, header: Header, calls: ModelCalls, whole: Span) -> Iterable[Span]:
        """Return the model calls for a message, end to end: their durations are known, but not their times.

        Agents report the durations, so calls are cut at the start of the whole.
        """
        found, end, by = list[Span](), max(whole.start, whole.end), header.decided_by
        model = "" if by is None else by.name if by.kind == "model" else by.instead_of
        for number, call in reversed([*enumerate(calls)]):
            took = timedelta(milliseconds=call.milliseconds)
            start = end - took if took < end - whole.start else whole.start
            if self._with_live or not call.live:
                attributes = {**call_attributes(model), **usage_attributes(call.usage)}
                attributes |= _ours(call_purpose=call.purpose, call_came_to=call.came_to)
                span_id = span_id_of(f"message/{header.sender}/{header.message_id}/{number}")
                failure = "" if call.came_to in (TAKEN, READ) else call.came_to
                found.append(Span(name_of_call(model), span_id, whole.span_id, start, end, attributes, failure))
            end = start
        return reversed(found)


def _turn(group: _Group, event: Said, seq: int) -> Span:
    header, payload = event.message.header, event.message.payload
    start = min(group.granted or event.at, event.at)
    attributes = _ours(agent_id=header.sender, turn=header.turn, message_type=payload.type, seq=seq) | _tokens(header.usage)
    span_id = span_id_of_message(header.sender, header.message_id)
    return Span(f"turn {payload.type}", span_id, group.span_id, start, event.at, attributes)


def _task(group: _Group, task: TaskStatus, at: datetime) -> Span:
    attributes = _ours(agent_id=task.assignee, task_id=task.task_id, task_outcome=task.status)
    failure = "" if task.status == TaskOutcome.DONE else task.status  # no text of a member
    span_id, began = span_id_of_task(group.charter.comm_id, task.task_id), task.started_at or at
    return Span("task", span_id, group.span_id, began, at, attributes, failure)


def _end(group: _Group, end: Ended, state: GroupState) -> Iterator[Span]:
    charter, parent = group.charter, group.charter.parent
    name = GoalName(charter.user, charter.goal_id)
    failure = "" if end.reason is Reason.CONCLUDED else end.reason.value
    about = _ours(goal_id=charter.goal_id, comm_id=charter.comm_id, reason=end.reason.value)
    size = _ours(members=len(charter.team_members)) | _tokens(state.spent)
    above = span_id_of_goal(name) if parent is None else span_id_of_task(parent.comm_id, parent.task_id)
    yield Span("group", group.span_id, above, group.began, end.ended_at, about | size, failure)
    if parent is None:
        labels = {f"ioa.label.{label}": text for label, text in charter.labels.items()}
        above = parent_of_goal(name, charter.traceparent)
        yield Span("goal", span_id_of_goal(name), above, group.began, end.ended_at, about | labels, failure)


def _tokens(usage: Usage | None) -> dict[str, Attribute]:
    """Return the usage of a turn or a group, whose model calls have spans of their own."""
    return {} if usage is None else _ours(tokens_in=usage.tokens_in, tokens_out=usage.tokens_out)


def _ours(**known: Attribute) -> dict[str, Attribute]:
    return {f"ioa.{name}": value for name, value in known.items()}
