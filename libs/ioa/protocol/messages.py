"""The messages of a group chat: one class per speech act, a header and a payload (paper, section 2.3 and figure 7).

A payload has only the fields its kind has. What happens next is decided by these fields and never by reading prose.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from ioa.protocol.decisions import DecidedBy
from ioa.protocol.goals import Artifact, ObjectName, Reason
from ioa.protocol.ids import AgentIdField, CommIdField, MessageIdField, SessionIdField, TaskIdField
from ioa.protocol.model import Model, Time
from ioa.protocol.model_calls import ModelCalls
from ioa.protocol.named_teams import ReferenceField
from ioa.protocol.policy import MAX_FIELDS, MAX_WRITES, FieldValue, FormField, Name
from ioa.protocol.questions import MAX_QUESTION_CHARS, Question
from ioa.protocol.usage import MAX_COUNT, Count, OverheadField, Usage

MAX_CONTENT_CHARS = 200_000
MAX_DRAFT_CHARS = 4_000
MAX_TASKS_PER_ASSIGNMENT = 32
MAX_ARTIFACTS = 100
"""How many files a result or a conclusion may have."""
MAX_LACKING = 8
"""So many objects that are not there are named, the first ones."""
MAX_REJECTS = 32
"""How many results one message may reject."""
MAX_SEATS = 63
"""How many members may be named to speak side by side."""
MAX_QUESTION_FIELDS = 4
"""How many fields a question may have."""

Content = Annotated[str, Field(max_length=MAX_CONTENT_CHARS)]


class Phase(StrEnum):
    """Where a group stands (paper, section 2.3.3). The last three are terminal and absorbing."""

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
        """Whether nothing can happen in the group any more."""
        return self in _TERMINAL


_TERMINAL = frozenset({Phase.CONCLUDED, Phase.FAILED, Phase.CANCELLED})


class TaskSpec(Model):
    """A task given to one assignee.

    Attributes:
        uses: Tasks of the group, or of the same message, whose results feed this one. It starts when all of them are done.
        timeout: How long the task may take from its start, whatever progress it reports; without it, as long as its group.
        team: The stored team, as `NAME` or `NAME@VERSION`, that serves it in a nested group; None: its assignee decides.
    """

    task_id: TaskIdField
    assignee: AgentIdField
    task_desc: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT_CHARS)]
    task_abstract: Annotated[str, Field(max_length=500)] = ""
    uses: Annotated[tuple[TaskIdField, ...], Field(max_length=MAX_TASKS_PER_ASSIGNMENT)] = ()
    timeout: Annotated[timedelta, Field(gt=timedelta(0), le=timedelta(days=365))] | None = None
    team: Annotated[ReferenceField | None, Field(exclude_if=operator.not_)] = None


TaskList = Annotated[tuple[TaskSpec, ...], Field(min_length=1, max_length=MAX_TASKS_PER_ASSIGNMENT)]


class RejectedTask(Model):
    """A task that is done, whose result the floor holder does not take, and why."""

    task_id: TaskIdField
    why: Annotated[str, Field(min_length=1, max_length=2_000)]


Rejects = Annotated[tuple[RejectedTask, ...], Field(max_length=MAX_REJECTS)]


class Discussion(Model):
    """Say something and hand the floor to another member, or to several side by side; under a policy, to whom it chooses.

    Attributes:
        next_speaker: Who has the floor next. None where a policy leads the group, where several are named, and in an answer to who
            has named several.
        go: The way out of the policy's node that the speaker chooses.
        next_speakers: Who speaks next, side by side; then the floor returns.
        question: What each of them is to fill in.
        fields: What the sender fills in, of the question it answers, or of the form of the policy's node.
        to: Who of those that would hear this is to hear it, besides who hears all; empty: all of them.
        writes: What it writes on the board, of that which the policy's node writes, by name; an empty text stands for its content.
    """

    type: Literal["DISCUSSION"] = "DISCUSSION"
    content: Content
    next_speaker: AgentIdField | None = None
    rejects: Rejects = ()
    go: Annotated[Name | None, Field(exclude_if=operator.not_)] = None
    next_speakers: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_SEATS, exclude_if=operator.not_)] = ()
    question: Annotated[tuple[FormField, ...], Field(max_length=MAX_QUESTION_FIELDS, exclude_if=operator.not_)] = ()
    fields: Annotated[Mapping[Name, FieldValue], Field(max_length=MAX_FIELDS, exclude_if=operator.not_)] = Field(
        default_factory=dict
    )
    to: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_SEATS, exclude_if=operator.not_)] = ()
    writes: Annotated[Mapping[Name, Content], Field(max_length=MAX_WRITES, exclude_if=operator.not_)] = Field(default_factory=dict)


class Decision(Model):
    """Choose one of the options that one was asked to choose from, or answer what a task asks.

    Attributes:
        choice: One of the options; to a task that gives none, the answer.
        content: Why; of a hint, what is told.
        members: Whom a watcher removes, or tells something.
        task_id: The task that asks; its assigner answers without the floor.
        number: Which of the task's questions is meant; 0: whichever waits.
    """

    type: Literal["DECISION"] = "DECISION"
    choice: Annotated[str, Field(max_length=MAX_QUESTION_CHARS)]
    content: Annotated[str, Field(max_length=2_000)] = ""
    members: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_SEATS, exclude_if=operator.not_)] = ()
    task_id: Annotated[TaskIdField | None, Field(exclude_if=operator.not_)] = None
    number: Annotated[Count, Field(exclude_if=operator.not_)] = 0


class SyncTaskAssignment(Model):
    """Give out tasks and wait for all of them before the discussion goes on."""

    type: Literal["SYNC_TASK_ASSIGNMENT"] = "SYNC_TASK_ASSIGNMENT"
    content: Content = ""
    tasks: TaskList
    rejects: Rejects = ()


class AsyncTaskAssignment(Model):
    """Give out tasks that run beside the discussion."""

    type: Literal["ASYNC_TASK_ASSIGNMENT"] = "ASYNC_TASK_ASSIGNMENT"
    content: Content = ""
    tasks: TaskList
    rejects: Rejects = ()


class InformTaskProgress(Model):
    """Acknowledge a task or report how far it is; renews the task's lease.

    Attributes:
        number: Counts 1, 2, 3 … for each task.
        usage: What the task has cost so far, in all its attempts, so that a report that is lost or repeated miscounts nothing.
        draft: The end of what a model has written of the result so far, shown to whoever follows. It is in no entry of a log.
    """

    type: Literal["INFORM_TASK_PROGRESS"] = "INFORM_TASK_PROGRESS"
    task_id: TaskIdField
    number: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    content: Content = ""
    fraction: Annotated[float, Field(ge=0, le=1)] | None = None
    usage: Usage | None = None
    draft: Annotated[str, Field(max_length=MAX_DRAFT_CHARS, exclude_if=operator.not_)] = ""


class TaskOutcome(StrEnum):
    """How a task was closed. One that is rejected was done before."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REJECTED = "rejected"


