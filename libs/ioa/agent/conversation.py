"""A group's conversation and its members, as authors' functions are shown them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ioa.group.state import OpenTask
from ioa.ports.brain import GroupView, Reply, TaskRecord
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
    TaskQuestion,
    TaskSpec,
    Thinking,
    rejects_of,
)
from ioa.protocol.policy import FieldValue

_MAX_SAID_BYTES = MAX_CONTENT_CHARS
"""How much of what was said a function is told in a turn: as much as may be said to it with a task."""
_LEFT_OUT = "[… the beginning is left out …]"

HeardKind = Literal["message", "decision", "task", "result", "rejection", "conclusion", "question", "answer"]


@dataclass(frozen=True)
class Heard:
    """Something that was said in the group, as this member was shown it.

    Attributes:
        turn: The turn it was said in; a result has the turn of its task.
        sender: Who said it; of a task, who gave it out.
        kind: `message`, `decision`, `task`, `result`, `rejection`, `conclusion`, `question` or `answer`. A task that ended without
            a report has a result too, which says why. A question goes out of the group; its answer follows it.
        content: The words; of a decision, what was chosen; of a task, what is to be done; of a rejection, why a result must not be
            used.
        task_id: Of a task, its result, and its rejection.
        assignee: Who was given the task.
        fields: What a message fills in.
        why: Of a decision, its reason, if it has one; of an answer that nobody gave in time, that it is the default.
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
    """Another member of the group. `online` is as the group knew it when this was asked."""

    agent_id: AgentId
    description: str
    examples: tuple[str, ...]
    online: bool


@dataclass(frozen=True)
class GivenOut:
    """How a task was given out.

    Attributes:
        asked_by: Who gave it.
        reason: What was said with it.
        rejected: Why what was done before was not taken, a line for each result; empty if nothing was.
    """

    asked_by: AgentId
    reason: str = ""
    rejected: str = ""


class _Known(dict[int, tuple[Message, Sequence[Heard]]]):
    """What was told of messages, by their identity, since senders choose ids; with each stands its message, so that it lasts."""


def heard(view: GroupView) -> tuple[Heard, ...]:
    """Tell all that was said so far, in the group's order."""
    return tuple([one for _, parts in _by_entry(view) for one in parts])


def _by_entry(view: GroupView) -> Iterator[tuple[Message | TaskRecord, Sequence[Heard]]]:
    """Tell what was said by each entry. What a message alone says is told once for all views of its group: each turn has one."""
    known: _Known = view.kept.setdefault(_Known, _Known())
    turns: dict[TaskId, int] = {}
    for entry in view.log:
        if not isinstance(entry, Message) or isinstance(entry.payload, SyncTaskAssignment | AsyncTaskAssignment | AskUser):
            yield entry, tuple(_heard(entry, turns, view.replies))
            continue
        if id(entry) not in known:
            known[id(entry)] = entry, tuple(_heard(entry, turns, view.replies))
        yield entry, known[id(entry)][1]


def _heard(  # noqa: C901 - one flat case for each kind
    entry: Message | TaskRecord, turns: dict[TaskId, int], replies: Mapping[int, Reply]
) -> Iterator[Heard]:
    if isinstance(entry, TaskRecord):
        spec = entry.spec
        yield Heard(turns.get(spec.task_id, 0), spec.assignee, "result", entry.conclusion, spec.task_id, spec.assignee)
        return
    sender, turn, payload = entry.header.sender, entry.header.turn, entry.payload
    for rejected in rejects_of(payload):
        yield Heard(turn, sender, "rejection", rejected.why, rejected.task_id)
    match payload:
        case SyncTaskAssignment(content=content, tasks=tasks) | AsyncTaskAssignment(content=content, tasks=tasks):
            if content:
                yield Heard(turn, sender, "message", content)
            for spec in tasks:
                turns[spec.task_id] = turn
                yield Heard(turn, sender, "task", spec.task_desc, spec.task_id, spec.assignee)
        case InformTaskResult(task_id=task_id, task_conclusion=content):
            yield Heard(turn, sender, "result", content, task_id, sender)
        case InformTaskProgress() | Thinking():
            return
        case AskUser(text=text):
            yield Heard(turn, sender, "question", text)
            if (reply := replies.get(turn)) is not None:
                why = "" if reply.by else "nobody answered in time: this is the default"
                yield Heard(turn, AgentId(reply.by or sender), "answer", reply.text, why=why)
        case TaskQuestion(text=text, task_id=task_id):
            yield Heard(turn, sender, "question", text, task_id)
        case Decision(choice=choice, task_id=str(task_id)):
            yield Heard(turn, sender, "answer", choice, task_id)
        case Conclusion(content=content) | ConcludeGroupDiscussion(conclusion=Conclusion(content=content)):
            yield Heard(turn, sender, "conclusion", content)
        case Decision(choice=choice, content=why):
            yield Heard(turn, sender, "decision", choice, why=why)
        case Discussion(content=content, fields=fields):
            yield Heard(turn, sender, "message", content, fields=fields)
        case _ if payload.content:
            yield Heard(turn, sender, "message", payload.content)


def conversation_of(view: GroupView) -> tuple[Heard, ...]:
    """Tell what was said so far, without what somebody has decided: who judges or watches is no part of the talk."""
    return tuple([one for one in heard(view) if one.kind != "decision"])


def decisions_of(view: GroupView) -> tuple[Heard, ...]:
    """Tell what was decided so far, of which this member was told."""
    return tuple([one for one in heard(view) if one.kind == "decision"])


