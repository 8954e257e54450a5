"""Conversation and members of a group, for the functions of authors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from ioa.group.state import OpenTask
from ioa.ports.brain import Reply, TaskRecord
from ioa.protocol.ids import AgentId, MessageId, TaskId
from ioa.protocol.messages import (
    MAX_CONTENT_CHARS,
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
    TaskSpec,
    Thinking,
    rejects_of,
)
from ioa.protocol.policy_parts import FieldValue

if TYPE_CHECKING:
    from ioa.agent.task_context import TaskContext
    from ioa.agent.turn_view import TurnView

_MAX_SAID_BYTES = MAX_CONTENT_CHARS
"""Maximum bytes of the conversation that a function receives in a turn; a task may be as long."""
_LEFT_OUT = "[… the beginning is left out …]"

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


@dataclass(frozen=True)
class GivenOut:
    """How a task was assigned.

    Attributes:
        asked_by: The agent that assigned it.
        reason: The text of the assignment.
        rejected: The reasons why earlier results were rejected, one line for each.
    """

    asked_by: AgentId
    reason: str = ""
    rejected: str = ""


def read_conversation(view: TurnView) -> tuple[Heard, ...]:
    """Return the conversation so far, in the group's order."""
    turns: dict[TaskId, int] = {}
    return tuple([part for entry in view.log for part in _heard(entry, turns, view.replies)])


def heard_in(view: TurnView) -> Mapping[str, Sequence[Heard]]:
    """Return the parts of each message, and of each task that ended without a message, by the entry's name."""
    turns: dict[TaskId, int] = {}
    return {name_of_entry(entry): tuple(_heard(entry, turns, view.replies)) for entry in view.log}


def _heard(  # noqa: C901 - one flat case for each kind
    entry: Message | TaskRecord, turns: dict[TaskId, int], replies: Mapping[int, Reply]
) -> Iterator[Heard]:
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


def without(view: TurnView, dropped: Collection[str]) -> TurnView:
    """Return a view without entries, by their names."""
    return replace(view, log=tuple([entry for entry in view.log if name_of_entry(entry) not in dropped]))


def board_lines(view: TurnView) -> list[str]:
    """Return the items of the board as text; of an item that is a whole visible message, only its place."""
    in_sight = {
        (name_of_entry(message), message.payload.content) for message in view.messages if isinstance(message.payload, Discussion)
    }
    lines = []
    for one in view.board.values():
        told = f"{one.name}, version {one.version}"
        is_shown = (named(one.by, one.message_id), one.text) in in_sight
        lines.append(f"{told}, as {one.by} says in turn {one.turn}" if is_shown else attributed(f"{told}, by {one.by}", one.text))
    return lines


def attributed(name: str, text: str) -> str:
    """Write a text after the name of its author; only its first line is not indented, so that it cannot imitate another text."""
    return f"{name}: " + "\n  ".join(text.splitlines())


def set_off(heading: str, text: str) -> str:
    """Write a text below a heading, indented; `textwrap.dedent` restores it."""
    return f"{heading}:\n" + "".join([f"  {line}" for line in text.splitlines(keepends=True)])


def with_results(task: str, ctx: TaskContext) -> str:
    """Return a task and the results that it uses as one text."""
    told = [task]
    for result in ctx.results:
        rejected = [f"(rejected: {result.rejected})"] if result.rejected else []
        told.append(set_off(f"Result of an earlier task, {result.task_desc!r}", "\n".join([*rejected, result.content])))
    return "\n\n".join(told)


def said_last(said: Sequence[Heard], most_bytes: int) -> str:
    """Return the last part of a conversation as text, at most about `most_bytes` long."""
    data = "\n".join([attributed(one.sender, one.content) for one in said]).encode("utf-8", "replace")
    mark = f"{_LEFT_OUT} " if len(data) > most_bytes else ""
    return mark + data[-most_bytes:].decode("utf-8", "ignore")


def spoken(view: TurnView) -> list[Heard]:
    """Return the messages, questions and results of the conversation, in order."""
    return [one for one in read_conversation(view) if one.kind in ("message", "question", "answer", "result", "failure")]


def told_of_part(view: TurnView) -> str:
    """Return the task of a function that speaks in a turn: its part, the goal, and the last part of the conversation."""
    part = view.part
    prompts = () if part is None else part.prompts
    remembered = [view.memory] if view.memory else []
    heard = spoken(view)
    said = ["What was said so far:", said_last(heard, _MAX_SAID_BYTES)] if heard else []
    board = ["On the board:", *board_lines(view)] if view.board else []
    return "\n".join([*prompts, view.charter.goal, *remembered, *board, *said])


def teammates(view: TurnView) -> tuple[Teammate, ...]:
    """Return the other members of the group, without removed ones."""
    living, hearing = view.state.living(), view.state.hearing
    return tuple(
        Teammate(card.agent_id, card.description, tuple(card.examples), card.agent_id in living)
        for card in view.charter.team_members
        if card.agent_id != view.me and card.agent_id in hearing
    )


def given_out(view: TurnView, spec: TaskSpec) -> GivenOut:
    """Return how a task was assigned; the owner assigns planned tasks.

    It repeats a rejected task if it uses the rejected result, or if the same message rejects a result of its assignee.
    """
    task = view.state.task(spec.task_id)
    asked_by, reason, at_once = (task.assigner if isinstance(task, OpenTask) else view.charter.owner), "", frozenset[TaskId]()
    for message in view.messages:
        payload = message.payload
        if isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment) and spec in payload.tasks:
            asked_by, reason, at_once = message.header.sender, payload.content, frozenset(one.task_id for one in payload.rejects)
    rejected = [
        record.rejected
        for record in view.tasks
        if record.spec.task_id in spec.uses or (record.spec.task_id in at_once and record.spec.assignee == spec.assignee)
    ]
    return GivenOut(asked_by, reason, "\n".join(filter(None, rejected)))