class InformTaskResult(Model):
    """Report the end of a task, once.

    Attributes:
        declined: It failed since such tasks are not what the agent does, so that its reason says little of the task.
        usage: What the whole task has cost.
        approach_usage: What of it was spent on deciding how to do it.
        calls: What the agent's model was asked for it, in order.
        traces: What the task noted of its steps, for people to look at. It is neither output nor input of anybody.
        lacks: It failed since these objects, to which its goal or results that it uses refer, are not there as they are described:
            this says nothing of its assignee.
    """

    type: Literal["INFORM_TASK_RESULT"] = "INFORM_TASK_RESULT"
    task_id: TaskIdField
    outcome: Literal[TaskOutcome.DONE, TaskOutcome.FAILED] = TaskOutcome.DONE
    task_conclusion: Content
    artifacts: Annotated[tuple[Artifact, ...], Field(max_length=MAX_ARTIFACTS)] = ()
    usage: Usage | None = None
    approach_usage: Usage | None = None
    calls: ModelCalls = ()
    traces: Annotated[tuple[Artifact, ...], Field(max_length=4)] = ()
    declined: bool = False
    lacks: Annotated[tuple[ObjectName, ...], Field(max_length=MAX_LACKING, exclude_if=operator.not_)] = ()


class Pause(Model):
    """Suspend the discussion until all triggers, tasks that are open or waiting, are closed."""

    type: Literal["PAUSE"] = "PAUSE"
    content: Content = ""
    triggers: Annotated[tuple[TaskIdField, ...], Field(min_length=1, max_length=256)]
    rejects: Rejects = ()


