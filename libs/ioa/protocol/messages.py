"""The messages of a group: one class per kind, with a header and a payload (paper, section 2.3 and figure 7).

The fields of a payload decide the next step; prose is never parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from ioa.protocol.decisions import DecidedBy, ModelCalls
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import AgentIdField, CommIdField, MessageIdField, SessionIdField, TaskIdField
from ioa.protocol.model import OMITTED_IF_EMPTY, Model, Time
from ioa.protocol.policy_parts import MAX_FIELDS, MAX_WRITES, FieldValue, FormField, Name
from ioa.protocol.teams.stored_teams import ReferenceField
from ioa.protocol.usage import MAX_COUNT, Count, Usage

MAX_QUESTION_CHARS = 2_000
MAX_OPTIONS = 16
MAX_OPTION_CHARS = 200

Answer = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS)]
AnswerKey = Annotated[str, Field(max_length=64)]


class Question(Model):
    """A question with its default.

    Attributes:
        text: The question.
        options: The possible answers; empty: any text of up to 2,000 characters.
        default: The answer that counts at `until`.
        until: Time until which it can be answered.
    """

    text: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS)]
    options: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=MAX_OPTION_CHARS)], ...], Field(max_length=MAX_OPTIONS)
    ] = ()
    default: Answer
    until: Time

    def fault(self, at: datetime, latest: datetime) -> str:
        """Return why it cannot be asked at a time, in a group that ends at `latest`; empty if it can."""
        if len(set(self.options)) < len(self.options):
            return "it has an option twice"
        if self.options and self.default not in self.options:
            return f"its default {self.default!r} is none of its options"
        if not at < self.until <= latest:
            ends = f"{latest:%Y-%m-%d %H:%M:%S} UTC"
            return f"it waits until {self.until:%Y-%m-%d %H:%M:%S} UTC, which must be in the future and not after {ends}"
        return ""

    def takes(self, answer: str) -> bool:
        """Whether a text is a possible answer."""
        return not self.options or answer in self.options


MAX_CONTENT_CHARS = 200_000
MAX_DRAFT_CHARS = 4_000
MAX_TASKS_PER_ASSIGNMENT = 32
MAX_ARTIFACTS = 100
"""Maximum files of a result or a conclusion."""
MAX_REJECTS = 32
"""Maximum results that one message may reject."""
MAX_SEATS = 63
"""Maximum members that may be named to speak in parallel."""
MAX_QUESTION_FIELDS = 4
"""Maximum fields of a question."""

Content = Annotated[str, Field(max_length=MAX_CONTENT_CHARS)]


class Phase(StrEnum):
    """Phase of a group (paper, section 2.3.3). The last three are final."""

    DISCUSSING = "discussing"
    GATHERING = "gathering"
    DECIDING = "deciding"
    AWAITING_ACKS = "handing"
    ASSIGNED = "assigned"
    PAUSED = "paused"
    CONCLUDING = "concluding"
    CONCLUDED = "concluded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """Whether the group has ended."""
        return self in _TERMINAL


_TERMINAL = frozenset({Phase.CONCLUDED, Phase.FAILED, Phase.CANCELLED})


class TaskSpec(Model):
    """A task for an assignee.

    Attributes:
        uses: Tasks of the group, or of the same message, whose results this task needs. It starts when all of them are done.
        timeout: Maximum duration from its start, whatever progress it reports. Default: until the end of its group.
        team: The stored team, as `NAME` or `NAME@VERSION`, that completes it in a nested group. Default: its assignee decides.
    """

    task_id: TaskIdField
    assignee: AgentIdField
    task_desc: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT_CHARS)]
    task_abstract: Annotated[str, Field(max_length=500)] = ""
    uses: Annotated[tuple[TaskIdField, ...], Field(max_length=MAX_TASKS_PER_ASSIGNMENT)] = ()
    timeout: Annotated[timedelta, Field(gt=timedelta(0), le=timedelta(days=365))] | None = None
    team: Annotated[ReferenceField | None, OMITTED_IF_EMPTY] = None


TaskList = Annotated[tuple[TaskSpec, ...], Field(min_length=1, max_length=MAX_TASKS_PER_ASSIGNMENT)]


class RejectedTask(Model):
    """A task that is done, and the reason why the floor holder rejects its result."""

    task_id: TaskIdField
    why: Annotated[str, Field(min_length=1, max_length=2_000)]


Rejects = Annotated[tuple[RejectedTask, ...], Field(max_length=MAX_REJECTS)]


class Discussion(Model):
    """Say something, and pass the floor to another member or to several in parallel.

    Attributes:
        next_speaker: The member that has the floor next. None if the policy of the group decides, if several members are named, and
            in an answer to the member that named several.
        go: The exit of the policy's node that the speaker chooses.
        next_speakers: The members that speak next in parallel; then the floor returns.
        question: The fields that each of them fills in.
        fields: Values of the question that the sender answers, or of the form of the policy's node.
        to: The members that hear this, a part of its audience; members that hear all hear it too. Empty: the whole audience.
        writes: Texts for the board, by the names that the policy's node permits; an empty text is the content.
    """

    type: Literal["DISCUSSION"] = "DISCUSSION"
    content: Content
    next_speaker: AgentIdField | None = None
    rejects: Rejects = ()
    go: Annotated[Name | None, OMITTED_IF_EMPTY] = None
    next_speakers: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_SEATS), OMITTED_IF_EMPTY] = ()
    question: Annotated[tuple[FormField, ...], Field(max_length=MAX_QUESTION_FIELDS), OMITTED_IF_EMPTY] = ()
    fields: Annotated[Mapping[Name, FieldValue], Field(max_length=MAX_FIELDS), OMITTED_IF_EMPTY] = Field(default_factory=dict)
    to: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_SEATS), OMITTED_IF_EMPTY] = ()
    writes: Annotated[Mapping[Name, Content], Field(max_length=MAX_WRITES), OMITTED_IF_EMPTY] = Field(default_factory=dict)


class Decision(Model):
    """Choose one of the offered options, or answer the question of a task.

    Attributes:
        choice: One of the options; for a task that offers none, the answer.
        content: The reason, or the text of a hint.
        members: The members that a watcher removes or gives a hint.
        task_id: The task that asks; its assigner answers without the floor.
        number: Number of the task's question; 0 is the open question.
    """

    type: Literal["DECISION"] = "DECISION"
    choice: Annotated[str, Field(max_length=MAX_QUESTION_CHARS)]
    content: Annotated[str, Field(max_length=2_000)] = ""
    members: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_SEATS), OMITTED_IF_EMPTY] = ()
    task_id: Annotated[TaskIdField | None, OMITTED_IF_EMPTY] = None
    number: Annotated[Count, OMITTED_IF_EMPTY] = 0


class SyncTaskAssignment(Model):
    """Assign tasks, and wait for all of them before the discussion continues."""

    type: Literal["SYNC_TASK_ASSIGNMENT"] = "SYNC_TASK_ASSIGNMENT"
    content: Content = ""
    tasks: TaskList
    rejects: Rejects = ()


class AsyncTaskAssignment(Model):
    """Assign tasks that run during the discussion."""

    type: Literal["ASYNC_TASK_ASSIGNMENT"] = "ASYNC_TASK_ASSIGNMENT"
    content: Content = ""
    tasks: TaskList
    rejects: Rejects = ()


class InformTaskProgress(Model):
    """Acknowledge a task or report its progress, which renews its lease.

    Attributes:
        number: Counts 1, 2, 3 … for each task.
        usage: Total usage of the task so far, in all its attempts, so that a lost or repeated report causes no error.
        draft: The end of the model's text so far, for live display. No log contains it.
    """

    type: Literal["INFORM_TASK_PROGRESS"] = "INFORM_TASK_PROGRESS"
    task_id: TaskIdField
    number: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    content: Content = ""
    fraction: Annotated[float, Field(ge=0, le=1)] | None = None
    usage: Usage | None = None
    draft: Annotated[str, Field(max_length=MAX_DRAFT_CHARS), OMITTED_IF_EMPTY] = ""


class TaskOutcome(StrEnum):
    """How a task was closed. A rejected task was done before."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REJECTED = "rejected"