def heard_in(view: GroupView) -> Mapping[str, Sequence[Heard]]:
    """Tell what was said by each message, and by each task that ended without one, by what names it."""
    return {name_of_entry(entry): parts for entry, parts in _by_entry(view)}


def name_of_entry(entry: Message | TaskRecord) -> str:
    """Name a message, or a task that ended without one, once and for all."""
    return named(entry.header.sender, entry.header.message_id) if isinstance(entry, Message) else f"ended:{entry.spec.task_id}"


def named(sender: AgentId, message_id: MessageId) -> str:
    """Name a message by its sender and its id: anybody may give his own the id of another's."""
    return f"{sender}/{message_id}"


def kept(view: GroupView, keep: Callable[[Heard], object]) -> GroupView:
    """Leave out of a view each message, and each task that ended without one, of which `keep` says nothing is to be shown."""
    told = heard_in(view)
    dropped = {name for name, parts in told.items() if parts and not any(keep(one) for one in parts)}
    return replace(without(view, dropped), board=tuple([one for one in view.board if named(one.by, one.message_id) not in dropped]))


def without(view: GroupView, dropped: Collection[str]) -> GroupView:
    """Leave entries out of a view, by their names."""
    return replace(
        view,
        log=tuple([entry for entry in view.log if name_of_entry(entry) not in dropped]),
        messages=tuple([message for message in view.messages if name_of_entry(message) not in dropped]),
    )


def board_lines(view: GroupView) -> list[str]:
    """Tell what stands on the board; of what a message still in sight says as a whole, only where."""
    in_sight = {
        (name_of_entry(message), message.payload.content) for message in view.messages if isinstance(message.payload, Discussion)
    }
    lines = []
    for one in view.board:
        told = f"{one.name}, version {one.version}"
        is_shown = (named(one.by, one.message_id), one.text) in in_sight
        lines.append(f"{told}, as {one.by} says in turn {one.turn}" if is_shown else attributed(f"{told}, by {one.by}", one.text))
    return lines


def attributed(name: str, text: str) -> str:
    """Write what somebody said below each other's: its first line alone begins at the margin, so that no text begins another's."""
    return f"{name}: " + "\n  ".join(text.splitlines())


def set_off(heading: str, text: str) -> str:
    """Write somebody's text below a heading, each line indented alike: `textwrap.dedent` gives it back as it was."""
    return f"{heading}:\n" + "".join([f"  {line}" for line in text.splitlines(keepends=True)])


def said_last(said: Sequence[Heard], most_bytes: int) -> str:
    """Write what was said below each other's, or of more than so many bytes the end.

    What is left out is not written either: of as much as an agent keeps that would take several times the room, in one go.
    """
    lines: list[str] = []
    for one in reversed(said):
        line = attributed(one.sender, one.content[-most_bytes:])
        data = line.encode("utf-8", "replace")
        if len(data) > most_bytes:
            room = max(0, most_bytes - len(f"{one.sender}: "))
            lines.append(f"{one.sender}: {_LEFT_OUT}\n  {data[len(data) - room :].decode('utf-8', 'ignore')}")
            break
        lines.append(line)
        most_bytes = max(1, most_bytes - len(data) - 1)
    return "\n".join(reversed(lines))


def told_of_part(view: GroupView) -> str:
    """Tell in plain words what a member is to say in its turn: its part, the goal, and what it has heard, or the end of that."""
    part = view.part
    prompts = () if part is None else part.prompts
    remembered = [view.memory] if view.memory else []
    spoken = [one for one in heard(view) if one.kind in ("message", "question", "answer", "result")]
    said = ["What was said so far:", said_last(spoken, _MAX_SAID_BYTES)] if spoken else []
    board = ["On the board:", *board_lines(view)] if view.board else []
    return "\n".join([*prompts, view.charter.goal, *remembered, *board, *said])


def teammates(view: GroupView) -> tuple[Teammate, ...]:
    """Tell who else is in the group; whoever was removed is not."""
    living, hearing = view.state.living(), view.state.hearing
    return tuple(
        Teammate(card.agent_id, card.description, tuple(card.examples), card.agent_id in living)
        for card in view.charter.team_members
        if card.agent_id != view.me and card.agent_id in hearing
    )


def assignment_of(messages: Sequence[Message], spec: TaskSpec) -> Message | None:
    """Find the message that gave a task out; a planned task, or one given out where these messages were not read, has none."""
    for message in reversed(messages):
        if isinstance(message.payload, SyncTaskAssignment | AsyncTaskAssignment) and spec in message.payload.tasks:
            return message
    return None


def given_out(view: GroupView, spec: TaskSpec) -> GivenOut:
    """Say how a task was given out; a planned task is the leader's.

    It is given out anew after a rejection if it uses what was rejected, or if the same message rejects what its assignee did.
    """
    task = view.state.task(spec.task_id)
    asked_by, reason, at_once = (task.assigner if isinstance(task, OpenTask) else view.charter.owner), "", frozenset[TaskId]()
    match assignment_of(view.messages, spec):
        case Message(header=header, payload=SyncTaskAssignment() | AsyncTaskAssignment() as payload):
            asked_by, reason, at_once = header.sender, payload.content, frozenset(one.task_id for one in payload.rejects)
    rejected = [
        record.rejected
        for record in view.tasks
        if record.spec.task_id in spec.uses or (record.spec.task_id in at_once and record.spec.assignee == spec.assignee)
    ]
    return GivenOut(asked_by, reason, "\n".join(filter(None, rejected)))
