"""Conversation and members of a group, for the functions of authors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from ioa.ports.brain_types import Reply, TaskRecord
from ioa.protocol.ids import AgentId, MessageId, TaskId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Message,
    SyncTaskAssignment,
    TaskOutcome,
    TaskQuestion,
    Thinking,
    rejects_of,
)
from ioa.protocol.policy_parts import FieldValue

HeardKind = Literal["message", "decision", "task", "result", "failure", "rejection", "conclusion", "question", "answer"]


@dataclass(frozen=True)
class Heard:
    """A part of the conversation that this member has read.

    Attributes:
        turn: The turn of the message; of a result, the turn of its task.
        sender: The sender; of a task, its assigner.
        kind: `message`, `decision`, `task`, `result`, `failure`, `rejection`, `conclusion`, `question` or `answer`. A task that
            ended without a result has a failure with the reason. A question is for the user or an assigner; its answer follows it.
        content: The text; of a decision, the chosen option; of a task, its description; of a rejection, the reason.
        task_id: The task of a task, result, failure or rejection.
        assignee: The assignee of a task.
        fields: Values of a form.
        why: The reason of a decision; of an answer, that it is the default.
    """

    turn: int
    sender: AgentId
    kind: HeardKind
    content: str
    task_id: TaskId | None = None
    assignee: AgentId | None = None
    fields: Mapping[str, FieldValue] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True)
class Teammate:
    """Another member of the group."""

    agent_id: AgentId
    description: str
    examples: tuple[str, ...]
    online: bool


def read_conversation(log: Iterable[Message | TaskRecord], replies: Mapping[int, Reply]) -> tuple[Heard, ...]:
    """Return the parts of a log, in the group's order.

    Args:
        log: The messages, and the tasks that ended without a message.
        replies: The answers to questions to the user, by the turn of the question.
    """
    turns: dict[TaskId, int] = {}
    return tuple([part for entry in log for part in read_entry(entry, turns, replies)])


def read_entry(  # noqa: C901 - one flat case for each kind
    entry: Message | TaskRecord, turns: dict[TaskId, int], replies: Mapping[int, Reply]
) -> Iterator[Heard]:
    """Yield the parts of an entry; `turns` has the turn of each task so far; the tasks of the entry are added."""
    if isinstance(entry, TaskRecord):
        spec = entry.spec
        yield Heard(turns.get(spec.task_id, 0), spec.assignee, "failure", entry.conclusion, spec.task_id, spec.assignee)
        return
    sender, turn, payload = entry.header.sender, entry.header.turn, entry.payload
    part = partial(Heard, turn, sender)
    for rejected in rejects_of(payload):
        yield part("rejection", rejected.why, rejected.task_id)
    match payload:
        case SyncTaskAssignment(content=content, tasks=tasks) | AsyncTaskAssignment(content=content, tasks=tasks):
            if content:
                yield part("message", content)
            for spec in tasks:
                turns[spec.task_id] = turn
                yield part("task", spec.task_desc, spec.task_id, spec.assignee)
        case InformTaskResult(task_id=task_id, task_conclusion=content, outcome=outcome):
            yield part("result" if outcome is TaskOutcome.DONE else "failure", content, task_id, sender)
        case InformTaskProgress() | Thinking():
            return
        case AskUser(text=text):
            yield part("question", text)
            if (reply := replies.get(turn)) is not None:
                why = "" if reply.by else "no answer arrived in time: this is the default"
                yield Heard(turn, AgentId(reply.by or sender), "answer", reply.text, why=why)
        case TaskQuestion(text=text, task_id=task_id):
            yield part("question", text, task_id)
        case Decision(choice=choice, task_id=str(task_id)):
            yield part("answer", choice, task_id)
        case Conclusion(content=content) | ConcludeGroupDiscussion(conclusion=Conclusion(content=content)):
            yield part("conclusion", content)
        case Decision(choice=choice, content=why):
            yield part("decision", choice, why=why)
        case Discussion(content=content, fields=fields):
            yield part("message", content, fields=fields)
        case _ if payload.content:
            yield part("message", payload.content)


def name_of_entry(entry: Message | TaskRecord) -> str:
    """Return the name of a message, or of a task that ended without a message."""
    return named(entry.header.sender, entry.header.message_id) if isinstance(entry, Message) else f"ended:{entry.spec.task_id}"


def named(sender: AgentId, message_id: MessageId) -> str:
    """Return the name of a message; only its sender makes its id unique."""
    return f"{sender}/{message_id}"