class InformTaskResult(Model):
    """Report the end of a task, once.

    Attributes:
        declined: The task failed because the agent does not do such tasks, or because files of the task are missing.
        usage: Total usage of the task.
        calls: Calls of the agent's model for it, in order.
        traces: Files with the steps of the task, for people. They are neither output nor input.
    """

    type: Literal["INFORM_TASK_RESULT"] = "INFORM_TASK_RESULT"
    task_id: TaskIdField
    outcome: Literal[TaskOutcome.DONE, TaskOutcome.FAILED] = TaskOutcome.DONE
    task_conclusion: Content
    artifacts: Annotated[tuple[Artifact, ...], Field(max_length=MAX_ARTIFACTS)] = ()
    usage: Usage | None = None
    calls: ModelCalls = ()
    traces: Annotated[tuple[Artifact, ...], Field(max_length=4)] = ()
    declined: bool = False


class Pause(Model):
    """Suspend the discussion until all triggers, which are open or waiting tasks, are closed."""

    type: Literal["PAUSE"] = "PAUSE"
    content: Content = ""
    triggers: Annotated[tuple[TaskIdField, ...], Field(min_length=1, max_length=256)]
    rejects: Rejects = ()


class ConcludeGroupDiscussion(Model):
    """Announce the end of the discussion. The speaker states the conclusion with it or in its next message."""

    type: Literal["CONCLUDE_GROUP_DISCUSSION"] = "CONCLUDE_GROUP_DISCUSSION"
    content: Content = ""
    conclusion: Conclusion | None = None
    rejects: Rejects = ()