class ConcludeGroupDiscussion(Model):
    """Announce that nothing remains to be discussed. The speaker states the conclusion with it, or else next."""

    type: Literal["CONCLUDE_GROUP_DISCUSSION"] = "CONCLUDE_GROUP_DISCUSSION"
    content: Content = ""
    conclusion: Conclusion | None = None
    rejects: Rejects = ()


class Conclusion(Model):
    """The group's answer. A `reason` other than `concluded` says that the goal was not reached."""

    type: Literal["CONCLUSION"] = "CONCLUSION"
    content: Content
    reason: Literal[Reason.CONCLUDED, Reason.NO_AGENT, Reason.FAILED] = Reason.CONCLUDED
    artifacts: Annotated[tuple[Artifact, ...], Field(max_length=MAX_ARTIFACTS)] = ()
    rejects: Rejects = ()


class PassCause(StrEnum):
    """Why a member passes the floor on."""

    NOTHING_TO_ADD = "nothing_to_add"
    MODEL_UNAVAILABLE = "model_unavailable"
    NO_USABLE_ANSWER = "no_usable_answer"


class Pass(Model):
    """Hand the floor to whoever is next, at once and with the reason, instead of keeping silent until it runs out."""

    type: Literal["PASS"] = "PASS"
    cause: PassCause
    content: Annotated[str, Field(max_length=2_000)] = ""


class Thinking(Model):
    """Keep the floor for as long again, since a decision is under way; said by members with patience on their card."""

    type: Literal["THINKING"] = "THINKING"
    note: Annotated[str, Field(max_length=200)] = ""


class AskUser(Question):
    """Ask out of the group: the user of the goal, or in a nested team who gave out its task. The discussion waits, tasks go on."""

    type: Literal["ASK_USER"] = "ASK_USER"


class TaskQuestion(Question):
    """Ask what a running task has to know from who gave it out, or from the goal's user; the floor is not needed for it.

    Attributes:
        number: Counts 1, 2, 3 … for each task.
        role: As whom somebody is asked, such as an operator; only the goal's user answers then.
    """

    type: Literal["TASK_QUESTION"] = "TASK_QUESTION"
    task_id: TaskIdField
    number: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    role: Annotated[Name | None, Field(exclude_if=operator.not_)] = None


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
"""The kinds an assignee may send without the floor."""

_ASSIGNMENTS = (SyncTaskAssignment, AsyncTaskAssignment)

MAY_REJECT = (Discussion, SyncTaskAssignment, AsyncTaskAssignment, Pause, ConcludeGroupDiscussion, Conclusion)
"""The kinds that may reject results beside what they say."""


def rejects_of(payload: Payload) -> tuple[RejectedTask, ...]:
    """Return what a message rejects, with the conclusion that it may hold."""
    if isinstance(payload, ConcludeGroupDiscussion) and payload.conclusion is not None:
        return (*payload.rejects, *payload.conclusion.rejects)
    return payload.rejects if isinstance(payload, MAY_REJECT) else ()


class Header(Model):
    """Sender, group, and the log position that the sender had seen.

    Attributes:
        turn: The turn the floor was granted for; the assignee of a task repeats the turn of its assignment.
        after: The log sequence the sender had applied when it spoke; its message can only lie behind it.
        state: The phase of the group as the sender knew it.
        causation_id: The message this one answers.
        usage: What its sender has spent for it, thoughts that were refused included; None is nothing. What a task costs stands in
            the reports on the task.
        overhead: What of the usage came to nothing by itself; None is nothing.
        calls: What the sender's model was asked for it, in order.
        decided_by: Who decided what is said, by its sender's own word; None if it does not say.
        session: The process that speaks; one that another process has taken the agent's id from is refused. Routers alone are told:
            it stands in no entry.
    """

    message_id: MessageIdField
    comm_id: CommIdField
    sender: AgentIdField
    state: Phase
    turn: Annotated[int, Field(ge=0, le=MAX_COUNT)]
    after: Annotated[int, Field(ge=0, le=MAX_COUNT)]
    sent_at: Time
    causation_id: MessageIdField | None = None
    usage: Usage | None = None
    overhead: OverheadField = None
    calls: ModelCalls = ()
    decided_by: DecidedBy | None = None
    session: SessionIdField | None = None
    traceparent: Annotated[str, Field(max_length=200)] = ""


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
