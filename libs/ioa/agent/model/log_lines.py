"""The log of a group as a model reads it: lines that are never rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ioa.agent.model.budget import tokens_of
from ioa.agent.model.prompts import Ends, ends_of
from ioa.agent.turn_view import TurnView
from ioa.fences import Tag, defused, fenced, in_one_line
from ioa.ports.brain import Reply, TaskRecord
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Decision,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Pass,
    Pause,
    SyncTaskAssignment,
    TaskQuestion,
    TaskSpec,
    Thinking,
    rejects_of,
)

_MAX_FILES = 20
_LONGEST_NAME = "m99999"
"""A line counts as one of this name, so that its size stays what it is."""


@dataclass(frozen=True)
class LogLine:
    """One line of the log, whatever name it has where it is shown; all but `body` is never cut.

    Attributes:
        tag: What it is fenced by.
        opening: What stands behind its name.
        gives: The tasks it gives out.
        ends: The task whose end it is, by which READ calls its text then.
    """

    tag: Tag
    opening: str
    body: str
    closing: str
    gives: tuple[TaskId, ...] = ()
    ends: TaskId | None = None

    @property
    def size(self) -> int:
        """How many tokens it takes, whatever its name is."""
        return tokens_of(self.shown(_LONGEST_NAME)) + 1

    def shown(self, name: str, most_tokens: int | None = None) -> str:
        """Return the line, its text cut if it would be longer."""
        if most_tokens is None:
            return _put(_opened(self.tag, name, self.opening), self.body, self.closing)
        return self.shortened(most_tokens).shown(name, most_tokens)

    def shortened(self, most_tokens: int) -> ShortLine:
        """Return as much of it as stands in at most so many tokens."""
        return ShortLine(self.tag, self.opening, ends_of(self.body, most_tokens * 3), self.closing, self.ends)


@dataclass(frozen=True)
class ShortLine:
    """A line without the middle of its text, which is shown as all of it would be where there is room for no more."""

    tag: Tag
    opening: str
    text: Ends
    closing: str
    ends: TaskId | None

    def shown(self, name: str, most_tokens: int) -> str:
        """Return the line in at most so many tokens."""
        opening = _opened(self.tag, name, self.opening)
        around = len(f"{opening}\n\n{self.closing}".encode("utf-8", "replace"))
        return _put(opening, self.text.cut(max(0, most_tokens * 3 - around), self.ends or name), self.closing)


def _opened(tag: Tag, name: str, opening: str) -> str:
    return f"<{tag} {name} {opening}"


def _put(*parts: str) -> str:
    return "\n".join(filter(None, parts))


class LogEntry(NamedTuple):
    """What has a line in the log. The line is made when it is wanted, which takes a look at all of its text, and without its name.

    That moves where what was said before is shown no more.

    Attributes:
        name: What READ calls it by its number.
        item: What was said, or has ended.
        spec: The task whose end it is.
        thought: What the reader thought then.
        reply: What a question was answered.
    """

    name: str
    item: Message | TaskRecord
    spec: TaskSpec | None = None
    thought: str = ""
    reply: Reply | None = None

    @property
    def what(self) -> str:
        """What READ calls its text."""
        return self.name if self.spec is None else self.spec.task_id

    def line(self) -> LogLine:
        """Return its line."""
        item = self.item
        if isinstance(item, TaskRecord):
            return _result(item.spec, str(item.outcome), item.conclusion, item.artifacts)
        payload = item.payload
        if isinstance(payload, InformTaskResult) and self.spec is not None:
            return _result(self.spec, payload.outcome, payload.task_conclusion, payload.artifacts)
        line = _message(item, self.thought)
        return line if self.reply is None else _with_reply(line, self.reply)


def entries_of(view: TurnView, thoughts: Mapping[int, str]) -> list[LogEntry]:
    """All of a group's log that has a line; `thoughts` are the reader's own, by turn."""
    entries: list[LogEntry] = []
    specs = {task.spec.task_id: task.spec for task in view.tasks}
    for item in view.log:
        name = f"m{len(entries) + 1}"
        if isinstance(item, TaskRecord):
            entries.append(LogEntry(name, item, item.spec))
        elif isinstance(item.payload, InformTaskResult):
            if (spec := specs.get(item.payload.task_id)) is not None:
                entries.append(LogEntry(name, item, spec))
        elif not isinstance(item.payload, InformTaskProgress):
            thought = thoughts.get(item.header.turn, "") if item.header.sender == view.me else ""
            reply = view.replies.get(item.header.turn) if isinstance(item.payload, AskUser) else None
            entries.append(LogEntry(name, item, None, thought, reply))
    return entries


def _with_reply(line: LogLine, reply: Reply) -> LogLine:
    """Put the answer behind the question."""
    by = f"from {in_one_line(reply.by)}" if reply.by else "that stands, since nobody answered in time"
    return replace(line, closing="\n".join(filter(None, (line.closing, fenced("answer", defused(reply.text), by)))))


def text_of(item: Message) -> str:
    """Return what a message says, as its line shows it and READ counts it."""
    payload = item.payload
    rejected = [fenced("rejected", defused(one.why), one.task_id) for one in rejects_of(payload)]
    match payload:
        case SyncTaskAssignment() | AsyncTaskAssignment():
            return "\n".join(filter(None, [*rejected, defused(payload.content), *map(_task, payload.tasks)]))
        case InformTaskResult():
            return defused(payload.task_conclusion)
        case Thinking():
            return ""
        case AskUser(text=text, options=options) | TaskQuestion(text=text, options=options):
            return "\n".join(filter(None, [defused(text), *_choices("one of", options)]))
        case Decision(choice=choice, content=content):
            return "\n".join(filter(None, [*_choices("choice", [choice]), defused(content)]))
        case Discussion(question=question, fields=fields, writes=writes) if question or fields or writes:
            asks = [f"asks for {', '.join(one.name for one in question)}"] if question else []
            told = [f"{name}: {in_one_line(str(value))}" for name, value in fields.items()]
            on_board = [f"writes {', '.join(map(in_one_line, writes))} on the board"] if writes else []
            return "\n".join(filter(None, [*rejected, defused(payload.content), *asks, *told, *on_board]))
        case _:
            return "\n".join(filter(None, [*rejected, defused(payload.content)]))


def _choices(said: str, options: Sequence[str]) -> list[str]:
    """Tell what may be chosen, or was: others wrote it, so that it stands among the data, and not in a tag beside who says it."""
    return [f"{said}: {', '.join(map(in_one_line, options))}"] if any(options) else []


def file_lines(task_id: TaskId, files: Sequence[Artifact]) -> str:
    """Name the files of a task by what READ calls them."""
    named = [described(f"{task_id}/{in_one_line(file.name)}", file) for file in files[:_MAX_FILES]]
    more = [f"[… {len(files) - _MAX_FILES} more]"] if len(files) > _MAX_FILES else []
    return f"files: {', '.join([*named, *more])}" if named else ""


def described(name: str, file: Artifact) -> str:
    """Return a file with its kind and size."""
    return f"{name} ({in_one_line(file.media_type)}, {file.size_bytes:,} bytes)"


def _message(message: Message, thought: str) -> LogLine:
    payload, sender = message.payload, message.header.sender
    gives: tuple[TaskId, ...] = ()
    match payload:
        case Discussion(next_speakers=(_, *_) as several):
            kind = f"DISCUSSION from {sender} to {' '.join(several)}, side by side"
        case Decision():
            kind = f"DECIDE from {sender}"
        case Discussion(next_speaker=other, go=go):
            kind = f"DISCUSSION from {sender}" + (f" to {other}" if other else f" going to {go}" if go else "")
        case SyncTaskAssignment(tasks=tasks) | AsyncTaskAssignment(tasks=tasks):
            kind = f"ASSIGN {'wait' if isinstance(payload, SyncTaskAssignment) else 'go_on'} from {sender}"
            gives = tuple(task.task_id for task in tasks)
        case AskUser():
            kind = f"ASK from {sender}"
        case Pause(triggers=triggers):
            kind = f"PAUSE from {sender} for {' '.join(triggers)}"
        case ConcludeGroupDiscussion():
            kind = f"CONCLUDE from {sender}"
        case Pass(cause=cause):
            kind = f"PASS {cause} from {sender}"
        case _:
            kind = f"{payload.type} from {sender}"
    opening = "\n".join(filter(None, (f"{kind}>", fenced("thought", defused(thought)))))
    return LogLine("message", opening, text_of(message), "</message>", gives)


def _result(spec: TaskSpec, outcome: str, text: str, files: Sequence[Artifact]) -> LogLine:
    closing = "\n".join(filter(None, (file_lines(spec.task_id, files), "</result>")))
    opening = f"{spec.task_id} {outcome} by {spec.assignee}>"
    return LogLine("result", opening, defused(text), closing, ends=spec.task_id)


def _task(spec: TaskSpec) -> str:
    uses = f" uses {' '.join(spec.uses)}" if spec.uses else ""
    team = f" team {spec.team}" if spec.team else ""
    return fenced("task", defused(spec.task_desc), f"{spec.task_id} to {spec.assignee}{uses}{team}")
