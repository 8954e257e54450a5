"""The messages of a group chat: one class per speech act, a header and a payload (paper, section 2.3 and figure 7).

A payload has only the fields its kind has. What happens next is decided by these fields and never by reading prose.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import AgentIdField, CommIdField, MessageIdField, SessionIdField, TaskIdField
from ioa.protocol.model import Model, Time, Version
from ioa.protocol.usage import Usage

MAX_CONTENT_CHARS = 200_000
MAX_TASKS_PER_ASSIGNMENT = 32
MAX_ARTIFACTS = 100
"""How many files a result or a conclusion may have."""

Content = Annotated[str, Field(max_length=MAX_CONTENT_CHARS)]


class Phase(StrEnum):
    """Where a group stands (paper, section 2.3.3). The last three are terminal and absorbing."""

    DISCUSSING = "discussing"
    AWAITING_ACKS = "handing"
    ASSIGNED = "assigned"
    PAUSED = "paused"
    CONCLUDING = "concluding"
    CONCLUDED = "concluded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing can happen in the group any more."""
        return self in _TERMINAL


_TERMINAL = frozenset({Phase.CONCLUDED, Phase.FAILED, Phase.CANCELLED})


class TaskSpec(Model):
    """A task given to one assignee.

    Attributes:
        uses: Earlier tasks of the group whose results feed this one.
        timeout: How long the task may take, whatever progress it reports; without it, as long as its group.
    """

    task_id: TaskIdField
    assignee: AgentIdField
    task_desc: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT_CHARS)]
    task_abstract: Annotated[str, Field(max_length=500)] = ""
    uses: Annotated[tuple[TaskIdField, ...], Field(max_length=MAX_TASKS_PER_ASSIGNMENT)] = ()
    timeout: Annotated[timedelta, Field(gt=timedelta(0), le=timedelta(days=365))] | None = None


TaskList = Annotated[tuple[TaskSpec, ...], Field(min_length=1, max_length=MAX_TASKS_PER_ASSIGNMENT)]


class Discussion(Model):
    """Say something and hand the floor to one other member."""

    type: Literal["DISCUSSION"] = "DISCUSSION"
    content: Content
    next_speaker: AgentIdField


class SyncTaskAssignment(Model):
    """Give out tasks and wait for all of them before the discussion goes on."""

    type: Literal["SYNC_TASK_ASSIGNMENT"] = "SYNC_TASK_ASSIGNMENT"
    content: Content = ""
    tasks: TaskList


class AsyncTaskAssignment(Model):
    """Give out tasks that run beside the discussion."""

    type: Literal["ASYNC_TASK_ASSIGNMENT"] = "ASYNC_TASK_ASSIGNMENT"
    content: Content = ""
    tasks: TaskList


class InformTaskProgress(Model):
    """Acknowledge a task or report how far it is; renews the task's lease.

    Attributes:
        number: Counts 1, 2, 3 … for each task.
        usage: What the task has cost so far, in all its attempts, so that a report that is lost or repeated miscounts nothing.
    """

    type: Literal["INFORM_TASK_PROGRESS"] = "INFORM_TASK_PROGRESS"
    task_id: TaskIdField
    number: Annotated[int, Field(ge=1)]
    content: Content = ""
    fraction: Annotated[float, Field(ge=0, le=1)] | None = None
    usage: Usage | None = None


class TaskOutcome(StrEnum):
    """How a task was closed."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class InformTaskResult(Model):
    """Report the end of a task, once. `usage` is what the whole task has cost."""

    type: Literal["INFORM_TASK_RESULT"] = "INFORM_TASK_RESULT"
    task_id: TaskIdField
    outcome: Literal[TaskOutcome.DONE, TaskOutcome.FAILED] = TaskOutcome.DONE
    task_conclusion: Content
    artifacts: Annotated[tuple[Artifact, ...], Field(max_length=MAX_ARTIFACTS)] = ()
    usage: Usage | None = None


class Pause(Model):
    """Suspend the discussion until all triggers, open asynchronous tasks, are closed."""

    type: Literal["PAUSE"] = "PAUSE"
    content: Content = ""
    triggers: Annotated[tuple[TaskIdField, ...], Field(min_length=1, max_length=256)]


class ConcludeGroupDiscussion(Model):
    """Announce that nothing remains to be discussed; the speaker states the conclusion next."""

    type: Literal["CONCLUDE_GROUP_DISCUSSION"] = "CONCLUDE_GROUP_DISCUSSION"
    content: Content = ""


class Conclusion(Model):
    """The group's answer. A `reason` other than `concluded` says that the goal was not reached."""

    type: Literal["CONCLUSION"] = "CONCLUSION"
    content: Content
    reason: Literal[Reason.CONCLUDED, Reason.NO_AGENT, Reason.FAILED] = Reason.CONCLUDED
    artifacts: Annotated[tuple[Artifact, ...], Field(max_length=MAX_ARTIFACTS)] = ()


Payload = Annotated[
    Discussion
    | SyncTaskAssignment
    | AsyncTaskAssignment
    | InformTaskProgress
    | InformTaskResult
    | Pause
    | ConcludeGroupDiscussion
    | Conclusion,
    Field(discriminator="type"),
]

TASK_REPORTS = (InformTaskProgress, InformTaskResult)
"""The kinds an assignee may send without the floor."""

_ASSIGNMENTS = (SyncTaskAssignment, AsyncTaskAssignment)


class Header(Model):
    """Who speaks, where, and on the ground of what.

    Attributes:
        turn: The turn the floor was granted for; the assignee of a task repeats the turn of its assignment.
        after: The log sequence the sender had applied when it spoke; its message can only lie behind it.
        state: The phase the sender believed the group in, as `phase_for_header` puts it.
        causation_id: The message this one answers.
        usage: What its sender has spent for it, thoughts that were refused included; None is nothing. What a task costs stands in
            the reports on the task.
        session: The process that speaks; one that another process has taken the agent's id from is refused.
    """

    version: Version = 1
    message_id: MessageIdField
    comm_id: CommIdField
    sender: AgentIdField
    state: Phase
    turn: Annotated[int, Field(ge=0)]
    after: Annotated[int, Field(ge=0)]
    sent_at: Time
    causation_id: MessageIdField | None = None
    usage: Usage | None = None
    session: SessionIdField | None = None
    traceparent: Annotated[str, Field(max_length=200)] = ""


def phase_for_header(phase: Phase) -> Phase:
    """Name a phase so that routers of an older release can read it: to them `AWAITING_ACKS` is a part of `DISCUSSING`.

    A release that raises the header's version can say the phase as it is; this one reads it already.
    """
    return Phase.DISCUSSING if phase is Phase.AWAITING_ACKS else phase


class Message(Model):
    """One utterance of one member."""

    header: Header
    payload: Payload

    @model_validator(mode="after")
    def _task_ids_are_unique(self) -> Message:
        if isinstance(self.payload, _ASSIGNMENTS):
            ids = [task.task_id for task in self.payload.tasks]
            if len(set(ids)) != len(ids):
                raise ValueError("an assignment names one task id twice")
        return self