class Conclusion(Model):
    """The answer of the group. A `reason` other than `concluded` means that the goal was not reached."""

    type: Literal["CONCLUSION"] = "CONCLUSION"
    content: Content
    reason: Literal[Reason.CONCLUDED, Reason.NO_AGENT, Reason.FAILED] = Reason.CONCLUDED
    artifacts: Annotated[tuple[Artifact, ...], Field(max_length=MAX_ARTIFACTS)] = ()
    rejects: Rejects = ()


class PassCause(StrEnum):
    """Reason for which a member passes."""

    NOTHING_TO_ADD = "nothing_to_add"
    MODEL_UNAVAILABLE = "model_unavailable"
    NO_USABLE_ANSWER = "no_usable_answer"


class Pass(Model):
    """Pass the floor to the next member at once, with a reason, instead of waiting for the timeout."""

    type: Literal["PASS"] = "PASS"
    cause: PassCause
    content: Annotated[str, Field(max_length=2_000)] = ""


class Thinking(Model):
    """Keep the floor for the same time again, because a decision takes long; only for members with patience on their card."""

    type: Literal["THINKING"] = "THINKING"
    note: Annotated[str, Field(max_length=200)] = ""


class AskUser(Question):
    """Ask the user of the goal. The discussion waits; tasks continue."""

    type: Literal["ASK_USER"] = "ASK_USER"


class TaskQuestion(Question):
    """Ask the assigner of a running task, or the user of the goal. The floor is not needed.

    Attributes:
        number: Counts 1, 2, 3 … for each task.
        role: Role of the person that is asked, such as `operator`; then only the user of the goal answers.
    """

    type: Literal["TASK_QUESTION"] = "TASK_QUESTION"
    task_id: TaskIdField
    number: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    role: Annotated[Name | None, OMITTED_IF_EMPTY] = None


Payload = Annotated[
    Discussion
    | Decision
    | SyncTaskAssignment
    | AsyncTaskAssignment
    | InformTaskProgress
    | InformTaskResult
    | Pause
    | ConcludeGroupDiscussion
    | Conclusion
    | Pass
    | Thinking
    | AskUser
    | TaskQuestion,
    Field(discriminator="type"),
]

TASK_REPORTS = (InformTaskProgress, InformTaskResult)
"""The kinds that an assignee may send without the floor."""

ASSIGNMENTS = (SyncTaskAssignment, AsyncTaskAssignment)

MAY_REJECT = (Discussion, SyncTaskAssignment, AsyncTaskAssignment, Pause, ConcludeGroupDiscussion, Conclusion)
"""The kinds that may reject results."""


def rejects_of(payload: Payload) -> tuple[RejectedTask, ...]:
    """Return the rejections of a message, including the rejections of its conclusion."""
    if isinstance(payload, Discussion):
        return payload.rejects
    if isinstance(payload, ConcludeGroupDiscussion) and payload.conclusion is not None:
        return (*payload.rejects, *payload.conclusion.rejects)
    return payload.rejects if isinstance(payload, MAY_REJECT) else ()


class Header(Model):
    """Sender, group, and position of the sender in the log.

    Attributes:
        turn: The turn of the floor; the assignee of a task repeats the turn of its assignment.
        after: The last log sequence that the sender had applied; its message is appended after it.
        state: The phase of the group as the sender knew it.
        usage: Usage of the sender for this message, rejected attempts included. Reports of tasks contain the usage of tasks.
        calls: Calls of the sender's model for it, in order.
        decided_by: What decided the message, according to its sender.
        session: The process that sends it; the router rejects a process that was replaced. No entry contains it.
    """

    message_id: MessageIdField
    comm_id: CommIdField
    sender: AgentIdField
    state: Phase
    turn: Count
    after: Count
    sent_at: Time
    usage: Usage | None = None
    calls: ModelCalls = ()
    decided_by: DecidedBy | None = None
    session: SessionIdField | None = None
    traceparent: Annotated[str, Field(max_length=200)] = ""


class Message(Model):
    """A message of a member."""

    header: Header
    payload: Payload

    @model_validator(mode="after")
    def _task_ids_are_unique(self) -> Message:
        if isinstance(self.payload, ASSIGNMENTS):
            ids = [task.task_id for task in self.payload.tasks]
            if len(set(ids)) != len(ids):
                raise ValueError("an assignment names one task id twice")
        return self
